"""Runs that differ in one setting each: `cultureval show FIRST --against SECOND` names every setting."""

import json
import shutil
from functools import partial

import pytest

from cultureval.models.choice import check_model
from cultureval.reports.evaluation import evaluate_tasks
from cultureval.reports.settings_diff import compare_runs, differences
from cultureval.runs.loading import load
from cultureval.runtime.data_options import samples_root
from cultureval.runtime.settings import Settings, use_settings
from cultureval.samples.tiny_models.classifiers import build_tiny_encoder
from cultureval.samples.tiny_models.language_models import build_tiny_causal_lm

CHOICES, ANSWERS = "qimma_arabicmmlu:Biology (High School)", "qimma_arablegalqa"
SHORT = {"max_new_tokens": 4}
# Name of a run -> settings of the model, other settings, what is named.
RUNS = {
    "dtype": ({"dtype": "bfloat16"}, {}, {"model.dtype"}),
    "chat_template": ({"chat_template": "off"}, {}, {"model.chat_template"}),
    "system_prompt": ({"system_prompt": "أجب."}, {}, {"model.system_prompt_hash"}),
    "max_length": ({"max_length": 1000}, {}, {"model.max_length"}),
    "bos": ({"add_special_tokens": "off"}, {}, {"model.adds_bos"}),
    "temperature": ({"generation_parameters": SHORT | {"temperature": 0.5}}, {}, {"model.settings.temperature"}),
    "seed": ({"generation_parameters": SHORT | {"seed": 7}}, {}, {"seeds.generation"}),
    "parity": ({}, {"suite": {"parity": "sound"}}, {"options.parity", "tasks.parity", "tasks.prompt_hash"}),
    "form": ({}, {"form": "original"}, {"options.form", "tasks.form"}),
    "row": ({}, {"data_root": "changed"}, {"options.data_root", "tasks.rows_hash"}),
    "scorer": ({}, {"bertscore_model": "other"}, {"signatures.scorer"}),
    "limit": ({}, {}, {"tasks.limit", "tasks.rows"}),
    "shots": ({}, {}, {"tasks"}),
    "weights": ({}, {}, {"model.version"}),
}
EDITED = {
    "versions.torch": "2.0",
    "versions.python": "3.9.1",
    "machine.cpu": "another",
    "machine.gpus": ["a GPU"],
    "machine.memory_gib": 1.0,
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
def test_one_changed_setting_is_named(runs, name):
    base, other = load(runs / "base").runs[0], load(runs / name).runs[0]
    named = {what.partition(" (")[0] for what, _, _ in differences(base, other)}
    assert RUNS[name][2] <= named
    text, same = compare_runs(runs / "base", runs / name)
    assert not same and all(what in text for what in RUNS[name][2])


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
    assert name in {what for what, _, _ in differences(load(file).runs[0], load(edited).runs[0])}
