"""Numbers that LightEval averages correctly over a group's subsets and over all tasks.

LightEval averages every value as sum(values) / count. The floats here override addition and division where another sum
or count is right.
"""

import math
from collections.abc import Mapping

ROUNDING = 1e-12  # smaller standard errors are rounding errors


class StandardError(float):
    """A standard error that adds in quadrature; nan where a subset has none, and then the sum is nan too.

    Subsets that share clusters of items (a request in each dialect) are not independent: the shares of a cluster in the
    errors of several subsets are added before they are squared.

    Attributes:
        clusters: The share of each cluster in the error, for clusters that several subsets may share.
    """

    clusters: Mapping[str, float]

    def __new__(cls, error: float | str, clusters: Mapping[str, float] | None = None) -> "StandardError":
        """The error of a subset, or of a sum of subsets."""
        value = super().__new__(cls, error)
        value.clusters = clusters or {}
        return value

    def __add__(self, other: float) -> "StandardError":
        if type(other) is int and other == 0:  # the start value of sum(), not a subset's error
            return self
        left, right = (each if isinstance(each, StandardError) else StandardError(each) for each in (self, other))
        together = math.fsum(
            2 * share * right.clusters[name] for name, share in left.clusters.items() if name in right.clusters
        )
        clusters = {
            name: left.clusters.get(name, 0.0) + right.clusters.get(name, 0.0)
            for name in {**left.clusters, **right.clusters}
        }
        square = float(left) ** 2 + float(right) ** 2 + together
        return StandardError(math.nan if math.isnan(square) else math.sqrt(max(0.0, square)), clusters)

    __radd__ = __add__

    def __truediv__(self, count: float) -> "StandardError":
        shares = {name: share / count for name, share in self.clusters.items()}
        return StandardError(float(self) / count if float(self) > ROUNDING else math.nan, shares)

    def __reduce__(self) -> tuple:
        return StandardError, (float(self), self.clusters)


class NotApplicable(float):
    """The value of a metric that does not apply to a subset: nan, and left out of a group's average."""

    total: float | None
    left_out: int

    def __new__(cls, total: float | None = None, left_out: int = 1) -> "NotApplicable":
        """A partial sum (None if empty) and how many values were left out of it."""
        value = super().__new__(cls, math.nan if total is None else total)
        value.total, value.left_out = total, left_out
        return value

    def __add__(self, other: float) -> "NotApplicable":
        # A plain nan stays in the sum, so that the group has no average: the metric applies, its value is undefined.
        if isinstance(other, NotApplicable):
            left_out, totals = self.left_out + other.left_out, [self.total, other.total]
        elif type(other) is int and other == 0:  # the start value of sum()
            return self
        else:
            left_out, totals = self.left_out, [self.total, other]
        summed = [total for total in totals if total is not None]
        return type(self)(sum(summed[1:], summed[0]) if summed else None, left_out)

    __radd__ = __add__

    def __truediv__(self, count: float) -> float:
        return math.nan if self.total is None else float(self.total / (count - self.left_out))

    def __reduce__(self) -> tuple:
        return type(self), (self.total, self.left_out)


class NotApplicableStandardError(NotApplicable, StandardError):
    """The standard error of a value that does not apply; other errors are added as `StandardError`."""


class Total(float):
    """A count: LightEval's "average" over a group's subsets becomes the sum."""

    def __add__(self, other: float) -> "Total":
        return Total(float(self) + other)

    __radd__ = __add__

    def __truediv__(self, count: float) -> "Total":
        return self
