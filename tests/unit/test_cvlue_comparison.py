"""CVLUE's comparison of runs: paired differences and intervals by hand."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from scipy import stats

from cultureval.metrics.paired_tests import PairedSubset, compare_paired
from cultureval.metrics.proportions import holm
from cultureval.metrics.standard_errors import clustered_interval
from cultureval.reports.cvlue.comparison import compare_runs_of_cvlue, paper_rows
from cultureval.runs.files import SavedTask, labelled
from cultureval.runs.writing import write_details
from cultureval.runtime.errors import CulturevalError

DATE = "2026-01-01T00-00-00"


def save(root, model, metric, scores, task="cvlue_vqa", images=None, golds=None, stderr=0.01, claimed=None, **known):
    """A run of a task with the scores of its items.

    Args:
        images: The items' clusters; None: each has its own.
        golds: Where the items are images of galleries, how many captions each has.
        claimed: The score of the results file, where it is not that of the items.
        known: What the record says of the task, besides the usual.
    """
    rows = []
    for place, score in enumerate(scores):
        specific = {"id": str(place), "cluster": f"image {place if images is None else images[place]}"}
        doc = {"query": f"q {place}", "choices": ["x"], "gold_index": [0]}
        if golds is not None:
            doc["gold_index"], specific["gallery"] = list(range(golds[place])), 0
        rows.append({"doc": doc | {"specific": specific}, "metric": {metric: score}, "model_response": {"text": ["a"]}})
    write_details(root, model, DATE, f"{task}|0", pyarrow.Table.from_pylist(rows))
    about = {"task": f"{task}|0", "suite": "cvlue", "benchmark": "cvlue", "group": task, "subset": ""}
    about |= {"metrics": [metric], "rows": len(rows), "rows_hash": "ab", "prompt_hash": "p"} | known
    value = float(np.average(scores, weights=golds)) if claimed is None else claimed
    content = {"config_general": {"model_name": model}, "cultureval": {"schema": 1, "tasks": {f"{task}|0": about}}}
    content["results"] = {f"{task}|0": {metric: value, f"{metric}_stderr": stderr}}
    file = root / "results" / model / f"results_{DATE}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))


def compare(folder, *names, **options):
    """(text, notes, rows of differences.csv, rows of scores.csv of runs)."""
    text, notes = compare_runs_of_cvlue([folder / name for name in names], folder / "out", **options)
    with (folder / "out/differences.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with (folder / "out/scores.csv").open(encoding="utf-8") as file:
        scores = [row for row in csv.DictReader(file) if row["split"] == "of the run"]
    return text, notes, rows, scores


def numbers_of(row, *names):
    return pytest.approx(tuple(float(row[name]) for name in names), abs=1e-12)


def test_differences_are_paired_and_adjusted_for_their_number(tmp_path):
    numbers = np.random.default_rng(0)
    one, other = (numbers.integers(0, 2, 40).astype(float) for _ in range(2))
    for name, hits in (("a", one), ("b", other[:30]), ("c", one)):
        save(tmp_path, name, "accuracy_loose", hits)
    with pytest.raises(CulturevalError, match="10 only in a .*\n.*\n--allow items compares"):
        compare(tmp_path, "")
    text, notes, (first, same, last), _ = compare(tmp_path, "", allowed=["items"])
    wanted = compare_paired([PairedSubset(*(np.column_stack([hits[:30], np.ones(30)]) for hits in (one, other)))])
    assert (first["first"], first["second"], first["items"]) == ("a", "b", "30")
    found = numbers_of(first, "difference", "low", "high", "p_value")
    assert (np.mean(one[:30] - other[:30]), wanted.low, wanted.high, wanted.p_value) == found
    assert (same["first"], same["second"], float(same["difference"]), same["identical"]) == ("a", "c", 0, "True")
    assert float(same["low"]) == pytest.approx(-1.959964 * 2**0.5 / 42)  # 40 items, one pair more each way
    student = stats.ttest_rel(one[:30], other[:30])
    assert (wanted.low, wanted.high) == pytest.approx(tuple(student.confidence_interval()), abs=0.03)
    adjusted = holm([float(row["p_value"]) for row in (first, same, last)])
    assert [float(row["p_holm"]) for row in (first, same, last)] == pytest.approx(list(adjusted))
    assert "identical on every item" in text and any("compared all the same, items" in note for note in notes)


def test_runs_of_one_model_have_their_folders_names_and_equal_ones_their_paths():
    """Runs in `a/out` and `b/out` were one column of the table, with the numbers of the second."""
    places = [("a/out", "m"), ("b/out", "m"), ("c/other", "m"), ("a/out", "n"), ("d/out", "m (other)")]
    saved = [SavedTask(Path("f"), Path(root), model, "2026", "cvlue_vqa|0", model) for root, model in places]
    names = [task.label for task in labelled(saved)]
    assert names == ["m (a/out)", "m (b/out)", "m (c/other)", "n", "m (other)"], "no model takes another's name"


def test_captions_of_a_gallery_weigh_by_their_number_and_images_are_clusters(tmp_path):
    numbers = np.random.default_rng(1)
    one, other, weights = numbers.random(30), numbers.random(30), 1 + np.arange(30) % 3
    images = np.arange(30) // 2
    for name, shares in (("a", one), ("b", other)):
        save(tmp_path, name, "IR@1", shares, "cvlue_itr", images, weights, not_means=["IR@1"])
    _, _, (row,), _ = compare(tmp_path, "")
    assert float(row["difference"]) == pytest.approx(np.average(one - other, weights=weights))
    tables = [np.column_stack([scores * weights, weights]) for scores in (one, other)]
    wanted = compare_paired([PairedSubset(*tables, clusters=images)])
    assert (wanted.low, wanted.high, wanted.p_value) == numbers_of(row, "low", "high", "p_value")
    assert (row["items"], row["clusters"]) == ("30", "15")


@pytest.mark.parametrize(
    ("known", "kind", "words"),
    [
        ({"rows_hash": "cd"}, "items", "the fingerprint of the rows"),
        (
            {"prompt_hash": "q"},
            "prompts",
            "what was asked (the kind of prompts, or a hash of their template) differs: 'p' / 'q'",
        ),
    ],
)
def test_runs_that_compare_refuses_are_refused_here_too(tmp_path, known, kind, words):
    """Two runs whose rows_hash differ were compared without a word."""
    save(tmp_path / "a", "one", "iou", [0.5, 0.7, 0.2], "cvlue_vg")
    save(tmp_path / "b", "other", "iou", [0.6, 0.7, 0.1], "cvlue_vg", **known)
    with pytest.raises(CulturevalError) as refused:
        compare(tmp_path, "a", "b")
    assert f"one / other, {kind}: cvlue_vg|0: {words}" in str(refused.value)
    assert f"--allow {kind} compares them all the same." in str(refused.value)
    assert not (tmp_path / "out").exists()
    with pytest.raises(CulturevalError, match="--allow item: it takes items, prompts, scorers. Did you mean items"):
        compare(tmp_path, "a", "b", allowed=["item"])
    _, notes, (row,), _ = compare(tmp_path, "a", "b", allowed=[kind])
    assert float(row["difference"]) == pytest.approx(0) and any(words in note for note in notes)


def test_scores_are_rounded_as_in_the_summary_and_are_those_of_the_items(tmp_path):
    """12.25 is 12.3 in every table; Python's own formatting has 12.2. A file's own number was believed."""
    save(tmp_path / "a", "m", "iou", [0.1, 0.145], "cvlue_vg", stderr=0.0225)
    text, _, rows, scores = compare(tmp_path, "a")
    assert "12.3 ±2.3" in text and "First minus second" not in text and not rows
    assert [(row["score"], row["items"]) for row in scores] == [("0.1225", "2")]
    save(tmp_path / "b", "m", "iou", [0.2, 0.4], "cvlue_vg", claimed=0.9)
    text, _, _, scores = compare(tmp_path, "b")
    assert float(scores[0]["score"]) == pytest.approx(0.3) and "90.0" not in text


def test_models_that_share_no_task_are_shown_without_a_difference(tmp_path):
    save(tmp_path, "a", "iou", [0.5, 0.7], "cvlue_vg")
    save(tmp_path, "b", "accuracy_loose", [1.0, 0.0])
    text, notes, rows, scores = compare(tmp_path, "")
    assert not rows and {row["model"] for row in scores} == {"a", "b"} and "1/11" in text
    assert "not compared, since they share no task: a / b." in notes


def test_the_papers_numbers_are_marked():
    rows = paper_rows()
    assert len(rows) == 72 and {row["split"] for row in rows} == {"the paper's, not released"}


def test_intervals_of_clustered_means():
    """Wilson's for independent items (its published formula), never empty, Student's beyond 0 to 1."""
    hits = [1.0] * 7 + [0.0] * 3
    low, high = clustered_interval(hits, range(10))
    p, n, z = 0.7, 9, stats.norm.ppf(0.975)  # p(1 - p) / se^2 is n - 1, since se^2 divides by n - 1
    middle, half = (p + z * z / 2 / n), z * np.sqrt(p * (1 - p) / n + z * z / 4 / n / n)
    assert (low, high) == pytest.approx(((middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)))
    assert clustered_interval([1.0] * 5, range(5)) == pytest.approx((5 / (5 + z * z), 1))
    wide = clustered_interval(hits * 2, [*range(10), *range(10)])
    assert wide == pytest.approx((low, high)), "a second question on the same image adds nothing"
    ranks = [1.0, 5.0, 9.0, 30.0]
    assert clustered_interval(ranks, range(4)) == pytest.approx(
        stats.t.interval(0.95, 3, np.mean(ranks), stats.sem(ranks))
    )
    assert np.isnan(clustered_interval([1.0], ["a"])).all()
