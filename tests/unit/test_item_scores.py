"""Ranks of saved runs: items are matched by name, clusters and undefined scores count, and nothing is made up."""

from pathlib import Path

import numpy as np
import pytest
from item_runs import save_run
from summary_runs import run_of

from cultureval.reports.item_scores import item_scores
from cultureval.reports.run_ranks import average_weights, rank_runs


def test_saved_runs_are_ranked_on_the_items_that_all_have(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    names = [f"test:{place}" for place in range(400)]
    rows = {}
    for model, share in (("strong", 0.9), ("weak", 0.5), ("other", 0.5)):
        rows[model] = [(name, None, float(generator.random() < share)) for name in names]
    rows["weak"] = rows["weak"][::-1][:350] + [("test:only here", None, 1.0)]
    runs = [save_run(tmp_path / model, model, {"a:x|0": found, "b|0": found}) for model, found in rows.items()]
    lacking = save_run(tmp_path / "lacking", "lacking", {"a:x|0": rows["other"]})
    corpus = save_run(tmp_path / "corpus", "corpus", {"a:x|0": rows["other"], "b|0": rows["other"]}, **{"b|0": 0.123})
    metrics = {"a:x|0": "acc@0.5", "b|0": "acc@0.5"}
    ranking, notes = rank_runs([*runs, lacking, corpus], metrics, {"a:x|0": 3.0, "b|0": 1.0}, iterations=300)
    assert [(row.model, row.low, row.high) for row in ranking.rows] == [
        ("strong", 1, 1),
        *((row.model, 2, 3) for row in ranking.rows[1:]),
    ]
    shared = set(names[50:])
    strong = np.mean([score for name, _, score in rows["strong"] if name in shared])
    assert ranking.rows[0].score == pytest.approx(strong)
    assert "350 of 400 items of a:x|0" in " ".join(notes)
    assert [note.split()[0] for note in notes if "has no rank" in note] == ["lacking", "corpus"]
    assert rank_runs(runs[:1], metrics).ranking is None
    assert rank_runs(runs, {}).ranking is None


def test_a_model_without_a_score_on_the_shared_items_leaves_the_others_their_ranks(tmp_path: Path) -> None:
    names = [f"test:{place}" for place in range(40)]
    rows = {
        "right": [(name, None, 1.0) for name in names],
        "half": [(name, None, float(place % 2)) for place, name in enumerate(names)],
        "odd": [*((name, None, None) for name in names), ("test:own", None, 1.0)],
    }
    runs = [save_run(tmp_path / model, model, {"b|0": found}) for model, found in rows.items()]
    ranking, notes = rank_runs(runs, {"b|0": "acc@0.5"}, iterations=100)
    assert [row.model for row in ranking.rows] == ["right", "half"]
    assert notes[0] == "odd has no rank: its score is not defined on the items that all have."


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
