"""Differences and ranks of runs on the same items; a missing item counts as the worst score."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cultureval.metrics.statistics import TINY, Floats
from cultureval.runs.frame import Parts, ends, of_sums
from cultureval.runs.scores import Influence, Score, average, complete, fill, influences, items_of, mean

if TYPE_CHECKING:
    import pandas

DRAWS = 10_000  # random swaps of a permutation test
AT_ONCE = 250  # of them
Cells = tuple[NDArray[np.int64], Floats]  # of a score: ids of its clusters, and their num and den in two runs


class Pair(NamedTuple):
    """A difference of two runs on the same items.

    Attributes:
        difference: The first minus the second.
        error: Its standard error; None where no item differs, or it cannot be estimated.
        low: Lower end of the 95% confidence interval; `high` is its upper end; None without an error.
        p: Two-sided p-value.
        test: "McNemar mid-p", "permutation", "jackknife" (corpus scores) or "identical".
        items: Items that count in the score of at least one run.
        clusters: Clusters of these items.
        differ: Clusters on which the runs differ.
        missing: Number of items without a score in each run, which count as the worst.
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
    """A run with its score (missing items count as the worst), rank (1: the best), and 95% interval of the rank."""

    run: str
    score: Score
    rank: int
    low: int
    high: int


def pair(items: "pandas.DataFrame", a: str, b: str, parts: Parts, draws: int = DRAWS, seed: int = 0) -> Pair | None:
    """The first run minus the second in an average of scores, on the items of either run.

    The variance is the clusters' variance of differences times 1 + 2 / k, with k clusters that differ. For right and
    wrong answers this is Bonett and Price's (2012): one more pair each way. p is McNemar's mid-p for right and wrong
    answers of one task without clusters, and Student's for corpus scores. Otherwise a permutation test swaps the runs
    on random clusters.

    Args:
        items: The frame.
        parts: The scores and their weights.
        draws: Random swaps of the permutation test.

    Returns:
        None where a run has no score of a part, or a missing item has no worst score.
    """
    from scipy.special import stdtr, stdtrit

    of_parts = items_of(items[items["run"].isin([a, b])], parts)
    filled = fill(of_parts)
    both = complete(influences(filled, alike=False), parts)
    if len(both) < 2:
        return None
    left, right = (average(both[run], list(parts.values())) for run in (a, b))
    gap = left.value - right.value
    cells = [aligned(two, [part.sums for part in two]) for two in zip(both[a], both[b], strict=True)]
    unlike = [clusters[(np.abs(sums[:, 0] - sums[:, 1]) > TINY).any(axis=1)] for clusters, sums in cells]
    differ, (asked, missing) = len(np.unique(np.concatenate(unlike))), _asked_and_missing(of_parts, filled, a, b)
    clusters, adds = aligned([left, right], [left.add, right.add])
    if not differ:
        return Pair(gap, None, None, None, 1.0, "identical", asked, len(clusters), 0, missing)
    error = math.sqrt(float(np.square(adds[:, 0] - adds[:, 1]).sum()) * (1 + 2 / differ))
    corpus = any(of_sums(*place) for place in parts)
    p_value, test = (1.0, "jackknife") if corpus else _tested(cells, list(parts.values()), gap, asked, draws, seed)
    if not error > TINY:  # a single cluster, or clusters that all differ alike
        return Pair(gap, None, None, None, p_value, test, asked, len(clusters), differ, missing)
    df, (worst, best) = _least_df([left, right]), ends(*next(iter(parts)))
    reach, widest = float(stdtrit(df, 0.975)) * error, abs(best - worst) if np.isfinite(best - worst) else math.inf
    p_value = float(2 * stdtr(df, -abs(gap) / error)) if corpus else p_value
    interval = max(gap - reach, -widest), min(gap + reach, widest)
    return Pair(gap, error, *interval, p_value, test, asked, len(clusters), differ, missing)


def _asked_and_missing(
    chosen: "pandas.DataFrame", filled: "pandas.DataFrame", a: str, b: str
) -> tuple[int, tuple[int, int]]:
    """The number of items that count in either score, and of items without a score in each run."""
    asked = {*_items(filled[(filled["den"] > 0).to_numpy()])}
    scored = chosen[(chosen["num"].notna() | (chosen["den"] == 0)).to_numpy()]
    first, second = (len(asked.difference(_items(scored[(scored["run"] == run).to_numpy()]))) for run in (a, b))
    return len(asked), (first, second)


def _items(frame: "pandas.DataFrame") -> Iterator[tuple[str, str]]:
    """(Task, item) of each row of a frame."""
    return frame[["task", "item"]].itertuples(index=False, name=None)


