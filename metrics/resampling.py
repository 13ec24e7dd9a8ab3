"""Draws of items for bootstraps and permutation tests: whole clusters at a time, and fast where rows repeat."""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

AT_ONCE = 4_000_000  # numbers of a block of draws: 32 MB
LEAST_DEFINED = 0.95  # share of resamples that must have a score, for a rank, and for a test of a difference
FEW = 64  # different rows up to which their numbers are drawn instead of rows
BORROWED = 3  # clusters of an average's other subsets that count in what is known of a subset's variance
Floats = NDArray[np.float64]


def cluster_names(clusters: Sequence[Hashable] | None, items: int) -> list[Hashable]:
    """The cluster of each item: a name, or for None (alone) an object of its own."""
    given = [None] * items if clusters is None else clusters
    if len(given) != items:
        raise ValueError(f"there are {items} items but {len(given)} clusters")
    return [object() if name is None else name for name in given]


def drawn_together(names: Sequence[Sequence[Hashable]]) -> list[list[int]]:
    """The places of tables in groups that share no cluster with each other.

    Args:
        names: Of each table the clusters of its items.
    """
    group = list(range(len(names)))
    owner: dict[Hashable, int] = {}
    for place, of_table in enumerate(names):
        others = {group[owner.setdefault(name, place)] for name in set(of_table)} - {group[place]}
        group = [group[place] if one in others else one for one in group]
    members = defaultdict(list)
    for place, one in enumerate(group):
        members[one].append(place)
    return list(members.values())


def numbers_of(names: Sequence[Sequence[Hashable]]) -> dict[Hashable, int]:
    """A number for each cluster of some tables, from 0."""
    return {name: number for number, name in enumerate(dict.fromkeys(name for table in names for name in table))}


def cluster_sums(values: Floats, rows: Sequence[int], clusters: int) -> Floats:
    """Sums [G, P] over clusters of values [N, P], with the number of each item's cluster."""
    sums = np.zeros((clusters, values.shape[1]))
    np.add.at(sums, list(rows), values)
    return sums


