"""Whatever a user asks in two places gives one answer: number, n, interval, warning, and whether runs are compared.

Folders with planted truths are drawn by hypothesis; `CULTUREVAL_TEST_FOLDERS=500` draws more of them.
"""

import csv
import functools
import itertools
import json
import math
import os
import re
import tempfile
from dataclasses import replace
from pathlib import Path

import hypothesis
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from planted_runs import (
    AVERAGE,
    CAPTION,
    CRITERION,
    DIALECTS,
    TRUST,
    Folder,
    Plan,
    folders,
    plans,
    write_folder,
    write_run,
)
from test_leaderboard import Rows
from typer.testing import CliRunner

import cultureval
from cultureval.reports.leaderboard.assets import file_name
from cultureval.reports.leaderboard.entries import divisions
from cultureval.runs.load_runs import load, load_all, scores_table
from cultureval.runs.warnings import run_warnings, task_warnings
from cultureval.scripts.main import app

FOLDERS = int(os.environ.get("CULTUREVAL_TEST_FOLDERS", "4"))
SETTINGS = hypothesis.settings(
    max_examples=FOLDERS,
    deadline=None,
    derandomize=FOLDERS == 4,  # the same folders in each run of the tests, others in a long run
    suppress_health_check=list(HealthCheck),
)
TASK, HEADLINE = f"{TRUST}|0", "acc_norm"
EDITED = Folder(
    plans=(Plan(unscored=(0, 3), tasks=("trust", "dialects")), Plan(model=1, edited="average", tasks=("dialects",)))
)
JUDGED = Folder(
    plans=(Plan(tasks=("trust", "caption"), judged=True, copied=True), Plan(seed=1, signed=False, asked="prompts"))
)


def run(*arguments):
    """What a command prints, and its exit status."""
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    if isinstance(result.exception, cultureval.CulturevalError):
        return result.stdout, str(result.exception), 1
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout, result.stderr, result.exit_code


def shown(*arguments):
    """The JSON document that a command prints."""
    out, err, code = run(*arguments)
    assert code == 0, err
    return json.loads(out)


@functools.cache
def summary_of(file):
    """What `show FILE --json` has of a run; no two folders that are drawn have one name."""
    (summary,) = shown("show", file, "--json")["runs"]
    return summary


def near(one, other):
    return one is other is None or (one is not None and other is not None and abs(one - other) < 1e-6)


@pytest.mark.slow
@SETTINGS
@given(folders())
@example(EDITED)
@example(Folder(items=4, plans=(Plan(tasks=("dialects",), refused=(0, 3, 2), edited="score"),)))  # one item each
@example(JUDGED)
@example(Folder(plans=(Plan(), Plan(seed=1, details="cut"))))  # a rerun whose details were cut off
@example(Folder(items=4, plans=(Plan(tasks=("trust",)), Plan(tasks=("trust",), signed=False))))  # its form is not told
@example(Folder(plans=(Plan(unscored=(0, 3)), Plan(model=1, refused=(0, 1)), Plan(model=2, unscored=tuple(range(6))))))
def test_all_views_agree(folder):
    check(folder)


def check(folder):
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        planted = write_folder(root, folder)
        loaded = load_all([root])
        runs = {one.file.resolve(): one for one in loaded}
        assert len(loaded.left_out) == len(folder.foreign), "what is foreign is named, the rest goes on"
        table = scores_table(loaded)
        for one in planted:
            # Of a file that is named alone nothing is told of other runs (`test_told_of_runs` has folders).
            of_file = replace(runs[one.file.resolve()], superseded={}, in_older={}, apart={})
            library_agrees(one, of_file, table[table["file"] == str(of_file.file)])
            summary_agrees(one, of_file)
            items_agree(one, of_file)
            logs_agree(one, of_file)
            if one.copy:
                assert runs[one.copy.resolve()].scores[TASK if TASK in one.tasks else f"{DIALECTS[0]}|0"] is not None
        comparison_agrees(planted, page_agrees(root, runs))


