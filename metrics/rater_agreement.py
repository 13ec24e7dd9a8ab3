"""Agreement of raters on categories: raw agreement, Gwet's AC1, Krippendorff's alpha, weighted kappa.

M2CQA (arXiv 2602.05437) Table 1 states AC1 and the raw agreement of its annotators; the others are for ordered scales.
AC1 is as in Gwet's Handbook of Inter-Rater Reliability (4th edition, 2014), which no installable package has (irrCAC
needs an old scipy); alpha is by the package krippendorff, kappa by scikit-learn.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from functools import partial

import numpy as np

from cultureval.metrics.agreement import Coefficient, with_interval

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
    """All coefficients with their intervals (`agreement.with_interval`).

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
    known = items or range(len(counts))
    found = {name: with_interval(partial(_of_rows, of, counts), known) for name, of in of_counts.items()}
    if len(ratings[0]) == 2:
        place = {category: number for number, category in enumerate(categories)}
        both = np.array([[place.get(rating, -1) for rating in row] for row in ratings])
        found["kappa"] = with_interval(partial(_of_rows, partial(_kappa, size=len(place)), both), known)
    return found


def rating_counts(ratings: Ratings, categories: Categories) -> np.ndarray:
    """How many raters gave each item each category, shape (N, q); arguments and errors are those of `gwet_ac1`."""
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


def _of_rows(coefficient: Callable[[np.ndarray], float], table: np.ndarray, rows: np.ndarray) -> float:
    return coefficient(table[rows])


def _raw(counts: np.ndarray) -> float:
    """The mean share of agreeing pairs of ratings of an item that has two or more."""
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
    """Kappa of pairs of numbers of categories, of which -1 is not rated."""
    from sklearn.metrics import cohen_kappa_score

    rated = pairs[(pairs >= 0).all(axis=1)]
    if len(np.unique(rated)) < 2:
        return math.nan
    return float(cohen_kappa_score(*rated.T, labels=range(size), weights="quadratic"))
