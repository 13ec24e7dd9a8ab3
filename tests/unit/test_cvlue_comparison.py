"""CVLUE's comparison of runs: paired differences and intervals by hand."""

import json
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from scipy import stats

from cultureval.metrics.paired_tests import PairedSubset, compare_paired
from cultureval.metrics.standard_errors import clustered_interval
from cultureval.reports.cvlue.comparison import (
    ScoredTask,
    compare_runs_of_cvlue,
    difference_rows,
    mismatches,
    paper_rows,
)
from cultureval.reports.lighteval_files import write_details
from cultureval.reports.saved_results import SavedTask, names_of_runs

MADE = {"source": "cvlue", "revision": "local", "limit": None, "prompt": "a"}


def run_of(model, hits, **made):
    items = {str(number): (f"image {number}", 1.0, {"accuracy_loose": hit}) for number, hit in enumerate(hits)}
    return ScoredTask(model, "2026-01-01", "cvlue_vqa", {}, items, MADE | made)


def test_differences_are_paired_and_adjusted_for_their_number():
    numbers = np.random.default_rng(0)
    one, other = (numbers.integers(0, 2, 40).astype(float) for _ in range(2))
    rows = difference_rows([run_of("a", one), run_of("b", other[:30]), run_of("c", one)])
    first, same, last = rows
    tables = [np.column_stack([scores[:30], np.ones(30)]) for scores in (one, other)]
    wanted = compare_paired([PairedSubset(*tables)])
    assert (first["items"], first["difference"], first["p"]) == (
        30,
        *map(
            pytest.approx,
            (
                np.mean(one[:30] - other[:30]),
                wanted.p_value,
            ),
        ),
    )
    assert (first["low"], first["high"]) == (wanted.low, wanted.high)
    assert (same["first"], same["second"], same["difference"], same["p"]) == ("a", "c", 0, None)
    assert same["low"] == pytest.approx(-1.959964 * 2**0.5 / 42)  # 40 items, one pair more each way
    student = stats.ttest_rel(one[:30], other[:30])
    assert (first["low"], first["high"]) == pytest.approx(tuple(student.confidence_interval()), abs=0.03)
    assert first["p"] == pytest.approx(student.pvalue, abs=0.03)
    assert first["p_holm"] == pytest.approx(min(1, 2 * min(first["p"], last["p"])))


def test_runs_of_one_model_have_their_folders_names_and_equal_ones_their_paths():
    """Runs in `a/out` and `b/out` were one column of the table, with the numbers of the second."""
    places = [("a/out", "m"), ("b/out", "m"), ("c/other", "m"), ("a/out", "n")]
    saved = [SavedTask(Path("f"), Path(root), model, "2026-01-01", "cvlue_vg|0") for root, model in places]
    names = [names_of_runs(saved)[task.root, task.model] for task in saved]
    assert names == ["m (a/out)", "m (b/out)", "m (other)", "n"]


def test_captions_of_a_gallery_weigh_by_their_number_and_images_are_clusters():
    def gallery(model, shares):
        items = {str(n): (f"image {n // 2}", 1.0 + n % 3, {"IR@1": share}) for n, share in enumerate(shares)}
        return ScoredTask(model, "2026-01-01", "cvlue_itr", {}, items, MADE)

    numbers = np.random.default_rng(1)
    one, other, weights = numbers.random(30), numbers.random(30), 1.0 + np.arange(30) % 3
    row = next(row for row in difference_rows([gallery("a", one), gallery("b", other)]) if row["metric"] == "IR@1")
    assert row["difference"] == pytest.approx(np.average(one - other, weights=weights))
    tables = [np.column_stack([scores * weights, weights]) for scores in (one, other)]
    wanted = compare_paired([PairedSubset(*tables, clusters=[n // 2 for n in range(30)])])
    assert (row["low"], row["high"], row["p"]) == (wanted.low, wanted.high, wanted.p_value)


def test_runs_of_different_data_are_told_apart_from_those_of_different_prompts():
    one, prompt, data = run_of("a", [1.0]), run_of("b", [1.0], prompt="b"), run_of("c", [1.0], limit=3)
    assert [must for _, must in mismatches([one, prompt])] == [False]
    assert [must for _, must in mismatches([one, data])] == [True]


def test_scores_are_rounded_as_in_the_summary(tmp_path):
    """12.25 is 12.3 in every table; Python's own formatting has 12.2."""
    (tmp_path / "results/m").mkdir(parents=True)
    content = {"results": {"cvlue_vg|0": {"iou": 0.1225, "iou_stderr": 0.0225}}}
    (tmp_path / "results/m/results_2026-01-01.json").write_text(json.dumps(content))
    row = {"doc": {"query": "?", "specific": {"id": "1"}}, "metric": {"iou": 0.1225}, "model_response": {"text": ["x"]}}
    write_details(tmp_path, "m", "2026-01-01", "cvlue_vg|0", pyarrow.Table.from_pylist([row]))
    text, _ = compare_runs_of_cvlue([tmp_path], tmp_path / "out", force=False)
    assert "12.3 ±2.3" in text


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
