"""Agreement of raters on categories: raw agreement, Gwet's AC1 and AC2, Krippendorff's alpha, weighted kappa.

M2CQA (arXiv 2602.05437) Table 1 states AC1 and the raw agreement of its annotators; the other coefficients are for
ordered scales. Gwet's are as in his Handbook of Inter-Rater Reliability (4th edition, 2014), which no installable
package has (irrCAC needs an old scipy); alpha is Krippendorff's (2011), kappa Cohen's with quadratic weights (1968).

All of them are functions of sums over items, so that a bootstrap over items is one matrix product: its intervals cost
no more than the coefficients.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cultureval.metrics.standard_errors import bootstrap_interval

DRAWS = 1000
Ratings = Sequence[Sequence[Hashable]]
Categories = Sequence[Hashable]


def gwet_ac1(ratings: Ratings, categories: Categories) -> float:
    """Gwet's AC1: agreement of raters beyond chance (British J. of Mathematical and Statistical Psychology 61, 2008).

    AC1 = (pa - pe) / (1 - pe), with pa the raw agreement, pi_k the mean share of category k, q the number of categories
    and pe = sum over k of pi_k (1 - pi_k) / (q - 1). Any number of raters; missing ratings as in Gwet's handbook: an
    item counts in pi_k with at least one rating, in pa with at least two.

    Args:
        ratings: Shape (N, R): the category that each of R raters gave each of N items; None or nan is not rated.
        categories: All q categories that raters could choose, used or not.

    Returns:
        The coefficient, at most 1; nan if no item has two ratings.

    Raises:
        ValueError: Ratings are not a table of at least two raters, fewer than two categories, or a rating that is not
            one of them.
    """
    return _value(_gwet, rating_counts(ratings, categories))


def krippendorff_alpha(ratings: Ratings, categories: Categories) -> float:
    """Krippendorff's alpha for ordered categories (Computing Krippendorff's Alpha-Reliability, 2011, section D).

    1 - observed / expected disagreement of pairs of ratings of one item. Arguments and errors are those of `gwet_ac1`;
    the categories must be in their order.

    Returns:
        The coefficient, at most 1; nan if no item has two ratings, or all ratings are of one category.
    """
    return _value(_alpha, rating_counts(ratings, categories))


@dataclass(frozen=True)
class Coefficient:
    """A coefficient with its 95% interval (`bootstrap_interval` over resampled items); nan where it is undefined.

    The ends are nan where all resamples have one value (all raters agree on all).
    """

    value: float
    low: float
    high: float


def rater_agreement(
    ratings: Ratings,
    categories: Categories,
    items: Sequence[Hashable] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> dict[str, Coefficient]:
    """All coefficients with percentile intervals of a bootstrap over items.

    Args:
        ratings: As of `gwet_ac1`.
        categories: All categories in their order.
        items: The item of each row (its image); rows of one item are drawn together. None: a row is an item.
        draws: Number of resamples; those in which a coefficient is undefined are left out of its interval.

    Returns:
        "raw", "AC1", "AC2", "alpha" and, of two raters, "kappa".

    Raises:
        ValueError: As in `gwet_ac1`; or the number of items differs.
    """
    counts = rating_counts(ratings, categories)
    if items is not None and len(items) != len(counts):
        raise ValueError(f"there are {len(counts)} rows of ratings but {len(items)} items")
    numbers: dict[Hashable, int] = {}
    members = [numbers.setdefault(item, len(numbers)) for item in (items or range(len(counts)))]
    found = {
        "raw": _with_interval(_raw, counts, members, draws, seed),
        "AC1": _with_interval(_gwet, counts, members, draws, seed),
        "AC2": _with_interval(_gwet, counts, members, draws, seed, weighted=True),
        "alpha": _with_interval(_alpha, counts, members, draws, seed),
    }
    if len(ratings[0]) == 2:
        found["kappa"] = _with_interval(_kappa, _pair_counts(ratings, categories), members, draws, seed)
    return found


# Each of the functions below takes an array of counts and returns (statistics per item, shape (N, F); the coefficient
# of sums of these over items, from shape (B, F) to (B,)).
Formula = tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]


def _raw(counts: np.ndarray) -> Formula:
    return _observed(counts, np.eye(counts.shape[1])), lambda sums: _over(sums[:, 0], sums[:, 1])


def _observed(counts: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """For each item its (weighted) share of agreeing pairs, and whether it has two ratings; shape (N, 2)."""
    sizes = counts.sum(axis=1)
    several = sizes > 1
    agreeing = (counts * (counts @ weights - 1)).sum(axis=1)
    return np.column_stack([np.where(several, _over(agreeing, sizes * (sizes - 1)), 0.0), several])


def _gwet(counts: np.ndarray, weighted: bool = False) -> Formula:
    """AC1; weighted, AC2, where near categories agree in part.

    Its weights are Gwet's ordinal ones: 1 - c(|k - l|) / c(q - 1) for the categories numbered in their order, with
    c(d) = d (d + 1) / 2.
    """
    size = counts.shape[1]
    distances = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    weights = 1 - distances * (distances + 1) / (size * (size - 1)) if weighted else np.eye(size)
    rated = counts.sum(axis=1)
    shares = np.where(rated[:, None] > 0, _over(counts, rated[:, None]), 0.0)
    statistics = np.column_stack([_observed(counts, weights), shares, rated > 0])

    def coefficient(sums: np.ndarray) -> np.ndarray:
        agreement, prevalence = _over(sums[:, 0], sums[:, 1]), _over(sums[:, 2:-1], sums[:, -1:])
        chance = weights.sum() / (size * (size - 1)) * (prevalence * (1 - prevalence)).sum(axis=1)
        return _over(agreement - chance, 1 - chance)

    return statistics, coefficient


def _alpha(counts: np.ndarray) -> Formula:
    size = counts.shape[1]
    rated = counts.sum(axis=1)
    pairs = counts[:, :, None] * (counts[:, None, :] - np.eye(size))
    pairs = np.where((rated > 1)[:, None, None], _over(pairs, (rated - 1)[:, None, None]), 0.0)

    def coefficient(sums: np.ndarray) -> np.ndarray:
        coincidences = sums.reshape(-1, size, size)
        totals = coincidences.sum(axis=2)
        # The ordinal distance: ratings between two categories, half of those in either.
        middle = np.cumsum(totals, axis=1) - totals / 2
        distances = (middle[:, :, None] - middle[:, None, :]) ** 2
        expected = totals[:, :, None] * (totals[:, None, :] - np.eye(size))
        observed, by_chance = ((table * distances).sum(axis=(1, 2)) for table in (coincidences, expected))
        return 1 - _over((totals.sum(axis=1) - 1) * observed, by_chance)

    return pairs.reshape(len(counts), -1), coefficient


def _kappa(pairs: np.ndarray) -> Formula:
    size = math.isqrt(pairs.shape[1])
    distances = np.subtract.outer(np.arange(size), np.arange(size)) ** 2.0

    def coefficient(sums: np.ndarray) -> np.ndarray:
        table = sums.reshape(-1, size, size)
        expected = table.sum(axis=2)[:, :, None] * table.sum(axis=1)[:, None, :]
        observed, by_chance = ((one * distances).sum(axis=(1, 2)) for one in (table, expected))
        return 1 - _over(observed * table.sum(axis=(1, 2)), by_chance)

    return pairs, coefficient


def _value(formula: Callable[..., Formula], counts: np.ndarray) -> float:
    statistics, coefficient = formula(counts)
    return float(coefficient(statistics.sum(axis=0, keepdims=True))[0])


def _with_interval(
    formula: Callable[..., Formula], counts: np.ndarray, members: Sequence[int], draws: int, seed: int, **options: bool
) -> Coefficient:
    statistics, coefficient = formula(counts, **options)
    clusters = np.zeros((max(members) + 1, statistics.shape[1]))
    np.add.at(clusters, np.asarray(members), statistics)
    value = float(coefficient(clusters.sum(axis=0, keepdims=True))[0])
    replicates = coefficient(_drawn(len(clusters), draws, seed) @ clusters)
    known = replicates[np.isfinite(replicates)]
    if math.isnan(value) or not known.size or np.ptp(known) < 1e-12:
        return Coefficient(value, math.nan, math.nan)
    return Coefficient(value, *bootstrap_interval(known, len(clusters)))


@lru_cache(maxsize=4)
def _drawn(items: int, draws: int, seed: int) -> np.ndarray:
    """How often each item is drawn in each resample, shape (draws, items)."""
    return np.random.default_rng(seed).multinomial(items, [1 / items] * items, size=draws).astype(np.float64)


def _over(part: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Quotients; nan where the divisor is 0."""
    part, total = np.broadcast_arrays(part, total)
    return np.divide(part, total, out=np.full(part.shape, math.nan), where=np.abs(total) > 1e-12)


