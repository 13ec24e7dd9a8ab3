"""Agreement of metrics with people, and of raters on categories.

JEEM (arXiv 2503.21910), Table 3: Kendall's tau-c between metrics and people, here by scipy. M2CQA (arXiv 2602.05437),
Table 1: Gwet's AC1 and raw agreement of annotators. Krippendorff's alpha (package krippendorff) and Cohen's weighted
kappa (scikit-learn) are for ordered scales. AC1 follows Gwet's Handbook of Inter-Rater Reliability (4th edition, 2014);
no installable package has it (irrCAC needs an old scipy).
"""

import math
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cultureval.metrics.statistics import finite_numbers

Ratings = Sequence[Sequence[Hashable]]
Categories = Sequence[Hashable]
GROUPS = 50  # of items in the jackknife, at most


class Coefficient(NamedTuple):
    """A coefficient in -1 to 1 with its 95% interval (`with_interval`); nan where it is undefined."""

    value: float
    low: float
    high: float
    items: int


def kendall_tau_c(x: Sequence[float], y: Sequence[float]) -> float:
    """Kendall's tau-c (Stuart 1953), by scipy: 2 (P - Q) / (n^2 (m - 1) / m).

    P and Q are the concordant and discordant pairs, m the smaller number of distinct values.

    Args:
        x: n finite numbers.
        y: n finite numbers.

    Returns:
        The correlation in -1 to 1; nan if x or y is constant.

    Raises:
        ValueError: There is no pair, the lengths differ, or a number is not finite.
    """
    from scipy.stats import kendalltau

    first, second = finite_numbers(x, "x"), finite_numbers(y, "y")
    if first.size != second.size:
        raise ValueError(f"x has {first.size} values but y has {second.size}")
    if len(np.unique(first)) < 2 or len(np.unique(second)) < 2:
        return math.nan
    return float(kendalltau(first, second, variant="c").statistic)


def tau_c_with_interval(x: Sequence[float], y: Sequence[float], items: Sequence[Hashable] | None = None) -> Coefficient:
    """`kendall_tau_c` with an interval over items (`with_interval`)."""
    first, second = np.asarray(x, float), np.asarray(y, float)
    return with_interval(
        lambda rows: kendall_tau_c(first[rows].tolist(), second[rows].tolist()), items or range(len(x))
    )


def with_interval(coefficient: Callable[[NDArray[np.int64]], float], items: Sequence[Hashable]) -> Coefficient:
    """A coefficient with its interval of the jackknife that leaves out groups of items (Kott 2001), with Student's t.

    Args:
        coefficient: From row numbers to the value on these rows; nan if undefined.
        items: The item of each row; rows of one item (several captions of one image) are left out together.

    Returns:
        The ends are nan for a single item, if no group changes the value (all raters always agree), or if the value is
        undefined without a group.
    """
    numbers = {item: number for number, item in enumerate(dict.fromkeys(items))}
    count, groups = len(numbers), min(len(numbers), GROUPS)
    value = coefficient(np.arange(len(items)))
    if math.isnan(value) or groups < 2:
        return Coefficient(value, math.nan, math.nan, count)
    from scipy.special import stdtrit

    group = (np.random.default_rng(0).permutation(count) % groups)[[numbers[item] for item in items]]
    jackknifed = np.array([coefficient(np.flatnonzero(group != number)) for number in range(groups)])
    error = math.sqrt((groups - 1) * float(np.var(jackknifed)))
    if math.isnan(error) or error < 1e-12:
        return Coefficient(value, math.nan, math.nan, count)
    reach = float(stdtrit(groups - 1, 0.975)) * error
    return Coefficient(value, max(value - reach, -1.0), min(value + reach, 1.0), count)


def gwet_ac1(ratings: Ratings, categories: Categories) -> float:
    """Gwet's AC1: agreement of raters beyond chance (British J. of Mathematical and Statistical Psychology 61, 2008).

    AC1 = (pa - pe) / (1 - pe). pa is the raw agreement, pe = sum over k of pi_k (1 - pi_k) / (q - 1), pi_k the mean
    share of category k, q the number of categories. Any number of raters. Missing ratings as in Gwet's handbook: an
    item counts in pi_k with at least one rating, in pa with at least two.

    Args:
        ratings: Shape (N, R): the category of each of N items by each of R raters; None or nan is not rated.
        categories: All q categories that raters could choose, used or not.

    Returns:
        The coefficient, at most 1; nan if no item has two ratings.

    Raises:
        ValueError: Ratings are no table of at least two raters, there are fewer than two categories, or a rating is
            not in `categories`.
    """
    return _ac1(rating_counts(ratings, categories))


