"""Results files of runs that differ in one setting each: `cultureval doctor FIRST SECOND` names every setting."""

import json
import shutil
from functools import partial

import pytest

from cultureval import reports
from cultureval.models.choice import check_model
from cultureval.reports.evaluation import evaluate_tasks
from cultureval.reports.settings_diff import compare_runs, compare_with_here, differences
from cultureval.runtime.data_options import samples_root
from cultureval.runtime.settings import Settings, use_settings
from cultureval.samples.tiny_models.classifiers import build_tiny_encoder
from cultureval.samples.tiny_models.language_models import build_tiny_causal_lm

CHOICES, ANSWERS = "qimma_arabicmmlu:Biology (High School)", "qimma_arablegalqa"
SHORT = {"max_new_tokens": 4}
# Name of a run -> (settings of the model, other settings, tasks, what is named, the signature's fields among it).
RUNS = {
    "dtype": ({"dtype": "bfloat16"}, {}, {"model.dtype"}, {"dtype"}),
    "chat_template": ({"chat_template": "off"}, {}, {"model.chat_template"}, {"chat"}),
    "system_prompt": ({"system_prompt": "أجب."}, {}, {"model.system_prompt_hash"}, {"settings"}),
    "batch_size": ({"batch_size": 3}, {}, {"model.batch_size"}, set()),
    "attention": ({"attn_implementation": "eager"}, {}, {"model.attention"}, {"settings"}),
    "max_length": ({"max_length": 1000}, {}, {"model.max_length"}, {"settings"}),
    "bos": ({"add_special_tokens": "off"}, {}, {"model.adds_bos"}, {"settings"}),
    "tokenization": ({"pairwise_tokenization": True}, {}, {"model.settings.pairwise_tokenization"}, {"settings"}),
    "temperature": (
        {"generation_parameters": SHORT | {"temperature": 0.5}},
        {},
        {"model.settings.temperature"},
        {"settings"},
    ),
    "seed": ({"generation_parameters": SHORT | {"seed": 7}}, {}, {"seeds.generation"}, {"settings"}),
    "parity": (
        {},
        {"suite": {"parity": "sound"}},
        {"options.parity", "tasks.parity", "tasks.prompt_hash"},
        {"parity", "prompt"},
    ),
    "form": ({}, {"form": "original"}, {"options.form", "tasks.form"}, {"form", "data", "prompt", "rows_hash"}),
    "bad_rows": ({}, {"bad_rows": "skip"}, {"options.bad_rows"}, set()),
    "resume": ({}, {"resume": False}, {"options.resume"}, set()),
    "row": ({}, {"data_root": "changed"}, {"options.data_root", "tasks.rows_hash"}, {"rows_hash"}),
    "scorer": ({}, {"bertscore_model": "other"}, set(), {"scorer"}),
    "limit": ({}, {}, {"tasks.limit", "tasks.rows"}, {"limit"}),
    "shots": ({}, {}, {"tasks"}, set()),
    "weights": ({}, {}, {"model.version"}, {"model"}),
}
EDITED = {
    "versions.torch": "2.0",
    "versions.python": "3.9.1",
    "machine.cpu": "another",
    "machine.gpus": ["a GPU"],
    "machine.memory_gib": 1.0,
    "model.devices": ["cuda:7"],
    "model.routes.text": "plain",
    "model.quantisation": "bitsandbytes",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The folder of each run, by its name; `base` is the one from which each other differs in one setting."""
    root = tmp_path_factory.mktemp("runs")
    models = {seed: build_tiny_causal_lm(root / str(seed) / "tiny", chat_template=True, seed=seed) for seed in (0, 1)}
    scorers = {name: str(build_tiny_encoder(root / name, seed=seed)) for name, seed in [("bert", 0), ("other", 1)]}
    data = shutil.copytree(samples_root(), root / "changed")
    file = next((data / "qimma" / "QA_ArabLegalEval").rglob("*.jsonl"))
    file.write_text(file.read_text(encoding="utf-8").replace("؟", "؟؟", 1), encoding="utf-8")

    def run(name, model=None, given=None):
        places = {"changed": data, **scorers}
        given = {key: places.get(str(value), value) for key, value in (given or {}).items()}
        settings = {"data_root": samples_root(), "bertscore_model": scorers["bert"], "cache": root / "cache"}
        of_model = {"device": "cpu", "dtype": "float32", "generation_parameters": SHORT} | (model or {})
        limit, tasks = (1 if name == "limit" else None), [CHOICES + "|2" if name == "shots" else CHOICES, ANSWERS]
        with use_settings(Settings().with_(**settings | given, model_settings=of_model)):
            folder = models[name == "weights"]
            evaluate_tasks(str(folder), partial(check_model, str(folder)), tasks, limit, str(root / "out" / name))

    run("base")
    for name, (model, given, *_) in RUNS.items():
        run(name, model, given)
    return root / "out"


@pytest.mark.parametrize("name", RUNS)
def test_one_changed_setting_is_named_and_so_is_the_signatures_field(runs, name):
    (base,), (other,) = reports.load(runs / "base"), reports.load(runs / name)
    named = {one.what.partition(" (")[0] for one in differences(base, other)}
    expected, signed = RUNS[name][2:]
    assert expected <= named
    if name not in ("shots",):
        assert signed == {what.removeprefix("signatures.") for what in named if what.startswith("signatures.")}
    text, same = compare_runs(runs / "base", runs / name)
    assert not same and all(what in text for what in expected | {f"signatures.{field}" for field in signed})


def test_equal_runs_differ_in_nothing_though_the_second_reused_all_answers(runs, tmp_path):
    (base,), (skipped,) = reports.load(runs / "base"), reports.load(runs / "bad_rows")
    assert {one.what for one in differences(base, skipped)} == {"options.bad_rows"}
    task = skipped.record.tasks[f"{ANSWERS}|0"]
    assert task.reused == task.rows and task.reused_since and not task.routes
    assert base.record.tasks[f"{ANSWERS}|0"].routes == {"queue": task.rows}
    assert base.record.tasks[f"{ANSWERS}|0"].truncated == task.truncated == task.rows  # of four tokens each
    assert base.record.tasks[f"{CHOICES}|0"].routes.keys() == {"packed"}


@pytest.mark.parametrize("name", EDITED)
def test_a_machine_or_version_that_differs_is_named(runs, tmp_path, name):
    (file,) = (runs / "base").rglob("results_*.json")
    content = json.loads(file.read_text(encoding="utf-8"))
    *parts, last = name.split(".")
    place = content["cultureval"]
    for part in parts:
        place = place[part]
    place[last] = EDITED[name]
    edited = tmp_path / "results_edited.json"
    edited.write_text(json.dumps(content), encoding="utf-8")
    (first,), (second,) = reports.load(file), reports.load(edited)
    assert name in {one.what for one in differences(first, second)}
    if name.startswith(("versions", "machine")) or name == "model.devices":
        text, same = compare_with_here(edited)
        assert name in text and not same


def test_a_run_is_compared_with_this_machine_s_data_and_scorers(runs, monkeypatch):
    settings = Settings().with_(bertscore_model=str(runs.parent / "bert"), cache=runs.parent / "cache")
    with use_settings(settings):
        assert compare_with_here(runs / "base")[1]
    with use_settings(settings.with_(data_root=runs.parent / "changed", bertscore_model=str(runs.parent / "other"))):
        text, same = compare_with_here(runs / "base")
    assert not same
    assert f"tasks.rows_hash ({ANSWERS}|0)" in text and f"instruments.{ANSWERS}|0" in text
    assert f"({CHOICES}|0)" not in text


def test_a_run_of_before_parity_would_now_have_other_tokens(runs, tmp_path):
    (file,) = (runs / "base").rglob("results_*.json")
    content = json.loads(file.read_text(encoding="utf-8"))
    for task in content["cultureval"]["tasks"].values():
        assert task.pop("parity") == "paper"
    old = tmp_path / "results_old.json"
    old.write_text(json.dumps(content), encoding="utf-8")
    settings = Settings().with_(bertscore_model=str(runs.parent / "bert"), cache=runs.parent / "cache")
    for parity, same in (("paper", False), ("sound", True)):
        with use_settings(settings.with_({"parity": parity})):
            text, found = compare_with_here(old)
        assert found == same and (f"tasks.parity ({CHOICES}|0, {ANSWERS}|0)" in text) != same
