"""Ranks of saved runs: items are matched by name, clusters and undefined scores count, and nothing is made up."""

from pathlib import Path

import numpy as np
import pytest
from item_runs import rank_runs, save_run
from summary_runs import run_of

from cultureval.metrics.declared import Declared
from cultureval.reports.run_ranks import average_weights
from cultureval.runs.items import item_scores
from cultureval.runs.table import averages
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.qimma.averages import benchmark_tasks

TASKS = ("cvlue_vg|0", "cvlue_en_vg|0")  # acc@0.5 is a share there


def test_saved_runs_are_ranked_on_all_items_and_what_one_leaves_out_is_wrong(tmp_path: Path) -> None:
    """Runs that lack rows, or have others, take no rank from one that has all of them, however many they are."""
    generator = np.random.default_rng(0)
    names = [f"test:{place}" for place in range(400)]
    rows = {}
    for model, share in (("strong", 0.9), ("weak", 0.57), ("other", 0.5)):
        rows[model] = [(name, None, float(generator.random() < share)) for name in names]
    scored = rows["weak"][50:]
    rows["weak"] = [(name, None, None) for name in names[:50]] + scored
    rows |= {f"short {copy}": scored for copy in range(4)} | {"own": [*scored, ("test:only here", None, 1.0)]}
    first, second = TASKS
    runs = [save_run(tmp_path / model, model, dict.fromkeys(TASKS, found)) for model, found in rows.items()]
    lacking = save_run(tmp_path / "lacking", "lacking", {first: rows["other"]})
    corpus = save_run(tmp_path / "corpus", "corpus", dict.fromkeys(TASKS, rows["other"]), **{second: 0.123})
    metrics = dict.fromkeys(TASKS, "acc@0.5")
    ranking, notes = rank_runs([*runs, lacking, corpus], metrics, {first: 3.0, second: 1.0}, iterations=300)
    assert [(row.model, row.low, row.high) for row in ranking.rows] == [
        ("strong", 1, 1),
        *((row.model, 2, 3) for row in ranking.rows[1:]),
    ]
    scores = {row.model: row.score for row in ranking.rows}
    assert scores["strong"] == pytest.approx(np.mean([score for _, _, score in rows["strong"]]))
    assert scores["weak"] == pytest.approx(sum(score for _, _, score in scored) / 400)
    (told,) = [note for note in notes if note.startswith("weak: ")]
    assert "100 items without a score (50 of 400 of cvlue_vg, 50 of 400 of cvlue_en_vg) count as wrong" in told
    assert [note.split()[0] for note in notes if "has no rank" in note] == ["lacking", "corpus", *["short"] * 4, "own"]
    assert rank_runs(runs[:1], metrics)[0] is None
    assert rank_runs(runs, {})[0] is None


def test_left_out_items_are_told_of_all_items_of_their_benchmark(tmp_path: Path, monkeypatch) -> None:
    """One of 50 items in two subsets was told as "1 of 12", those of the subset that lacks it."""
    monkeypatch.setattr("cultureval.runs.items.declared_metric", lambda task, metric: Declared())
    right = {
        "cvlue_vg:a|0": [(f"test:{at}", None, at % 2.0) for at in range(12)],
        "cvlue_vg:b|0": [(f"test:{at}", None, at % 2.0) for at in range(38)],
    }
    first, *others = right["cvlue_vg:a|0"]
    lacking = right | {"cvlue_vg:a|0": [(first[0], None, None), *others]}
    runs = [save_run(tmp_path / model, model, rows) for model, rows in (("whole", right), ("lacking", lacking))]
    _, notes = rank_runs(runs, dict.fromkeys(right, "acc@0.5"), iterations=100)
    assert "lacking: 1 item without a score (1 of 50 of cvlue_vg) counts as wrong in its rank." in notes


