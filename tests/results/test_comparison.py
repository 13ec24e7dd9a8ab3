"""`cultureval compare` on planted runs: what is found, refused, named, written."""

import csv
import json

import numpy as np
import pytest
from planted import choice_row, plant, text_row
from typer.testing import CliRunner

from cultureval.reports.comparison.differences import AVERAGE, GROUP, SUBSET, compare, load_sides
from cultureval.reports.comparison.planning import plan
from cultureval.reports.comparison.report import compare_all
from cultureval.runs.loading import load
from cultureval.runtime.errors import CulturevalError
from cultureval.scripts.main import app

TRUST = "qimma_aratrust|0"
EGYPT, JORDAN = "qimma_aradice:Egypt|0", "qimma_aradice:Jordan|0"
TASKS = (TRUST, EGYPT, JORDAN)


def answers(seed, share, count=80):
    return [choice_row(at, bool(one)) for at, one in enumerate(np.random.default_rng(seed).random(count) < share)]


def planted(folder, seed, share, tasks=TASKS, **about):
    return plant(folder, {task: answers(seed + at, share) for at, task in enumerate(tasks)}, **about)


def rows_of(*paths, **options):
    found = compare(load_sides(paths)[0], **options)
    return {(row.level, row.name): row for row in found.rows}, found


def test_groups_subsets_and_both_ways_of_flips(tmp_path):
    planted(tmp_path / "a", 0, 0.9, model="lab/good")
    planted(tmp_path / "b", 9, 0.4, model="lab/bad")
    rows, found = rows_of(tmp_path / "a", tmp_path / "b")
    assert set(rows) == {(GROUP, TRUST), (GROUP, "qimma_aradice|0"), (SUBSET, EGYPT), (SUBSET, JORDAN)}
    good, bad = (load(tmp_path / one).runs[0] for one in "ab")
    row = rows[GROUP, "qimma_aradice|0"]
    wanted = [run.score("qimma_aradice:_average|0", "acc_norm") for run in (good, bad)]
    assert list(row.scores) == wanted
    assert row.pair.difference == pytest.approx(wanted[0].value - wanted[1].value)
    assert row.pair.low < row.pair.difference < row.pair.high and row.pair.p <= row.p_holm <= 2 * row.pair.p
    text = compare_all([tmp_path / "a", tmp_path / "b"], most_items=1).text
    assert "lab/good minus lab/bad" in text and "Higher with lab/bad than with lab/good" in text
    assert "prompt: سؤال" in text and EGYPT not in text.partition("lab/good minus")[2].partition("Higher")[0]


def test_a_suites_number_is_a_row_with_its_own_table(tmp_path):
    rates = ("TR@1", "TR@5", "TR@10", "IR@1", "IR@5", "IR@10")
    metrics = {"vqa": ("accuracy_loose",), "vg": ("iou",), "vd": ("R@1", "R@5", "R@10"), "itr": rates}
    for name, seed in (("a", 0), ("b", 1)):
        rng = np.random.default_rng(seed)
        tasks = {
            f"cvlue_{task}|0": [text_row(at, {one: float(rng.random() < 0.5) for one in names}) for at in range(20)]
            for task, names in metrics.items()
        }
        plant(tmp_path / name, tasks, model=f"lab/{name}")
    used = [one for names in metrics.values() for one in names]
    rows, _ = rows_of(tmp_path / "a", tmp_path / "b", metrics=used)
    (average,) = [row for (level, _), row in rows.items() if level == AVERAGE]
    assert len(average.parts) == 11 and average.pair.test == "permutation"
    done = CliRunner().invoke(app, ["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--suite", "cvlue"])
    assert done.exit_code == 0, done.output
    assert "paper: X2VLM" in done.output and "not released" in done.output and "lab/b" in done.output


def test_three_runs_are_three_pairs_and_identical_ones_differ_in_nothing(tmp_path):
    for name in "abc":
        planted(tmp_path / name, 0 if name != "c" else 5, 0.7, model=f"lab/{name}")
    found = compare(load_sides([tmp_path])[0])
    assert len(found.pairs) == 3
    same = [row for row in found.rows if {row.first, row.second} == {"lab/a", "lab/b"}]
    assert {(row.pair.test, row.p_holm) for row in same} == {("identical", 1.0)}
    assert max(row.p_holm for row in found.rows if row.level == GROUP) == 1.0


def test_what_differs_besides_the_model_is_refused_unless_allowed(tmp_path):
    planted(tmp_path / "a", 0, 0.8, model="lab/a", reports={TRUST: {"prompt": "one"}})
    planted(tmp_path / "b", 1, 0.6, model="lab/b", reports={TRUST: {"prompt": "two"}})
    paths = [tmp_path / "a", tmp_path / "b"]
    with pytest.raises(CulturevalError, match=rf"lab/a / lab/b: prompt: .*{TRUST.replace('|', '.')}") as caught:
        compare_all(paths)
    assert "--allow 'prompt'" in str(caught.value)
    with pytest.raises(CulturevalError, match="Did you mean prompt"):
        compare_all(paths, allowed=["promt"])
    assert compare_all(paths, allowed=["prompt"]).document["differences"]
    assert compare_all(paths, allowed=["all"]).document["differences"]


def test_runs_of_other_rows_are_compared_on_those_of_both_where_allowed(tmp_path):
    plant(tmp_path / "a", {TRUST: answers(0, 0.8)}, model="lab/a", limit=80)
    plant(tmp_path / "b", {TRUST: answers(0, 0.8)[:30]}, model="lab/b", limit=30)
    rows, _ = rows_of(tmp_path / "a", tmp_path / "b", allowed=["limit", "rows"])
    assert (rows[GROUP, TRUST].pair.items, rows[GROUP, TRUST].pair.missing) == (30, (0, 0))


