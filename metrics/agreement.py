"""Agreement of metrics with people: Kendall's tau-c, by which JEEM (arXiv 2503.21910) Table 3 correlates them."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from cultureval.metrics.standard_errors import bootstrap_interval, finite_numbers

DRAWS = 1000


def kendall_tau_c(x: Sequence[float], y: Sequence[float]) -> float:
    """Kendall's tau-c (Stuart 1953), by scipy: 2 (P - Q) / (n^2 (m - 1) / m).

    P and Q are the concordant and discordant pairs, m the smaller number of distinct values.

    Args:
        x: n finite numbers.
        y: n finite numbers.

    Returns:
        The correlation in -1 to 1; nan, which tables print as n/a, if x or y is constant, as a single pair is.

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


@dataclass(frozen=True)
class Correlation:
    """A correlation of pairs with its 95% interval over resampled items (`bootstrap_interval`); nan where undefined."""

    value: float
    low: float
    high: float
    pairs: int
    items: int


def tau_c_with_interval(
    x: Sequence[float], y: Sequence[float], items: Sequence[Hashable] | None = None, draws: int = DRAWS, seed: int = 0
) -> Correlation:
    """Kendall's tau-c with a percentile interval of a bootstrap over items.

    Items are drawn with replacement, each with all its pairs (several captions of one image are not independent). A
    draw in which x or y is constant has no correlation and is excluded from the percentiles.

    Args:
        x: n finite numbers.
        y: n finite numbers.
        items: The item of each pair; None: one item per pair.
        draws: Number of resamples.
        seed: Random seed of the resampling.

    Raises:
        ValueError: As in `kendall_tau_c`; or the number of items differs.
    """
    value = kendall_tau_c(x, y)
    names = list(range(len(x))) if items is None else list(items)
    if len(names) != len(x):
        raise ValueError(f"there are {len(x)} pairs but {len(names)} items")
    numbers: dict[Hashable, int] = {}
    members = np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)
    low = high = math.nan
    if not math.isnan(value) and len(numbers) > 1:
        drawn = np.random.default_rng(seed).multinomial(len(numbers), [1 / len(numbers)] * len(numbers), size=draws)
        replicates = _tau_c_of_draws(np.asarray(x, float), np.asarray(y, float), members, drawn)
        kept = replicates[np.isfinite(replicates)]
        low, high = bootstrap_interval(kept, len(numbers)) if kept.size else (math.nan, math.nan)
    return Correlation(value, low, high, len(names), len(numbers))


def _tau_c_of_draws(x: np.ndarray, y: np.ndarray, members: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Tau-c of each draw, shape (draws,), from how often each item was drawn, shape (draws, items).

    P - Q of a draw is a quadratic form: two pairs count as often as their items were drawn together.
    """
    order = np.argsort(members, kind="stable")
    x, y, members = x[order], y[order], members[order]
    starts = np.flatnonzero(np.diff(members, prepend=-1))
    # A pair against itself is a tie; the sum over ordered pairs counts each pair twice.
    signs = np.sign(x[:, None] - x).astype(np.int8) * np.sign(y[:, None] - y).astype(np.int8)
    between = np.add.reduceat(np.add.reduceat(signs, starts, axis=1, dtype=np.int32), starts, axis=0, dtype=np.float64)
    difference = ((drawn @ between) * drawn).sum(axis=1) / 2
    sizes = drawn @ np.bincount(members)
    distinct = np.minimum(*(_distinct_values(values, members, drawn) for values in (x, y)))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(distinct > 1, 2 * difference / (sizes**2 * (distinct - 1) / distinct), math.nan)


def _distinct_values(values: np.ndarray, members: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Number of distinct values in each draw, shape (draws,)."""
    unique, numbers = np.unique(values, return_inverse=True)
    has_value = np.zeros((drawn.shape[1], len(unique)), dtype=np.float32)
    has_value[members, numbers] = 1
    return ((drawn > 0).astype(np.float32) @ has_value > 0).sum(axis=1)
