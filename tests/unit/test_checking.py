"""`cultureval check`: every row of the data is scored, an example, or listed; what is broken is listed at once."""

import csv
import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cultureval.reports.task_list import data_check_text
from cultureval.runtime.data_options import DataOptions, samples_root
from cultureval.runtime.errors import CulturevalError, SourceUnavailable
from cultureval.scripts.main import app
from cultureval.tasks.catalogue import groups, suites
from cultureval.tasks.checking import check_data
from cultureval.tasks.selection import select_tasks

HEADER = ("Subject", "Level", "Question", "Context", "Answer Key", "Option 1", "Option 2", "is_few_shot")
GOOD = ("Driving Test", "", "سؤال {}؟", "", "A", "نعم", "لا", "0")
REAL = Path(__file__).parents[3] / "shared" / "data" / "arabicmmlu" / "ArabicMMLUs.csv"


def rows_add_up(report):
    for one in report.files:
        assert one.rows == one.scored + one.few_shot + one.broken + one.unselected, one
        rest = [row for row in report.listed if (row.source, row.file) == (one.source, one.file)]
        assert one.unselected == sum(row.rows for row in rest if row.kind in ("unselected", "unmatched"))
        assert one.broken == len({row.row for row in rest if row.kind == "broken"})


def planted(root, changes, name="ArabicMMLU.csv"):
    """ArabicMMLU with good rows of one subset and some that are changed: row number -> {column: cell}."""
    folder = root / "MBZUAI" / "ArabicMMLU"
    folder.mkdir(parents=True)
    rows = [dict(zip(HEADER, (cell.format(number) for cell in GOOD), strict=True)) for number in range(8)]
    for number, change in changes.items():
        rows[number] |= change
    with (folder / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, HEADER)
        writer.writeheader()
        writer.writerows(rows)
    return folder


CHANGES = {
    1: {"Answer Key": "Z"},
    2: {"Question": ""},
    3: {"Question": "سؤال 0؟"},
    4: {"Subject": "Driving Tset"},
    5: {"is_few_shot": "1"},
}


def test_broken_duplicate_unmatched_and_unread_rows_are_listed_together(tmp_path):
    folder = planted(tmp_path, CHANGES)
    (folder / "train.jsonl").write_text('{"Question": "س"}\n' * 3, encoding="utf-8")
    report = check_data(["qimma"], DataOptions(root=tmp_path))
    rows_add_up(report)
    found = {(row.kind, row.file, row.row): row for row in report.listed}
    table = "ArabicMMLU.csv"
    wanted = [("broken", table, 1), ("broken", table, 2), ("duplicate", table, 3), ("unmatched", table, 4)]
    assert set(found) == {*wanted, ("unselected", "train.jsonl", None)}
    assert found["broken", table, 1].column == "Answer Key" and "'Z'" in found["broken", table, 1].value
    assert found["broken", table, 2].column == "Question" and found["broken", table, 2].reason
    assert found["duplicate", table, 3].reason.endswith("ArabicMMLU.csv:0")
    assert found["unmatched", table, 4].value == "Driving Tset"
    assert found["unselected", "train.jsonl", None].rows == 3
    (subset,) = [one for one in report.subsets if one.task == "qimma_arabicmmlu:Driving Test"]
    assert (subset.scored, subset.few_shot, subset.broken, subset.duplicates) == (4, 1, 2, 1)
    assert report.is_broken()
    assert sum(one.missing for one in report.subsets) == len(report.subsets) - 1


def test_files_of_one_name_in_several_configs_are_told_apart(tmp_path):
    folder = tmp_path / "tiiuae" / "NativeQA"
    rows = (samples_root() / "tiiuae" / "NativeQA" / "test.jsonl").read_text(encoding="utf-8").splitlines()
    broken = json.dumps(json.loads(rows[1]) | {"correct_choice": "Z"})
    for config, lines in (("biology", rows[:3]), ("maths", [rows[0], *rows[3:], broken])):
        (folder / config).mkdir(parents=True)
        (folder / config / "test.jsonl").write_text("\n".join(lines), encoding="utf-8")
    report = check_data(["qimma"], DataOptions(root=tmp_path))
    rows_add_up(report)
    counts = {one.file: (one.scored, one.broken) for one in report.files}
    assert counts == {"biology/test.jsonl": (3, 0), "maths/test.jsonl": (len(rows) - 2, 1)}
    found = {(row.kind, row.file, row.row): row.reason for row in report.listed}
    assert set(found) == {("duplicate", "maths/test.jsonl", 0), ("broken", "maths/test.jsonl", len(rows) - 2)}
    assert found["duplicate", "maths/test.jsonl", 0].endswith(" biology/test.jsonl:0")


