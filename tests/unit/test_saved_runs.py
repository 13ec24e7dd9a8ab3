"""Results files as typed runs: ours, stock LightEval's, old ones, broken ones; and the table of their scores."""

import json
from pathlib import Path

import pytest

from cultureval import reports
from cultureval.reports.settings_diff import compare_runs
from cultureval.reports.summary_text import shown_run
from cultureval.runs.record import (
    SCHEMA,
    MachineRecord,
    ModelRecord,
    RunRecord,
    SignatureRecord,
    TaskRecord,
    TimingRecord,
)
from cultureval.runtime.errors import CulturevalError

TASK = "qimma_palmx:culture|0"


def content(**more):
    report = {"source": "qimma/x", "form": "curated", "revision": "local", "fingerprint": "ab12", "prompt": "curated"}
    report |= {"rows": 9, "expected_rows": None, "skipped_rows": [{}], "notes": ["a note"], "caveat": "a caveat"}
    scores = {"acc_norm": 0.5, "acc_norm_stderr": 0.25, "acc": float("nan")}
    return {
        "config_general": {"model_name": "org/m", "max_samples": 4},
        "results": {TASK: scores, "other|0": {"f1": 1.0}, "qimma_palmx:_average|0": {"acc_norm": 0.5}},
        "config_tasks": {TASK: {"effective_num_docs": 4, "rows_report": report}, "other|0": {}},
    } | more


def write(root, name="org/m", date="2026-01-01T00-00-00.1", text=None, **more):
    folder = root / "results" / name
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"results_{date}.json"
    file.write_text(json.dumps(content(**more)) if text is None else text, encoding="utf-8")
    return file


def test_a_file_without_our_section_has_what_it_and_the_catalogue_say(tmp_path):
    (run,) = reports.load(write(tmp_path))
    assert (run.model, run.date) == ("org/m", "2026-01-01T00-00-00.1")
    assert (run.value(TASK, "acc_norm"), run.stderr(TASK, "acc_norm"), run.value(TASK, "acc")) == (0.5, 0.25, None)
    assert run.value("nothing", "acc") is None
    (task,) = run.tasks_of("qimma")
    assert (task.task, task.benchmark, task.domain, task.metrics) == (TASK, "PalmX", "Cultural", ("acc_norm", "acc"))
    assert (task.rows, task.limit, task.skipped_rows, task.form, task.rows_hash) == (4, 4, 1, "curated", "ab12")
    assert task.notes == ("a note", "a caveat")
    assert run.record.schema_ == 0


def test_files_are_found_from_any_path_and_come_newest_first(tmp_path):
    files = [
        write(tmp_path, name, date) for name, date in [("org/m", "2026-01"), ("org/n", "2026-03"), ("k", "2026-02")]
    ]
    assert [run.date for run in reports.load(tmp_path)] == ["2026-03", "2026-02", "2026-01"]
    assert [run.file for run in reports.load(tmp_path / "results" / "org")] == [files[1], files[0]]
    assert [run.file for run in reports.load(str(files[2]))] == [files[2]]


def test_our_section_is_read_as_written_and_keeps_fields_of_later_versions(tmp_path):
    task = TaskRecord(
        task=TASK,
        suite="qimma",
        benchmark="PalmX",
        group="qimma_palmx",
        subset="General Culture",
        domain="Cultural",
        register="MSA",
        metrics=["acc_norm"],
        rows=4,
    )
    signature = SignatureRecord(group="qimma_palmx|0", fields={"rows": 4}, text="rows:4")
    record = RunRecord(command=("cultureval", "eval"), tasks={TASK: task}, signatures=(signature,))
    section = record.model_dump(mode="json", by_alias=True)
    (run,) = reports.load(write(tmp_path, cultureval=section | {"later": 1}))
    assert run.record.tasks == record.tasks and run.record.signatures == (signature,)
    assert (run.record.schema_, run.record.later) == (SCHEMA, 1)


def test_scores_as_a_table(tmp_path):
    task = TaskRecord(task=TASK, suite="qimma", benchmark="b", group="qimma_palmx", subset="x", rows=4, items=3)
    task = task.model_copy(update={"scored": {"acc": 1}})
    signature = SignatureRecord(group="qimma_palmx|0", fields={}, text="rows:4")
    section = RunRecord(tasks={TASK: task}, signatures=(signature,)).model_dump(mode="json", by_alias=True)
    table = reports.scores_table(reports.load(write(tmp_path, cultureval=section))).set_index(["task", "metric"])
    assert len(table) == 4
    headline = table.loc[TASK, "acc_norm"]
    assert (headline.value, headline.stderr, headline.n, headline.coverage) == (0.5, 0.25, 4, 1)
    assert (headline.suite, headline.group, headline.signature) == ("qimma", "qimma_palmx", "rows:4")
    assert (table.loc[TASK, "acc"].n, table.loc[TASK, "acc"].coverage) == (1, 0.25) and table.loc[
        TASK, "acc"
    ].isna().value
    average = table.loc["qimma_palmx:_average|0", "acc_norm"]
    assert (average.value, average.suite, average.n, average.coverage) == (0.5, "qimma", 4, 1), "n beside every score"
    section["tasks"][TASK] |= {"scored": {}, "not_applicable": ["acc"]}
    table = reports.scores_table(reports.load(write(tmp_path, cultureval=section))).set_index(["task", "metric"])
    assert table.loc[TASK, "acc"].isna()[["n", "coverage"]].all() and table.loc[TASK, "acc_norm"].coverage == 1


