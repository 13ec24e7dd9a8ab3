"""What was wrongly said of finished runs, a test each: what happened stands in its docstring."""

import contextlib
import csv
import json
import re
import shutil
from dataclasses import replace
from types import SimpleNamespace

import board_runs
import m2cqa_runs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from inspect_ai.log import read_eval_log
from m2cqa_runs import drawn_verdicts
from planted_runs import (
    AVERAGE,
    CAPTION,
    CRITERION,
    DIALECTS,
    JUDGE,
    NAMES,
    TRUST,
    Folder,
    Plan,
    judge,
    write_folder,
    write_run,
)
from summary_runs import run_of
from test_leaderboard import Rows
from test_one_truth import run, shown
from viewer_runs import DATE, row, save

from cultureval.judge_prompts.templates import judge_template
from cultureval.metrics.alqasida import translation
from cultureval.metrics.alqasida.names import CORPUS
from cultureval.metrics.judges.settings import JudgeSettings
from cultureval.metrics.judges.verdicts import Judgement, JudgeVerdict
from cultureval.metrics.m2cqa.statement_items import cell_report
from cultureval.reports import judge_report
from cultureval.reports.comparison.compared_models import sides_of
from cultureval.reports.judge_saved import Job
from cultureval.reports.leaderboard.board import read_board
from cultureval.reports.leaderboard.entries import divisions
from cultureval.reports.summary_text import full_text, summary_data
from cultureval.reports.viewer.logs import write_logs
from cultureval.runs.comparable import fields_that_differ, protocol_of, texts_that_differ
from cultureval.runs.files import UNVERIFIED, details_files_of_run, find_saved_tasks, read_details
from cultureval.runs.items import aligned, details_columns, item_scores
from cultureval.runs.load_runs import load, load_all, scores_table
from cultureval.runs.record import Claim, RunRecord, SignatureRecord, TaskRecord
from cultureval.runs.recording import cut_prompts, section_of, tokens_of_run
from cultureval.runs.task_records import task_records
from cultureval.runs.warnings import PROBLEMS, RunWarning, leaves_items_out, run_warnings
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.servers.costs import Budget, RequestSize
from cultureval.tasks.catalogue import all_tasks, groups, means_of_subsets

CAPTIONS = ("caption",)


def page(*arguments):
    """The tables of `leaderboard --json` by title."""
    data = shown("leaderboard", *arguments, "--charts", "none", "--json")
    return {table["title"]: table for section in data["sections"] for table in section["tables"]}


def sections_of(root, *options):
    """The sections of `leaderboard --json`, of runs in `out`."""
    site = ("--out", root / "site", "--charts", "none", "--json")
    return shown("leaderboard", root / "out", *site, *options)["sections"]


def rows_of(site, name):
    """The rows of a page's first file in which a name stands, as they are written."""
    return [row for row in (site / "index.html").read_text("utf-8").split("<tr") if name in row]


def test_a_board_is_in_the_order_of_the_pages_ranks(tmp_path):
    """The file's mean ordered models that leave items out, and scores of all tables were averaged together."""
    ours, theirs = (1.0, 0.5, None, None, None, None), (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)
    for place, scores in enumerate((ours, theirs)):
        write_run(tmp_path / "out", Plan(place, tasks=("trust", "caption"), scores=scores), 6, place)
    board = tmp_path / "paper.csv"
    board.write_text(f"model,score\n{NAMES[1]},2\n{NAMES[0]},1\n", encoding="utf-8")
    out, err, code = run("compare", "--leaderboards", board, tmp_path / "out")
    found = re.findall(r"(.*): Kendall distance ([\d.]+) of 2 models", out)
    assert not code and [distance for _, distance in found] == ["0.000", "0.000"], out + err
    assert "CIDEr" in found[1][0] and found[0][0] == "qimma, acc_norm"


def test_a_judgement_adds_to_what_show_prints(tmp_path):
    """After `judge`, `show RESULTS TASK` had Consistency under `cider`, `show RESULTS` the judgement's table alone."""
    (one,) = write_folder(tmp_path, Folder(5, (Plan(tasks=("trust", "caption"), judged=True),)))
    out, _, _ = run("show", tmp_path / "out", CAPTION)
    assert "5 of 5 items, score: cider" in out
    lines = [line.split() for line in out.splitlines() if line.split()[:1] and line.split()[0].startswith("test.jsonl")]
    assert [float(line[-1]) for line in lines] == [item.scores["cider"] for item in one.tasks[f"{CAPTION}|0"]]
    (summary,) = shown("show", tmp_path / "out", "--json")["runs"]
    titles = [table["title"] for tables in summary["suites"].values() for table in tables]
    assert len(titles) == 3 and any("judge gpt" in title for title in titles)


def test_the_answer_that_is_shown_is_the_one_that_was_scored(tmp_path):
    """`show` took the mean per token (-6.0 in two tokens, -4.0 in one), acc sums, acc_norm means per code point."""
    asked = row(1, "س", {"acc_norm": 1.0, "acc": 1.0}, choices=["أ", "ب"], logprobs=[-6.0, -4.0], gold=[1])
    asked["model_response"]["output_tokens"] = [[1, 2], [1]]
    longer = row(2, "ص", {"acc_norm": 1.0, "acc": 0.0}, choices=["أأأ", "ب"], logprobs=[-6.0, -4.0], gold=[0])
    save(tmp_path, TRUST, [asked, longer])
    listed = shown("show", tmp_path, TRUST, "--json")["items"]
    assert [item["answer"] for item in listed] == ["ب", "أأأ"]
    out, _, _ = run("show", tmp_path, TRUST, listed[0]["item"])
    first, second = re.findall(r"-[\d.]+ +(\w+)", out)[:2]
    assert (first, second) == ("ب", "أ")
    other, _, _ = run("show", tmp_path, TRUST, listed[1]["item"])
    assert "acc chose ب" in other


def test_a_groups_average_is_never_the_sum_of_its_subsets(tmp_path):
    """Sums were accepted for every metric, as if it were a count: .52 in each of seven dialects was 3.6."""
    (one,) = write_folder(tmp_path, Folder(6, (Plan(tasks=("dialects",)),)))
    with changed(one.file) as content:
        content["results"][AVERAGE]["acc_norm"] *= len(DIALECTS)
    (found,) = load(one.file)
    assert [(claim.task, claim.metric) for claim in found.claims] == [(AVERAGE, "acc_norm")]
    assert ", its subsets " in found.claims[0].sentence
    assert found.value(AVERAGE, "acc_norm") == pytest.approx(one.average("acc_norm"))


@pytest.mark.parametrize("listed", [["acc_norm"], []])
def test_scores_that_the_files_list_leaves_out_are_checked(tmp_path, listed):
    """A score was believed once its name was out of the file's own list of metrics."""
    (one,) = write_folder(tmp_path, Folder(6, (Plan(),)))
    edited_file(one, "acc", 0.97, metrics=listed)
    (found,) = load(one.file)
    assert [claim.metric for claim in found.claims] == ["acc"]
    assert found.value(f"{TRUST}|0", "acc") == pytest.approx(one.truth(f"{TRUST}|0", "acc")[0])


@pytest.mark.parametrize("details", ["whole", "missing"])
@pytest.mark.parametrize("left", ["none", "null"])
def test_a_number_that_is_taken_out_of_the_file_hides_no_average(tmp_path, details, left):
    """An average was believed once one of its subsets had no number in the file."""
    (one,) = write_folder(tmp_path, Folder(6, (Plan(tasks=("dialects",), edited="average", details=details),)))
    with changed(one.file) as content:
        content["results"][f"{DIALECTS[0]}|0"]["acc_norm"] = None
        if left == "none":
            del content["results"][f"{DIALECTS[0]}|0"]["acc_norm"]
    (found,) = load(one.file)
    assert (AVERAGE, "acc_norm") in [(claim.task, claim.metric) for claim in found.claims]
    if details == "whole":
        assert found.claims[0].sentence.startswith(f"{DIALECTS[0]}|0 acc_norm: its file says nothing, its items ")
        assert found.value(AVERAGE, "acc_norm") == pytest.approx(one.average("acc_norm"))
    else:
        assert found.value(AVERAGE, "acc_norm") is None


@pytest.mark.parametrize("edited", ["score's error", "average's error"])
def test_a_standard_error_that_the_items_do_not_give_is_told_and_replaced(tmp_path, edited):
    """A file that said ±0.1 where its items say ±20 was believed, and could be the best of its column."""
    (one,) = write_folder(tmp_path, Folder(6, (Plan(tasks=("trust", "dialects"), edited=edited),)))
    ((task, metric),) = one.claimed
    (found,) = load(one.file)
    (sentence,) = [warning for warning in run_warnings(found) if warning.kind == "claims"]
    assert f"{task} {metric}: its file says 0.10, its " in sentence
    if not edited.startswith("average"):
        assert found.value(task, metric) == pytest.approx(one.truth(task, metric.removesuffix("_stderr"))[2])
    assert found.value(task, metric) > 0.05
    (table,) = page(tmp_path / "out", "--out", tmp_path / "site").values()
    assert table["rows"][0]["warnings"][0] == sentence and not table["rows"][0]["rank"]


def test_edited_scores_stand_where_their_items_say_and_the_reason_is_true(tmp_path):
    """An edited score stood first, with the false sentence that its details lack the items' scores."""
    plans = (
        Plan(tasks=CAPTIONS, scores=(0.0, 1.0, 0.0, 0.0), edited="score"),
        Plan(model=1, tasks=CAPTIONS, scores=(1.0, 1.0, 1.0, 0.0)),
        Plan(model=4, tasks=CAPTIONS, scores=(1.0, 1.0, 0.0, 0.0)),
    )
    write_folder(tmp_path, Folder(4, plans))
    (table,) = page(tmp_path / "out", "--out", tmp_path / "site").values()
    assert table["rows"][0]["label"] == "b-7B"
    (edited,) = [one for one in table["rows"] if one["label"] == "a-7B"]
    assert not edited["rank"] and 0.25 in [cell["value"] for cell in edited["cells"] if isinstance(cell, dict)]
    assert not any("lack the items' scores" in note for note in table["notes"])
    assert any("its file says 0.97, its items 0.25" in note for note in table["notes"])


@pytest.mark.slow
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("asked", ["prompts", "golds"])
def test_runs_of_other_texts_share_no_ranking(tmp_path, asked, signed):
    """Runs shared one ranking, as of the same data and prompts, while their details hold other ones.

    Stock runs did, and signed ones whose signatures hide it, which `compare` refused.
    """
    plans = [Plan(place, signed=signed, hidden=True, asked=asked if place == 2 else "") for place in range(3)]
    files = [one.file for one in write_folder(tmp_path, Folder(6, (replace(plans[0], refused=(1,)), *plans[1:])))]
    assert "differ in more than the model" in run("compare", files[0], files[2], "--output-dir", tmp_path / "c")[1]
    assert not run("compare", *files[:2], "--output-dir", tmp_path / "c", "--charts", "none")[2]
    found = sections_of(tmp_path)
    groups = [[entry["model"] for entry in section["entries"]] for section in found]
    assert [len(group) for group in groups] == [2, 1] and groups[1] == [NAMES[2]]
    assert found[1]["differs_from_first_group"]


def test_a_group_that_lacks_items_is_not_said_to_have_other_golds(tmp_path):
    """The page said "golds: 0a697b91 here, 11f7eb52 there" where all golds were alike and an item was missing."""
    one, other = (load(planted.file)[0] for planted in write_folder(tmp_path, Folder(6, (Plan(0), Plan(1, limit=4)))))
    first, second = (protocol_of(each, each.record.tasks[f"{TRUST}|0"], "acc_norm", ["limit"]) for each in (one, other))
    texts = texts_that_differ([one, other])
    words = "6 rows (4 in both)", "4 rows (4 in both)"
    assert fields_that_differ(first, second, texts) == {"items": words}
    assert fields_that_differ(second, first, texts) == {"items": words[::-1]}


def test_unsigned_runs_without_details_are_shown_and_not_ranked(tmp_path):
    plans = [Plan(model=place, signed=False, details="missing" if place else "whole") for place in range(2)]
    write_folder(tmp_path, Folder(6, tuple(plans)))
    tables = page(tmp_path / "out", "--out", tmp_path / "site")
    assert all(not one["rank"] for table in tables.values() for one in table["rows"])


