"""Standard errors of scores of clustered items, and p-values of several tests together.

The standard error is the jackknife over clusters. v is the score of all G clusters, v_g that without cluster g. The
cluster adds sqrt((G - 1) / G) (v - v_g); the error is the root of the sum of squares. For a mean of independent
items it is sd(ddof=1) / sqrt(n), for clustered means CR3 (Cameron and Miller, J. Human Resources 50, 2015). It also
holds for ratios and corpus scores. For clusters of equal size it is sqrt(G / (G - 1)) times Liang and Zeger's
estimator (Biometrika 73, 1986), which Miller uses for evaluations (arXiv 2411.00640).
"""

import math
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

NORMAL_95 = 1.959963984540054  # the standard normal's 97.5th percentile
TINY = 1e-12  # errors below it are rounding
Floats = NDArray[np.float64]


class ClusterErrors(NamedTuple):
    """A score and its error.

    Attributes:
        value: The score; nan without an item.
        error: Its standard error; nan for fewer than two clusters, and if all clusters have the same score. For a share
            of 0 or 1 it is Wilson's for this number of clusters.
        adds: Cluster -> its contribution; the error is the root of the sum of squares. For a mean of scores with shared
            clusters, contributions are summed before squaring. {} without an error.
    """

    value: float
    error: float
    adds: dict[Hashable, float]


def errors_of_ratio(num: ArrayLike, den: ArrayLike, clusters: Sequence[Hashable], share: bool = False) -> ClusterErrors:
    """A score that is sum(num) / sum(den): a mean (den 1), a recall, a rate of some items.

    Args:
        num: [N] finite; the items' numerators.
        den: [N] the items' weights, at least 0.
        clusters: The cluster of each item; any hashable names.
        share: Whether the score lies between 0 and 1.
    """
    names, columns = _by_cluster(clusters, np.column_stack([np.asarray(num, float), np.asarray(den, float)]))
    if not columns[:, 1].sum() > 0:
        return ClusterErrors(math.nan, math.nan, {})
    return _of_clusters(names, columns, None, share)


def errors_of_sums(
    sums: ArrayLike, clusters: Sequence[Hashable], score: Callable[[Floats], Floats], share: bool = False
) -> ClusterErrors:
    """A score of the sum of items' statistics.

    Args:
        sums: [N, P] finite; at least one item.
        clusters: As in `errors_of_ratio`.
        score: [..., P] -> [...].
        share: As in `errors_of_ratio`.
    """
    names, columns = _by_cluster(clusters, np.asarray(sums, float))
    return _of_clusters(names, columns, score, share)


def jackknife(sums: Floats, score: Callable[[Floats], Floats] | None = None) -> tuple[float, Floats]:
    """A score of clusters, and their contributions to its error [G]; nan for fewer than two clusters.

    Args:
        sums: [G, P] the statistics of each cluster; of a ratio [G, 2] its numerator and denominator.
        score: [..., P] -> [...], the score of the sum of statistics; None: the ratio.
    """
    total, size = sums.sum(axis=0), len(sums)
    rest = total - sums
    if score is None:
        value = float(total[0] / total[1])
        without = np.where(rest[:, 1] > TINY, rest[:, 1], math.nan)
        moved = (sums[:, 0] - value * sums[:, 1]) / without
    else:
        value = float(score(total))
        moved = value - score(rest) if size > 1 else np.full(1, math.nan)
    return value, math.sqrt((size - 1) / size) * moved


def at_ends(value: float, adds: Floats, share: bool) -> Floats:
    """The contributions to the error [G]. If all are 0, they are nan, or Wilson's for a share of 0 or 1."""
    if not np.square(adds).sum() < TINY**2:
        return adds
    size, end = len(adds), share and min(abs(value), abs(1 - value)) < TINY
    return np.full(size, NORMAL_95 / (size + NORMAL_95**2) / 2 / math.sqrt(size) if end else math.nan)


def _by_cluster(clusters: Sequence[Hashable], table: Floats) -> tuple[list[Hashable], Floats]:
    """The names of the G clusters, and the sums [G, P] of the columns of a table [N, P]."""
    if len(clusters) != len(table):
        raise ValueError(f"there are {len(table)} values but {len(clusters)} clusters")
    if len(wrong := np.flatnonzero(~np.isfinite(table).all(axis=1))):
        raise ValueError(f"score {wrong[0]} is not finite")
    places: dict[Hashable, int] = {}
    members = [places.setdefault(cluster, len(places)) for cluster in clusters]
    return list(places), np.stack([np.bincount(members, column, len(places)) for column in table.T], axis=1)


def _of_clusters(
    names: list[Hashable], sums: Floats, score: Callable[[Floats], Floats] | None, share: bool
) -> ClusterErrors:
    value, adds = jackknife(sums, score)
    adds = at_ends(value, adds, share)
    error = float(np.sqrt(np.square(adds).sum()))
    return ClusterErrors(value, error, {} if math.isnan(error) else dict(zip(names, adds.tolist(), strict=True)))


def finite_numbers(values: Sequence[float], name: str) -> Floats:
    """[n] the values; ValueError if there is none or one is not finite, with `name` for a value."""
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or not numbers.size:
        raise ValueError(f"a non-empty list of numbers is needed ({name} 0, 1, ...), not one of shape {numbers.shape}")
    if len(wrong := np.flatnonzero(~np.isfinite(numbers))):
        raise ValueError(f"{name} {wrong[0]} is {numbers[wrong[0]]}, not finite")
    return numbers


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for their number, so that their family is tested at one level (Holm 1979).

    Args:
        p_values: Of all tests of the family.

    Returns:
        In the same order: for the k-th smallest of m, the largest of (m - j + 1) p_j over j up to k; at most 1.
    """
    values = np.asarray(p_values, float)
    order = np.argsort(values, kind="stable")
    adjusted = np.empty(values.size)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(np.arange(values.size, 0, -1) * values[order]))
    return adjusted.tolist()