def krippendorff_alpha(ratings: Ratings, categories: Categories) -> float:
    """Krippendorff's alpha for ordered categories (Computing Krippendorff's Alpha-Reliability, 2011, section D).

    Arguments and errors are those of `gwet_ac1`; the categories must be in their order.

    Returns:
        The coefficient, at most 1; nan if no item has two ratings, or all ratings are of one category.
    """
    return _alpha(rating_counts(ratings, categories))


def rater_agreement(
    ratings: Ratings, categories: Categories, items: Sequence[Hashable] | None = None
) -> dict[str, Coefficient]:
    """All coefficients with their intervals (`with_interval`).

    Args:
        ratings: As of `gwet_ac1`.
        categories: All categories in their order.
        items: The item of each row (its image); None: a row is an item.

    Returns:
        "raw", "AC1", "alpha" and, of two raters, "kappa" (Cohen's, with quadratic weights).

    Raises:
        ValueError: As of `gwet_ac1`.
    """
    counts = rating_counts(ratings, categories)
    of_counts: dict[str, Callable[[np.ndarray], float]] = {"raw": _raw, "AC1": _ac1, "alpha": _alpha}
    names = items or range(len(counts))
    found = {name: with_interval(lambda rows, of=of: of(counts[rows]), names) for name, of in of_counts.items()}
    if len(ratings[0]) == 2:
        place = {category: number for number, category in enumerate(categories)}
        pairs = np.array([[place.get(rating, -1) for rating in row] for row in ratings])
        found["kappa"] = with_interval(lambda rows: _kappa(pairs[rows], len(place)), names)
    return found


def rating_counts(ratings: Ratings, categories: Categories) -> np.ndarray:
    """Number of raters for each item and category, shape (N, q); arguments and errors are those of `gwet_ac1`."""
    if len({len(row) for row in ratings}) != 1 or len(ratings[0]) < 2:
        raise ValueError("ratings must be a table of items by at least two raters")
    numbers = {category: number for number, category in enumerate(categories)}
    if len(numbers) < 2:
        raise ValueError(f"there must be at least two categories, not {len(numbers)}")
    counts = np.zeros((len(ratings), len(numbers)))
    for item, row in enumerate(ratings):
        for rating in row:
            if rating in numbers:
                counts[item, numbers[rating]] += 1
            elif rating is not None and rating == rating:
                raise ValueError(f"the rating {rating!r} is not one of the {len(numbers)} categories")
    return counts


def _raw(counts: np.ndarray) -> float:
    """The mean share of agreeing pairs of ratings over items with two or more ratings."""
    sizes = counts.sum(axis=1)
    several, pairs = counts[sizes > 1], (sizes * (sizes - 1))[sizes > 1]
    return float(((several * (several - 1)).sum(axis=1) / pairs).mean()) if len(several) else math.nan


def _ac1(counts: np.ndarray) -> float:
    rated = counts[counts.sum(axis=1) > 0]
    if not len(rated):
        return math.nan
    shares = (rated / rated.sum(axis=1, keepdims=True)).mean(axis=0)
    chance = float((shares * (1 - shares)).sum()) / (counts.shape[1] - 1)
    return (_raw(counts) - chance) / (1 - chance)


def _alpha(counts: np.ndarray) -> float:
    import krippendorff

    several = counts[counts.sum(axis=1) > 1]
    if (several.sum(axis=0) > 0).sum() < 2:
        return math.nan
    return float(krippendorff.alpha(value_counts=several, level_of_measurement="ordinal"))


def _kappa(pairs: np.ndarray, size: int) -> float:
    """Kappa of pairs of category numbers; -1 is not rated."""
    from sklearn.metrics import cohen_kappa_score

    rated = pairs[(pairs >= 0).all(axis=1)]
    if len(np.unique(rated)) < 2:
        return math.nan
    kappa = float(cohen_kappa_score(*rated.T, labels=range(size), weights="quadratic"))
    return max(kappa, -1.0)  # rounding may end below
