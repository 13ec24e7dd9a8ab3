"""Two models on the same items: the difference of their scores with an interval, tests of it, and a test's power.

A score is a function of sums over items: a mean (sum and number), a ratio (CFHR: fooled items over items with a correct
Q+), a corpus score (BLEU: sums of n-gram counts). All is paired: what is drawn or swapped is an item, with the answers
of both, or a whole cluster of items that share an image, a poem or a passage.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cultureval.metrics.proportions import newcombe_interval, paired_interval, wilson_interval
from cultureval.metrics.resampling import (
    LEAST_DEFINED,
    AverageDraws,
    bootstrap_sums,
    cluster_names,
    cluster_sums,
    drawn_together,
    numbers_of,
    percentile_tail,
    random_subset_sums,
)

DRAWS = 10_000
TINY = 1e-10  # differences below it are rounding
FEW_DIFFER = 20  # clusters that differ, below which a bootstrap knows too little of how much they do
Floats = NDArray[np.float64]
ScoreOfSums = Callable[[Floats], Floats]  # sums [..., P] -> scores [...]
Interval = tuple[float | None, float | None, float | None, str]  # low, high, standard error, name


def ratio(sums: Floats) -> Floats:
    """The first sum over the second; nan where that is 0. With 1 for each item as the second, the mean."""
    return np.divide(sums[..., 0], sums[..., 1], out=np.full(sums.shape[:-1], np.nan), where=sums[..., 1] != 0)


@dataclass(frozen=True)
class PairedSubset:
    """The items of one subset with what two models' scores are made of.

    Attributes:
        first: [N, P] of the first model, summed over items before `score`.
        second: [N, P] of the second model, in the same order of items.
        score: The score of sums.
        clusters: [N] what an item shares with others, of this subset or another; None, or None for an item: nothing.
        weight: Of the subset in an average, relative to the others'.
    """

    first: ArrayLike
    second: ArrayLike
    score: ScoreOfSums = ratio
    clusters: Sequence[Hashable] | None = None
    weight: float = 1.0


@dataclass(frozen=True)
class PairedResult:
    """A difference of two models, the first minus the second.

    Attributes:
        difference: First minus second; nan where one is undefined.
        low: Lower bound of the 95% interval; None where it is unknown (a subset with a single cluster).
        high: Upper bound.
        stderr: Spread of the bootstrap, or the adjusted Wald interval's; None where it is unknown.
        p_value: Two-sided; None where it is unknown, 1 for identical models.
        p_exact: McNemar's exact p-value, which rejects more rarely than its level says; None for other tests.
        test: What the p-value is of: "McNemar mid-p", "permutation", or "" without one.
        clusters: Their number; that of items where they share nothing.
        identical: Whether the two are the same on every item.
        flips: Of right and wrong answers without clusters the items that only the first has right, and only the
            second; None for other scores.
        draws: Their number, of the bootstrap and of the permutation test.
        interval: What the interval is: "Bonett-Price", "bootstrap", "bootstrap or Bonett-Price of clusters" (the
            lower low and the higher high), "Newcombe", "Wilson", or "" without one.
        undefined: Share of the resamples without a difference, since a ratio of few items is often not defined: above
            1 - `LEAST_DEFINED` there is no test, and an interval only of one ratio (Newcombe's).
    """

    first: float
    second: float
    difference: float
    low: float | None
    high: float | None
    stderr: float | None
    p_value: float | None
    p_exact: float | None
    test: str
    items: int
    clusters: int
    identical: bool
    flips: tuple[int, int] | None
    seed: int
    draws: int
    interval: str
    undefined: float = 0.0


def compare_paired(subsets: Sequence[PairedSubset], draws: int = DRAWS, seed: int = 0) -> PairedResult:
    """The difference of two models' weighted average scores over subsets.

    The interval is of a bootstrap over clusters within subsets (those that share clusters are drawn together), its
    deviations enlarged by sqrt(G / (G - 1)) and its percentiles those of Student's distribution (Hesterberg, The
    American Statistician 69, 2015, section 5.3), of several subsets with Satterthwaite's degrees of freedom. The
    p-value of right and wrong answers of one subset without clusters is McNemar's mid-p (Fagerland, Lydersen and
    Laake, BMC Medical Research Methodology 13, 2013), which has the level that it says, while the exact one
    (Psychometrika 12, 1947) stays below it; else that of approximate randomisation (Noreen 1989), which swaps the two
    models on random clusters: 1 + the swaps that differ more, and half of those that differ as much, over draws + 1.
    Bounds of scores between 0 and 1 stay within -1 and 1; of ratios that no draw changes (none fooled, of other
    numbers of items) the interval is Newcombe's. Of right and wrong answers of one subset without clusters it is
    Bonett and Price's adjusted Wald interval (`paired_interval`); with clusters, or of several subsets, where fewer
    than `FEW_DIFFER` clusters and fewer than half of them differ, it reaches at least as far as theirs with clusters
    in the place of items.

    Args:
        subsets: At least one.
        draws: B, of each.

    Raises:
        ValueError: There is no subset or item, shapes differ, or a number is not finite.
    """
    tables = [_checked(subset) for subset in subsets]
    if not tables:
        raise ValueError("there is no subset")
    shares = np.array([subset.weight for subset in subsets]) / sum(subset.weight for subset in subsets)
    generator = np.random.default_rng(seed)
    groups = drawn_together([names for _, _, names in tables])
    spread = AverageDraws(draws, 1, len(groups))
    scores, swapped = np.zeros(2), np.zeros(draws)
    counts: list[int] = []
    differing = 0  # clusters of subsets in whose scores the two differ
    for members in groups:
        numbers = numbers_of([tables[place][2] for place in members])
        drawn = _Group([(tables[place], shares[place], subsets[place].score) for place in members], numbers)
        scores += drawn.scores
        spread.add(drawn.spread(draws, generator)[:, None], float(shares[members].sum()), len(numbers))
        counts.append(len(numbers))
        differing += len(numbers) * bool(abs(np.subtract(*drawn.scores)) > TINY)
        swapped += drawn.swapped(draws, generator)
    difference = float(scores[0] - scores[1])
    clusters = sum(counts)
    freedom = spread.finish(generator) if min(counts) > 1 else 0.0
    deviations = spread.total[:, 0]
    identical = all(np.array_equal(first, second) for first, second, _ in tables)
    flips = _flips(subsets, tables, clusters)
    found = _interval(difference, deviations, differing, freedom)
    if all(subset.score is ratio for subset in subsets):
        found = _of_ratios(found, shares, tables, identical, flips)
    undefined = 1 - float(np.isfinite(deviations).mean())
    tested = _p_value(difference, swapped, clusters, identical, flips)
    if undefined > 1 - LEAST_DEFINED:
        one_ratio = len(tables) == 1 and subsets[0].score is ratio and _within_one(tables) and _counting(tables)
        found = (*_of_constant_ratios(*tables[0][:2]), None, "Newcombe") if one_ratio else (None, None, None, "")
        tested = None, None, ""
    low, high, error, interval = found
    p_value, p_exact, test = tested
    items = sum(len(first) for first, _, _ in tables)
    return PairedResult(
        *(float(score) for score in scores),
        difference,
        low,
        high,
        error,
        p_value,
        p_exact,
        test,
        items,
        clusters,
        identical,
        flips,
        seed,
        draws,
        interval,
        undefined,
    )


def mcnemar(only_first: int, only_second: int) -> tuple[float, float]:
    """McNemar's two-sided test: (mid-p, exact p); both 1 without an item that only one of the two has right."""
    from scipy.stats import binom, binomtest

    pairs = only_first + only_second
    if not pairs:
        return 1.0, 1.0
    fewer = min(only_first, only_second)
    mid_p = float(2 * binom.cdf(fewer, pairs, 0.5) - binom.pmf(fewer, pairs, 0.5))
    return 1.0 if only_first == only_second else mid_p, float(binomtest(only_first, pairs).pvalue)