def test_a_run_without_its_details_is_marked_and_none_of_its_scores_is_the_best(tmp_path):
    """An edited results file whose details were deleted stood bold as the best of its group, without a word."""
    write_folder(tmp_path, Folder(6, (Plan(0), Plan(1), Plan(2, edited="score", details="missing"))))
    (table,) = page(tmp_path / "out", "--out", tmp_path / "site").values()
    (told,) = [one for one in table["rows"] if NAMES[2] in one["label"]]
    assert not told["rank"] and UNVERIFIED in str(told["warnings"])
    assert "<b>" not in rows_of(tmp_path / "site", NAMES[2])[0]


def test_what_an_unsigned_run_lacks_hides_nothing_of_signed_ones(tmp_path):
    """One unsigned run in the arguments made the page forget that two signed ones were asked other rows."""
    planted = write_folder(tmp_path, Folder(6, (Plan(0), Plan(1), Plan(2), Plan(3, signed=False))))
    for file in (one.file for one in planted[2:3]):
        record = json.loads(file.read_text("utf-8"))
        for task in record["cultureval"]["tasks"].values():
            task["rows_hash"] = "b" * 16
        file.write_text(json.dumps(record), encoding="utf-8")
    groups = [[entry["model"] for entry in section["entries"]] for section in sections_of(tmp_path)]
    assert [len(group) for group in groups] == [3, 2] and not {*NAMES[:2]} & {*groups[1]}


def test_scores_that_a_metric_cannot_give_are_compared_nowhere(tmp_path):
    """Items' scores of 1.9 had no rank on the page, and `compare` called their model better with p < 0.001."""
    plans = (Plan(0), Plan(1, scores=(1.9, 1.9, 1.0, 0.0, 0.0, 1.0)))
    files = [one.file for one in write_folder(tmp_path, Folder(6, plans))]
    told = run("compare", *files, "--output-dir", tmp_path / "c", "--charts", "none")
    assert told[2] and "acc_norm is 0 to 1.9, outside 0 to 1" in told[1]
    (table,) = page(tmp_path / "out", "--out", tmp_path / "site").values()
    assert [one["rank"] for one in table["rows"] if one["label"].startswith("b-7B")] == [""]


def test_runs_of_fewer_items_join_where_items_may_differ_and_none_is_the_best(tmp_path):
    """Beside a run with other golds a limited run stood apart for its prompts; allowed, it won in bold."""
    plans = (Plan(0), Plan(1, limit=3, scores=(1.0,) * 6), Plan(2, asked="golds"))
    write_folder(tmp_path, Folder(6, plans))
    of_model = {one["entries"][0]["model"]: one for one in sections_of(tmp_path)}
    assert set(of_model) == set(NAMES[:3])
    assert "prompts" not in " ".join(of_model[NAMES[1]]["differs_from_first_group"])
    (section,) = sections_of(tmp_path, "--allow", "items")
    assert "may differ in items (--allow)" in str(section["tables"])
    (row,) = [row for row in rows_of(tmp_path / "site", NAMES[1].rpartition("/")[2]) if "limit 3" in row][:1]
    assert "<b>" not in row


def test_the_number_of_published_rows_is_the_catalogues(tmp_path):
    """A run of 20 rows whose record said that 20 are published stood among the papers' rows."""
    (one,) = write_folder(tmp_path, Folder(6, (Plan(),)))
    assert any("published: 522" in warning for warning in run_warnings(load(one.file)[0]))
    content = json.loads(one.file.read_text("utf-8"))
    for form, expected in (("original", 6), ("", 6), ("another", 6), ("", None)):
        content["cultureval"]["tasks"][f"{TRUST}|0"] |= {"expected_rows": expected, "form": form}
        one.file.write_text(json.dumps(content), encoding="utf-8")
        assert any("published: 522" in warning for warning in run_warnings(load(one.file)[0])), form


def test_an_error_of_nothing_is_told_where_all_scores_are_alike(tmp_path):
    """Our own files have Wilson's error there; an edited 0 gave an interval of 100 to 100."""
    (one,) = write_folder(tmp_path, Folder(6, (Plan(scores=(1.0,) * 6),)))
    (found,) = load(one.file)
    with changed(one.file) as content:
        own = found.stderr(f"{TRUST}|0", "acc_norm")
        assert own > 0.05
        content["results"][f"{TRUST}|0"]["acc_norm_stderr"] = 0.0
    (found,) = load(one.file)
    assert found.claims and found.stderr(f"{TRUST}|0", "acc_norm") == pytest.approx(own)


def test_a_board_is_without_runs_whose_scores_are_not_checked(tmp_path):
    """An edited results file without details turned the order of two boards, without a word."""
    plans = (Plan(0, scores=(1.0,) * 5 + (0.0,)), Plan(1, scores=(1.0,) * 3 + (0.0,) * 3), Plan(2))
    write_folder(tmp_path / "a", Folder(6, plans))
    write_folder(tmp_path / "b", Folder(6, (*plans[:2], replace(plans[2], edited="score", details="missing"))))
    out, err, _ = run("compare", "--leaderboards", tmp_path / "a" / "out", "--leaderboards", tmp_path / "b" / "out")
    assert "Kendall distance 0.000 of 2 models" in out, err
    assert "its details lack the items' scores" in out


def test_whatever_leaves_items_out_has_a_mark():
    """`compare` shows the warnings with marks: one of a judge's unscored verdicts had none."""
    assert all(one.mark for one in PROBLEMS.values() if one.partial or one.leaves_out)
    assert PROBLEMS["few_shot"].mark  # other prompts than were asked for


def changed_details(one, task, change):
    """Writes a task's details anew: `change` takes a row's metrics and gives others."""
    file = details_files_of_run(load(one.file)[0])[f"{task}|0"]
    rows = pq.read_table(file).to_pylist()
    for each in rows:
        each["metric"] = change(dict(each["metric"]))
    pq.write_table(pa.Table.from_pylist(rows), file)


@contextlib.contextmanager
def changed(file):
    """The content of a results file, which is written back."""
    content = json.loads(file.read_text("utf-8"))
    yield content
    file.write_text(json.dumps(content), encoding="utf-8")


def edited_file(one, metric, value, task=TRUST, **record):
    with changed(one.file) as content:
        content["results"][f"{task}|0"][metric] = value
        content["cultureval"]["tasks"][f"{task}|0"] |= record


NOTHING = {
    "no column": (lambda row: {name: value for name, value in row.items() if name != "acc_norm"}, {}),
    "words": (lambda row: row | {"acc_norm": str(row["acc_norm"])}, {}),
    "no mean": (dict, {"not_means": ["acc_norm"]}),
    "not applicable": (dict, {"not_applicable": ["acc_norm"]}),
    "no values": (lambda row: row | {"acc_norm": None}, {}),
}


@pytest.mark.parametrize("how", NOTHING)
def test_a_score_that_the_details_do_not_give_is_not_believed(tmp_path, how):
    """An edited score stood bold beside the papers' rows where the details held nothing to check it by."""
    planted = write_folder(tmp_path, Folder(6, (Plan(0), Plan(1), Plan(2))))
    change, record = NOTHING[how]
    changed_details(planted[2], TRUST, change)
    edited_file(planted[2], "acc_norm", 0.97, **record)
    (found,) = load(planted[2].file)
    assert found.claims or f"{TRUST}|0" in found.unchecked
    (table,) = page(tmp_path / "out", "--out", tmp_path / "site").values()
    (told,) = [one for one in table["rows"] if NAMES[2].rpartition("/")[2] in one["label"]]
    assert not told["rank"] and told["warnings"]
    assert all("<b>" not in row for row in rows_of(tmp_path / "site", NAMES[2]))


def test_every_score_is_checked_and_the_best_is_of_all_items(tmp_path):
    """Only the headline was: others stood bold where they were edited, outside their range, or without bad items."""
    plans = [Plan(place, tasks=("caption",)) for place in range(4)]
    planted = write_folder(tmp_path, Folder(6, tuple(plans)))
    changed_details(planted[0], CAPTION, lambda row: {name: row[name] for name in row if name != "rouge_l"})
    edited_file(planted[0], "rouge_l", 99.0, CAPTION)
    changed_details(planted[1], CAPTION, lambda row: row | {"rouge_l": 250.0})
    edited_file(planted[1], "rouge_l", 250.0, CAPTION)
    kept = iter([10.0, *[None] * 5])
    changed_details(planted[2], CAPTION, lambda row: row | {"rouge_l": next(kept)})
    edited_file(planted[2], "rouge_l", 10.0, CAPTION)
    (cut, outside, few, whole) = (load(one.file)[0] for one in planted)
    assert outside.impossible and not whole.impossible and not whole.claims and not whole.unchecked
    tables = page(tmp_path / "out", "--out", tmp_path / "site")
    assert cut.claims or cut.unchecked
    for place in range(3):
        told = rows_of(tmp_path / "site", NAMES[place])
        assert all(">99.00</b>" not in row and ">250.00</b>" not in row and "<b>10.00" not in row for row in told)
    assert tables and few.record.tasks[f"{CAPTION}|0"].rows_with("rouge_l") == 1


def test_a_judgement_without_its_details_is_not_believed(tmp_path):
    """A judge's scores of 4.9 stood bold after the judgement's details were deleted."""
    (one,) = write_folder(tmp_path, Folder(5, (Plan(tasks=("caption",), judged=True),)))
    (before,) = load(tmp_path / "out")
    assert not before.unchecked
    judged = [
        file for file in (tmp_path / "out" / "details").rglob("*.parquet") if CRITERION in str(pq.read_schema(file))
    ]
    assert judged
    for file in judged:
        file.unlink()
    (found,) = load(tmp_path / "out")
    assert found.unchecked == {f"{CAPTION}|0": "the details of its judgement are not there"}


def test_partial_runs_are_marked_and_stand_apart_from_the_papers_rows(tmp_path):
    """`eval --limit 2` stood as "AraTrust 100.00 ±16.78" in a column where a paper's model has 90.23."""
    write_folder(tmp_path, Folder(6, (Plan(limit=2),)))
    arguments = (tmp_path / "out", "--out", tmp_path / "site", "--published")
    (table,) = page(*arguments).values()
    assert not any(one["published"] for one in table["rows"])
    shown_rows = Rows((tmp_path / "site" / "index.html").read_text(encoding="utf-8")).rows
    assert any("limit 2" in cell for cells in shown_rows for cell in cells)
    (table,) = page(*arguments, "--partial").values()
    assert any(one["published"] for one in table["rows"])


def test_what_the_terminal_tells_of_answers_stands_on_the_page(tmp_path):
    """Rows against published, unreadable, cut and refused answers were told in the terminal only."""
    (one,) = write_folder(tmp_path, Folder(6, (Plan(refused=(1,), details="missing"),)))  # which would say otherwise
    with changed(one.file) as content:
        record = content["cultureval"]["tasks"][f"{TRUST}|0"]
        record |= {"truncated": 3, "unparsable": 2, "expected_rows": 522}
    (summary,) = shown("show", one.file, "--json")["runs"]
    (table,) = page(tmp_path / "out", "--out", tmp_path / "site").values()
    assert table["rows"][0]["warnings"] == summary["warnings"] and len(summary["warnings"]) == 5
    (model,) = (tmp_path / "site" / "models").glob("*.html")
    text = model.read_text(encoding="utf-8")
    assert all(words in text for words in ("cut at the token limit", "Unreadable answers", "522", "refused"))


def test_foreign_and_cut_results_files_are_left_out_by_name(tmp_path):
    """One of them below the folder stopped the whole page; --strict still stops."""
    (one,) = write_folder(tmp_path, Folder(4, (Plan(),), ("[1]", '{"config_general": {')))
    site = ("leaderboard", tmp_path / "out", "--out", tmp_path / "site", "--charts", "none")
    out, err, code = run(*site)
    assert code == 0 and out.count("left out: ") == 2 and "results_2026-01-01T00-00-00.json" in out
    _, err, code = run(*site, "--strict")
    assert code and "other-0" in err and "other-1" in err
    assert len(shown("show", tmp_path / "out", "--json")["runs"]) == 1


def test_an_items_name_is_the_same_in_compare_and_show(tmp_path):
    """`compare` named an item `test.jsonl:1` that `show` did not take."""
    planted = write_folder(tmp_path, Folder(6, (Plan(), Plan(model=1, seed=3))))
    files = [one.file for one in planted]
    run("compare", *files, "--output-dir", tmp_path / "c", "--charts", "none", "--resamples", "100")
    flips = [json.loads(line) for line in (tmp_path / "c" / "items.jsonl").read_text("utf-8").splitlines()]
    assert flips
    for flip in flips:
        item = shown("show", files[0], TRUST, flip["item"], "--json")
        assert item["item"] == flip["item"]


