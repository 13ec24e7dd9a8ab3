"""Differences between runs on the same items, and ranks of runs: both with missing items as the worst score."""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cultureval.runs.frame import SCORE, ends, of_sums
from cultureval.runs.scores import TINY, Floats, Parts, Score, average, fill, influence, items_of, mean, wide

if TYPE_CHECKING:
    import pandas

CELL = ["task", "metric", "cluster"]
DRAWS = 10_000  # random swaps of a permutation test
AT_ONCE = 250  # of them


class Pair(NamedTuple):
    """A difference of two runs on the same items.

    Attributes:
        difference: Of the first minus the second.
        error: Its standard error; None where no item differs, or the clusters do not tell it.
        low: Lower end of the 95% interval; `high` its upper end; None without an error.
        p: Two-sided p-value.
        test: "McNemar mid-p", "permutation", "jackknife" (corpus scores) or "identical".
        items: Items that either was asked, and that count in either's score.
        clusters: Clusters of these items.
        differ: Clusters on which the runs differ.
        missing: Items that each of the two has no score of, which count as the worst.
    """

    difference: float
    error: float | None
    low: float | None
    high: float | None
    p: float
    test: str
    items: int
    clusters: int
    differ: int
    missing: tuple[int, int]


class Ranked(NamedTuple):
    """A run's place: its score with missing items filled, its rank, and the 95% interval of the rank (1: the best)."""

    run: str
    score: Score
    rank: int
    low: int
    high: int


class PairItems(NamedTuple):
    """The items of two runs, with missing ones filled: what `difference` computes from.

    Attributes:
        a: The first run; `b` the second.
        found: (task, metric) -> `influence` of its clusters in both runs.
        asked: (task, metric) -> items that count in either run's score.
        missing: (task, metric) -> items that each run has no score of.
    """

    a: str
    b: str
    found: dict[tuple[str, str], "pandas.DataFrame"]
    asked: dict[tuple[str, str], int]
    missing: dict[tuple[str, str], tuple[int, int]]


def pair(items: "pandas.DataFrame", a: str, b: str, parts: Parts, draws: int = DRAWS, seed: int = 0) -> Pair | None:
    """`difference` of two runs of a frame."""
    return difference(pair_items(items_of(items, parts), a, b), parts, draws, seed)


def pair_items(items: "pandas.DataFrame", a: str, b: str) -> PairItems:
    """The items of two runs in all scores that both have, those that either was asked."""
    own = items[items["run"].isin([a, b])]
    places = own[["task", "metric", "run"]].drop_duplicates().groupby(["task", "metric"], observed=True).size()
    filled = fill(items_of(own, dict.fromkeys(places[places == 2].index, 1.0)))
    rows = filled.groupby(["task", "metric"], observed=True).size() // 2
    asked = filled[(filled["den"] > 0).to_numpy()].groupby(["task", "metric"], observed=True)["item"].nunique()
    scored = own[(own["num"].notna() | (own["den"] == 0)).to_numpy()].groupby(SCORE, observed=True).size().to_dict()
    missing = {place: (n - scored.get((a, *place), 0), n - scored.get((b, *place), 0)) for place, n in rows.items()}
    found = influence(filled, at_ends=False).groupby(["task", "metric"], observed=True)
    return PairItems(a, b, dict(iter(found)), asked.to_dict(), missing)


