"""Pure functions of comparisons: tests of pairs, ranks, the power of a test."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from cultureval.metrics.m2cqa.counterfactual import paired_cfhr_difference
from cultureval.reports.comparison.planning import smallest_difference
from cultureval.reports.m2cqa.comparison import regime
from cultureval.runs.frame import COLUMNS
from cultureval.runs.pairs import mcnemar, pair, ranks

TASK, OTHER, METRIC = "qimma_aratrust|0", "qimma_aradice:Egypt|0", "acc_norm"
ONE, BOTH = {(TASK, METRIC): 1.0}, {(TASK, METRIC): 0.25, (OTHER, METRIC): 0.75}


def frame(run, num, den=1.0, task=TASK, metric=METRIC, cluster=None):
    """The rows of a run and task: [N] sums, and what items share."""
    items = [f"{number}" for number in range(len(num))]
    shared = items if cluster is None else [f"c{one}" for one in cluster]
    rows = {"run": run, "task": task, "metric": metric, "item": items, "cluster": shared, "num": num}
    return pd.DataFrame(rows | {"den": np.broadcast_to(den, len(num)).astype(float), "sums": None, "reason": ""})[
        COLUMNS
    ]


def paired(first, second, parts=ONE, **about):
    return pair(pd.concat([frame("a", first, **about), frame("b", second, **about)]), "a", "b", parts)


def test_mcnemar_is_scipys_binomial_test_less_half_of_what_was_seen():
    first = np.array([1.0] * 9 + [0.0] * 3 + [1.0] * 20)
    second = np.array([0.0] * 9 + [1.0] * 3 + [1.0] * 20)
    found = paired(first, second)
    assert (found.test, found.items, found.differ) == ("McNemar mid-p", 32, 12)
    assert found.p == pytest.approx(stats.binomtest(9, 12).pvalue - stats.binom.pmf(9, 12, 0.5))
    assert mcnemar(0, 0) == mcnemar(4, 4) == 1.0
    as_scores = paired(0.9 * first, 0.9 * second)  # no accuracy, but the same differences
    assert (as_scores.test, as_scores.p) == ("permutation", pytest.approx(found.p, abs=0.01))


def test_averages_weigh_tasks_and_shared_clusters_cancel():
    rng = np.random.default_rng(4)
    one, other = rng.random((2, 300)), rng.random((2, 40))
    items = pd.concat([frame(run, num, task=task) for task, nums in ((TASK, one), (OTHER, other))
                       for run, num in zip("ab", nums, strict=True)])  # fmt: skip
    found = pair(items, "a", "b", BOTH)
    gaps = [table[0] - table[1] for table in (one, other)]
    errors = [gap.std(ddof=1) / np.sqrt(len(gap)) for gap in gaps]
    assert found.difference == pytest.approx(0.25 * gaps[0].mean() + 0.75 * gaps[1].mean())
    shared = np.sqrt((0.25 * errors[0]) ** 2 + (0.75 * errors[1]) ** 2)
    assert found.error == pytest.approx(shared, rel=0.02)
    turned = [frame(run, num, task=task, cluster=range(300)) for task, nums in ((TASK, one), (OTHER, one[::-1]))
              for run, num in zip("ab", nums, strict=True)]  # fmt: skip
    turned = [rows.assign(cluster=rows["item"]) for rows in turned]
    same = pair(pd.concat(turned), "a", "b", {place: 0.5 for place in BOTH})
    assert same.difference == pytest.approx(0) and same.error is None and same.p == pytest.approx(1, abs=0.01)


def test_a_cfhr_is_tested_as_by_the_papers_bootstrap():
    rng = np.random.default_rng(1)
    right, rejected = rng.random((2, 900)) < 0.8, rng.random((2, 900, 2)) < np.array([0.8, 0.7])[:, None, None]
    wanted = paired_cfhr_difference(right[0], rejected[0], right[1], rejected[1], iterations=4000)
    task, metric = "m2cqa:tf_en|0", "cfhr"
    fooled = right & ~rejected.all(axis=2)
    rows = [frame(run, one.astype(float), den, task, metric) for run, one, den in zip("ab", fooled, right, strict=True)]
    found = pair(pd.concat(rows), "a", "b", {(task, metric): 1.0})
    assert found.difference == pytest.approx(wanted["delta"])
    assert (found.low, found.high) == pytest.approx((wanted["ci_low"], wanted["ci_high"]), abs=0.006)
    assert found.p == pytest.approx(wanted["p_value"], abs=0.01)


def test_what_the_clusters_do_not_tell_has_no_interval_and_no_interval_leaves_the_range():
    found = paired(np.ones(6), np.zeros(6), cluster=[0, 0, 0, 1, 1, 1])
    assert (found.difference, found.error, found.low) == (1.0, None, None)
    assert paired(np.ones(3), np.zeros(3), cluster=[0, 0, 0]).error is None
    wide = paired(np.array([1.0, 1, 0, 1]), np.array([0.0, 0, 1, 0]), cluster=[0, 1, 2, 2])
    assert -1 <= wide.low < wide.difference < wide.high <= 1
    alike = paired(np.array([1.0, 0, 1]), np.array([1.0, 0, 1]))
    assert (alike.test, alike.p, alike.low) == ("identical", 1.0, None)


def test_a_missing_item_is_the_worst_score_in_pairs_and_ranks():
    scores = np.array([1.0, 1, 0, 1, 0, 1, 1, 0])
    whole = frame("whole", scores)
    for lacking in (
        whole.assign(run="less", num=np.where(scores == 0, np.nan, scores)),
        whole[scores == 1].assign(run="less"),
    ):
        items = pd.concat([whole, lacking])
        found = pair(items, "whole", "less", ONE)
        assert (found.difference, found.missing) == (0.0, (0, 3))
        assert {one.rank for one in ranks(items, ONE)} == {1}
    lower = pd.concat(
        [frame(run, num, task="m2cqa:tf_en|0", metric="cfhr") for run, num in (("a", scores), ("b", scores))]
    )
    lower.loc[(lower["run"] == "b") & (lower["num"] == 0), "num"] = np.nan
    assert pair(lower, "b", "a", {("m2cqa:tf_en|0", "cfhr"): 1.0}).difference == pytest.approx(3 / 8)
    unbounded = lower.assign(task="jeem_captions:JO|0", metric="cider")
    assert pair(unbounded, "a", "b", {("jeem_captions:JO|0", "cider"): 1.0}) is None


def test_ranks_tell_clear_orders_apart_and_equal_models_not():
    rng = np.random.default_rng(2)
    shares = {"best": 0.9, "good": 0.7, "twin": 0.7, "bad": 0.3}
    draws = {run: (rng.random(400) < share).astype(float) for run, share in shares.items()}
    draws["twin"] = draws["good"]
    found = ranks(pd.concat([frame(run, num) for run, num in draws.items()]), ONE)
    places = {one.run: (one.rank, one.low, one.high) for one in found}
    assert places == {"best": (1, 1, 1), "good": (2, 2, 3), "twin": (2, 2, 3), "bad": (4, 4, 4)}
    few = pd.concat([frame(run, num[:3]) for run, num in draws.items()])
    assert all((one.low, one.high) == (1, 4) for one in ranks(few, ONE))
    fewer = pd.concat([frame("a", np.zeros(5)), frame("b", np.ones(5), task=OTHER)])
    assert ranks(fewer, BOTH) == []  # a run that lacks a part has no rank


@pytest.mark.slow
def test_the_planned_difference_is_found_with_the_planned_power():
    items, share = 1000, 0.2
    least = smallest_difference(items, share)
    shares = [(share + least) / 2, (share - least) / 2, 1 - share]
    drawn = np.random.default_rng(8).multinomial(items, shares, size=600)
    found = np.mean([mcnemar(int(first), int(second)) <= 0.05 for first, second, _ in drawn])
    assert found == pytest.approx(0.8, abs=0.05)


def test_more_tests_and_fewer_items_need_larger_differences():
    for items in (7, 10, 20, 86):
        found = [smallest_difference(items, 0.24, tests) or 1.0 for tests in (1, 2, 3, 5, 14)]
        assert found == sorted(found) and found[0] >= smallest_difference(items + 1, 0.24)
    least = smallest_difference(7, 0.24)  # solves z_a sqrt(v) + z_b sqrt(v - d^2) = d sqrt(n)
    assert 1.959964 * 0.24**0.5 + 0.841621 * (0.24 - least**2) ** 0.5 == pytest.approx(least * 7**0.5, abs=1e-5)
    assert smallest_difference(3, 0.2) is None


def test_regimes_are_the_papers_four():
    assert regime(0.93, 0.10) == "strong grounding"
    assert regime(0.59, 0.11) == "conservative rejection"
    assert regime(0.97, 0.79) == "over-acceptance"
    assert regime(0.65, 0.63) == "frequent hallucination"
    assert regime(0.0, None) == "undefined"
