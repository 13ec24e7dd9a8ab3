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