def library_agrees(one, found, table):
    """`load`, `load_results` and `scores_table` have the planted values."""
    (again,) = cultureval.load_results(one.file)
    assert again.scores == found.scores and again.claims == found.claims
    assert again.model == found.model and run_warnings(again) == run_warnings(found)
    for task, rows in one.tasks.items():
        for metric in rows[0].scores if rows else ():
            value, count, error = one.truth(task, metric)
            assert near(found.value(task, metric), value), (task, metric)
            line = table[(table.task == task) & (table.metric == metric)].iloc[0]
            assert near(None if math.isnan(line.value) else line.value, value)
            assert line.n == (count if one.known or one.plan.signed else len(rows)), (
                task,
                metric,
                line.n,
                count,
                one.plan,
            )
            if one.known:
                assert near(found.stderr(task, metric), error), (task, metric)
    if AVERAGE in found.scores:
        assert near(found.value(AVERAGE, HEADLINE), one.average(HEADLINE)) or not one.known
    if one.judged:
        assert near(found.value(f"{CAPTION}|0", CRITERION), math.fsum(one.judged) / len(one.judged))
    told = {warning.kind for warning in run_warnings(found)}
    assert ("claims" in told) == bool(found.claims) == is_told_as_edited(one)
    assert ("limited" in told) == (one.plan.limit is not None)
    missing = any(
        len(one.values(task, next(iter(rows[0].scores)))) < len(rows) for task, rows in one.tasks.items() if rows
    )
    assert ("unscored" in told) == (missing and (one.known or one.plan.signed))
    assert ("refused" in told) == any(record.refused for record in found.record.tasks.values())


def is_told_as_edited(one):
    """Whether something shows that a file was edited: items, or for averages subsets, which items need not confirm."""
    subsets = [task.startswith("qimma_aradice") and not metric.endswith("_stderr") for task, metric in one.claimed]
    return bool(one.claimed) and (one.known or any(subsets))


def summary_agrees(one, found):
    """`show FILE --json` has the library's numbers, n and warnings."""
    summary = summary_of(one.file)
    assert summary["warnings"] == list(run_warnings(found)) and summary["model"] == found.model
    cells = cells_of(summary)
    if TASK in one.tasks:
        cell_agrees(cells["AraTrust"], found, TASK)
        assert (
            cells["AraTrust"]["n"] == found.record.tasks[TASK].scored.get(HEADLINE, found.record.tasks[TASK].rows)
            or not cells["AraTrust"]["n"]
        )
    if f"{DIALECTS[0]}|0" in one.tasks:
        cell_agrees(cells["AraDiCE-Culture"], found, AVERAGE)


def cells_of(summary):
    """QIMMA's benchmarks with their cells."""
    return {row[1]: row[2] for table in summary["suites"].get("qimma", ()) for row in table["rows"]}


def cell_agrees(cell, found, task):
    value, error = found.value(task, HEADLINE), found.stderr(task, HEADLINE)
    assert near(cell["value"], None if value is None else 100 * value), task
    assert near(cell["stderr"], None if error is None else 100 * error) or error is None


def items_agree(one, found):
    """`show FILE TASK --json` has each item with the score and the answer that its mean is of."""
    for task, rows in one.tasks.items():
        if not one.known or not rows or task.partition("|")[0] in DIALECTS[1:]:  # which are read as the first
            continue
        listed = shown("show", one.file, task, "--json", "--limit", "99")["items"]
        assert [item["item"] for item in listed] == [row.name for row in rows]
        for item, row in zip(listed, rows, strict=True):
            assert {name: item["scores"][name] for name in row.scores} == row.scores
            if task != f"{CAPTION}|0":
                assert item["answer"] == row.chosen(HEADLINE) and item["gold"] == row.options[row.gold]
                if row.scores[HEADLINE] is not None:
                    assert (item["answer"] == item["gold"]) == bool(row.scores[HEADLINE])
        judged = [item["scores"].get(CRITERION) for item in listed if item["scores"].get(CRITERION) is not None]
        assert judged == (list(one.judged) if task == f"{CAPTION}|0" else [])
        again = shown("show", one.file, task, listed[-1]["item"], "--json")
        assert again == listed[-1]


def logs_agree(one, found):
    """The viewer's logs have the library's scores, answers and warnings."""
    from inspect_ai.log import read_eval_log

    from cultureval.reports.viewer.logs import write_logs

    for log in write_logs([one.file]) if one.known and all(one.tasks.values()) else ():
        content = read_eval_log(str(log.file))
        values = {score.name: score.metrics["mean"].value for score in content.results.scores}
        for metric, value in values.items():
            assert near(value, found.value(log.task, metric))
        record = found.record.tasks[log.task]
        for score in content.results.scores if record.rows else ():
            assert score.scored_samples == record.rows_with(score.name)
            assert score.scored_samples + score.unscored_samples == content.results.total_samples
        known = {
            name for name, value in found.scores[log.task].items() if value is not None and not name.endswith("_stderr")
        }
        assert values.keys() == known
        assert content.eval.metadata.get("warnings", "") == "\n".join(task_warnings(found, log.task))
        samples = {sample.metadata["name in the data"]: sample for sample in content.samples}
        assert list(samples) == [row.name for row in one.tasks[log.task]]
        last = content.samples[-1]
        assert shown("show", one.file, log.task, str(last.id), "--json")["item"] == last.metadata["name in the data"]
        for row in one.tasks[log.task]:
            score = samples[row.name].scores.get(HEADLINE)
            assert (score and score.value) == row.scores.get(HEADLINE)
            if score:
                assert score.answer == row.chosen(HEADLINE)


