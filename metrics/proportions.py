"""Intervals of proportions that hold at 0 and 1 too, and p-values of several tests together."""

import math
from collections.abc import Sequence
from functools import lru_cache

NORMAL_95 = 1.959963984540054  # the standard normal's 97.5th percentile
TINY = 1e-9  # trials of an error that is larger than any share's


@lru_cache(maxsize=4096)
def wilson_interval(successes: int, total: int) -> tuple[float, float]:
    """The 95% interval of a proportion by Wilson (J. of the American Statistical Association 22, 1927), by scipy."""
    from scipy.stats import binomtest

    interval = binomtest(successes, total).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


def interval_of_error(share: float, error: float) -> tuple[float, float]:
    """The 95% interval of a share whose standard error is known, by Wilson's formula.

    The trials are those that have this error: share (1 - share) / error², or, where that is more, those of which the
    error is `wilson_error`, as errors of 0 and 1 are.

    Args:
        share: From 0 to 1: a proportion, or a mean of scores between 0 and 1, of items that may share clusters.
        error: Its standard error, finite; 0: the share itself.
    """
    if error <= 0:
        return share, share
    square = NORMAL_95**2
    trials = max(share * (1 - share) / error**2, NORMAL_95 / (2 * error) - square, TINY)
    middle = (share + square / (2 * trials)) / (1 + square / trials)
    reach = NORMAL_95 * math.sqrt(share * (1 - share) / trials + square / (4 * trials**2)) / (1 + square / trials)
    return max(0.0, min(share, middle - reach)), min(1.0, max(share, middle + reach))


def wilson_error(successes: int, total: int) -> float:
    """A standard error of a proportion that is not 0 at 0 and 1: half of Wilson's interval over 1.96."""
    low, high = wilson_interval(successes, total)
    return (high - low) / (2 * NORMAL_95)


def newcombe_interval(first: tuple[int, int], second: tuple[int, int]) -> tuple[float, float]:
    """The 95% interval of the difference of two proportions from Wilson's intervals (Newcombe 1998, method 10).

    Each is its successes and total. For independent samples; on the same items it is too wide rather than too narrow,
    where the verdicts agree.
    """
    (low_a, high_a), (low_b, high_b) = (wilson_interval(*counts) for counts in (first, second))
    a, b = first[0] / first[1], second[0] / second[1]
    return a - b - math.hypot(a - low_a, high_b - b), a - b + math.hypot(high_a - a, b - low_b)


def paired_interval(only_first: float, only_second: float, pairs: float) -> tuple[float, float, float]:
    """Difference of two proportions of the same items: the adjusted Wald interval (Bonett and Price 2012).

    Journal of Educational and Behavioral Statistics 37, 479-488: one pair that differs is added each way, so that the
    95% interval has a width even where no item differs.

    Args:
        only_first: Items that only the first has right.
        only_second: Items that only the second has right.
        pairs: All items, at least 1.

    Returns:
        Low and high between -1 and 1, and the adjusted standard error.
    """
    first, second = (only_first + 1) / (pairs + 2), (only_second + 1) / (pairs + 2)
    error = math.sqrt((first + second - (first - second) ** 2) / (pairs + 2))
    reach = NORMAL_95 * error
    return max(-1.0, first - second - reach), min(1.0, first - second + reach), error


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for their number, so that their family is tested at one level (Holm 1979).

    Args:
        p_values: Of all tests of the family.

    Returns:
        In the same order: for the k-th smallest of m, the largest of (m - j + 1) p_j over j up to k; at most 1.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, largest = [1.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, (len(p_values) - rank) * p_values[place])
        adjusted[place] = min(1.0, largest)
    return adjusted