def difference(items: PairItems, parts: Parts, draws: int = DRAWS, seed: int = 0) -> Pair | None:
    """The first run minus the second in an average of scores.

    The variance is that of the clusters' differences times 1 + 2 / k, of k clusters that differ: for right and wrong
    answers Bonett and Price's (2012), one more pair each way. p is McNemar's mid-p for right and wrong answers of one
    task without clusters, else of a permutation that swaps the runs on random clusters; of corpus scores Student's.

    Args:
        items: Of both runs.
        parts: The scores and their weights.
        draws: Random swaps of the permutation test.

    Returns:
        None where a run lacks a part, or a missing item has no worst score.
    """
    import pandas
    from scipy.special import stdtr

    a, b = items.a, items.b
    if any(place not in items.found for place in parts):
        return None
    table, found = average(pandas.concat([items.found[place] for place in parts], ignore_index=True), parts)
    values = table["value"].reindex([a, b]).to_numpy()
    if not np.isfinite(values).all():
        return None
    gap = float(values[0] - values[1])
    num, den = (wide(found, name, CELL, [a, b]) for name in ("num", "den"))
    cells = found.drop_duplicates(CELL).sort_values(CELL)
    cluster = np.unique(cells["cluster"].astype(str), return_inverse=True)[1]
    unlike = (np.abs(num[:, 0] - num[:, 1]) > TINY) | (den[:, 0] != den[:, 1])
    differ, asked = len(np.unique(cluster[unlike])), sum(items.asked[place] for place in parts)
    missing = (sum(items.missing[place][0] for place in parts), sum(items.missing[place][1] for place in parts))
    clusters = int(cluster.max()) + 1
    if not differ:
        return Pair(gap, None, None, None, 1.0, "identical", asked, clusters, 0, missing)
    adds = wide(found, "add", ["cluster"], [a, b])
    error = math.sqrt(float(((adds[:, 0] - adds[:, 1]) ** 2).sum()) * (1 + 2 / differ))
    df = _least_df(table)
    pair_of = Pair(gap, *_interval(gap, error, df, parts), 1.0, "jackknife", asked, clusters, differ, missing)
    if any(of_sums(*place) for place in parts):
        return pair_of._replace(p=float(2 * stdtr(df, -abs(gap) / error)) if error > TINY else 1.0)
    if len(parts) == 1 and len(num) == asked and np.isin(num, (0, 1)).all() and (den == 1).all():
        first, second = (int((sign * (num[:, 0] - num[:, 1]) > 0).sum()) for sign in (1, -1))
        return pair_of._replace(p=mcnemar(first, second), test="McNemar mid-p")
    scores = list(cells.groupby(["task", "metric"], observed=True, sort=False).indices.values())
    p = permutation(np.stack([num, den]), cluster, scores, cells["weight"].to_numpy(), gap, draws, seed)
    return pair_of._replace(p=p, test="permutation")


def _interval(gap: float, error: float, df: float, parts: Parts) -> tuple[float | None, float | None, float | None]:
    """Error, low and high of a difference within what scores can differ; None where the clusters do not tell them."""
    if not error > TINY:  # a score of a single cluster has none; clusters that all differ alike do not vary
        return None, None, None
    from scipy.special import stdtrit

    reach = float(stdtrit(df, 0.975)) * error
    worst, best = ends(*next(iter(parts)))
    widest = abs(best - worst) if np.isfinite(best - worst) else math.inf
    return error, max(gap - reach, -widest), min(gap + reach, widest)


def _least_df(table: "pandas.DataFrame") -> float:
    """The least degrees of freedom of some averages, at least 1."""
    known = table["df"][table["df"] >= 1]
    return float(known.min()) if len(known) else 1e9


def mcnemar(only_first: int, only_second: int) -> float:
    """McNemar's mid-p, two-sided (Fagerland, Lydersen and Laake 2013), of items that only one of two has right."""
    from scipy.special import bdtr

    fewer, pairs = min(only_first, only_second), only_first + only_second
    if only_first == only_second:
        return 1.0
    less = bdtr(fewer - 1, pairs, 0.5) if fewer else 0.0
    return float(bdtr(fewer, pairs, 0.5) + less)  # twice the tail less the point: the mid-p


def permutation(
    sums: Floats,
    cluster: NDArray[np.int64],
    scores: list[NDArray[np.int64]],
    weight: Floats,
    gap: float,
    draws: int,
    seed: int,
) -> float:
    """The two-sided p-value of swapping two runs on random clusters; ties count half, and no difference is 1.

    Args:
        sums: [2, cells, 2] num and den of each cell (a cluster of one score) in each run.
        cluster: [cells] the number of its cluster, which is swapped in all scores at once.
        scores: The cells of each score.
        weight: [cells] of its score in the average.
        gap: The difference that was seen.
    """
    if abs(gap) <= 1e-9:
        return 1.0
    generator = np.random.default_rng(seed)
    further = alike = 0
    for start in range(0, draws, AT_ONCE):
        size = (min(AT_ONCE, draws - start), int(cluster.max()) + 1)
        swap = generator.integers(0, 2, size, np.int8).astype(np.float64)
        drawn = np.zeros(len(swap))
        for rows in scores:
            one = sums[:, rows]
            moved = swap[:, cluster[rows]] @ (one[..., 1] - one[..., 0]).T
            (left, left_den), (right, right_den) = (one[..., 0].sum(1) + moved).T, (one[..., 1].sum(1) - moved).T
            with np.errstate(invalid="ignore", divide="ignore"):
                drawn += weight[rows[0]] * (left / left_den - right / right_den)
        size_of = np.abs(drawn)
        further += int((size_of > abs(gap) + 1e-9).sum())
        alike += int((np.abs(size_of - abs(gap)) <= 1e-9).sum())
    return min(1.0, (1 + further + alike / 2) / (draws + 1))