def test_compare_calls_a_model_as_the_page_does(tmp_path):
    """It was called by its folder, which a user may name otherwise (`model-0`)."""
    write_folder(tmp_path, Folder(6, (Plan(), Plan(model=1))))
    out, _, _ = run("compare", tmp_path / "out", "--output-dir", tmp_path / "c", "--charts", "none")
    names = [entry["model"] for section in sections_of(tmp_path) for entry in section["entries"]]
    assert sorted(names) == sorted(NAMES[:2]) and f"{NAMES[0]} minus {NAMES[1]}" in out


SAID = ("قال الولد كلمة اليوم", "رأيت قطة سوداء في البيت", "سافرت أمس")
MEANT = ("قال الولد كلمة واحدة اليوم", "رأيت قطة سوداء كبيرة في البيت", "سافرت إلى فاس أمس")
SOURCES = ("قال الولد شيئا", "شفت قطة", "مشيت مبارح")


def test_an_edited_corpus_score_is_told(tmp_path, monkeypatch, own_cache, tiny_instruments):
    """Only `compare` made corpus scores anew: an edited chrF, BLEU or spBLEU stood everywhere else without a word."""
    task = "alqasida_mt:btec_eng_to_egy"
    monkeypatch.setenv("CULTUREVAL_FLORES200_MODEL", tiny_instruments["flores200_model"])
    scores = {name: getattr(translation, name)(SAID, MEANT) for name in CORPUS}
    scores |= {f"{name}_zero": getattr(translation, name)(SOURCES, MEANT) for name in CORPUS}
    rows = [
        row(place, "ترجم", dict.fromkeys(scores, 1.0), answer=said, choices=[meant], source=source)
        for place, (said, meant, source) in enumerate(zip(SAID, MEANT, SOURCES, strict=True))
    ]
    save(tmp_path, task, rows)
    file = tmp_path / "results" / "lab" / "model" / f"results_{DATE}.json"
    file.parent.mkdir(parents=True)
    for edited in (None, "chrf", "bleu_zero", "spbleu"):
        content = {"config_general": {"model_name": "lab/model"}, "config_tasks": {f"{task}|0": {}}}
        content["results"] = {f"{task}|0": scores | ({edited: 97.0} if edited else {})}
        file.write_text(json.dumps(content), encoding="utf-8")
        (found,) = load(file)
        assert not found.unchecked
        assert {name: found.value(f"{task}|0", name) for name in scores} == pytest.approx(scores)
        assert [claim.metric for claim in found.claims] == ([edited] if edited else [])
    monkeypatch.setenv("CULTUREVAL_FLORES200_MODEL", str(tmp_path / "none"))
    (found,) = load(file)
    assert "spbleu: spBLEU needs the SentencePiece model" in found.unchecked[f"{task}|0"] and not found.claims


def test_a_corpus_score_of_nothing_is_no_mean(tmp_path, monkeypatch, own_cache, tiny_instruments):
    """BLEU without a match is 0 as its sentences' mean is: its honest error of 0 was told as edited."""
    task, said, meant = "alqasida_mt:btec_eng_to_egy", ["لا"] * 12, ["قال الولد كلمة"] * 12
    monkeypatch.setenv("CULTUREVAL_FLORES200_MODEL", tiny_instruments["flores200_model"])
    assert translation.bleu(said, meant) == 0
    answers = zip(said, meant, strict=True)
    save(
        tmp_path,
        task,
        [row(at, "ترجم", {"bleu": 0.0}, answer=a, choices=[b], source=a) for at, (a, b) in enumerate(answers)],
    )
    file = tmp_path / "results" / "lab" / "model" / f"results_{DATE}.json"
    file.parent.mkdir(parents=True)
    content = {"config_general": {"model_name": "lab/model"}, "config_tasks": {f"{task}|0": {}}}
    for told, claims in ((0.0, 0), (50.0, 1)):
        content["results"] = {f"{task}|0": {"bleu": told, "bleu_stderr": 0.0}}
        file.write_text(json.dumps(content), encoding="utf-8")
        assert len(load(file)[0].claims) == claims


def test_details_are_of_their_own_run_alone(tmp_path):
    """After a rerun without saved details, items of the run before it were told, judged and compared as the rerun's."""
    out, tasks = tmp_path / "out", ("trust", "caption")
    one, other = write_folder(tmp_path, Folder(6, (Plan(tasks=tasks), Plan(1, tasks=tasks))))
    content = json.loads(one.file.read_text("utf-8"))
    content["results"] = {f"{TRUST}|0": {"acc_norm": 0.97, "acc": 0.97}}
    content["cultureval"]["tasks"].pop(f"{CAPTION}|0")
    (one.file.parent / "results_2031-01-01T10-00-00.json").write_text(json.dumps(content), encoding="utf-8")
    _, err, code = run("show", one.file.parent, TRUST)
    assert code and UNVERIFIED in err and str(one.file) in err
    assert not run("show", one.file, TRUST)[2] and not run("show", out, CAPTION)[2]
    told = []
    left = {(task.name, task.task) for task in find_saved_tasks([out], told.append)}
    assert (NAMES[0], f"{TRUST}|0") not in left and len(left) == 3 and UNVERIFIED in told[0]
    found = shown("compare", out, "--output-dir", tmp_path / "c", "--charts", "none", "--json")
    assert {row["name"] for row in found["differences"] if row["level"] == "group"} == {f"{CAPTION}|0"}
    assert told[0] in found["notes"]
    newest = load(out)[0]
    assert newest.value(f"{TRUST}|0", "acc_norm") == 0.97 and UNVERIFIED in newest.unchecked[f"{TRUST}|0"]
    assert len(write_logs([out])) == 3
    rows = [row for table in page(out, "--out", tmp_path / "site").values() for row in table["rows"]]
    cells = [[cell["value"] for cell in row["cells"] if isinstance(cell, dict)] for row in rows]
    (ours,) = [row for row, values in zip(rows, cells, strict=True) if 97.0 in values]
    assert not ours["rank"] and UNVERIFIED in " ".join(ours["warnings"])
    rerun = one.file.parent / "results_2031-01-01T10-00-00.json"
    (elsewhere := tmp_path / "later" / "results" / "x").mkdir(parents=True)
    rerun.rename(elsewhere / rerun.name)  # in another output folder it is the same model's newest run, too
    assert (NAMES[0], f"{TRUST}|0") not in {(task.name, task.task) for task in find_saved_tasks([tmp_path], print)}
    assert len(find_saved_tasks([out], told.append)) == 4


def test_two_judges_of_one_name_are_told_and_compared_with_neither(tmp_path):
    """The second judge's signature stood for the first's scores of other tasks, too."""
    tasks, judge_, date = [f"jeem_caption:{place}|0" for place in ("ae", "eg")], "gpt/image_reference", "2026-01-01T0"
    (folder := tmp_path / "results" / "m").mkdir(parents=True)

    def write(hour, results, signatures, **general):
        record = RunRecord(tasks=task_records(dict.fromkeys(tasks, {}), None), signatures=signatures)
        content = {"config_general": {"model_name": "m"} | general, "results": results} | section_of(record)
        (folder / f"results_{date}{hour}-00-00.json").write_text(json.dumps(content), encoding="utf-8")

    write(0, {task: {"cider": 1.0} for task in tasks}, [])
    judged = {"details": [f"details/m/{date}0-00-00/details_x.parquet"]}
    for hour, (model, of) in enumerate((("X", tasks), ("Y", tasks[1:]), ("Y", tasks)), start=1):
        signature = SignatureRecord(group=judge_, fields={"judge": model}, text=f"judge {model}")
        write(hour, {task: {f"{JUDGE}_n_items": 3, CRITERION: 2.0} for task in of}, [signature], judged=judged)
        (found,) = load(tmp_path)
        told = [warning for warning in run_warnings(found) if warning.kind == "judges_of_one_name"]
        assert [one.text for one in found.record.signatures] == [["judge X"], ["judge X", "judge Y"], ["judge Y"]][
            hour - 1
        ]
        assert [judge_ in one and "judge X / judge Y" in one for one in told] == [True] * (hour == 2)


def test_a_corpus_score_and_its_error_are_those_of_its_sums(tmp_path):
    """BLEU edited to its sentences' mean passed as a mean, and its bootstrapped error was believed."""
    file = board_runs.write_run(tmp_path, "lab/a", ["jeem_caption:eg"], 0.5, 40, signed={})
    task, (honest,) = "jeem_caption:eg|0", load(file)
    items = item_scores(details_files_of_run(honest)[task], task, "bleu_4")
    draws = np.random.default_rng(0).multinomial(40, [1 / 40] * 40, size=400)
    error = float(items.score(draws @ items.parts).std(ddof=1))
    mean = float(np.mean(details_columns(details_files_of_run(honest)[task], ["metric.bleu_4"])["metric.bleu_4"]))
    for name, value, claimed in (
        ("bleu_4_stderr", error, []),
        ("bleu_4_stderr", 0.001, ["bleu_4_stderr"]),
        ("bleu_4", mean, ["bleu_4"]),
    ):
        edited_file(SimpleNamespace(file=file), name, value, "jeem_caption:eg")
        (found,) = load(file)
        assert [claim.metric for claim in found.claims] == claimed, name
        assert found.value(task, "bleu_4") == pytest.approx(honest.value(task, "bleu_4"))
        assert found.stderr(task, "bleu_4") == pytest.approx(error, rel=0.5)
    edited_file(SimpleNamespace(file=file), "bleu_4", None, "jeem_caption:eg")
    (found,) = load(file)  # a number that is taken out comes back
    assert "bleu_4: its file says nothing" in found.claims[0].sentence
    assert found.value(task, "bleu_4") == pytest.approx(honest.value(task, "bleu_4"))


@pytest.mark.parametrize("first", [1.0, None])
def test_a_record_hides_no_unscored_items(tmp_path, first):
    """Items without a score, or all of them, were not told of where the record called the metric not applicable."""
    (one,) = write_folder(tmp_path, Folder(6, (Plan(),)))
    kept = iter([first, *[None] * 5])
    changed_details(one, TRUST, lambda row: row | {"acc_norm": next(kept)})
    edited_file(one, "acc_norm", first, not_applicable=["acc_norm"])
    (found,) = load(one.file)
    assert "unscored" in [warning.kind for warning in run_warnings(found)]
    table = scores_table([found])
    assert list(table[(table.task == f"{TRUST}|0") & (table.metric == "acc_norm")].n) == [1 if first else 0]


@pytest.mark.parametrize(
    ("task", "metric", "said"),
    [
        (f"{TRUST}|0", "acc_norm", "50.00"),
        (f"{CAPTION}|0", "cider", "0.50"),
        (f"{CAPTION}|0", "judge_a_n_items", "0.50"),
    ],
)
def test_a_claim_is_told_in_the_metrics_unit(task, metric, said):
    """CIDEr below 1, and counts of 1, were told times 100, since they were small."""
    assert f"its file says {said}, " in Claim(task, metric, 0.5, 0.25, "items").sentence


def test_a_records_word_halves_no_standard_error(tmp_path):
    """A metric that the record named among its `not_means` could have half of its error."""
    (one,) = write_folder(tmp_path, Folder(24, (Plan(),)))
    error = load(one.file)[0].stderr(f"{TRUST}|0", "acc_norm")
    edited_file(one, "acc_norm_stderr", 0.55 * error, not_means=["acc_norm"])
    (found,) = load(one.file)
    assert [claim.metric for claim in found.claims] == ["acc_norm_stderr"]
    assert found.stderr(f"{TRUST}|0", "acc_norm") == pytest.approx(error)


@pytest.mark.parametrize("name", ["_stderr", "_missing_as_1", "_n_unscored"])
def test_every_number_of_a_judgement_is_that_of_its_verdicts(tmp_path, name):
    """Only means were made anew: a judgement's file could hide unscored verdicts, or say ±0.001."""
    (one,) = write_folder(tmp_path, Folder(5, (Plan(tasks=("caption",), judged=True),)))
    (judgement,) = one.file.parent.glob("*T12*.json")
    metric = f"{JUDGE if name.startswith('_n') else CRITERION}{name}"
    content = json.loads(judgement.read_text("utf-8"))
    told = load(tmp_path / "out")[0].scores[f"{CAPTION}|0"][metric]
    content["results"][f"{CAPTION}|0"][metric] = 1.25
    judgement.write_text(json.dumps(content), encoding="utf-8")
    (found,) = load(tmp_path / "out")
    assert [claim.metric for claim in found.claims] == [metric] and not found.unchecked
    assert found.scores[f"{CAPTION}|0"][metric] == pytest.approx(told)


