"""Numbers that LightEval averages correctly over a group's subsets and over all tasks.

LightEval averages every value of the results as sum(values) / count. Standard errors, counts, and values that are
undefined or do not exist in a subset need another sum or another count: each class here is a float that overrides
addition and division accordingly.
"""

import math
from collections.abc import Mapping

from cultureval.runtime.patches import Patch, expect


class StandardError(float):
    """A standard error that adds in quadrature; nan where a subset has none.

    LightEval averages every value of a group's subsets as sum / count. For independent subsets, sqrt(sum of squares) /
    count is the standard error of that average; the mean of the subsets' errors is not. Subsets that share clusters of
    items (a request in each dialect) are not independent: what a cluster adds to the errors of several subsets is added
    before it is squared. A subset without an error (a
    single item) is taken to vary as the others on average: the sum over the known errors is scaled up by sqrt(subsets /
    subsets with an error).
    """

    known: int
    clusters: Mapping[str, float]

    def __new__(
        cls, error: float | str, known: int | None = None, clusters: Mapping[str, float] | None = None
    ) -> "StandardError":
        """An error, with what its clusters that other subsets may share add to it; or the sum of `known` errors."""
        value = super().__new__(cls, error)
        value.known = int(not math.isnan(value)) if known is None else known
        value.clusters = clusters or {}
        return value

    def __add__(self, other: float) -> "StandardError":
        if type(other) is int and other == 0:  # the start value of sum(), not a subset's error
            return self
        parts = [one if isinstance(one, StandardError) else StandardError(one) for one in (self, other)]
        one, two = parts
        squares = [float(part) ** 2 for part in parts if part.known]
        together = math.fsum(
            2 * share * two.clusters[name] for name, share in one.clusters.items() if name in two.clusters
        )
        clusters = {
            name: one.clusters.get(name, 0.0) + two.clusters.get(name, 0.0) for name in {**one.clusters, **two.clusters}
        }
        error = math.sqrt(max(0.0, math.fsum([*squares, together]))) if squares else math.nan
        return StandardError(error, one.known + two.known, clusters)

    __radd__ = __add__

    def __truediv__(self, count: float) -> "StandardError":
        return StandardError(float(self) / math.sqrt(self.known * count) if self.known else math.nan)

    def __reduce__(self) -> tuple:
        return StandardError, (float(self), self.known, self.clusters)


class Rate(float):
    """A metric that may be undefined (nan), and is then left out of averages instead of counting as 0.

    LightEval averages the tasks of a group, and all tasks, as sum / count: the sum counts its defined
    values and is divided by that count.
    """

    defined: int

    @classmethod
    def of(cls, value: float | None, defined: int | None = None) -> "Rate":
        """A value, None for an undefined one; or the sum of `defined` values."""
        rate = cls(float("nan") if value is None else value)
        rate.defined = int(rate == rate) if defined is None else defined
        return rate

    def __add__(self, other: float) -> "Rate":
        if type(other) is int and other == 0:  # the start value of sum(), not a metric's value
            return self
        parts = [part for part in (self, other) if part == part]
        count = sum(getattr(part, "defined", 1) for part in parts)
        return Rate.of(sum(map(float, parts)) if parts else None, count)

    __radd__ = __add__

    def __truediv__(self, count: float) -> "Rate":
        return Rate.of(float(self) / self.defined if self.defined else None)

    def __reduce__(self) -> tuple:
        return Rate.of, (float(self), self.defined)


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
        # An undefined value (nan) of a subset to which the metric applies stays in the sum: its group has no average.
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
    """The standard error of such a value; those of other subsets add as `StandardError`."""


class Total(float):
    """A count: LightEval's "average" over a group's subsets becomes the sum."""

    def __add__(self, other: float) -> "Total":
        return Total(float(self) + other)

    __radd__ = __add__

    def __truediv__(self, count: float) -> "Total":
        return self


def _averages_are_sums_over_counts() -> None:
    def average(*values: float) -> float:
        from lighteval.logging.info_loggers import MetricsLogger

        logger = MetricsLogger()
        logger.metric_aggregated.update({f"canary:{place}|0": {"value": one} for place, one in enumerate(values)})
        logger.aggregate({}, bootstrap_iters=0)
        return float(logger.metric_aggregated["canary:_average|0"]["value"])

    otherwise = "LightEval no longer averages a group's values as sum / count: read MetricsLogger.aggregate"
    expect(average(StandardError(3), StandardError(4)) == 2.5, otherwise)
    expect(average(Rate.of(1.0), Rate.of(None)) == average(NotApplicable(), 1.0) == 1.0, otherwise)
    expect(average(Total(2), Total(3)) == 5.0, otherwise)
    handled = "LightEval's averages now handle {}: plain numbers may suffice"
    expect(average(3.0, 4.0) == 3.5, handled.format("standard errors"))
    expect(math.isnan(average(1.0, math.nan)), handled.format("undefined values"))


PATCHES = (
    Patch(
        "lighteval",
        "lighteval.logging.info_loggers.MetricsLogger.aggregate",
        "It averages everything as sum / count, also standard errors, counts and undefined values: ours override that.",
        ("0.13.0",),
        _averages_are_sums_over_counts,
    ),
)
