"""Imports that wait for their first use, and the question whether LightEval's built-in tasks are needed."""

import copy
import importlib
import json
import os
import pickle
import subprocess
import sys
import textwrap

import pytest
from forked_commands import run_forked

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.lighteval.deferred_imports import Deferred, defer_imports
from cultureval.runtime.patches.lighteval.start_up import DEFERRED, requested_names
from cultureval.runtime.patches.lighteval.start_up import needs_builtin_tasks as needs_builtin_tasks_beside
from cultureval.tasks.running import OWN_TASKS

HEAVY = """
import functools
from typing import NamedTuple

LOADED = True

class Base:
    def __init__(self, value=0):
        self.value = value
    def __eq__(self, other):
        return type(self) is type(other) and self.value == other.value

def twice(function):
    @functools.wraps(function)
    def doubled(*args):
        return 2 * function(*args)
    return doubled
"""
LIGHT = """
from collections.abc import Callable
import heavy_package.inner
from heavy_package.inner import Base, twice, Base as Renamed

def annotated(x: Base | None, y: Callable[[dict], Base] | None = None) -> "Base": ...

SETTINGS = {"base": Base(3)}

@twice
def number(x): return x + 1

def is_base(x): return isinstance(x, Base), issubclass(type(x), Base)

def derive():
    class Derived(Base):
        pass
    return Derived

def through_module(): return heavy_package.inner.Base(5).value

def imported_inside():
    from heavy_package.inner import LOADED
    return LOADED
"""


def deferred_names(module):
    return {name for name, value in vars(module).items() if isinstance(value, Deferred)}


@pytest.fixture
def light(tmp_path, monkeypatch):
    (tmp_path / "heavy_package").mkdir()
    (tmp_path / "heavy_package" / "__init__.py").write_text("")
    (tmp_path / "heavy_package" / "inner.py").write_text(HEAVY)
    (tmp_path / "light_module.py").write_text(LIGHT)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", sys.meta_path.copy())
    seen = []
    defer_imports({"light_module": {"heavy_package.inner"}}, then={"light_module": seen.append})
    module = importlib.import_module("light_module")
    assert seen == [module]
    assert deferred_names(module) == {"heavy_package", "Base", "twice", "Renamed", "number"}
    assert not any(name.startswith("heavy_package") for name in sys.modules)
    yield module
    for name in [name for name in sys.modules if name.startswith(("heavy_package", "light_module"))]:
        del sys.modules[name]


def test_isinstance_needs_no_import_and_stays_right_after_it(light):
    assert light.is_base(3) == (False, False)
    assert "heavy_package.inner" not in sys.modules
    derived = light.derive()
    assert derived.__mro__[1] is sys.modules["heavy_package.inner"].Base
    assert light.is_base(derived()) == (True, True) and light.is_base(3) == (False, False)


def test_a_call_while_loading_is_made_at_the_first_use_and_the_names_become_real(light):
    assert light.number(20) == 42
    assert light.number.__name__ == "number"
    assert light.through_module() == 5
    assert light.Base(1) == light.Renamed(1)
    assert light.imported_inside()
    assert deferred_names(light) == set()
    assert light.Base is light.Renamed is sys.modules["heavy_package.inner"].Base


def test_copies_and_pickles_hold_real_objects(light):
    held = light.SETTINGS["base"]
    for clone in (copy.deepcopy(light.SETTINGS)["base"], pickle.loads(pickle.dumps(held))):  # noqa: S301
        real = sys.modules["heavy_package.inner"].Base
        assert type(clone) is real and clone == real(3)


def test_other_importers_get_the_real_module(light):
    assert importlib.import_module("heavy_package.inner").LOADED
    from heavy_package.inner import Base

    assert isinstance(Base, type)


def test_a_missing_package_is_reported_at_first_use(light, tmp_path):
    (tmp_path / "heavy_package" / "inner.py").unlink()
    with pytest.raises(ModuleNotFoundError, match="heavy_package.inner"):
        light.Base()


@pytest.mark.parametrize(
    ("tasks", "names"),
    [
        ("a,b:c", ["a", "b:c"]),
        ("a|5", ["a"]),
        ("lighteval|a:b|0", ["a:b"]),
        ("a@k=1@n=2|3,b", ["a", "b"]),
    ],
)
def test_bare_names(tasks, names, tmp_path):
    assert requested_names(tasks) == names
    listed = tmp_path / "tasks.txt"
    listed.write_text("# a comment\n\n" + "\n".join(f"{task}  " for task in tasks.split(",")))
    assert requested_names(str(listed)) == names


def needs_builtin_tasks(tasks, custom_tasks):
    return needs_builtin_tasks_beside(tasks, custom_tasks, OWN_TASKS)