def smallest_difference(items: float, discordant: float, tests: int = 1, power: float = 0.8) -> float | None:
    """The smallest difference of two accuracies that a paired test finds with the given power.

    It solves d = (z_a sqrt(v) + z_b sqrt(v - d^2)) / sqrt(n) (Connor, Biometrics 43, 1987), where v is the variance of
    an item's difference: for accuracies the share of items that exactly one of the two has right.

    Args:
        items: n; with clusters the effective number, n over the design effect.
        discordant: v, above 0; of other scores than accuracies it may be more than 1.
        tests: Of the family; each is tested at 0.05 / `tests` (Bonferroni, the worst case of Holm).
        power: Chance of finding it.

    Returns:
        The difference, on the scale of an item's score; None where there are so few items that no difference of that
        variance is found.
    """
    from scipy.stats import norm

    significant, found = norm.isf(0.025 / tests), norm.ppf(power)
    if items < significant**2 + 1:  # even if all discordant items were on one side
        return None
    # the root of that equation, which is quadratic in d
    spread = items + found**2
    difference = math.sqrt(discordant) * (significant * math.sqrt(items) + found * math.sqrt(spread - significant**2))
    return float(difference / spread)


class _Group:
    """Subsets that are drawn together: sums over their clusters, of both models side by side."""

    def __init__(self, members: Sequence[tuple], numbers: dict[Hashable, int]) -> None:
        self.weights = [(share, score) for _, share, score in members]
        sides: tuple[list[Floats], list[Floats]] = ([], [])
        for (first, second, names), _, _ in members:
            rows = [numbers[name] for name in names]
            for side, table in zip(sides, (first, second), strict=True):
                side.append(cluster_sums(table, rows, len(numbers)))
        self.ends = np.cumsum([table.shape[1] for table in sides[0]])[:-1]
        self.first, self.second = (np.concatenate(side, axis=1) for side in sides)
        self.totals = self.first.sum(axis=0), self.second.sum(axis=0)
        self.scores = np.array([self._average(total) for total in self.totals])

    def _average(self, sums: Floats) -> Floats:
        parts = np.split(sums, self.ends, axis=-1)
        return sum(share * score(part) for (share, score), part in zip(self.weights, parts, strict=True))

    def spread(self, draws: int, generator: np.random.Generator) -> Floats:
        """Deviations of the difference in bootstrap draws."""
        count = len(self.first)
        if count < 2:
            return np.zeros(draws)
        drawn = bootstrap_sums(np.concatenate([self.first, self.second], axis=1), draws, generator)
        first, second = np.split(drawn, 2, axis=1)
        found = self._average(first) - self._average(second)
        return (found - (self.scores[0] - self.scores[1])) * math.sqrt(count / (count - 1))

    def swapped(self, draws: int, generator: np.random.Generator) -> Floats:
        """The difference where the two models are swapped on random clusters."""
        moved = random_subset_sums(self.second - self.first, draws, generator)
        return self._average(self.totals[0] + moved) - self._average(self.totals[1] - moved)