def test_a_mean_without_flagged_texts_is_of_the_others(tmp_path):
    """Its n was that of all items, with the number of unflagged ones below it."""
    (one,) = write_folder(tmp_path, Folder(5, (Plan(tasks=("caption",), judged=True),)))
    (file,) = [path for path in (tmp_path / "out").rglob("*.parquet") if CRITERION in str(pq.read_schema(path))]
    table = pq.read_table(file)
    rows = table.column("metric").to_pylist()
    rows[0][JUDGE] |= {"flags": ["rates_a_criterion"]}
    pq.write_table(table.set_column(table.column_names.index("metric"), "metric", pa.array(rows)), file)
    (judgement,) = one.file.parent.glob("*T12*.json")
    content, task = json.loads(judgement.read_text("utf-8")), f"{CAPTION}|0"
    content["results"][task] |= {f"{CRITERION}_unflagged": sum(one.judged[1:]) / 2, f"{JUDGE}_n_parsed_unflagged": 2}
    judgement.write_text(json.dumps(content), encoding="utf-8")
    runs = load(tmp_path / "out")
    found = scores_table(runs).set_index("metric")
    assert not runs[0].claims and [found.n[CRITERION], found.n[f"{CRITERION}_unflagged"]] == [3, 2]


def test_shares_of_labels_are_those_of_the_labels(tmp_path):
    """Shares that `judge label` wrote were believed from its file."""
    (one,) = write_folder(tmp_path, Folder(5, (Plan(tasks=("caption",), judged=True),)))
    (judgement,) = one.file.parent.glob("*T12*.json")
    (file,) = [path for path in (tmp_path / "out").rglob("*.parquet") if CRITERION in str(pq.read_schema(path))]
    prefix, table = "judge_gpt_question_type", pq.read_table(file)
    labels = judge_template("jeem_question_type").labels
    first = next(iter(labels))
    verdicts = [
        {prefix: {"outcome": "scored", "label": label, "flags": [], "reply": "", "asked": 1}}
        for label in (first, first, None)
    ]
    table = table.set_column(table.column_names.index("metric"), "metric", pa.array(verdicts))
    pq.write_table(table, file)
    metric = f"{prefix}_{(labels[first] or (first,))[0]}"
    content = json.loads(judgement.read_text("utf-8"))
    for told, claims in ((2 / 3, []), (0.99, [metric])):
        content["results"] = {f"{CAPTION}|0": {metric: told, f"{prefix}_n_items": 3, f"{prefix}_n_parsed": 3}}
        judgement.write_text(json.dumps(content), encoding="utf-8")
        (found,) = load(tmp_path / "out")
        assert [claim.metric for claim in found.claims] == claims and not found.unchecked
        assert found.value(f"{CAPTION}|0", metric) == pytest.approx(2 / 3)
    content["results"][f"{CAPTION}|0"][f"{prefix}_invented"] = 0.9
    judgement.write_text(json.dumps(content), encoding="utf-8")
    assert "invented" in load(tmp_path / "out")[0].unchecked[f"{CAPTION}|0"]


def test_a_sampled_judgement_is_marked_and_never_stands_for_all(tmp_path):
    """`judge --sample 3` replaced the judgement of all captions, with the sample's bounds and without a mark."""
    out, task = tmp_path / "out", f"{CAPTION}|0"
    (one,) = write_folder(tmp_path, Folder(5, (Plan(tasks=("caption",), judged=True),)))
    (found,) = load(out)
    marks, values = one.judged, found.scores[task]
    assert len(marks) == 3 == found.record.tasks[task].n_of(CRITERION)
    assert (values[f"{JUDGE}_n_items"], values[f"{JUDGE}_n_not_asked"], values[f"{JUDGE}_n_unscored"]) == (5, 2, 2)
    ends = [values[f"{CRITERION}_missing_as_{end}"] for end in (1, 5)]
    assert values[CRITERION] == pytest.approx(sum(marks) / 3)
    assert ends == pytest.approx([(sum(marks) + 2) / 5, (sum(marks) + 10) / 5]) and not found.claims
    assert "judged in part (3 of 5)" in [warning.mark for warning in run_warnings(found)]
    assert "judged in part (3 of 5)" in run("show", out)[0]
    fuller = judge(out, replace(one, plan=replace(one.plan, seed=6)), hour=6, share=1.0)  # of an earlier date
    (found,) = load(out)
    assert found.value(task, CRITERION) == pytest.approx(sum(fuller) / 5) and fuller[:3] != marks
    assert not [warning for warning in run_warnings(found) if "judged in part" in warning.mark]
    listed = shown("show", out, CAPTION, "--json")["items"]
    assert [item["scores"][CRITERION] for item in listed] == list(fuller)
    (log,) = write_logs([out])
    scores = [sample.scores[CRITERION].value for sample in read_eval_log(str(log.file)).samples]
    assert scores == list(fuller)


@pytest.mark.parametrize("outcome", ["malformed", "unusable", "no_answer"])
def test_a_judge_that_scored_nothing_of_a_task_is_told(tmp_path, monkeypatch, outcome):
    """All verdicts unreadable: no file said so, and no view; with one that was read, all of them did."""
    out, task = tmp_path / "out", f"{CAPTION}|0"
    write_folder(tmp_path, Folder(5, (Plan(tasks=("caption",)),)))
    (saved,) = [one for one in find_saved_tasks([out]) if one.task == task]
    table, template = read_details(saved.file), "jeem_caption_image_reference"
    verdicts = [JudgeVerdict(str(place), outcome=outcome, reason="-") for place in range(table.num_rows)]
    job = Job(saved, table, table.num_rows, {}, {("gpt", template): Judgement(verdicts)})
    settings = JudgeSettings(name="gpt", model="gpt", base_url="http://127.0.0.1:1")
    monkeypatch.setattr(judge_report, "judge_jobs", lambda judges, work: {})
    _, file, _ = judge_report.judge_and_save([settings], [job], {})
    (found,) = load(out)
    assert bool(file) == (outcome != "no_answer") and not found.claims and not found.unchecked
    if not file:
        return
    values, warnings = found.scores[task], run_warnings(found)
    assert [values[f"{CRITERION}_missing_as_{end}"] for end in (1, 5)] == [1, 5] and values[CRITERION] is None
    assert (values[f"{JUDGE}_n_parsed"], values[f"{JUDGE}_n_{outcome}"]) == (0, 5)
    assert "unscored verdicts" in [one.mark for one in warnings] and "n/a [1.00, 5.00]" in " ".join(warnings)
    assert "with image  n/a [1.00, 5.00]" in run("show", out)[0]


def test_what_a_judge_leaves_out_makes_no_other_score_less_than_the_best():
    """Bold went to a lower BLEU where the judge had failed on some of the best model's captions."""
    told = [RunWarning("-", kind) for kind in ("unjudged", "judged_in_part")]
    assert not leaves_items_out(told) and leaves_items_out([RunWarning("-", "unscored")])


def test_judging_again_until_the_marks_are_good_is_told(tmp_path):
    """Later verdicts replaced others on the same answers without a word; those that only add some are not told."""
    out = tmp_path / "out"
    (one,) = write_folder(tmp_path, Folder(5, (Plan(tasks=("caption",), judged=True),)))
    judge(out, one, hour=13, share=1.0)  # the same verdicts, and those that were not asked for
    assert "rejudged" not in {warning.kind for warning in run_warnings(load(out)[0])}
    first, other = (
        sum(judge(out, replace(one, plan=replace(one.plan, seed=seed)), 14 + seed, 1.0)) / 5 for seed in (0, 6)
    )
    (found,) = load(out)
    (told,) = [warning for warning in run_warnings(found) if warning.kind == "rejudged"]
    assert first != other and f"{CRITERION} is {other:.4f} here, and was {first:.4f} by an earlier one" in told
    assert told.mark == "newest of its judgements" and "newest of several judgements" in run("show", out)[0]
    assert any(told in row["warnings"] for table in page(out).values() for row in table["rows"])


@pytest.mark.parametrize("gone", ["results", "details", "run"])
def test_a_judgement_that_lost_a_file_counts_in_every_view_or_in_none(tmp_path, gone):
    """The summary had the scores of one judgement, the items those of another."""
    out, task = tmp_path / "out", f"{CAPTION}|0"
    (one,) = write_folder(tmp_path, Folder(6, (Plan(tasks=("caption",), judged=True),)))
    fuller = judge(out, replace(one, plan=replace(one.plan, seed=6)), hour=6, share=1.0)
    (judgement,) = one.file.parent.glob("*T06*.json")
    if gone == "details":
        shutil.rmtree(out / "details" / "model-0" / "2026-01-01T06-00-00")
    else:
        (one.file if gone == "run" else judgement).unlink()
    (found,) = runs = load(out)
    counts = fuller if gone == "run" else one.judged
    assert found.value(task, CRITERION) == pytest.approx(sum(counts) / len(counts))
    items = shown("show", out, CAPTION, "--json")["items"]
    assert [item["scores"][CRITERION] for item in items if CRITERION in item["scores"]] == list(counts)
    assert [left.file.name for left in runs.left_out] == [judgement.name] * (gone == "details")


def test_one_n_is_of_items_everywhere(tmp_path):
    """Of M2CQA, whose items are three rows, some views counted rows; CFHR's n was of items that it does not count."""
    root, items = tmp_path / "out", 20
    file = run_of_m2cqa(root, {"tf_en": drawn_verdicts(items, 0.8, 0.6, 1)})
    (found,) = load(root)
    assert not found.claims and not found.unchecked
    table = scores_table([found])
    right = int((drawn_verdicts(items, 0.8, 0.6, 1)[:, 0] == "true").sum())
    assert 0 < right < items and set(table[table.metric == "q_plus_acc"].n) == {items}
    assert set(table[table.metric == "cfhr"].n) == {right} and set(table[table.metric == "cfhr"].coverage) == {1.0}
    (summary,) = shown("show", root, "--json")["runs"]
    cells = [cell for row in summary["suites"]["m2cqa"][0]["rows"] for cell in row if isinstance(cell, dict)]
    assert [cell["n"] for cell in cells] == [right, items, items, items]
    page(root, "--out", tmp_path / "site")
    (model,) = (tmp_path / "site" / "models").glob("*.html")
    (row_,) = [row for row in Rows(model.read_text("utf-8")).rows if row[:1] == ["m2cqa:tf_en"]]
    assert row_[5] == f"{right} of {items}"
    (log,) = write_logs([file])
    scores = read_eval_log(str(log.file)).results.scores
    assert {score.metadata["items"] for score in scores if score.name == "cfhr"} == {right}


def test_the_best_stands_first_on_a_tasks_page_and_each_model_has_its_marks(tmp_path):
    """There the largest CFHR was the first, and an edited score stood as if nothing were wrong with it."""
    for name, right in (("lab/worse", 0.5), ("lab/better", 0.95), ("lab/edited", 0.7)):
        file = run_of_m2cqa(tmp_path / "out", {"tf_en": drawn_verdicts(40, 0.8, right, 1)}, model=name)
    with changed(file) as content:
        content["results"]["m2cqa:tf_en|0"]["cfhr"] = 0.01
    page(tmp_path / "out", "--out", tmp_path / "site")
    (html,) = (tmp_path / "site" / "tasks").glob("*.html")
    names = [row[0] for row in Rows(html.read_text("utf-8")).rows if row[1:2] == ["cfhr"]]
    assert [name.startswith(one) for name, one in zip(names, ("better", "worse", "edited"), strict=True)] == [True] * 3
    assert [name.count("edited") for name in names] == [0, 0, 2]


def test_no_model_rises_on_a_tasks_page_or_among_subsets_by_leaving_items_out(tmp_path):
    """Its wrong items unscored, a model stood above a better one of all items: 1.0000 of 13 before 0.7667 of 30."""
    scores = ((1.0,) * 3 + (None,) * 3, (1.0,) * 5 + (0.0,), (1.0,) * 2 + (0.0,) * 4)
    write_folder(tmp_path, Folder(6, tuple(Plan(model, scores=one) for model, one in enumerate(scores))))
    page(tmp_path / "out", "--out", tmp_path / "site")
    (html,) = (tmp_path / "site" / "tasks").glob("*.html")
    rows = [row for row in Rows(html.read_text("utf-8")).rows if row[1:2] == ["acc_norm"]]
    assert [row[2] for row in rows] == ["0.8333", "1.0000", "0.3333"] and "3 of 6" in rows[1]
    index = (tmp_path / "site/index.html").read_text("utf-8")
    (suite,) = json.loads(re.search(r'id="subset-data">(.*?)</script>', index, re.DOTALL).group(1))
    assert sorted((one["scores"][0], one["orders"][0]) for one in suite["models"]) == [
        (0.333333, 0.333333),
        (0.833333, 0.833333),
        (1.0, 0.5),
    ]