def test_when_builtin_tasks_are_needed(tmp_path):
    def custom(*names):
        file = tmp_path / f"tasks_{len(list(tmp_path.iterdir()))}.py"
        file.write_text(f"from types import SimpleNamespace\nTASKS_TABLE = [SimpleNamespace(name=n) for n in {names}]")
        return str(file)

    mine = custom("mine:a", "mine:b", "lone:a")
    assert not needs_builtin_tasks("mine", mine)
    assert not needs_builtin_tasks("mine:a|3,lone:a", mine)
    assert needs_builtin_tasks("lone", mine)  # LightEval has no group of one
    assert needs_builtin_tasks("mine:a,gsm8k", mine)
    assert needs_builtin_tasks(None, mine)
    assert needs_builtin_tasks("mmlu:mine", custom("mmlu:mine"))  # LightEval refuses a built-in task's name
    assert not needs_builtin_tasks("qimma_aratrust,qimma_aradice", None)
    assert not needs_builtin_tasks("qimma_aratrust", "cultureval.tasks")
    assert needs_builtin_tasks("gsm8k", None)
    with pytest.raises(CulturevalError, match="nowhere.py: there is no such file"):
        needs_builtin_tasks("a", "nowhere.py")


PREPARED = """
from cultureval.runtime.patches.lighteval.start_up import *
from cultureval.tasks.running import OWN_TASKS
prepare_lighteval(OWN_TASKS)
"""


def run_python(code):
    """Runs a program in a process in which nothing is loaded."""
    command = [sys.executable, "-c", PREPARED + textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout


def run_forked_python(code, folder):
    """Runs a program in a process that has loaded torch and the like, but nothing of LightEval."""
    (folder / "program.py").write_text(textwrap.dedent(code))
    done = run_forked("program", [], folder, os.environ | {"HF_HOME": str(folder / "hf")})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_source_scan_knows_every_builtin_task(tmp_path):
    code = """
    from lighteval.tasks.registry import Registry
    names = set(Registry()._task_registry)
    assert len(names) > 500
    print(sorted(name for name in names if not builtin_name_pattern().match(name)))
    """
    assert run_forked_python(PREPARED + textwrap.dedent(code), tmp_path).strip() == "[]"


def test_the_tasks_of_a_run_have_one_order_in_all_processes_that_share_it(tmp_path):
    """LightEval's is that of a set of texts: in each process another one, so that answers went to other rows."""
    code = """
    from lighteval.tasks.registry import Registry
    names = [f"mine:{number}|{shots}" for number in range(20) for shots in (0, 5)]
    registry = Registry(",".join(names), custom_tasks="table.py")
    assert registry.tasks_list == sorted(names), registry.tasks_list
    print([config.full_name for one in registry.task_to_configs.values() for config in one] == sorted(names))
    """
    rows = "[SimpleNamespace(name=f'mine:{n}', metrics=[]) for n in range(20)]"
    (tmp_path / "table.py").write_text(f"from types import SimpleNamespace\nTASKS_TABLE = {rows}")
    assert run_forked_python(PREPARED + textwrap.dedent(code), tmp_path).strip() == "True"


@pytest.mark.slow
def test_every_deferred_import_is_one_that_lighteval_makes_and_really_waits():
    code = f"""
    import importlib, sys
    from cultureval.runtime.patches.lighteval.deferred_imports import Deferred
    import lighteval.pipeline, lighteval.main_custom
    for heavy in ("inspect_ai", "sklearn", "nltk", "sacrebleu", "scipy.stats", "accelerate", "transformers.models.auto",
                  "lighteval.models.vllm.vllm_model", "lighteval.tasks.tasks"):
        assert heavy not in sys.modules, heavy
    for name in {sorted(DEFERRED)}:
        assert any(isinstance(value, Deferred) for value in vars(importlib.import_module(name)).values()), name
    """
    run_python(code)


@pytest.mark.slow
def test_metrics_that_use_deferred_packages_score_as_in_stock_lighteval(tmp_path):
    code = """
    import asyncio, json, logging
    from lighteval.metrics import apply_metric
    from lighteval.metrics.metrics import Metrics, math_scorer
    from lighteval.metrics.harness_compatibility.drop import DropMetrics
    from lighteval.models.model_output import ModelResponse
    from lighteval.tasks.requests import Doc
    docs = [Doc(query="q", choices=["the red cat", "a dog"], gold_index=i % 2, task_name="t", specific={
        "golds_no_preprocessing": [["the red cat"], ["a dog"]]}) for i in range(4)]
    replies = [ModelResponse(text=[text], logprobs=[-1.0, -2.0 + i], argmax_logits_eq_gold=[True, False])
               for i, text in enumerate(["the red cat", "a god", "red the cat 3", "dog"])]
    wanted = ("loglikelihood_f1", "mcc", "bleu", "chrf", "ter", "f1_score", "copyright", "drop", "loglikelihood_acc",
              "rougeL", "exact_match")
    scores = {}
    for name in wanted:
        metric = Metrics[name].value
        rows = apply_metric(docs=docs, responses=replies, metrics=[metric])
        for key, aggregate in metric.get_corpus_aggregations().items():
            scores[name + key] = float(aggregate([row[key] for row in rows]))
    scorer = math_scorer()
    state = type("State", (), {"output": type("Output", (), {"completion": "The answer is 4"})})
    score = asyncio.run(scorer(state, type("Target", (), {"text": "4"})))
    print(json.dumps([scores, type(score).__module__, score.value], sort_keys=True))
    """
    outputs = run_forked_python(code, tmp_path), run_python(code)
    stock, ours = (json.loads(output.splitlines()[-1]) for output in outputs)
    assert ours == stock
    assert len(ours[0]) > 10
