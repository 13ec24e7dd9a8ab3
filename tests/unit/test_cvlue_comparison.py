"""CVLUE's comparison of runs: paired differences and intervals by hand."""

from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from cultureval.metrics.standard_errors import MeanDifference, clustered_interval, paired_difference
from cultureval.reports.cvlue.comparison import ScoredTask, difference_rows, mismatches, paper_rows
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
    wanted = stats.ttest_rel(one[:30], other[:30])
    assert (first["items"], first["difference"], first["p"]) == (
        30,
        *map(
            pytest.approx,
            (
                np.mean(one[:30] - other[:30]),
                wanted.pvalue,
            ),
        ),
    )
    assert (first["low"], first["high"]) == pytest.approx(tuple(wanted.confidence_interval()))
    assert (same["first"], same["second"], same["difference"], same["low"], same["p"]) == ("a", "c", 0, 0, None)
    assert first["p_holm"] == pytest.approx(min(1, 2 * min(first["p"], last["p"])))


def test_runs_of_one_model_have_their_folders_names_and_equal_ones_their_paths():
    """Runs in `a/out` and `b/out` were one column of the table, with the numbers of the second."""
    places = [("a/out", "m"), ("b/out", "m"), ("c/other", "m"), ("a/out", "n")]
    saved = [SavedTask(Path("f"), Path(root), model, "2026-01-01", "cvlue_vg|0") for root, model in places]
    names = [names_of_runs(saved)[task.root, task.model] for task in saved]
    assert names == ["m (a/out)", "m (b/out)", "m (other)", "n"]


def test_a_weighted_difference_is_that_of_the_repeated_items():
    deltas, weights = [0.5, -0.25, 1.0, 0.0], [1, 3, 2, 2]
    repeated = [delta for delta, weight in zip(deltas, weights, strict=True) for _ in range(weight)]
    of_item = [item for item, weight in enumerate(weights) for _ in range(weight)]
    weighted, of_repeated = paired_difference(deltas, range(4), weights), paired_difference(repeated, of_item)
    assert astuple(weighted) == pytest.approx(astuple(of_repeated))
    assert paired_difference([0.0, 0.0], "ab") == MeanDifference(0.0, 0.0, 0.0), "identical: there is no test"
    assert paired_difference([0.5, 0.25], "aa") == MeanDifference(0.375), "one image has no interval"


@pytest.mark.parametrize("all_differ_by", [1.0, -0.1])
def test_a_difference_that_is_the_same_everywhere_has_an_interval(all_differ_by):
    """100% against 0% on 20 images had the interval 100% to 100% and no p-value."""
    found = paired_difference([all_differ_by] * 40, [item // 2 for item in range(40)])
    least, most = sorted((found.low, found.high), key=abs)
    assert (least, most) == pytest.approx((all_differ_by * 20 / (20 + 1.959964**2), all_differ_by))
    assert found.p_value == pytest.approx(stats.binomtest(20, 20).pvalue)


def test_runs_of_different_data_are_told_apart_from_those_of_different_prompts():
    one, prompt, data = run_of("a", [1.0]), run_of("b", [1.0], prompt="b"), run_of("c", [1.0], limit=3)
    assert [must for _, must in mismatches([one, prompt])] == [False]
    assert [must for _, must in mismatches([one, data])] == [True]


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