def _pair_counts(ratings: Ratings, categories: Categories) -> np.ndarray:
    """Which pair of categories each item got, shape (N, q * q); an item without both ratings has none."""
    first, second = (rating_counts([(row[rater], None) for row in ratings], categories) for rater in (0, 1))
    return (first[:, :, None] * second[:, None, :]).reshape(len(first), -1)


def rating_counts(ratings: Ratings, categories: Categories) -> np.ndarray:
    """How many raters gave each item each category, shape (N, q); arguments and errors are those of `gwet_ac1`."""
    rows = [list(row) for row in ratings]
    if not rows or len({len(row) for row in rows}) != 1 or len(rows[0]) < 2:
        raise ValueError("ratings must be a table of items by at least two raters")
    used = list(dict.fromkeys(rating for row in rows for rating in row if not _is_missing(rating)))
    known = list(dict.fromkeys(categories))
    if len(known) < 2:
        raise ValueError(f"there must be at least two categories, not {len(known)}")
    if strange := [rating for rating in used if rating not in known]:
        raise ValueError(f"the rating {strange[0]!r} is not one of the {len(known)} categories")
    numbers = {category: number for number, category in enumerate(known)}
    counts = np.zeros((len(rows), len(known)))
    for item, row in enumerate(rows):
        for rating in row:
            if not _is_missing(rating):
                counts[item, numbers[rating]] += 1
    return counts


def _is_missing(rating: Hashable) -> bool:
    return rating is None or (isinstance(rating, float) and math.isnan(rating))
