"""Results files: ours, stock LightEval's, broken ones."""

import json

import pytest
from planted import choice_row, plant

from cultureval.runs.files import read_results, task_of
from cultureval.runs.loading import load
from cultureval.runs.record import SCHEMA, SECTION
from cultureval.runtime.errors import CulturevalError

TRUST = "qimma_aratrust|0"
ROWS = [choice_row(0, True), choice_row(1, False)]


def changed(file, **more):
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | more), encoding="utf-8")


def test_runs_are_found_from_any_path_and_come_newest_first(tmp_path):
    dates = {"org/m": "2026-01", "org/n": "2026-03", "k": "2026-02"}
    files = {name: plant(tmp_path, {TRUST: ROWS}, name, date) for name, date in dates.items()}
    assert [run.date for run in load(tmp_path).runs] == ["2026-03", "2026-02", "2026-01"]
    assert [run.model for run in load(tmp_path / "results" / "org").runs] == ["org/n", "org/m"]
    assert [run.model for run in load(files["k"], files["org/m"]).runs] == ["k", "org/m"]
    with pytest.raises(CulturevalError, match="--output-dir"):
        load(tmp_path / "nowhere")


def test_a_stock_file_says_what_it_and_the_catalogue_know(tmp_path):
    record = read_results(plant(tmp_path, {TRUST: ROWS}, stock=True, limit=4)).record
    task = record.tasks[TRUST]
    assert (task.suite, task.benchmark, task.metrics[0], task.limit) == ("qimma", "AraTrust", "acc_norm", 4)
    assert (task.form, task.parity, record.model.version, record.schema_) == ("", "", None, 0)


def test_fields_of_later_versions_are_kept(tmp_path):
    file = plant(tmp_path, {TRUST: ROWS}, record={"command": ("cultureval", "eval")})
    section = json.loads(file.read_text("utf-8"))[SECTION]
    changed(file, **{SECTION: section | {"later": 1}})
    record = read_results(file).record
    assert (record.command, record.later, task_of(read_results(file).details[TRUST])) == (
        ("cultureval", "eval"),
        1,
        TRUST,
    )


def test_broken_files_are_left_out_each_with_its_reason(tmp_path):
    broken = {
        "cut": '{"results": {',
        "list": "[]",
        "deep": "[" * 100_000,
        "text": {"results": {"a|0": {"acc": "high"}}},
        "flat": {"results": {"a|0": 0.5}},
        "newer": {SECTION: {"schema": SCHEMA + 1}},
        "wrong": {SECTION: {"schema": SCHEMA, "tasks": {TRUST: {"task": 1}}}},
    }
    plant(tmp_path, {TRUST: ROWS}, "good")
    for name, what in broken.items():
        file = plant(tmp_path, {TRUST: ROWS}, name)
        file.write_text(what, encoding="utf-8") if isinstance(what, str) else changed(file, **what)
    found = load(tmp_path)
    assert [run.model for run in found.runs] == ["good"]
    reasons = {one.file.parent.name: one.reason for one in found.left_out}
    assert reasons.keys() == broken.keys()
    words = {"cut": "cannot be read", "text": "'high'", "newer": "update", "wrong": "suite", "list": "no results file"}
    assert all(word.strip("'") in reasons[name] for name, word in words.items())
    with pytest.raises(CulturevalError, match="cut"):
        load(tmp_path, strict=True)


def test_a_judgement_without_its_run_is_left_out(tmp_path):
    file = plant(tmp_path, {TRUST: ROWS})
    general = json.loads(file.read_text("utf-8"))["config_general"]
    changed(file, config_general=general | {"judged": {"details": ["details/lab/other/details_x.parquet"]}})
    with pytest.raises(CulturevalError, match="judges a run"):
        load(tmp_path)