def _checked(subset: PairedSubset) -> tuple[Floats, Floats, list[Hashable]]:
    first, second = np.asarray(subset.first, np.float64), np.asarray(subset.second, np.float64)
    if first.ndim != 2 or not first.size or first.shape != second.shape:
        raise ValueError(f"two tables of the same items are needed, not of shapes {first.shape} and {second.shape}")
    if not (np.isfinite(first).all() and np.isfinite(second).all()) or not subset.weight > 0:
        raise ValueError("what scores are made of must be finite, and weights positive")
    return first, second, cluster_names(subset.clusters, len(first))


def _interval(difference: float, spread: Floats, clusters: int, freedom: float) -> Interval:
    """Low, high, standard error and name; where no draw varies, Wilson's bound of the share of clusters that differ."""
    known = spread[np.isfinite(spread)]
    if math.isnan(difference) or not freedom or len(known) < 2:
        return None, None, None, ""
    if np.ptp(known) < TINY:
        least = wilson_interval(clusters, clusters)[0] if abs(difference) > TINY else 1.0
        low, high = sorted((difference * least, difference))
        return low, high, 0.0, "Wilson"
    tail = percentile_tail(freedom)
    low, high = difference + np.quantile(known, [tail, 1 - tail])
    return float(low), float(high), float(known.std(ddof=1)), "bootstrap"