def test_all_broken_files_are_named_with_their_reasons(tmp_path):
    write(tmp_path, "good")
    write(tmp_path, "cut", text='{"results": {')
    write(tmp_path, "list", text="[]")
    write(tmp_path, "text", results={"a|0": {"acc": "high"}})
    write(tmp_path, "flat", results={"a|0": 0.5})
    write(tmp_path, "newer", cultureval={"schema": SCHEMA + 1})
    write(tmp_path, "wrong", cultureval={"schema": SCHEMA, "tasks": {TASK: {"task": 1}}})
    write(tmp_path, "stock", config_general={"model_name": "m", "max_samples": "all"})
    write(tmp_path, "deep", text="[" * 100_000)
    write(tmp_path, "digits", results={"a|0": {"acc": 10**400}})
    write(tmp_path, "huge", results={"a|0": {"acc": 1e308}})
    loaded = reports.load(tmp_path)
    assert [run.file.parent.name for run in loaded] == ["good"] and len(loaded.left_out) == 10
    with pytest.raises(CulturevalError) as error:
        reports.load(tmp_path, strict=True)
    reasons = {line.split("/results/")[1].split("/")[0]: line for line in str(error.value).splitlines()}
    assert set(reasons) == {"cut", "list", "text", "flat", "newer", "wrong", "deep", "digits", "huge", "stock"}
    assert "cannot be read: JSONDecodeError" in reasons["cut"] and "no results file of LightEval" in reasons["list"]
    assert "'high', not a number" in reasons["text"] and "not a mapping" in reasons["flat"]
    assert "`max_samples` cannot be read" in reasons["stock"]
    assert "RecursionError" in reasons["deep"] and "401 digits" in reasons["digits"] and "no score" in reasons["huge"]
    assert "update it" in reasons["newer"] and f"tasks.{TASK}.suite" in reasons["wrong"]


def test_control_characters_of_a_file_do_not_reach_the_terminal(tmp_path):
    hostile = "\x1b[2J\u202e[bold]"
    task = TaskRecord(task=TASK, suite=hostile, benchmark="b", group=hostile, subset="x", revision=hostile, rows=4)
    signature = SignatureRecord(group=hostile, fields={"data": hostile}, text=hostile)
    section = RunRecord(tasks={TASK: task}, signatures=(signature,)).model_dump(mode="json", by_alias=True)
    hostile_file, other = write(tmp_path / "a", cultureval=section), write(tmp_path / "b")
    (run,) = reports.load(hostile_file)
    whole = [shown_run(run, 80, full=True), compare_runs(hostile_file, other)[0]]
    assert not {"\x1b", "\u202e"} & set("".join([shown_run(run, 80), *whole]))
    assert all(r"\x1b[2J\u202e[bold]" in text.replace("\n", "") for text in whole)


def test_line_breaks_in_names_forge_no_line_of_a_difference(tmp_path):
    first = write(tmp_path / "a\nforged: ", config_general={"model_name": "m\nforged"})
    text, same = compare_runs(first, write(tmp_path / "b"))
    assert not same and r"m\nforged" in text and "\nforged" not in text
    text, same = compare_runs(first, first)
    assert same and r"a\nforged: " in text and "\nforged" not in text


def test_a_path_without_results_is_refused_in_one_sentence(tmp_path):
    for path, words in [
        (tmp_path, "has no results file"),
        (tmp_path / "nowhere", "does not exist: name the --output-dir"),
    ]:
        with pytest.raises(CulturevalError, match=words):
            reports.load(path)


def test_the_page_names_every_field():
    page = (Path(__file__).parents[2] / "docs" / "results.md").read_text(encoding="utf-8")
    kinds = (RunRecord, TaskRecord, SignatureRecord, ModelRecord, MachineRecord, TimingRecord)
    fields = {field.alias or name for kind in kinds for name, field in kind.model_fields.items()}
    assert not {name for name in fields if f"`{name}`" not in page}
    assert f"schema {SCHEMA}" in page