def ranks(
    items: "pandas.DataFrame", parts: Parts, level: float = 0.95, draws: int = 4000, seed: int = 0
) -> list[Ranked]:
    """Runs by an average, with intervals of ranks that hold all together (Mogstad, Romano, Shaikh and Wilhelm 2024).

    Two runs are told apart where their studentised difference exceeds the level's quantile of the largest of all pairs.
    A multiplier bootstrap with normal multipliers draws the averages from a normal distribution with the covariance of
    the clusters' influences: that is drawn, over a chi of few clusters (Student). Variances are those of `pair`.

    Args:
        items: The frame of runs that may be compared.
        parts: The scores and their weights; their metrics have one range.

    Returns:
        The best first. A run that lacks a part is absent, as are all where a missing item has no worst score.
    """
    chosen = fill(items_of(items, parts))
    if len(chosen[["task", "metric"]].drop_duplicates()) < len(parts):
        return []
    scores = mean(chosen, parts)
    table, found = average(influence(chosen, at_ends=False), parts)
    table = table[table["value"].notna()]
    if table.empty:
        return []
    runs = list(table.index)
    found = found[found["run"].isin(runs)]
    adds = wide(found, "add", ["cluster"], runs)
    differ = differing(*(wide(found, name, CELL, runs) for name in ("num", "den")))
    worst, best = ends(*next(iter(parts)))
    score = table["value"].to_numpy() * np.sign(best - worst)
    known = np.isfinite(adds).all()  # a score of a single cluster has no error: no run is told apart
    nobody = np.zeros((len(runs), len(runs)), bool)
    better = told_apart(score, adds, differ, _least_df(table), level, draws, seed) if known else nobody
    rank = 1 + (score[None, :] > score[:, None] + TINY).sum(axis=1)
    low, high = 1 + better.sum(axis=0), len(runs) - better.sum(axis=1)
    found_ranks = [
        Ranked(run, scores[run], *map(int, place)) for run, *place in zip(runs, rank, low, high, strict=True)
    ]
    return sorted(found_ranks, key=lambda one: (one.rank, one.run))


def told_apart(
    score: Floats, adds: Floats, differ: NDArray[np.int64], df: float, level: float, draws: int, seed: int
) -> NDArray[np.bool_]:
    """[M, M] whether the run of a row is better than that of a column, all pairs at once at the level.

    Args:
        score: [M], higher is better.
        adds: [clusters, M] influences on the averages.
        differ: [M, M] cells in which two runs differ.
        df: Degrees of freedom.
    """
    covariance = adds.T @ adds
    spread = np.diag(covariance)
    error = np.sqrt((np.add.outer(spread, spread) - 2 * covariance).clip(0))
    generator = np.random.default_rng(seed)
    values, vectors = np.linalg.eigh(covariance)
    drawn = (vectors * np.sqrt(values.clip(0))) @ generator.standard_normal((len(score), draws))
    drawn /= np.sqrt(generator.chisquare(df, draws) / df)
    largest = np.zeros(draws)
    for one, other in zip(*np.nonzero(np.triu(differ, 1)), strict=True):
        np.maximum(largest, np.abs(drawn[one] - drawn[other]) / max(error[one, other], TINY), out=largest)
    reach = error * np.sqrt(1 + 2 / np.maximum(differ, 1)) * np.quantile(largest, level)
    return (np.subtract.outer(score, score) > reach) & (differ > 0)


def differing(num: Floats, den: Floats) -> NDArray[np.int64]:
    """[M, M] the rows, of [rows, M] sums, in which two runs differ."""
    columns = range(num.shape[1])
    return np.array([((num[:, [at]] != num) | (den[:, [at]] != den)).sum(axis=0) for at in columns])