def test_a_model_without_a_rank_takes_none_from_others(tmp_path: Path) -> None:
    """Of two models, ranked on the rows of a third that lacked a task, neither had a rank."""
    rows = [(f"test:{place}", None, float(place % 2)) for place in range(60)]
    long = save_run(tmp_path / "long", "long", {TASKS[0]: rows})
    both = [save_run(tmp_path / model, model, dict.fromkeys(TASKS, rows[:50])) for model in ("a", "b")]
    ranking, notes = rank_runs([long, *both], dict.fromkeys(TASKS, "acc@0.5"), iterations=100)
    assert ranking and {row.model for row in ranking.rows} == {"a", "b"}
    assert [note.split()[0] for note in notes] == ["long"]


def test_a_model_with_hardly_a_score_is_last_or_without_a_rank_and_the_others_keep_theirs(tmp_path: Path) -> None:
    names = [f"test:{place}" for place in range(40)]
    rows = {
        "right": [(name, None, 1.0) for name in names],
        "half": [(name, None, float(place % 2)) for place, name in enumerate(names)],
        "odd": [(names[0], None, 0.0), *((name, None, None) for name in names[1:])],
    }
    runs = [save_run(tmp_path / model, model, {TASKS[0]: found, "b|0": found}) for model, found in rows.items()]
    ranking, notes = rank_runs(runs, {TASKS[0]: "acc@0.5"}, iterations=100)
    assert [(row.model, row.score, row.low) for row in ranking.rows] == [
        ("right", 1, 1),
        ("half", 0.5, 2),
        ("odd", 0, 3),
    ]
    assert "odd: 39 items without a score (39 of 40 of cvlue_vg) count as wrong in its rank." in notes
    ranking, notes = rank_runs(runs, {"b|0": "acc@0.5"}, iterations=100)
    assert [row.model for row in ranking.rows] == ["right", "half"]
    assert notes[0] == "odd has no rank: 39 items of b|0 without a score, and nothing bounds what it could be."


def test_items_have_names_clusters_and_undefined_scores(tmp_path: Path) -> None:
    rows = [("one", "image", 1.0), ("one", "image", 0.0), ("two", None, None), ("three", "", 1.0)]
    run = save_run(tmp_path, "model", {"t|0": rows})
    file = next(tmp_path.rglob("*.parquet"))
    items = item_scores(file, "t|0", "acc@0.5")
    assert items.keys == ("one", "one (2)", "two", "three")
    assert items.clusters == ("image", "image", None, None)
    assert items.score(items.parts.sum(axis=0)) == pytest.approx(run.value("t|0", "acc@0.5")) == pytest.approx(2 / 3)
    assert items.on(["three", "two"]).parts.tolist() == [[1, 1], [0, 0]]
    assert item_scores(file, "t|0", "text") is None and item_scores(file, "t|0", "missing") is None


def test_the_average_is_over_benchmarks_of_the_means_of_their_subsets() -> None:
    run = run_of(["qimma_palmx:islamic", "qimma_palmx:culture", "qimma_aratrust"])
    found = average_weights(list(run.record.tasks.values()))
    assert found == {"qimma_palmx:islamic|0": 0.25, "qimma_palmx:culture|0": 0.25, "qimma_aratrust|0": 0.5}


def test_the_average_of_a_suite_is_that_which_it_declares_and_needs_all_of_its_tasks() -> None:
    names = [task.task for task in all_tasks().values() if task.suite == "qimma"]
    run = run_of(names)
    ((title, parts),) = averages(run)
    wanted = {
        (f"{task.task}|0", task.metrics[0]): 1 / 14 / len(members)
        for members in benchmark_tasks().values()
        for task in members
    }
    assert title == "QIMMA: Average" and parts == pytest.approx(wanted) and len(wanted) == 109
    weights = average_weights(list(run.record.tasks.values()))
    assert {task: weight for (task, _), weight in parts.items()} == pytest.approx(weights)
    assert averages(run_of(names[1:])) == [] and averages(run_of(["cvlue_vg"])) == []