def test_a_tasks_place_is_the_catalogues(tmp_path):
    """One word in a model's record gave it a table of its own, and took the suite's charts from all models."""
    for name in ("lab/a", "lab/b"):
        file = board_runs.write_run(tmp_path, name, DIALECTS, 0.5, 12, signed={})
    places = ("suite", "group", "benchmark", "subset", "domain")
    honest = load(file)[0].record
    with changed(file) as content:
        content["cultureval"]["tasks"][f"{DIALECTS[0]}|0"] |= dict.fromkeys(places, "Other")
    assert load(file)[0].record.tasks == honest.tasks


@pytest.mark.parametrize("group", ["qimma_aradice", "qimma_gen_aradice"])
def test_a_mean_of_some_subsets_says_of_how_many_on_the_page(tmp_path, group):
    """The page of generated answers had means of 35 and of 40 subsets in one column, and none said which it was."""
    tasks = list(groups()[group])
    board_runs.write_run(tmp_path / "out", "lab/whole", tasks, 0.5, 12, signed={})
    board_runs.write_run(tmp_path / "out", "lab/part", tasks[1:], 0.5, 12, signed={})
    (table,) = page(tmp_path / "out", "--out", tmp_path / "site").values()
    cells = {
        row["label"]: [one for one in row["cells"] if isinstance(one, dict) and one["value"]] for row in table["rows"]
    }
    told = f"{len(tasks) - 1}/{len(tasks)}"
    assert cells["part"] and {one.get("coverage") for one in cells["part"]} == {told}
    assert {one.get("coverage") for one in cells["whole"]} == {None}


def run_of_m2cqa(root, cells, left=(), model="lab/model", group="m2cqa", **other):
    """The results file of a run of verdicts by their tasks, without anything of some of these."""
    file = m2cqa_runs.write_run(root, model, cells, recorded={}, group=group, **other)
    with changed(file) as content:
        scores = {f"{group}:{name}|0": cell_report(verdicts) for name, verdicts in cells.items()}
        for name, verdicts in cells.items():
            counts = {"rows": verdicts.size, "unparsable": int((verdicts == "invalid").sum())}
            content["cultureval"]["tasks"][f"{group}:{name}|0"] |= counts
        scores |= means_of_subsets(scores)
        content["results"] = {name: values for name, values in scores.items() if name not in left}
        for name in left:
            del content["cultureval"]["tasks"][name], content["config_tasks"][name]
    return file


def test_a_rates_standard_error_is_that_of_its_items(tmp_path):
    """Half of CFHR's error was believed, of a cell as of the mean of two, and one taken out was another one."""
    cells = {name: drawn_verdicts(60, 0.8, 0.6, seed) for seed, name in enumerate(("tf_ajp", "tf_arz"))}
    file = run_of_m2cqa(tmp_path, cells)
    whole = file.read_text("utf-8")
    for name in ("m2cqa:tf_ajp|0", "m2cqa:_dialect_tf|0"):
        for factor, claims in ((1.0, []), (0.8, []), (0.6, [name])):
            content = json.loads(whole)
            own = content["results"][name]["cfhr_stderr"]
            content["results"][name]["cfhr_stderr"] = factor * own
            file.write_text(json.dumps(content), encoding="utf-8")
            (found,) = load(file)
            assert [claim.task for claim in found.claims] == claims
            assert found.stderr(name, "cfhr") == pytest.approx(own)
    content["results"] |= {"m2cqa:tf_ajp|0": {}}
    file.write_text(json.dumps(content), encoding="utf-8")
    own = cell_report(cells["tf_ajp"])["cfhr_stderr"]
    assert load(file)[0].stderr("m2cqa:tf_ajp|0", "cfhr") == pytest.approx(own)


def test_an_average_over_the_same_items_has_the_error_of_one_subset(tmp_path):
    """The file said 0.2152 of two languages with equal verdicts, and every view of it 0.1522, as of other items."""
    cells = dict.fromkeys(("en", "msa"), drawn_verdicts(60, 0.8, 0.6, 1))
    file, average = run_of_m2cqa(tmp_path, cells, group="m2cqa_aynvqa_tf"), "m2cqa_aynvqa_tf:_average|0"
    own = cell_report(cells["en"])
    with changed(file) as content:
        content["results"][average] = own
    (found,) = load(file)
    assert not found.claims and found.stderr("m2cqa_aynvqa_tf:en|0", "cfhr") == pytest.approx(own["cfhr_stderr"])
    assert found.stderr(average, "cfhr") == pytest.approx(own["cfhr_stderr"])


@pytest.mark.slow
def test_two_items_that_differ_in_every_form_are_two_items(tmp_path):
    """AynVQA's four forms of 60 items were 240 items: "alone at the top", and p 0.004 beside 0.25 of each form."""
    forms = [name for name, tasks in groups("aynvqa").items() if "joint" not in name and len(tasks) == 2]
    for model, fooled in (("lab/a", []), ("lab/b", [3, 9])):
        verdicts = drawn_verdicts(60, 1.0, 1.0, 0)
        verdicts[fooled, 1] = "true"
        for day, form in enumerate(forms, 1):
            cells = dict.fromkeys(("en", "msa"), verdicts)
            run_of_m2cqa(tmp_path / "out", cells, model=model, group=form, date=f"2026-01-0{day}T00-00-00")
    (table,) = page(tmp_path / "out", "--out", tmp_path / "site").values()
    assert len(forms) == 4 and [row["rank"] for row in table["rows"]] == ["1\u20132"] * 2
    run("compare", tmp_path / "out", "--output-dir", tmp_path / "c", "--charts", "none")
    found = json.loads((tmp_path / "c" / "comparison.json").read_text("utf-8"))["differences"]
    assert {row["level"] for row in found} == {"group", "subset", "average"}
    assert {row["clusters"] for row in found} == {60} and min(row["p_value"] for row in found) > 0.2
    widths = [row["high"] - row["low"] for row in found]
    assert max(widths) < 1.1 * min(widths)


def test_all_numbers_of_one_row_are_of_one_item(tmp_path):
    """`compare cvlue` swapped R@1, R@5 and R@10 of a dialogue one by one: p 0.016 where the page said "tied"."""
    tasks = [name for name in all_tasks() if name.startswith("cvlue_") and not name.startswith("cvlue_en")]
    for name, ability in (("lab/a", 0.6), ("lab/b", 0.5)):
        board_runs.write_run(tmp_path / "out", name, tasks, ability, 60, signed={})
    paths = [tmp_path / "out" / "results" / "lab" / name for name in "ab"]
    assert not run("compare", "cvlue", *paths, "--output-dir", tmp_path / "c")[2]
    rows = csv.DictReader((tmp_path / "c" / "differences.csv").read_text("utf-8").splitlines())
    (macro,) = (row for row in rows if row["level"] == "average")
    assert (macro["items"], macro["clusters"]) == ("240", "240") and macro["metric"] == "headlines"
    notes = " ".join(run("compare", *paths, "--output-dir", tmp_path / "c")[1].split())
    assert "not compared: CVLUE, Chinese: Macro: it has more metrics than are compared (TR@5, " in notes


@pytest.mark.parametrize("said", ["false", "invalid"])
def test_a_rate_without_a_denominator_leaves_no_readable_row_unscored(tmp_path, said):
    """Where no Q+ was judged right CFHR is undefined, and all rows were told as not scored."""
    cells = drawn_verdicts(20, 0.8, 0.6, 1)
    cells[:, 0] = said
    (found,) = load(run_of_m2cqa(tmp_path, {"tf_en": cells}))
    assert found.value("m2cqa:tf_en|0", "cfhr") is None and found.value("m2cqa:tf_en|0", "q_plus_acc") == 0
    assert ("unscored" in [warning.kind for warning in run_warnings(found)]) == (said == "invalid")


def test_an_item_whose_q_plus_is_unreadable_has_no_cfhr_in_any_view(tmp_path):
    """`compare` and ranks left it out of CFHR; `show`, the library and its table told it as scored."""
    task, cells = "m2cqa:tf_en|0", drawn_verdicts(20, 0.8, 0.6, 1)
    cells[:5, 0], cells[5:9, 1] = "invalid", "invalid"
    (found,) = load(run_of_m2cqa(tmp_path / "out", {"tf_en": cells}))
    items = item_scores(details_files_of_run(found)[task], task, "cfhr")
    record, right = found.record.tasks[task], int((cells[:, 0] == "true").sum())
    assert int(items.scored.sum()) == record.items_with("cfhr") == 15 and record.n_of("cfhr") == right
    assert not found.claims and record.items_with("q_plus_acc") == record.n_of("q_plus_acc") == 20
    table = scores_table([found])
    assert [*table[table.metric == "cfhr"].coverage, *table[table.metric == "f1"].coverage] == [0.75, 1.0]
    (told,) = [warning for warning in run_warnings(found) if warning.kind == "unscored"]
    assert "m2cqa 15." in told and told in shown("show", tmp_path / "out", "--json")["runs"][0]["warnings"]


def test_the_n_of_a_rate_without_details_is_that_of_its_file(tmp_path):
    """Without details, CFHR was of all items: its n was that of the accuracies."""
    cells = drawn_verdicts(20, 0.8, 0.6, 1)
    file = run_of_m2cqa(tmp_path, {"tf_en": cells})
    shutil.rmtree(tmp_path / "details")
    record = load(file)[0].record.tasks["m2cqa:tf_en|0"]
    assert record.n_of("cfhr") == int((cells[:, 0] == "true").sum()) < record.n_of("f1") == 20


@pytest.mark.parametrize("left", [["m2cqa:tf_arz|0"], ["m2cqa:tf_ajp|0", "m2cqa:tf_arz|0"]])
def test_a_mean_whose_subsets_were_taken_out_of_the_file_is_told(tmp_path, left):
    """M2CQA's Dialect was believed without the scores of one dialect, or of both."""
    cells = {name: drawn_verdicts(20, 0.8, 0.6, seed) for seed, name in enumerate(("tf_ajp", "tf_arz"))}
    whole, cut = (load(run_of_m2cqa(tmp_path / f"{len(out)}", cells, out))[0] for out in ([], left))
    mean = "m2cqa:_dialect_tf|0"
    assert not whole.claims and whole.value(mean, "f1") is not None
    assert (mean, "f1") in [(claim.task, claim.metric) for claim in cut.claims] and cut.value(mean, "f1") is None


def test_a_record_under_the_name_of_another_task_is_refused(tmp_path):
    """The record of another task stood for it, with its rows, its suite and its prompts."""
    (one,) = write_folder(tmp_path, Folder(6, (Plan(tasks=("trust", "caption")),)))
    with changed(one.file) as content:
        content["cultureval"]["tasks"][f"{TRUST}|0"]["task"] = f"{CAPTION}|0"
    with pytest.raises(CulturevalError, match=f"has '{CAPTION}.0' under the name of '{TRUST}.0'"):
        load(one.file)


@pytest.mark.parametrize("listed", [["acc", "acc_norm"], ["acc"], []])
def test_the_headline_is_the_catalogues(tmp_path, listed):
    """The first metric of the file's list was shown and ranked by, another one compared; an empty list ended the page.

    A file chooses neither: a task of the catalogue has one headline.
    """
    one, other = write_folder(tmp_path, Folder(6, (Plan(0, tasks=("trust", "dialects")), Plan(1, seed=3))))
    edited_file(one, "acc", 0.5, metrics=listed)
    (found,) = load(one.file)
    assert found.record.tasks[f"{TRUST}|0"].metrics == ("acc_norm", "acc")[: 1 + bool(listed)]
    (table,) = page(tmp_path / "out", "--out", tmp_path / "site").values()
    (ours,) = [row for row in table["rows"] if row["label"] == "a-7B"]
    cells = {column["name"]: cell for column, cell in zip(table["columns"], ours["cells"], strict=True)}
    assert cells["AraTrust"]["value"] == pytest.approx(100 * one.truth(f"{TRUST}|0", "acc_norm")[0])


def test_items_are_those_of_the_run_that_is_shown(tmp_path):
    """`show RESULTS TASK` took newer details whose results file was gone, and named the model by its folder."""
    old, new = write_folder(tmp_path, Folder(4, (Plan(2), Plan(2, seed=3))))
    new.file.unlink()
    out, _, _ = run("show", tmp_path / "out", TRUST)
    assert f"{NAMES[2]}, 2026-01-01" in out
    listed = shown("show", tmp_path / "out", TRUST, "--json")["items"]
    assert [one["answer"] for one in listed] == [one.chosen("acc_norm") for one in old.tasks[f"{TRUST}|0"]]


