"""Agreement of metrics with people: Kendall's tau-c, by which JEEM (arXiv 2503.21910) Table 3 correlates them."""

import math
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cultureval.metrics.standard_errors import finite_numbers

GROUPS = 50  # at most so many groups of items are left out, one after the other


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
        The correlation in -1 to 1; nan if x or y is constant, as a single pair is.

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
        coefficient: From the numbers of rows to its value on these, nan where it is undefined.
        items: The item of each row: rows of one item (several captions of one image) are left out together.

    Returns:
        The ends are nan for a single item, where no group changes the value (all raters agree on all), or where a
        group leaves it undefined.
    """
    numbers = {item: number for number, item in enumerate(dict.fromkeys(items))}
    count, groups = len(numbers), min(len(numbers), GROUPS)
    value = coefficient(np.arange(len(items)))
    if math.isnan(value) or groups < 2:
        return Coefficient(value, math.nan, math.nan, count)
    from scipy.special import stdtrit

    group = (np.random.default_rng(0).permutation(count) % groups)[[numbers[item] for item in items]]
    left = np.array([coefficient(np.flatnonzero(group != one)) for one in range(groups)])
    error = math.sqrt((groups - 1) * float(np.var(left)))
    if math.isnan(error) or error < 1e-12:
        return Coefficient(value, math.nan, math.nan, count)
    reach = float(stdtrit(groups - 1, 0.975)) * error
    return Coefficient(value, max(value - reach, -1.0), min(value + reach, 1.0), count)
