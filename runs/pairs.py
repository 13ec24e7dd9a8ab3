"""Differences between runs on the same items, and ranks of runs: both with missing items as the worst score."""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cultureval.metrics.statistics import TINY, Floats
from cultureval.runs.frame import SCORE, Parts, ends, of_sums
from cultureval.runs.scores import Influence, Place, Score, average, complete, fill, influences, items_of, mean

if TYPE_CHECKING:
    import pandas

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
        found: `influences` of both runs.
        asked: (task, metric) -> items that count in either run's score.
        missing: (task, metric) -> items that each run has no score of.
    """

    a: str
    b: str
    found: dict[Place, Influence]
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
    return PairItems(a, b, influences(filled, alike=False), asked.to_dict(), missing)


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
    from scipy.special import stdtr

    both = complete(items.found, parts)
    if len(both) < 2:
        return None
    ours, theirs = both[items.a], both[items.b]
    left, right = (average(own, list(parts.values())) for own in (ours, theirs))
    gap = left.value - right.value
    cells = [aligned(pair, [one.sums for one in pair]) for pair in zip(ours, theirs, strict=True)]
    unlike = [clusters[(np.abs(sums[:, 0] - sums[:, 1]) > TINY).any(axis=1)] for clusters, sums in cells]
    differ, asked = len(np.unique(np.concatenate(unlike))), sum(items.asked[place] for place in parts)
    missing = (sum(items.missing[place][0] for place in parts), sum(items.missing[place][1] for place in parts))
    clusters, adds = aligned([left, right], [left.add, right.add])
    if not differ:
        return Pair(gap, None, None, None, 1.0, "identical", asked, len(clusters), 0, missing)
    error = math.sqrt(float(np.square(adds[:, 0] - adds[:, 1]).sum()) * (1 + 2 / differ))
    df = _least_df([left, right])
    pair_of = Pair(gap, *_interval(gap, error, df, parts), 1.0, "jackknife", asked, len(clusters), differ, missing)
    if any(of_sums(*place) for place in parts):
        return pair_of._replace(p=float(2 * stdtr(df, -abs(gap) / error)) if error > TINY else 1.0)
    sums = cells[0][1]
    if len(parts) == 1 and len(sums) == asked and np.isin(sums[..., 0], (0, 1)).all() and (sums[..., 1] == 1).all():
        first, second = (int((sign * (sums[:, 0, 0] - sums[:, 1, 0]) > 0).sum()) for sign in (1, -1))
        return pair_of._replace(p=mcnemar(first, second), test="McNemar mid-p")
    return pair_of._replace(p=permutation(cells, list(parts.values()), gap, draws, seed), test="permutation")


def aligned(found: Sequence[Influence], values: Sequence[Floats]) -> tuple[NDArray[np.int64], Floats]:
    """The clusters [G] of a score in M runs, and values of their clusters as [G, M, ...], 0 where a run has none."""
    names, rows = np.unique(np.concatenate([one.clusters for one in found]), return_inverse=True)
    table = np.zeros((len(names), len(found), *values[0].shape[1:]))
    table[rows, np.repeat(np.arange(len(found)), [len(one.clusters) for one in found])] = np.concatenate(values)
    return names, table


def _interval(gap: float, error: float, df: float, parts: Parts) -> tuple[float | None, float | None, float | None]:
    """Error, low and high of a difference within what scores can differ; None where the clusters do not tell them."""
    if not error > TINY:  # a score of a single cluster has none; clusters that all differ alike do not vary
        return None, None, None
    from scipy.special import stdtrit

    reach = float(stdtrit(df, 0.975)) * error
    worst, best = ends(*next(iter(parts)))
    widest = abs(best - worst) if np.isfinite(best - worst) else math.inf
    return error, max(gap - reach, -widest), min(gap + reach, widest)


def _least_df(averages: Iterable[Influence]) -> float:
    """The least degrees of freedom of some averages, at least 1."""
    return min((one.df for one in averages if one.df >= 1), default=1e9)


def mcnemar(only_first: int, only_second: int) -> float:
    """McNemar's mid-p, two-sided (Fagerland, Lydersen and Laake 2013), of items that only one of two has right."""
    from scipy.special import bdtr

    fewer, pairs = min(only_first, only_second), only_first + only_second
    if only_first == only_second:
        return 1.0
    less = bdtr(fewer - 1, pairs, 0.5) if fewer else 0.0
    return float(bdtr(fewer, pairs, 0.5) + less)  # twice the tail less the point: the mid-p


def permutation(
    cells: Sequence[tuple[NDArray[np.int64], Floats]], weights: Sequence[float], gap: float, draws: int, seed: int
) -> float:
    """The two-sided p-value of swapping two runs on random clusters; ties count half, and no difference is 1.

    Args:
        cells: Of each score the numbers of its clusters [G], which are swapped in all scores at once, and the num and
            den of each in each run [G, 2, 2].
        weights: Of the scores.
        gap: The difference that was seen.
    """
    if abs(gap) <= 1e-9:
        return 1.0
    generator, names = np.random.default_rng(seed), np.unique(np.concatenate([clusters for clusters, _ in cells]))
    further = alike = 0
    for start in range(0, draws, AT_ONCE):
        swap = generator.integers(0, 2, (min(AT_ONCE, draws - start), len(names)), np.int8).astype(np.float64)
        drawn = np.zeros(len(swap))
        for (clusters, sums), weight in zip(cells, weights, strict=True):
            moved = swap[:, np.searchsorted(names, clusters)] @ (sums[:, 1] - sums[:, 0])
            left, right = sums[:, 0].sum(axis=0) + moved, sums[:, 1].sum(axis=0) - moved
            with np.errstate(invalid="ignore", divide="ignore"):
                drawn += weight / math.fsum(weights) * (left[:, 0] / left[:, 1] - right[:, 0] / right[:, 1])
        further += int((np.abs(drawn) > abs(gap) + 1e-9).sum())
        alike += int((np.abs(np.abs(drawn) - abs(gap)) <= 1e-9).sum())
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
    found = complete(influences(chosen, alike=False), parts)
    if not found:
        return []
    runs, averages = list(found), [average(own, list(parts.values())) for own in found.values()]
    _, adds = aligned(averages, [one.add for one in averages])
    sums = [aligned(part, [one.sums for one in part])[1] for part in zip(*found.values(), strict=True)]
    differ = np.sum([differing(one) for one in sums], axis=0)
    worst, best = ends(*next(iter(parts)))
    score = np.array([one.value for one in averages]) * np.sign(best - worst)
    known = np.isfinite(adds).all()  # a score of a single cluster has no error: no run is told apart
    nobody = np.zeros((len(runs), len(runs)), bool)
    better = told_apart(score, adds, differ, _least_df(averages), level, draws, seed) if known else nobody
    rank = 1 + (score[None, :] > score[:, None] + TINY).sum(axis=1)
    scores = mean(chosen, parts)
    low, high = 1 + better.sum(axis=0), len(runs) - better.sum(axis=1)
    places = zip(runs, rank, low, high, strict=True)
    return sorted(
        (Ranked(run, scores[run], *map(int, place)) for run, *place in places), key=lambda one: (one.rank, one.run)
    )


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


def differing(sums: Floats) -> NDArray[np.int64]:
    """[M, M] the rows of sums [rows, M, P] in which two runs differ."""
    return np.array([(sums[:, [at]] != sums).any(axis=2).sum(axis=0) for at in range(sums.shape[1])])