def page_agrees(root, runs):
    """The page's JSON, CSV, first page and model pages have the library's numbers, n, intervals and warnings."""
    site = root / "site"
    data = shown("leaderboard", root / "out", "--out", site, "--charts", "none", "--json")
    assert json.loads((site / "leaderboard.json").read_text(encoding="utf-8")) == data
    tables = {}
    for file in (site / "tables").glob("*.json"):
        tables[file.with_suffix(".csv")] = json.loads(file.read_text(encoding="utf-8"))
    assert sorted(map(str, tables.values())) == sorted(str(one) for each in data["sections"] for one in each["tables"])
    for file, table in tables.items():
        csv_agrees(file, table)
    told = {}
    for section in data["sections"]:
        entries = {one["label"]: one for one in section["entries"]}
        for table in section["tables"]:
            for row in table["rows"]:
                sources = [runs[Path(file).resolve()] for file in entries[row["label"]]["files"]]
                row_agrees(table, row, sources)
                for one in sources:
                    told.setdefault(one.file, []).extend(row["warnings"])
    warnings_agree(told, runs)
    model_pages_agree(site, data, runs)
    return data


def warnings_agree(told, runs):
    """A row's warnings name the tasks of its table alone; each warning of a run stands in some table.

    But that older runs have other tasks, which the page has.
    """
    for file, warnings in told.items():
        own = [one for one in run_warnings(runs[file.resolve()]) if one.kind != "other_tasks"]
        assert beginnings(warnings) >= beginnings(own)


def model_pages_agree(site, data, runs):
    pages = {one.file: (site / "models" / f"{file_name(one.model)}.html").read_text("utf-8") for one in runs.values()}
    for section in data["sections"]:
        for entry in section["entries"]:
            if len(entry["files"]) == 1:
                found = runs[Path(entry["files"][0]).resolve()]
                page_of_model_agrees(pages[found.file], found, section["suite"])


def beginnings(warnings):
    """Of what kinds warnings are: their words before a colon, without numbers; a row names one edited score."""
    edited = ": its file says "
    return {edited if edited in one else re.sub(r"\d+", "", one.partition(":")[0]) for one in warnings}


def csv_agrees(file, table):
    """The CSV has the JSON's cells, each with its error and its n."""
    with file.open(encoding="utf-8", newline="") as opened:
        lines = list(csv.DictReader(opened))
    names = [": ".join(filter(None, (one["above"], one["name"]))) for one in table["columns"]]
    text = file.read_text(encoding="utf-8")
    assert "\0" not in text and "\u202e" not in text, "nothing of a name that has power over a terminal or a program"
    for line, row in zip(lines, table["rows"], strict=True):
        told = [] if row["published"] else [*row["warnings"], *row["notes"]]
        assert line["warnings"] == " ".join(told) and line["rank"] == row["rank"]
        assert line["model"].lstrip("'") == row["label"]
        for name, cell in zip(names, row["cells"], strict=True):
            if not isinstance(cell, dict):
                assert line[name] == (cell or "")
                continue
            found = {key: line[f"{name} {key}".removesuffix(" value")] for key in cell}
            assert found == {key: "" if value is None else str(value) for key, value in cell.items()}


def row_agrees(table, row, sources):
    """A row has the scores of its runs, and no rank where something is wrong with them."""
    cells = {one["name"]: cell for one, cell in zip(table["columns"], row["cells"], strict=True)}
    if "AraTrust" in cells and any(found.claims for found in sources):
        assert not row["rank"] and any("its file says" in one for one in row["warnings"])
    whole = {"AraTrust": TASK, "AraDiCE-Culture": AVERAGE}
    for name, task in whole.items():
        cell = cells.get(name)
        if not isinstance(cell, dict):
            continue
        having = [found for found in sources if task in found.scores]
        assert having, "a cell is of some run"
        values = [found.value(task, HEADLINE) for found in having]
        assert any(near(cell["value"], None if value is None else 100 * value) for value in values)
        if len(having) == 1:
            theirs = cells_of(summary_of(having[0].file))[name]
            assert {key: theirs[key] for key in cell} == cell
        assert cell["n"] is None or cell["value"] is None or cell["n"] > 0


def page_of_model_agrees(text, found, suite):
    """A model's page has each task's score, its interval within the metric's range, and the rows that are scored."""
    rows = [row for row in Rows(text).rows if len(row) > 9]
    for task, record in found.record.tasks.items():
        if record.suite != suite or not record.metrics:
            continue
        name, metric = task.partition("|")[0], record.metrics[0]
        value, error = found.value(task, metric), found.stderr(task, metric)
        mine = [row for row in rows if row[0] == name and row[4] == metric]
        shown_value = "n/a" if value is None else f"{value:.4f}"
        scored, asked = record.scored.get(metric, record.rows), record.rows + record.refused
        count = f"{scored}" if scored == asked else f"{scored} of {asked}"
        (row,) = [row for row in mine if row[5] == count and (value is None or near_text(row[1], value))][:1]
        if value is None:
            assert row[1] == shown_value
        elif error is not None:
            low, high = map(float, re.findall(r"-?[0-9.]+", row[2]))
            assert low - 1e-4 <= value <= high + 1e-4