def test_models_of_one_name_are_told_apart_in_data(tmp_path):
    """The library's table and `show --json` had two models under one name, which the terminal told apart."""
    _, other = write_folder(tmp_path, Folder(4, (Plan(0), Plan(0, seed=2))))
    other.file.write_text(other.file.read_text("utf-8").replace("bfloat16", "float32"), encoding="utf-8")
    names = {f"{NAMES[0]} (dtype {dtype})" for dtype in ("bfloat16", "float32")}
    assert {one["model"] for one in shown("show", tmp_path, "--json")["runs"]} == names
    assert set(scores_table(load(tmp_path)).model) == names


def test_all_numbers_that_a_file_states_otherwise_are_told_in_full(tmp_path):
    """`show --full` named the first, and how many more there are."""
    (one,) = write_folder(tmp_path, Folder(6, (Plan(),)))
    edited_file(one, "acc", 0.97)
    edited_file(one, "acc_norm", 0.98)
    (found,) = load(one.file)
    told = [claim.sentence for claim in found.claims]
    assert len(told) == 2 and all(sentence in full_text(found, None) for sentence in told)
    assert summary_data(found)["claims"] == told


def test_compare_tells_what_signatures_differ_in(tmp_path):
    """Another number of solutions a problem was told by the page and `doctor` alone."""
    files = [
        board_runs.write_run(tmp_path / name, name, [TRUST], 0.5, 6, signed={"samples": count})
        for name, count in (("a", 6), ("b", 30))
    ]
    notes = shown("compare", *files, "--output-dir", tmp_path / "c", "--charts", "none", "--json")["notes"]
    assert any("also differ in signatures.samples (" in note for note in notes)


def test_models_without_a_name_are_those_of_their_folders(tmp_path):
    """Two folders whose files name no model were one model on the page, and two in `compare`."""
    for number, name in enumerate(("one", "two")):
        m2cqa_runs.write_run(tmp_path, name, {"tf_en": drawn_verdicts(9, 0.8, 0.6, number)})
    names = {saved.model_name for saved in find_saved_tasks([tmp_path])}
    assert {run.model for run in load(tmp_path)} == names == {"one", "two"}


def changed_rows(one, change, task=CAPTION, **record):
    """Writes a task's details anew, and the means that these give: `change` takes its rows and gives others."""
    file = details_files_of_run(load(one.file)[0])[f"{task}|0"]
    rows = change(pq.read_table(file).to_pylist())
    pq.write_table(pa.Table.from_pylist(rows), file)
    with changed(one.file) as content:
        for metric in rows[0]["metric"]:
            known = [row["metric"][metric] for row in rows if row["metric"][metric] is not None]
            content["results"][f"{task}|0"] |= {metric: float(np.mean(known)), f"{metric}_stderr": None}
        if "cultureval" in content:
            content["cultureval"]["tasks"][f"{task}|0"] |= {"rows": len(rows), "items": len(rows)} | record


def sections(root):
    """The models of each of a page's groups with their ranks, and in what the group differs from the first."""
    data = shown("leaderboard", root, "--out", root.parent / "site", "--charts", "none", "--json")
    return [
        ({row["label"]: row["rank"] for row in one["tables"][0]["rows"]}, " ".join(one["differs_from_first_group"]))
        for one in data["sections"]
    ]


def in_clusters(names):
    def change(rows):
        for each, name in zip(rows, names, strict=True):
            each["doc"]["specific"] |= {"cluster": name}
        return rows

    return change


def without_clusters(rows):
    for each in rows:
        del each["doc"]["specific"]["cluster"]
    return rows


def test_clusters_of_one_file_are_no_others(tmp_path):
    """One file that put all items into one cluster took every model's rank and every test."""
    scores = [(1.0,) * 30 + (0.0,) * 10, (1.0,) * 5 + (0.0,) * 35, (0.0,) * 40]
    plans = tuple(Plan(place, tasks=CAPTIONS, scores=one) for place, one in enumerate(scores))
    planted = write_folder(tmp_path, Folder(40, (*plans, replace(plans[1], model=3, signed=False))))
    pairs = [f"image {place // 2}" for place in range(40)]
    for one, names in zip(planted[:2], (pairs, [f"other {name}" for name in pairs]), strict=True):
        changed_rows(one, in_clusters(names))
    changed_rows(planted[2], in_clusters(["x"] * 40))
    changed_rows(planted[3], without_clusters)
    (first, ours), (apart, why) = sections(tmp_path / "out")
    assert first["a-7B"] == "1" and first["b-7B"].startswith("2") and not ours
    assert {"a-7B", "b-7B"}.isdisjoint(apart) and "clusters: 1 cluster here, 20 clusters there" in why
    assert first.keys() & apart.keys() == {"nul\\x00b"}  # which agrees with both, and takes their clusters
    _, err, code = run("compare", planted[0].file, planted[2].file, "--output-dir", tmp_path / "c")
    assert code and "which items share a cluster differs: 20 clusters and 1 cluster" in err
    tables = [item_scores(details_files_of_run(load(one.file)[0])[f"{CAPTION}|0"], CAPTION, "cider") for one in planted]
    found = [aligned([tables[3], tables[0]])[0].clusters, aligned([tables[0], tables[2]])[1].clusters]
    assert found == [tuple(pairs), ("x",) * 40]


def test_copies_of_a_run_without_its_hard_rows_take_no_rank_from_an_honest_one(tmp_path):
    """A majority of files was believed: one row that the honest model's server refused let the others lack any."""
    honest = Plan(0, tasks=CAPTIONS, refused=(5,), scores=(1.0,) * 14 + (0.0,) * 6)
    plans = [replace(honest, model=place, refused=(), scores=(1.0,) * 8 + (0.0,) * 12) for place in range(1, 5)]
    planted = write_folder(tmp_path, Folder(20, (honest, *plans)))
    for one in planted[2:]:
        changed_rows(one, lambda rows: [*rows[:8], *rows[14:]])
    ours, short = sections(tmp_path / "out")
    assert set(ours[0]) == {"a-7B", "b-7B"} and all(ours[0].values())
    assert len(short[0]) == 3 and "items: 14 rows (13 in both) here, 19 rows (13 in both) there" in short[1]
    _, err, code = run("compare", planted[0].file, planted[2].file, "--output-dir", tmp_path / "c")
    assert code and "19 and 14 rows (1 and 0 refused)" in err


@pytest.mark.parametrize("refused", [0, 1])
def test_a_refused_row_excuses_no_invented_one(tmp_path, refused):
    """Of a rival whose server refused one row, rows that the data do not have were taken for the rows of both."""
    honest = Plan(0, tasks=CAPTIONS, refused=(5,), scores=(1.0,) * 14 + (0.0,) * 6)
    planted = write_folder(tmp_path, Folder(20, (honest, replace(honest, model=1, refused=(), scores=(0.5,) * 20))))

    def invented(rows):
        for place, each in enumerate(rows[: 10 - refused]):
            each["doc"]["specific"] |= {"id": f"mine {place}", "source_row": f"mine {place}"}
        return rows[refused:]

    changed_rows(planted[1], invented, refused=refused)
    assert [set(models) for models, _ in sections(tmp_path / "out")] == [{"a-7B"}, {"b-7B"}]


def test_scores_of_items_that_their_answers_contradict_are_told(tmp_path):
    """Scores of 1 in every row stood alone at the top, beside log-probabilities that chose the wrong options."""
    planted = write_folder(tmp_path, Folder(20, tuple(map(Plan, range(4)))))
    task = f"{TRUST}|0"
    changed_rows(planted[1], lambda rows: [each | {"metric": {"acc_norm": 1.0, "acc": 1.0}} for each in rows], TRUST)
    (found,) = load(planted[1].file)
    share = planted[1].truth(task, "acc_norm")[0]
    assert found.claims[0].sentence == f"{task} acc_norm: its items say 100.00, its answers {100 * share:.2f} %"
    assert found.value(task, "acc_norm") == pytest.approx(share) and len(found.claims) == 2
    no_answers = {"logprobs": [], "output_tokens": [], "text": ["x"], "text_post_processed": ["x"]}
    changed_rows(planted[2], lambda rows: [each | {"model_response": no_answers} for each in rows], TRUST)
    assert "lack the options' log-probabilities of 20 rows" in load(planted[2].file)[0].impossible[task]
    (table,) = page(tmp_path / "out", "--out", tmp_path / "site").values()
    rows = {each["label"]: each for each in table["rows"]}
    assert not rows["b-7B"]["rank"] and "its items say 100.00" in str(rows["b-7B"]["warnings"])
    (division,) = divisions(load_all([tmp_path / "out"]))
    unranked = {entry.model: bool(entry.unranked) for group in division.groups for entry in group.entries}
    assert [*unranked.values()].count(True) == 2 and unranked["lab/b-7B"] and unranked["نموذج"]
    _, told, code = run("compare", planted[0].file, planted[2].file, "--output-dir", tmp_path / "c", "--charts", "none")
    assert code and "its details lack the options' log-probabilities of 20 rows" in told
    told = run("compare", planted[0].file, planted[1].file, "--output-dir", tmp_path / "c", "--charts", "none")
    assert told[2] and ": acc_norm: its items say 100.00, its answers" in told[1]


def test_exchanged_scores_of_items_are_told_though_their_mean_stays(tmp_path):
    """The sentence of a contradiction read "its items say 50.00, its answers 50.00"."""
    (one,) = write_folder(tmp_path, Folder(20, (Plan(0),)))

    def exchanged(rows):
        right, wrong = (next(row for row in rows if row["metric"]["acc_norm"] == score) for score in (1, 0))
        right["metric"], wrong["metric"] = wrong["metric"], right["metric"]
        return rows

    changed_rows(one, exchanged, TRUST)
    assert "acc_norm: its items contradict its answers, with " in load(one.file)[0].claims[0].sentence


def test_a_run_that_states_nothing_of_its_model_replaces_no_other_folders(tmp_path):
    """A newer foreign file under a rival's name, which told no version, took the rival's place without a word."""
    worse = (0.0,) * 5 + (1.0,)
    plans = (Plan(0, scores=(1.0,) * 6), Plan(0, scores=(1.0,) * 5 + (0.0,)), Plan(1))
    write_folder(tmp_path / "ours", Folder(6, plans))
    for place in ("one", "two"):
        write_run(tmp_path / place, Plan(0, signed=False, scores=worse), 6, 5)
    data = shown("leaderboard", tmp_path, "--out", tmp_path / "site", "--charts", "none", "--json")
    rows = {row["label"]: row for section in data["sections"] for row in section["tables"][0]["rows"]}
    values = {label: next(one["value"] for one in row["cells"] if isinstance(one, dict)) for label, row in rows.items()}
    assert len(rows) == 4 and sorted(values.values())[:2] == pytest.approx([100 / 6] * 2)
    (ours,) = [label for label in rows if label.startswith("a-7B (version 00000000")]
    assert values[ours] == pytest.approx(500 / 6)
    (told,) = [one for one in rows[ours]["warnings"] if "newest of several runs" in one]
    assert "acc_norm 0.8333 here, and 1.0000 in the run of 2026-01-01" in told
    assert not any("newest" in str(row["warnings"]) for label, row in rows.items() if label != ours)
    compared = " ".join(run("compare", tmp_path / "ours", "--output-dir", tmp_path / "c", "--charts", "none")[:2])
    assert told.split(" here")[0] in " ".join(compared.split())


def test_what_an_older_run_says_as_a_whole_is_told_beside_newer_ones_of_other_tasks(tmp_path):
    """A newer run of any other task took the words "incomplete", "refused" and "mixed" from the page and `compare`."""
    out, first = tmp_path / "out", [*DIALECTS[1:], TRUST]
    for name in ("lab/a", "lab/b"):
        old = board_runs.write_run(out, name, first, 0.6, None, signed={}, date="2026-11-01T10-00-00")
        if name == "lab/a":
            content = json.loads(old.read_text("utf-8"))
            record = content["cultureval"]
            record["missing"], record["unscorable"] = ["qimma_gat:Algebra|0"], {"qimma_code:mbpp_plus|0": "No jail."}
            counts = {"task": f"{DIALECTS[0]}|0", "rows": 0, "refused": 30, "refused_by": {}, "scored": {}}
            record["unanswered"] = {f"{DIALECTS[0]}|0": record["tasks"][f"{DIALECTS[1]}|0"] | counts}
            old.write_text(json.dumps(content), "utf-8")
    (told,) = (run_warnings(one) for one in load(out) if one.model == "lab/a")
    for name in ("lab/a", "lab/b"):
        board_runs.write_run(out, name, ["qimma_mizanqa"], 0.6, None, signed={}, date="2026-11-02T10-00-00")
    kinds = ("incomplete", "unscorable", "refused")
    sentences = {str(one) for one in told if one.kind in kinds}
    assert len(sentences) == len(kinds)
    (table,) = page(out, "--out", tmp_path / "site", "--published").values()
    (row,) = (one for one in table["rows"] if one["label"] == "a")
    assert sentences < set(row["warnings"]) and not any(one["published"] for one in table["rows"])
    compared = run("compare", out, "--output-dir", tmp_path / "c", "--charts", "none")
    assert all(sentence in " ".join("".join(compared[:2]).split()) for sentence in sentences)