def run(*arguments):
    return CliRunner().invoke(app, ["check", *map(str, arguments)])


def test_the_command_exits_with_1_prints_a_short_table_and_writes_the_long_list(tmp_path):
    planted(tmp_path / "root", {**CHANGES, 0: {"Question": " "}})
    listed = tmp_path / "rows.jsonl"
    done = run("qimma", "--data", tmp_path / "root", "--rows", listed)
    assert done.exit_code == 1
    for words in (
        "column 'Answer Key'",
        "Subsets with data: 1 of 109",
        "8 rows in 1 file = 3 evaluated, as 3 items, + 1 few-shot",
    ):
        assert words in done.stdout, done.stdout
    assert len(done.stdout.splitlines()) < 25
    (subset,) = [line for line in done.stdout.splitlines() if line.startswith("qimma_arabicmmlu:Driving Test  ")]
    assert subset.split()[2:] == ["3", "1", "3", "0", "?"]
    kinds = [json.loads(line)["kind"] for line in listed.read_text(encoding="utf-8").splitlines()]
    assert sorted(kinds) == ["broken", "broken", "broken", "unmatched"]
    as_json = run("qimma", "--data", tmp_path / "root", "--json")
    assert [row["kind"] for row in json.loads(as_json.stdout)["listed"]] == kinds
    assert "qimma_palmx:islamic" in run("qimma", "--data", tmp_path / "root", "--full").stdout


def test_a_lacking_column_and_a_file_that_cannot_be_read_are_problems_of_their_subsets(tmp_path):
    for repo, text in {"asas-ai/AraTrust": '{"Question": "س؟"}', "adlbh/MizanQA-v0": "{"}.items():
        folder = tmp_path / repo
        folder.mkdir(parents=True)
        (folder / "test.jsonl").write_text(text, encoding="utf-8")
    report = check_data(["qimma"], DataOptions(root=tmp_path))
    problems = {one.task: one.problem for one in report.subsets if one.problem and not one.missing}
    assert set(problems) == {"qimma_aratrust", "qimma_mizanqa"} and report.is_broken()
    assert "no column" in problems["qimma_aratrust"] and "line 1" in problems["qimma_mizanqa"]


