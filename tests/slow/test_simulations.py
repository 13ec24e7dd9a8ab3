"""Simulations: intervals cover, equal models share the top, tests keep their level."""

import numpy as np
import pandas as pd
import pytest

from cultureval.runs.frame import COLUMNS
from cultureval.runs.pairs import pair, ranks
from cultureval.runs.scores import mean

TASK, OTHER, METRIC = "qimma_aratrust|0", "qimma_aradice:Egypt|0", "acc_norm"


def frame(num, den=1.0, *, cluster=None, run="a", task=TASK, metric=METRIC):
    """The rows of one run and task: [N] sums, and what items share."""
    count = len(num)
    items = [f"{number}" for number in range(count)]
    shared = items if cluster is None else [f"c{one}" for one in cluster]
    rows = {"run": run, "task": task, "metric": metric, "item": items, "cluster": shared, "num": num}
    return pd.DataFrame(rows | {"den": np.broadcast_to(den, count).astype(float), "sums": None, "reason": ""})[COLUMNS]


def covered(draw, truth, times=500):
    """The share of runs, each drawn anew, whose 95% interval holds the truth."""
    rng = np.random.default_rng(0)
    items = pd.concat([draw(rng, f"r{number}") for number in range(times)], ignore_index=True)
    parts = items[["task", "metric"]].drop_duplicates().itertuples(index=False, name=None)
    found = mean(items, dict.fromkeys(parts, 1.0)).values()
    return np.mean([one.low <= truth <= one.high for one in found if one.low is not None])


def hits(rng, count, share):
    return (rng.random(count) < share).astype(float)


@pytest.mark.parametrize("share", [0.3, 0.9])
@pytest.mark.parametrize("count", [100, 300])
def test_an_interval_of_a_mean_covers(share, count):
    assert 0.92 <= covered(lambda rng, run: frame(hits(rng, count, share), run=run), share) <= 0.98


def test_an_interval_of_clusters_of_unlike_sizes_covers():
    def draw(rng, run):
        sizes = rng.integers(1, 9, 60)
        level = rng.beta(2, 2, 60).repeat(sizes)
        return frame(hits(rng, len(level), level), cluster=np.arange(60).repeat(sizes), run=run)

    assert 0.92 <= covered(draw, 0.5) <= 0.98


def test_an_interval_of_a_ratio_covers():
    def draw(rng, run):
        right = hits(rng, 300, 0.6)
        return frame(right * hits(rng, 300, 0.2), right, metric="cfhr", task="m2cqa:tf_en|0", run=run)

    assert 0.92 <= covered(draw, 0.2) <= 0.98


def test_an_interval_of_an_average_of_unlike_subsets_covers():
    sizes, shares = (30, 100, 400, 60, 200, 50), (0.2, 0.9, 0.5, 0.7, 0.4, 0.95)

    def draw(rng, run):
        drawn = enumerate(zip(sizes, shares, strict=True))
        tasks = [frame(hits(rng, *one), task=f"qimma_aradice:{number}|0", run=run) for number, one in drawn]
        return pd.concat(tasks, ignore_index=True)

    assert 0.92 <= covered(draw, float(np.mean(shares)), 300) <= 0.98


def equal_models(rng, models, count=200):
    """Items of models that are equally good: hard items are hard for all."""
    level = rng.beta(2, 2, count)
    runs = [frame((rng.random(count) < level).astype(float), run=f"m{number}") for number in range(models)]
    return pd.concat(runs, ignore_index=True)


@pytest.mark.parametrize("models", [2, 5, 10])
def test_equal_models_share_the_top(models):
    rng = np.random.default_rng(1)
    tied = [
        all(one.low == 1 for one in ranks(equal_models(rng, models), {(TASK, METRIC): 1.0}, draws=1000, seed=seed))
        for seed in range(150)
    ]
    assert np.mean(tied) >= 0.92


@pytest.mark.parametrize("test", ["McNemar mid-p", "permutation"])
def test_a_test_of_equal_models_is_rarely_false(test):
    rng = np.random.default_rng(2)
    false = []
    for seed in range(400):
        items = equal_models(rng, 2)
        if test == "permutation":
            items = items.assign(cluster=items["item"].astype(int) // 4)
        found = pair(items, "m0", "m1", {(TASK, METRIC): 1.0}, draws=300, seed=seed)
        assert found.test == test
        false.append(found.p < 0.05)
    assert np.mean(false) <= 0.06