def _of_ratios(
    found: Interval, shares: Floats, tables: Sequence[tuple], identical: bool, flips: tuple[int, int] | None
) -> Interval:
    """The interval of ratios between 0 and 1, which holds where few items or none differ; of other ratios as found."""
    low, high, error, name = found
    if low is None or high is None or not _within_one(tables):
        return found
    if flips is not None:
        return *paired_interval(*flips, len(tables[0][0])), "Bonett-Price"
    low, high = max(low, -1.0), min(high, 1.0)
    if all(_right_or_wrong(first) and _right_or_wrong(second) for first, second, _ in tables):
        least, most, wide, differ, clusters = _of_clusters(shares, tables)
        if differ < min(FEW_DIFFER, clusters / 2):
            return min(low, least), max(high, most), max(error or 0.0, wide), "bootstrap or Bonett-Price of clusters"
    if low == high and not identical and len(tables) == 1 and _counting(tables):
        return *_of_constant_ratios(*tables[0][:2]), error, "Newcombe"
    return low, high, error, name


def _of_clusters(shares: Floats, tables: Sequence[tuple]) -> tuple[float, float, float, int, int]:
    """Bonett and Price's interval and error as if each cluster were one item; how many clusters differ, and are there.

    Subsets of other weights or numbers of clusters count as so many as have the variance of their average.
    """
    numbers, differ = numbers_of([names for _, _, names in tables]), set()
    sums = np.zeros((len(numbers), 2))  # of the difference of the averages, and of an item's weight in them
    for share, (first, second, names) in zip(shares.tolist(), tables, strict=True):
        values = np.column_stack([first[:, 0] - second[:, 0], first[:, 1]])
        sums += share * cluster_sums(values, [numbers[name] for name in names], len(numbers)) / len(names)
        differ |= {names[row] for row in np.flatnonzero((first != second).any(axis=1))}
    gaps, sizes = sums.T
    count = 1 / float(np.square(sizes).sum())
    wins = (float(np.maximum(side, 0.0).sum()) * count for side in (gaps, -gaps))
    return *paired_interval(*wins, count), len(differ), len(numbers)


def _right_or_wrong(table: Floats) -> bool:
    """Whether every item counts once and is right or wrong."""
    return table.shape[1] == 2 and bool(np.isin(table[:, 0], (0, 1)).all() and (table[:, 1] == 1).all())


def _within_one(tables: Sequence[tuple]) -> bool:
    """Whether every ratio is between 0 and 1."""
    sides = [side for first, second, _ in tables for side in (first, second)]
    return all(((side[:, 0] >= 0) & (side[:, 0] <= side[:, 1])).all() for side in sides)


def _counting(tables: Sequence[tuple]) -> bool:
    """Whether every ratio has something in its denominator: else it is not defined, and has no interval."""
    return all(side[:, -1].sum() > 0 for first, second, _ in tables for side in (first, second))


def _of_constant_ratios(first: Floats, second: Floats) -> tuple[float, float]:
    """Newcombe's interval of two ratios that no draw changes, such as no success at all in another number of trials."""
    counts = [(int(round(hits)), int(round(trials))) for hits, trials in (first.sum(axis=0), second.sum(axis=0))]
    return newcombe_interval(*counts)


def _flips(subsets: Sequence[PairedSubset], tables: Sequence[tuple], clusters: int) -> tuple[int, int] | None:
    """Items that only the first or only the second has right; None for other scores, or with clusters."""
    (first, second, _), *others = tables
    if others or subsets[0].score is not ratio or clusters < len(first):
        return None
    if not (_right_or_wrong(first) and _right_or_wrong(second)):
        return None
    return int((first[:, 0] > second[:, 0]).sum()), int((second[:, 0] > first[:, 0]).sum())


def _p_value(
    difference: float, swapped: Floats, clusters: int, identical: bool, flips: tuple[int, int] | None
) -> tuple[float | None, float | None, str]:
    """The p-value, McNemar's exact one, and the name of the test."""
    known = swapped[np.isfinite(swapped)]
    if math.isnan(difference) or clusters < 2 or not len(known):
        return None, None, ""
    if flips is not None:
        return *mcnemar(*flips), "McNemar mid-p"
    if identical:
        return 1.0, None, "permutation"
    size, least = np.abs(known), abs(difference)
    further, alike = (size > least + TINY).sum(), (np.abs(size - least) <= TINY).sum()
    # Few clusters have few different swaps: those that differ just as much count half, as in a mid-p.
    p_value = (1 + further + alike / 2) / (len(known) + 1) if least > TINY else 1.0
    return float(p_value), None, "permutation"