def near_text(text, value):
    return text != "n/a" and abs(float(text) - value) <= 0.00501


def comparison_agrees(planted, data):
    """Two runs are compared exactly where the page has them in one group, on the items that both have scores for."""
    newest = {one.model: one for one in planted if one.known and TASK in one.tasks and one.tasks[TASK]}
    for first, second in list(itertools.combinations(newest.values(), 2))[:2]:
        pair_agrees(first, second, data)


def pair_agrees(first, second, data):
    with tempfile.TemporaryDirectory() as folder:
        options = ("--resamples", "100", "--charts", "none", "--output-dir", folder, "--json", "--items", "0")
        out, err, code = run("compare", first.file, second.file, *options)
        differs = first.plan.asked != second.plan.asked or first.plan.limit != second.plan.limit
        differs |= not first.plan.signed == second.plan.signed == True  # noqa: E712
        if code:
            assert "differ in more than the model" in err or "no task whose items" in err, err
            assert differs or not shared(first, second), err
            return
        document = json.loads(out)
        with (Path(folder) / "differences.csv").open(encoding="utf-8", newline="") as opened:
            lines = list(csv.DictReader(opened))
        assert json.loads((Path(folder) / "comparison.json").read_text(encoding="utf-8")) == document
        for line, row in zip(lines, document["differences"], strict=True):
            assert {name: "" if value is None else str(value) for name, value in row.items()} == line
    rows = {row["name"]: row for row in document["differences"] if row["level"] == "group"}
    if TASK in rows:
        keys = shared(first, second)
        row, values = rows[TASK], [one.values(TASK, HEADLINE) for one in (first, second)]
        means = [math.fsum(one[key] for key in keys) / len(keys) for one in values]
        assert near(row["first_score"], means[0]) and near(row["second_score"], means[1]), "on the items of both"
        assert row["items"] == len(keys) and near(row["difference"], means[0] - means[1])
        assert row["low"] is None or -1 <= row["low"] <= row["high"] <= 1
    groups = [
        {str(Path(file)) for entry in section["entries"] for file in entry["files"]}
        for section in data["sections"]
        if section["suite"] == "qimma"
    ]
    both = {str(first.file), str(second.file)}
    assert any(both <= group for group in groups) or len(set(map(lambda one: one.model, (first, second)))) == 1


def shared(first, second):
    return [name for name in first.values(TASK, HEADLINE) if name in second.values(TASK, HEADLINE)]


@SETTINGS
@given(st.lists(plans(), min_size=3, max_size=3))
@example([Plan(refused=(1,)), Plan(), Plan(asked="prompt")])
@example([Plan(details="missing"), Plan(asked="prompts", hidden=True), Plan()])
@example([Plan(), Plan(signed=False, details="missing"), Plan(signed=False)])
def test_whether_two_runs_are_compared_is_a_matter_of_these_two(drawn):
    """A run with refused rows, or without details, was compared with those that most others were compared with."""
    with tempfile.TemporaryDirectory() as folder:
        runs = [write_run(Path(folder), replace(plan, model=place), 6, place).file for place, plan in enumerate(drawn)]
        loaded = [load(file)[0] for file in runs]
        together = compared_models(loaded)
        for pair in itertools.combinations(loaded, 2):
            models = {one.model for one in pair}
            assert compared_models(pair) == {found for found in together if found[1] <= models}


def compared_models(runs):
    """Suite and models that stand in one group and have a score of one task."""
    return {
        (division.suite, frozenset({one.model, other.model}))
        for division in divisions(runs)
        for group in division.groups
        for one, other in itertools.combinations(group.entries, 2)
        if one.protocols.keys() & other.protocols.keys()
    }


def test_intervals_on_pages_stay_in_the_range_of_the_metric(tmp_path):
    (one,) = write_folder(tmp_path, Folder(4, (Plan(tasks=("trust", "dialects")),)))
    run("leaderboard", tmp_path / "out", "--out", tmp_path / "site", "--charts", "none")
    (page,) = (tmp_path / "site" / "models").glob("*.html")
    ends = [re.findall(r"-?[0-9.]+", row[2]) for row in Rows(page.read_text("utf-8")).rows if len(row) > 9]
    found = [tuple(map(float, pair)) for pair in ends if len(pair) == 2]
    assert found and all(0 <= low <= high <= 1 for low, high in found)