def test_the_score_that_an_older_run_has_otherwise_is_named(tmp_path):
    """Of a rerun that lacks a judge's scores it told that CIDEr is "4.8958 here, and 4.8958" there."""
    plans = Plan(tasks=("caption",), judged=True), Plan(tasks=("caption",))
    write_folder(tmp_path, Folder(items=12, plans=plans))
    (told,) = (one for run in load(tmp_path) for one in run_warnings(run) if one.kind == "superseded")
    words = re.search(r" has (\S+) (\S+) here, and (\S+) in the run of ", told)
    assert words[1].startswith("judge_") and words[2] == "none" and float(words[3]) > 0


def test_the_distance_of_leaderboards_is_of_tables_with_the_same_number_of_examples(tmp_path):
    """A folder's 3-shot table took the place of its 0-shot one: two equal leaderboards had a distance of 1."""
    folders = tmp_path / "first", tmp_path / "second"
    for folder in folders:
        for name, ability in (("lab/a", 0.8), ("lab/b", 0.3)):
            board_runs.write_run(folder, name, [TRUST], ability, 60, signed={})
            if folder == folders[1]:
                more = {"signed": {}, "shots": 3, "date": "2026-11-02T00-00-00"}
                board_runs.write_run(folder, name, [TRUST], 1.1 - ability, 60, **more)
    told = " ".join(run("compare", "--leaderboards", *folders)[0].split())
    assert "Kendall distance 0.000 of 2 models" in told and "second alone has " in told and ", 3-shot." in told


def test_what_is_of_runs_with_examples_says_so_in_its_name(tmp_path):
    """`compare cvlue` had two macro-averages of one name, none of 3-shot runs in its table, and exports one caption."""
    out, tasks = tmp_path / "out", [f"cvlue_{name}" for name in ("vqa", "vg", "vd", "itr")]
    for name, ability in (("lab/a", 0.8), ("lab/b", 0.3)):
        for shots in (0, 3):
            date = f"2026-11-0{1 + shots}T00-00-00"
            board_runs.write_run(out, name, tasks, ability, 30, signed={}, shots=shots, date=date)
    text = run("compare", "cvlue", out, "--output-dir", tmp_path / "c")[0]
    assert "Runs, percent\n" in text and "Runs, percent, 3-shot\n" in text and "0/11" not in text
    with (tmp_path / "c/differences.csv").open(encoding="utf-8") as file:
        places = [(row["name"], row["metric"]) for row in csv.DictReader(file)]
    assert len({*places}) == len(places) and ("CVLUE, Chinese: Macro, 3-shot", "headlines") in places
    run("leaderboard", out, "--out", tmp_path / "site", "--charts", "none")
    captions = [file.read_text("utf-8").splitlines()[0] for file in (tmp_path / "site/tables").glob("*.md")]
    assert len({*captions}) == len(captions) == 2
    (newest, _) = (one for one in load(out) if one.model == "lab/a")
    (told,) = (one for one in run_warnings(newest) if one.kind == "other_tasks")
    assert told.startswith("Older runs of the model have other tasks: cvlue_") and "|0 and 3 more tasks." in told


def test_a_group_with_runs_of_other_rows_is_behind_one_without(tmp_path):
    """A run that lacked 22 refused rows, and three of the other 500, were first; the papers' rows were gone."""
    out = tmp_path / "out"
    board_runs.write_run(out, "lab/whole", [TRUST], 0.5, None, signed={})
    with changed(board_runs.write_run(out, "lab/refusing", [TRUST], 0.5, 500, signed={})) as content:
        content["cultureval"]["tasks"][f"{TRUST}|0"] |= {"refused": 22, "refused_by": {"server": 22}}
    for name in "xyz":
        board_runs.write_run(out, f"lab/{name}", [TRUST], 0.5, 500, signed={})
    ((first, *_),) = (division.groups for division in divisions(load(out)))
    assert [entry.model for entry in first.entries] == ["lab/refusing", "lab/whole"]


def test_the_table_of_scores_has_the_judge_in_the_signature_of_a_judge_s_scores():
    """Scores of gpt-4o and of gpt-4-turbo as `gpt` stood there with one signature, which no other view compares."""
    run, metric = run_of(["jeem_caption:ae"]), "judge_gpt_image_reference_fluency"
    line = SignatureRecord(group="gpt/image_reference", fields={}, text="judge:gpt|model:gpt-4o")
    run.scores["jeem_caption:ae|0"][metric] = 3.5
    table = scores_table([replace(run, record=run.record.model_copy(update={"signatures": (line,)}))])
    told = table.set_index(["task", "metric"]).signature
    assert {place: one for place, one in told.dropna().items()} == {
        ("jeem_caption:ae|0", metric): "judge:gpt,model:gpt-4o"
    }


@pytest.mark.slow
@pytest.mark.parametrize("again", [1, 2])
def test_every_view_tells_that_older_runs_have_other_scores(tmp_path, again):
    """`show`, the library and the viewer had no word of it; `compare` said "2 of 6" of a model whose six it took."""
    out, part = tmp_path / "out", DIALECTS[:again]
    for name, tasks, ability, date in (
        ("lab/b", DIALECTS, 0.6, "2026-11-01T10-00-00"),
        ("lab/a", DIALECTS, 0.4, "2026-11-01T10-00-00"),
        ("lab/a", part, 0.95, "2026-11-02T10-00-00"),
    ):
        board_runs.write_run(out, name, tasks, ability, 12, signed={}, date=date)
    board_runs.write_run(out, "lab/a", DIALECTS, 0.1, 5, signed={}, date="2026-10-01T10-00-00", limit=5)  # a trial
    newest, *others = (one for one in load(out) if one.model == "lab/a")
    told, in_part = (one for one in run_warnings(newest) if one.kind in ("superseded", "in_part"))
    assert told.startswith(f"The newest of several runs: {part[0]}|0 has acc_norm") and told.mark
    assert f"in the run of 2026-11-01T10-00{' and 1 more task' * (again - 1)}. " in told
    assert f"{again} of {len(DIALECTS)}. The page and `compare` add the subsets of older runs" in in_part
    assert not any(one.kind == "superseded" for other in others for one in run_warnings(other))
    assert {told, in_part} < set(shown("show", out, "--json")["runs"][0]["warnings"])
    of_task, sentence = told.partition(" and 1 more")[0], "The newest of several runs"
    assert any(one.startswith(of_task) for one in shown("show", out, part[0], "--json")["warnings"])
    table = scores_table(load(out))
    assert {*table[table.warnings.str.contains(sentence)].date} == {newest.date}
    logs = [read_eval_log(str(log.file), header_only=True).eval for log in write_logs([out])]
    assert sum(sentence in str(log.metadata.get("warnings")) for log in logs) == len(part)
    run("compare", out, "--output-dir", tmp_path / "c", "--charts", "none")
    notes = json.loads((tmp_path / "c/comparison.json").read_text("utf-8"))["notes"]
    assert f"lab/a: {told}" in notes and not any("some subsets" in one for one in notes)
    rows = [row for one in sections_of(tmp_path) for table in one["tables"] for row in table["rows"]]
    assert any(told in row["warnings"] for row in rows)


def test_what_one_of_two_models_has_alone_is_told_of_these_two(tmp_path):
    """Of three models `compare` said "only lab/a has" of a task that another of them had, and that it compared."""
    out, parts = tmp_path / "out", {"lab/a": [TRUST, *DIALECTS[:1]], "lab/b": [TRUST], "lab/c": DIALECTS[:1]}
    for name, tasks in parts.items():
        board_runs.write_run(out, name, tasks, 0.5, 6, signed={})
    run("compare", out, "--output-dir", tmp_path / "c", "--charts", "none")
    notes = json.loads((tmp_path / "c/comparison.json").read_text("utf-8"))["notes"]
    assert f"lab/a has, and lab/b not, {DIALECTS[0]}|0." in notes and f"lab/a has, and lab/c not, {TRUST}|0." in notes


def test_compare_takes_as_one_run_what_the_page_does(tmp_path):
    """After a rerun of one task with other versions `compare` had an average of two runs, which no other view has."""
    out, tasks = tmp_path / "out", [*DIALECTS, TRUST]
    for name, part, version, day in (
        ("lab/b", tasks, "2.12", 1),
        ("lab/a", tasks, "2.12", 1),
        ("lab/a", [TRUST, DIALECTS[0]], "2.11", 2),
        ("lab/a", [TRUST], "2.12", 3),
        ("lab/c", tasks, "2.12", 1),
        ("lab/c", DIALECTS[:1], "2.13", 2),
    ):
        date, signed = f"2026-11-0{day}T00-00-00", {"torch": version}
        board_runs.write_run(out, name, part, 0.3 + 0.1 * day, 12, signed=signed, date=date)
    (division,) = divisions(load(out))
    entries = [entry for group in division.groups for entry in group.entries]
    entries.sort(key=lambda entry: max(run.date for run in entry.sources.values()))
    newest = {entry.model: {task: run.file for task, run in entry.sources.items()} for entry in entries}
    sides = {side.name: side for side in sides_of([out])}
    files = {name: {task: one.run.file for task, one in side.tasks.items()} for name, side in sides.items()}
    assert files == newest and {name: len(found) for name, found in files.items()} == {
        "lab/a": len(tasks),
        "lab/b": len(tasks),
        "lab/c": 1,
    }
    newest_of_c = next(one for one in load(out) if one.model == "lab/c")
    for name, found in {"show": newest_of_c, "compare": sides["lab/c"].run}.items():
        (told,) = (one for one in run_warnings(found) if one.kind == "apart")
        assert f"{DIALECTS[0]}|0 in that of 2026-11-01T00-00 (torch)" in told, name


def test_a_trial_hides_no_whole_run_without_a_word(tmp_path):
    """After a trial with `--limit` `show` had it alone, and `compare` refused it without naming the whole run."""
    for name, items, limit, day in (("lab/a", 9, None, 1), ("lab/b", 9, None, 1), ("lab/a", 5, 5, 2)):
        date = f"2026-11-0{day}T00-00-00"
        board_runs.write_run(tmp_path / "out", name, [TRUST], 0.5, items, signed={}, limit=limit, date=date)
    sentence = f"stands alone: {TRUST}|0 in that of 2026-11-01T00-00 (limit, items)"
    for words in ((), (TRUST,)):
        assert sentence in " ".join(run("show", tmp_path / "out/results/lab/a", *words)[0].split())
    assert sentence in " ".join(run("compare", tmp_path / "out", "--output-dir", tmp_path / "c")[1].split())


def test_a_copy_of_a_run_is_no_older_run(tmp_path):
    """A run that lay in two folders was marked as the newest of several, as if others had other scores."""
    write_folder(tmp_path / "runs", Folder(6, (Plan(copied=True),)))
    (table,) = page(tmp_path / "runs", "--out", tmp_path / "site").values()
    (row,) = [each for each in table["rows"] if not each["published"]]
    assert "newest" not in str(row["warnings"])


def test_what_is_missing_is_told_where_it_is_missing(tmp_path):
    """A table, and `show RESULTS TASK`, said "Incomplete, so not comparable" for tasks of another suite."""
    (one,) = write_folder(tmp_path, Folder(6, (Plan(tasks=("trust", "caption")),)))
    with changed(one.file) as content:
        content["cultureval"] |= {"missing": ["jeem_caption:jo"], "unscorable": {"jeem_vqa:ae|0": "No scorer."}}
        content["cultureval"] |= {"unjudged": {"far": "No key."}}
        content["cultureval"]["tasks"][f"{CAPTION}|0"] |= {"left_out": ["judge_far_reference_fluency"]}
    ours, theirs = (
        str(table["rows"][0]["warnings"]) for table in page(tmp_path / "out", "--out", tmp_path / "site").values()
    )
    for words in ("Incomplete, so not comparable: jeem_caption", "cannot be scored: jeem_vqa", "far are left out"):
        assert words not in ours and words in theirs
        assert [words in str(shown("show", one.file, *task, "--json")) for task in ((), (TRUST,))] == [True, False]