def _tested(
    cells: Sequence[Cells], weights: Sequence[float], gap: float, asked: int, draws: int, seed: int
) -> tuple[float, str]:
    """The p-value and the test's name; arguments as of `permutation`, and the number of asked items."""
    sums = cells[0][1]
    if len(cells) == 1 and len(sums) == asked and np.isin(sums[..., 0], (0, 1)).all() and (sums[..., 1] == 1).all():
        first, second = (int((sign * (sums[:, 0, 0] - sums[:, 1, 0]) > 0).sum()) for sign in (1, -1))
        return mcnemar(first, second), "McNemar mid-p"
    return permutation(cells, weights, gap, draws, seed), "permutation"


def aligned(found: Sequence[Influence], values: Sequence[Floats]) -> tuple[NDArray[np.int64], Floats]:
    """The clusters [G] of a score in M runs, and values of their clusters as [G, M, ...], 0 where a run has none."""
    names, rows = np.unique(np.concatenate([score.clusters for score in found]), return_inverse=True)
    table = np.zeros((len(names), len(found), *values[0].shape[1:]))
    table[rows, np.repeat(np.arange(len(found)), [len(score.clusters) for score in found])] = np.concatenate(values)
    return names, table


def _least_df(averages: Iterable[Influence]) -> float:
    """The least degrees of freedom of averages that have at least 1."""
    return min((score.df for score in averages if score.df >= 1), default=1e9)


def mcnemar(only_first: int, only_second: int) -> float:
    """McNemar's two-sided mid-p (Fagerland, Lydersen and Laake 2013), from items that only one run has right."""
    from scipy.stats import binom

    fewer, pairs = min(only_first, only_second), only_first + only_second
    if only_first == only_second:
        return 1.0
    return float(2 * binom.cdf(fewer, pairs, 0.5) - binom.pmf(fewer, pairs, 0.5))


def permutation(cells: Sequence[Cells], weights: Sequence[float], gap: float, draws: int, seed: int) -> float:
    """The two-sided p-value of swapping two runs on random clusters; ties count half; 1 for no difference.

    Args:
        cells: For each score the ids of its clusters [G], swapped in all scores at once, and their num and den in each
            run [G, 2, 2].
        weights: Of the scores.
        gap: The observed difference.
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
    """Runs ranked by an average, with simultaneous intervals of ranks (Mogstad, Romano, Shaikh and Wilhelm 2024).

    A pair differs significantly where its studentised difference exceeds a quantile of the largest difference of all
    pairs. A multiplier bootstrap draws the averages from a normal distribution with the covariance of the clusters'
    influences, divided by a chi variable where clusters are few (Student). Variances are as in `pair`.

    Args:
        items: The frame of runs that may be compared.
        parts: The scores and their weights; their metrics have one range.

    Returns:
        The best first. A run without a score of a part is absent; [] where a missing item has no worst score.
    """
    chosen = fill(items_of(items, parts))
    found = complete(influences(chosen, alike=False), parts)
    if not found:
        return []
    runs, averages = list(found), [average(parts_of_run, list(parts.values())) for parts_of_run in found.values()]
    _, adds = aligned(averages, [score.add for score in averages])
    sums = [aligned(part, [score.sums for score in part])[1] for part in zip(*found.values(), strict=True)]
    differ = np.sum([differing(cells) for cells in sums], axis=0)
    worst, best = ends(*next(iter(parts)))
    score = np.array([of_run.value for of_run in averages]) * np.sign(best - worst)
    known = np.isfinite(adds).all()  # a score of a single cluster has no error: no pair differs
    nobody = np.zeros((len(runs), len(runs)), bool)
    better = significantly_better(score, adds, differ, _least_df(averages), level, draws, seed) if known else nobody
    rank = 1 + (score[None, :] > score[:, None] + TINY).sum(axis=1)
    scores = mean(chosen, parts)
    low, high = 1 + better.sum(axis=0), len(runs) - better.sum(axis=1)
    places = zip(runs, rank, low, high, strict=True)
    return sorted(
        (Ranked(run, scores[run], *map(int, place)) for run, *place in places),
        key=lambda ranked: (ranked.rank, ranked.run),
    )


def significantly_better(
    score: Floats, adds: Floats, differ: NDArray[np.int64], df: float, level: float, draws: int, seed: int
) -> NDArray[np.bool_]:
    """[M, M] whether the row's run is better than the column's, at a level for all pairs together.

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
    for first, second in zip(*np.nonzero(np.triu(differ, 1)), strict=True):
        np.maximum(largest, np.abs(drawn[first] - drawn[second]) / max(error[first, second], TINY), out=largest)
    reach = error * np.sqrt(1 + 2 / np.maximum(differ, 1)) * np.quantile(largest, level)
    return (np.subtract.outer(score, score) > reach) & (differ > 0)


def differing(sums: Floats) -> NDArray[np.int64]:
    """[M, M] number of rows of sums [rows, M, P] in which two runs differ."""
    return np.array([(sums[:, [at]] != sums).any(axis=2).sum(axis=0) for at in range(sums.shape[1])])