def test_rows_that_a_problem_leaves_unread_are_counted_and_the_problem_stands_first(tmp_path):
    root = tmp_path / "root"
    shutil.copytree(samples_root() / "qimma", root / "qimma")
    rows = sum(len(file.read_text("utf-8").splitlines()) for file in root.rglob("*.jsonl"))
    with (root / "qimma" / "MCQ_AraTrust" / "validation.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"question": 3}\n')  # examples are read before the evaluated rows
    report = check_data(["qimma"], DataOptions(root=root))
    assert sum(one.rows for one in report.files) == rows + 1
    text = data_check_text(report, full=False)
    subsets = text[text.index("\nsubset ") :].splitlines()
    assert subsets[2].startswith("qimma_aratrust ") and "no column 'choices'" in subsets[2]
    assert "Subsets with a problem: 1 " in text


@pytest.mark.slow
@pytest.mark.parametrize("suite", suites())
def test_the_samples_are_sound_and_every_row_is_accounted_for(suite):
    report = check_data([suite], DataOptions(root=samples_root()))
    rows_add_up(report)
    assert not report.is_broken(), [one for one in report.subsets if one.problem] + report.listed
    assert sum(one.scored for one in report.files) > 0
    if suite == "qimma":
        (palmx,) = [one for one in report.groups if one.group == "qimma_palmx"]
        assert palmx.complete and palmx.differs() and (palmx.form, palmx.expected) == ("curated", 2976)
        assert palmx.rows == sum(one.scored for one in report.subsets if one.task.startswith("qimma_palmx:"))
    published = [one for one in report.subsets if one.expected and not one.missing]
    assert all(one.differs() for one in published)  # the samples are a few rows of each
    assert not [row for row in report.listed if row.kind == "unmatched"]


def test_what_is_said_of_many_rows_or_files_is_told_once_with_their_number(tmp_path):
    folder = planted(tmp_path, {number: {"Subject": "Driving Tset"} for number in range(2, 6)})
    for place in (folder / "copy", tmp_path / "asas-ai" / "AraTrust"):
        place.mkdir(parents=True)
    for name in "abc":
        (folder / "copy" / f"{name}.jsonl").write_text('{"Question": "س"}\n' * 2, encoding="utf-8")
    lines = run("qimma", "--data", tmp_path).stdout.splitlines()
    told = [line for line in lines if line.startswith("un")]
    assert ["and 2 more" in line or "and 3 more" in line for line in told] == [True, True]
    assert sum(line.startswith("un") for line in run("qimma", "--data", tmp_path, "--full").stdout.splitlines()) == 7


def test_the_command_takes_what_eval_takes(tmp_path):
    """A file of names, a task in another spelling, a group, a suite; |k asks for examples."""
    names = tmp_path / "names.txt"
    names.write_text("# one of each\nqimma_palmx|1\nQIMMA_aratrust\n", encoding="utf-8")
    done = run(names, "aynvqa", "--data", "samples", "--json")
    told = [one["task"] for one in json.loads(done.stdout)["subsets"]]
    assert done.exit_code == 0 and told == [name.partition("|")[0] for name in select_tasks([str(names), "aynvqa"])[0]]
    with pytest.raises(CulturevalError, match="Did you mean qimma_aratrust"):
        app(["check", "qimma_aratrus", "--data", "samples"], standalone_mode=False)
    few = run("qimma_palmx|99", "qimma_palmx:culture", "--data", "samples")
    assert few.exit_code == 1 and few.stdout.count("run it with |") == 2, few.stdout


def test_rows_of_other_tasks_are_not_told_to_be_read_by_none(tmp_path):
    """One subset of a table of two; a file of the source that no task reads is told where all tasks are checked."""
    folder = planted(tmp_path, {4: {"Subject": "Driving Tset"}, 5: {"Subject": "Management", "Level": "University"}})
    (folder / "train.jsonl").write_text('{"Question": "س"}\n' * 3, encoding="utf-8")
    options = DataOptions(root=tmp_path)
    driving, whole = check_data(["qimma_arabicmmlu:Driving Test"], options), check_data(["qimma_arabicmmlu"], options)
    assert [(row.kind, row.file) for row in driving.listed if row.kind != "duplicate"] == [
        ("unmatched", "ArabicMMLU.csv")
    ]
    (table,) = driving.files
    assert (table.rows, table.scored, table.unselected) == (8, 6, 2)
    assert {(row.kind, row.file) for row in whole.listed} == {
        ("unmatched", "ArabicMMLU.csv"),
        ("unselected", "train.jsonl"),
    }
    assert driving.groups == [] and {one.scored for one in whole.subsets} == {0, 1, 6}
    assert "that none of these tasks reads" in data_check_text(driving, full=False)


def test_a_part_of_a_group_is_not_compared_with_its_published_sum():
    two = groups()["qimma_medarabiq_mcq"][:2]
    report = check_data(["qimma_3lm_stem", *two], DataOptions(root=samples_root()))
    assert {one.group: one.complete for one in report.groups} == {"qimma_3lm_stem": True, "qimma_medarabiq_mcq": False}


def test_no_data_at_all_is_an_error(tmp_path):
    with pytest.raises(SourceUnavailable):
        check_data(["m2cqa"], DataOptions(root=tmp_path))


@pytest.mark.skipif(not REAL.is_file(), reason="the real rows are not on this machine")
def test_the_real_rows_of_arabicmmlu_add_up(tmp_path):
    folder = tmp_path / "MBZUAI" / "ArabicMMLU"
    folder.mkdir(parents=True)
    shutil.copy(REAL, folder / "ArabicMMLU.csv")
    report = check_data(["qimma"], DataOptions(root=tmp_path))
    rows_add_up(report)
    (table,) = report.files
    assert (table.rows, table.scored, table.few_shot, table.broken, table.unselected) == (2506, 2487, 19, 0, 0)