def test_a_models_name_imitates_no_sign_of_the_page(tmp_path):
    for name in ("lab/b ★", "lab/GPT-4 (paper)"):
        board_runs.write_run(tmp_path, name, [TRUST], 0.5, 9, signed={})
    (section,) = read_board([tmp_path], ranks=False).sections
    assert sorted(one.label for one in section.group.entries) == ["GPT-4 (paper) (a run)", "b \\u2605"]


COUNTS = {"rows": 7, "scored": 5, "few_shot": 1, "skipped": 0, "not_selected": 0, "refused": 1}
ERASED = {"refused": 0, "refused_by": {}, "bounds": {}}


@pytest.mark.parametrize(
    ("edited", "said", "refused"),
    [
        ({}, "", 1),
        ({"bounds": {"acc_norm": [0.95, 0.99]}}, "acc_norm lowest: its file says 95.00, its items ", 1),
        ({"bounds": {}}, "", 1),
        (ERASED, "refused rows: its file says 0, its row counts 1", 1),
        (ERASED | {"row_counts": COUNTS | {"refused": 0}}, "rows: its file says 7, its row counts 6", 0),
        (
            ERASED | {"row_counts": COUNTS | {"refused": 0, "scored": 6}},
            "scored rows: its file says 6, its row coun",
            0,
        ),
        ({"refused_by": {"server": 3}}, "refused rows by kind: its file says 3, its row counts 1", 1),
        ({"skipped_rows": 2}, "skipped rows: its file says 2, its row counts 0", 1),
        ({"reused": 9}, "reused rows: its file says 9, its row counts 6", 1),
        ({"routes": {"packed": 9}}, "rows by route: its file says 9, its row counts 6", 1),
    ],
)
@pytest.mark.parametrize("details", ["whole", "missing"])
def test_refused_rows_and_their_bounds_are_those_of_the_items_and_counts(tmp_path, edited, said, refused, details):
    """Edited bounds were printed everywhere, and refusals that were erased from the record were told nowhere."""
    (one,) = write_folder(tmp_path, Folder(6, (Plan(refused=(1,), details=details),)))
    score = load(one.file)[0].value(f"{TRUST}|0", "acc_norm")
    edited_file(one, "acc_norm", score, **{"row_counts": COUNTS} | edited)
    (found,) = load(one.file)
    said = "" if edited.get("bounds") and details == "missing" else said  # with nothing to check them by
    assert found.claimed.startswith(f"{TRUST}|0 {said}") if said else not found.claims
    record = found.record.tasks[f"{TRUST}|0"]
    assert record.refused == refused
    rows = scores_table([found]).set_index(["task", "metric"])
    assert rows.loc[f"{TRUST}|0", "acc_norm"].coverage == pytest.approx(record.rows / (record.rows + refused))
    if not edited and details == "whole":
        out = " ".join(run("show", one.file, TRUST)[0].split())
        assert "5 of 5 items, 1 more unscored" in out and all(warning in out for warning in run_warnings(found))
        (log,) = write_logs([one.file])
        results = read_eval_log(str(log.file)).results
        assert (results.total_samples, {score.unscored_samples for score in results.scores}) == (6, {1})
    if refused and details == "whole":
        assert record.bounds["acc_norm"] == pytest.approx([score * 5 / 6, (score * 5 + 1) / 6])
        (told,) = [warning for warning in run_warnings(found) if warning.kind == "refused"]
        assert f"from {score * 5 / 6:.4g} to {(score * 5 + 1) / 6:.4g}." in told
    (other,) = [warning for warning in run_warnings(found) if warning.kind == "other_counts"]
    assert f"({5 + refused + 2 * ('skipped_rows' in edited)} rows, published: 522)" in other


def test_bounds_of_a_score_without_limits_are_told_and_dropped(tmp_path):
    """CIDEr's claimed bounds were printed: the mean with six refused items was "between" itself and itself."""
    (one,) = write_folder(tmp_path, Folder(6, (Plan(tasks=CAPTIONS, refused=(1, 2)),)))
    score = load(one.file)[0].value(f"{CAPTION}|0", "cider")
    edited_file(one, "cider", score, CAPTION, bounds={"cider": [score, score]})
    (found,) = load(one.file)
    assert [claim.metric for claim in found.claims] == ["cider lowest", "cider highest"]
    assert not found.record.tasks[f"{CAPTION}|0"].bounds
    assert any("with them is not known of jeem_caption" in warning for warning in run_warnings(found))


def test_a_log_says_what_is_told_of_its_scores_now(tmp_path):
    """`view` kept a log whose results file was changed since; what is told of another task stands in that task's."""
    (one,) = write_folder(tmp_path, Folder(4, (Plan(tasks=("trust", "caption")),)))
    write_logs([one.file])
    with changed(one.file) as content:
        content["results"][f"{TRUST}|0"]["acc_norm"] = 0.97
    told = {log.task: read_eval_log(str(log.file), header_only=True).eval.metadata for log in write_logs([one.file])}
    found = load(one.file)[0]
    assert "its file says 97.00" in told[f"{TRUST}|0"]["warnings"]
    assert "its file says" not in told[f"{CAPTION}|0"].get("warnings", "")
    table = scores_table([found]).set_index("task").warnings
    for task, about in told.items():
        listed = shown("show", one.file, task, "--json")["warnings"]
        assert about.get("warnings", "").split("\n") == (listed or [""]) and {" ".join(listed)} == set(table[task])


@pytest.mark.parametrize("cost", [{}, {"cost": 0.5}])
def test_tokens_are_those_of_the_results_with_and_without_prices_and_what_was_paid_has_its_own_name(cost):
    tasks = {"t|0": TaskRecord.model_construct(tokens_in=5, tokens_out=1)}
    budget = Budget(JudgeSettings(model="m", **{"output_token_price": 1.0} if cost else {}))
    for place in range(2):  # one of them is in no result
        usage = {"prompt_tokens": 5, "completion_tokens": 1}
        budget.pay(str(place), {"completions": [], "usage": usage}, RequestSize())
    told = tokens_of_run(tasks, budget.totals())
    assert told == {"tokens_in": 5, "tokens_out": 1, "tokens_paid_in": 10, "tokens_paid_out": 2} | (
        {"cost": 2.0} if cost else {}
    )


def test_prompts_that_lightevals_own_backends_did_not_cut_are_not_told_as_cut():
    """Nearly all prompts of `lighteval accelerate` were "too long": it counts their characters less their tokens."""
    rows = [SimpleNamespace(model_response=SimpleNamespace(truncated_tokens_count=count)) for count in (-1, 0, 41)]
    assert (cut_prompts(object(), rows), cut_prompts(SimpleNamespace(run_record=dict), rows)) == (0, 1)


def test_counts_below_nothing_are_refused_and_skipped_rows_hide_no_others(tmp_path):
    """`refused: -3` made rows that other counts lack; `skipped_rows: 1` silenced the sentence on other rows."""
    one, other = write_folder(tmp_path, Folder(6, (Plan(0), Plan(1))))
    edited_file(one, "acc_norm", 0.5, refused=-3)
    edited_file(other, "acc_norm", 0.5, skipped_rows=1)
    (found,) = (runs := load(tmp_path / "out"))
    assert found.model == NAMES[1] and "other_counts" in [warning.kind for warning in run_warnings(found)]
    (left_out,) = runs.left_out
    assert left_out.file.name == one.file.name and "refused" in left_out.reason


def test_invisible_characters_of_names_are_visible(tmp_path):
    """Two models whose names differ in a zero-width space looked like one on the terminal and the page."""
    (one,) = write_folder(tmp_path, Folder(4, (Plan(0),)))
    text = one.file.read_text("utf-8")
    one.file.write_text(
        text.replace(NAMES[0], "lab/a\u200b\u061c-7B").replace("qimma_aratrust|0", "qimma_ara\ufefftrust|0")
    )
    out, _, _ = run("show", tmp_path / "out", "--full")
    page(tmp_path / "out", "--out", tmp_path / "site")
    texts = [out, *(file.read_text("utf-8") for file in (tmp_path / "site").rglob("*.html"))]
    assert all(not {"\u200b", "\u061c", "\ufeff"} & set(text) for text in texts)
    assert all(r"a\u200b\u061c-7B" in text for text in texts[:2])


def test_the_end_of_an_items_name_is_shown(tmp_path):
    """Names were cut at 16 letters, of which all began alike: nothing told the items apart."""
    rows = [row(place, "س", {"acc_norm": 1.0}, answer="ج") for place in (1, 2)]
    for place, one in enumerate(rows, start=1):
        one["doc"]["specific"]["source_row"] = f"validation-00000-of-00001.parquet:{place}"
    save(tmp_path, TRUST, rows)
    out, _, _ = run("show", tmp_path, TRUST)
    assert "001.parquet:1" in out and "001.parquet:2" in out


@pytest.mark.parametrize(
    ("group", "metric", "title"),
    [("jeem_caption", "cider", "JEEM, captions"), ("jeem_vqa", "cider", "JEEM, answers")],
)
def test_a_mean_of_all_rows_has_one_error_in_every_view(tmp_path, group, metric, title):
    """The page gave JEEM's mean an upper bound, ±0.2332, where `show --full` and `scores_table` had ±0.1291."""
    tasks = list(groups()[group])
    file = board_runs.write_run(tmp_path / "out", "lab/a", tasks, 0.5, 12, signed={})
    (found,) = load(file)
    (row,) = page(tmp_path / "out", "--out", tmp_path / "site")[title]["rows"]
    assert row["cells"][0]["value"] == pytest.approx(found.value(f"{group}:_average|0", metric))
    assert row["cells"][0]["stderr"] == pytest.approx(found.stderr(f"{group}:_average|0", metric))


@pytest.mark.parametrize(("judges", "tables"), [(("X", "X"), 1), (("X", "Y"), 2)])
def test_judges_part_their_own_scores_alone(tmp_path, judges, tables):
    """A run that was judged in fewer subsets had "two judges", and other judges put its CIDEr into another group."""
    plans = (Plan(tasks=("caption",), judged=True), Plan(model=1, tasks=("caption",), judged=True))
    for place, (planted, model) in enumerate(zip(write_folder(tmp_path, Folder(5, plans)), judges, strict=True)):
        (file,) = {*planted.file.parent.glob("*.json")} - {planted.file}
        content = json.loads(file.read_text(encoding="utf-8"))
        for end in ("", "_msa")[: 1 + place]:  # whose metrics have the same names
            name = f"jeem_caption_image_reference{end}"
            line = f"judge:gpt|model:{model}|template:{name}#{end}"
            content["cultureval"]["signatures"] += [{"group": f"gpt/{name}", "fields": {}, "text": line}]
        file.write_text(json.dumps(content), encoding="utf-8")
    (section,) = sections_of(tmp_path)
    found = {table["title"]: [row["label"] for row in table["rows"]] for table in section["tables"]}
    captions, *of_judges = found.values()
    assert len(captions) == 2 and sorted(map(len, of_judges)) == [2 // tables] * tables, found
    told = [note for table in section["tables"] for note in table["notes"] if "Another judge" in note]
    assert [{"'model:X'", "'model:Y'"} < set(note.split()) for note in told] == [True] * (tables - 1), told
    options = ("--charts", "none", "--output-dir", tmp_path / "c", "--metric", CRITERION)
    out, err, code = run("compare", tmp_path / "out", *options)
    assert code == (tables > 1), err or out


def test_counts_of_answers_are_those_of_the_details(tmp_path):
    """A record's count of unreadable answers was believed: 0 where twelve replies had no verdict hid the warning."""
    cells = drawn_verdicts(20, 0.8, 0.6, 1)
    cells[:4] = "invalid"
    file = run_of_m2cqa(tmp_path, {"tf_en": cells})
    assert not load(file)[0].claims
    with changed(file) as content:
        content["cultureval"]["tasks"]["m2cqa:tf_en|0"] |= {"unparsable": 0, "truncated": 7}
    (found,) = load(file)
    assert [one.sentence for one in found.claims] == [
        "m2cqa:tf_en|0 unreadable answers: its file says 0, its details 12",
        "m2cqa:tf_en|0 cut answers: its file says 7, its details 0",
    ]
    told = {one.kind for one in run_warnings(found)}
    assert "unparsable" in told and "truncated" not in told