def drawn_counts(clusters: int, draws: int, generator: np.random.Generator) -> Iterator[Floats]:
    """How often each of `clusters` is drawn in each bootstrap draw: blocks [b, clusters], `draws` rows in all."""
    block = max(1, AT_ONCE // clusters)
    for start in range(0, draws, block):
        size = min(block, draws - start)
        drawn = generator.integers(clusters, size=(size, clusters), dtype=np.int32)
        drawn += np.arange(size, dtype=np.int32)[:, None] * np.int32(clusters)
        yield np.bincount(drawn.ravel(), minlength=size * clusters).reshape(size, clusters).astype(np.float64)


def joint_freedom(variances: ArrayLike, clusters: Sequence[int], gaps: ArrayLike = 0.0) -> Floats:
    """Degrees of freedom of a sum of independent parts (Satterthwaite, Biometrics Bulletin 2, 1946), [...].

    Args:
        variances: [T] of each part; where all are 0, the sum of the parts' own degrees is returned.
        clusters: [T] of each part, at least 2: the part alone has one degree less.
        gaps: [T, ...] by how much their standard deviations may be wrong: the least degrees of freedom are returned;
            the most where they are below 0.
    """
    gaps = np.asarray(gaps, np.float64)
    across = (-1, *[1] * max(gaps.ndim - 1, 0))
    freedom = np.subtract(clusters, 1.0).reshape(across)
    roots = np.sqrt(np.asarray(variances, np.float64)).reshape(across)
    least, most = (np.square(np.maximum(roots + shift, 0.0)) for shift in (-gaps, gaps))
    below = (np.square(most) / freedom).sum(axis=0)
    found = np.divide(np.square(least.sum(axis=0)), below, out=np.full(below.shape, np.inf), where=below > 0)
    return found.clip(freedom.min(), freedom.sum())


class AverageDraws:
    """Deviations of an average of independent parts in bootstrap draws, each with some of the variance of all parts.

    Five items that are all alike say little of how much items vary, and a bootstrap of them nothing. So to the variance
    of a part with G clusters the share `BORROWED` / (G - 1 + `BORROWED`) is added of what it would be if its clusters
    varied as those of all parts (weighed by G - 1): draws of all parts in another order. A single part stays as it is.

    Attributes:
        total: [B, M] the sum of the parts, after `finish` with what they borrow; nan where a part is not defined.
    """

    def __init__(self, draws: int, values: int, parts: int) -> None:
        self.total = np.zeros((draws, values))
        self._of_all = np.zeros((draws, values))
        self._borrowed = BORROWED if parts > 1 else 0
        self._parts: list[tuple[int, float]] = []  # G - 1, and the part's variance over that of a cluster
        self._variances: list[float] = []

    def add(self, deviations: Floats, share: float, clusters: int) -> None:
        """Adds a part.

        Args:
            deviations: [B, M] of its draws from its sample, times its share; nan where a score is not defined.
            share: Of the part in the average, above 0.
            clusters: G that are drawn, at least 2.
        """
        known = np.where(np.isfinite(deviations).all(axis=1, keepdims=True), deviations, 0.0)
        apart = known - known.mean(axis=1, keepdims=True) if known.shape[1] > 1 else known
        self._parts.append((clusters - 1, share**2 / clusters))
        self._variances.append(float(apart.var(axis=0).sum()))
        self.total += deviations
        self._of_all += known * np.sqrt((clusters - 1) * clusters) / share

    def finish(self, generator: np.random.Generator) -> float:
        """Adds to `total` what the parts borrow; the degrees of freedom of differences between its M values."""
        freedom = [one for one, _ in self._parts]
        self.total += generator.permutation(self._of_all) * np.sqrt(self._borrowing() / sum(freedom))
        return float(joint_freedom(self._variances, [one + 1 for one in freedom]))

    def freedoms(self, gaps: Floats) -> Floats:
        """Those of a pair of models, [M, M], whose values' errors [parts, M] may be wrong by so much.

        They are the least by what is wrong with the model of the row, and the most by what is with that of the column.
        """
        clusters = [freedom + 1 for freedom, _ in self._parts]
        return joint_freedom(self._variances, clusters, gaps[:, :, None] - gaps[:, None, :])

    def borrowed(self, variances: Sequence[ArrayLike]) -> Floats:
        """What parts that have such variances, [parts, ...], add to that of the average by borrowing, [...]."""
        weights = np.array([freedom / scale for freedom, scale in self._parts])
        of_all = np.tensordot(weights, np.asarray(variances), 1) / sum(freedom for freedom, _ in self._parts)
        return self._borrowing() * of_all

    def _borrowing(self) -> float:
        """What parts add to the average's variance, over the variance of a cluster of all of them."""
        return sum(scale * self._borrowed / (freedom + self._borrowed) for freedom, scale in self._parts)


def percentile_tail(freedom: float, level: float = 0.95) -> float:
    """The share of draws beyond each bound of a bootstrap's interval, widened for few clusters as by Student.

    Hesterberg, The American Statistician 69, 2015, section 5.3.

    Args:
        freedom: Degrees of freedom; may be infinite.
        level: Of confidence.
    """
    from scipy import stats

    return float(stats.norm.sf(stats.t.isf((1 - level) / 2, freedom)))


def bootstrap_sums(parts: Floats, draws: int, generator: np.random.Generator) -> Floats:
    """Sums [draws, P] of as many rows as there are in `parts` [G, P], drawn with replacement.

    Where few rows differ, how often each is drawn is one draw of a multinomial distribution.
    """
    rows, counts = np.unique(parts, axis=0, return_counts=True)
    if len(rows) <= FEW:
        return generator.multinomial(len(parts), counts / len(parts), size=draws) @ rows
    return np.concatenate([taken @ parts for taken in drawn_counts(len(parts), draws, generator)])


def random_subset_sums(parts: Floats, draws: int, generator: np.random.Generator) -> Floats:
    """Sums [draws, P] of random subsets of the rows of `parts` [G, P], each row in with probability 1/2.

    That is what random swaps of pairs change.
    """
    rows, counts = np.unique(parts, axis=0, return_counts=True)
    if len(rows) <= FEW:
        return generator.binomial(counts, 0.5, size=(draws, len(rows))) @ rows
    block = max(1, AT_ONCE // len(parts))
    sizes = [min(block, draws - start) for start in range(0, draws, block)]
    return np.concatenate(
        [generator.integers(2, size=(size, len(parts)), dtype=np.int8).astype(np.float64) @ parts for size in sizes]
    )