def test_the_same_rows_of_files_of_other_names_are_joined_by_their_places(tmp_path):
    for name, file in (("a", "test.csv"), ("b", "data.jsonl")):
        rows = answers(3, 0.6)
        for at, row in enumerate(rows):
            row["doc"]["specific"] = {"source_row": f"{file}:{at + 2}"}
        plant(tmp_path / name, {TRUST: rows}, model=f"lab/{name}")
    (row,) = rows_of(tmp_path / "a", tmp_path / "b")[1].rows
    assert (row.pair.test, row.pair.items, row.pair.missing) == ("identical", 80, (0, 0))


def test_nobody_gains_by_leaving_items_or_subsets_out(tmp_path):
    whole = {task: answers(at, 0.6) for at, task in enumerate(TASKS)}
    less = {
        task: [row for row in rows if row["metric"]["acc"] or row["doc"]["id"] > "4"] for task, rows in whole.items()
    }
    plant(tmp_path / "whole", whole, model="lab/whole")
    plant(tmp_path / "less", less, model="lab/less")
    plant(tmp_path / "lost", {task: whole[task] for task in (TRUST, EGYPT)}, model="lab/lost")
    rows, found = rows_of(tmp_path / "less", tmp_path / "whole")
    for row in rows.values():
        assert row.pair.difference == pytest.approx(0) and row.pair.missing[0] > 0 == row.pair.missing[1]
        assert row.scores[0].value > row.scores[1].value  # what is shown is of the items with a score
    rows, found = rows_of(tmp_path / "lost", tmp_path / "whole")
    assert (GROUP, "qimma_aradice|0") not in rows and (SUBSET, EGYPT) in rows
    assert any("the mean of qimma_aradice|0" in note and JORDAN in note for note in found.notes)


def test_unverified_tasks_are_named_and_not_compared(tmp_path):
    planted(tmp_path / "a", 0, 0.8, model="lab/a")
    planted(tmp_path / "b", 1, 0.6, tasks=[TRUST], model="lab/b", details=False, date="2026-11-02T10-00-00.000000")
    planted(tmp_path / "b", 1, 0.6, tasks=[EGYPT, JORDAN], model="lab/b")
    rows, found = rows_of(tmp_path / "a", tmp_path / "b")
    assert (GROUP, "qimma_aradice|0") in rows and (GROUP, TRUST) not in rows
    assert any("lab/b is unverified" in note and TRUST in note for note in found.notes)


def test_one_model_twice_is_two_sides_and_one_run_twice_is_refused(tmp_path):
    first = planted(tmp_path, 0, 0.8)
    second = planted(tmp_path, 1, 0.5, date="2026-11-05T10-00-00.000000")
    names = [run.name for run in load_sides([first, second])[0]]
    assert len(set(names)) == 2
    assert compare_all([first, second]).document["differences"]
    with pytest.raises(CulturevalError, match="given twice"):
        load_sides([first, first])
    with pytest.raises(CulturevalError, match="a comparison needs two"):
        load_sides([tmp_path])


def test_files_are_written_on_demand_and_never_over_others(tmp_path, monkeypatch):
    planted(tmp_path / "a", 0, 0.8, model="=HYPERLINK(1)")
    planted(tmp_path / "b", 1, 0.5, model="lab/b")
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    command = ["compare", str(tmp_path / "a"), str(tmp_path / "b")]
    document = json.loads(CliRunner().invoke(app, [*command, "--json"], catch_exceptions=False).stdout)
    assert not any(work.iterdir())
    done = CliRunner().invoke(app, [*command, "--output-dir", "out"], catch_exceptions=False)
    assert done.exit_code == 0 and "differences.csv" in done.output
    with (work / "out/differences.csv").open(encoding="utf-8") as stream:
        written = list(csv.DictReader(stream))
    assert [float(row["difference"]) for row in written] == [row["difference"] for row in document["differences"]]
    assert written[0]["first"] == "'=HYPERLINK(1)"
    flips = [json.loads(line) for line in (work / "out/items.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {flip["task"] for flip in flips} == set(TASKS) and all(flip["first_answer"] for flip in flips)
    with pytest.raises(CulturevalError, match="name a new folder"):
        compare_all([tmp_path / "a", tmp_path / "b"], work / "out")


def test_what_cannot_be_compared_is_one_sentence(tmp_path):
    planted(tmp_path / "a", 0, 0.8, tasks=[TRUST], model="lab/a\nforged")
    planted(tmp_path / "b", 0, 0.8, tasks=[EGYPT], model="lab/b")
    paths = [tmp_path / "a", tmp_path / "b"]
    with pytest.raises(CulturevalError, match="share no scores") as caught:
        compare_all(paths)
    assert "does not have it" in str(caught.value)
    with pytest.raises(CulturevalError, match="no run has it"):
        compare_all(paths, metrics=["nothing"])
    planted(tmp_path / "b", 0, 0.8, tasks=[TRUST], model="lab/b")
    assert r"lab/a\nforged minus lab/b" in compare_all(paths).text


def test_plans_are_of_numbers_of_items():
    text = plan(["5000", "3", "20"], 0.2, 0.8, None)
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line}
    assert rows["5000"][0] == "0.0177" < rows["5000"][1]
    assert rows["3"] == ["too", "few"] * 2 and rows["20"] == ["too", "few"] * 2  # of 4 that differ, 0.26 cannot be
    for wrong, discordant, words in ((["0"], 0.2, "--plan 0"), (["qimma"], 0.2, "number of"), (["9"], 0, "--disc")):
        with pytest.raises(CulturevalError, match=words):
            plan(wrong, discordant, 0.8, None)
