"""Numbers that LightEval averages correctly over a group's subsets and over all tasks.

LightEval averages every value of the results as sum(values) / count. Standard errors, counts, and values that are
undefined or do not exist in a subset need another sum or another count: each class here is a float that overrides
addition and division accordingly.
"""

import math
from collections.abc import Sequence

from cultureval.runtime.patches import Patch, expect


class StandardError(float):
    """A standard error that adds in quadrature.

    LightEval averages every value of a group's subsets as sum / count. For independent subsets, sqrt(sum of squares) /
    count is the standard error of that average; the mean of the subsets' errors is not.
    """

    def __add__(self, other: float) -> "StandardError":
        return StandardError(math.hypot(self, other))

    __radd__ = __add__

    def __truediv__(self, count: float) -> "StandardError":
        return StandardError(float(self) / count)


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

    def __new__(cls, total: float | None = None, left_out: int = 1) -> "NotApplicable":
        """A partial sum (None if empty) and how many values were left out of it."""
        value = super().__new__(cls, math.nan if total is None else total)
        value.is_sum, value.left_out = total is not None, left_out
        return value

    def __add__(self, other: float) -> "NotApplicable":
        # An undefined value (nan) of a subset to which the metric applies stays in the sum: its group has no average.
        summed = [float(value) for value in (self, other) if getattr(value, "is_sum", True)]
        left_out = self.left_out + getattr(other, "left_out", 0)
        return type(self)(self.total_of(summed) if summed else None, left_out)

    __radd__ = __add__

    def __truediv__(self, count: float) -> float:
        return float(self) / (count - self.left_out) if count > self.left_out else math.nan

    @staticmethod
    def total_of(values: Sequence[float]) -> float:
        """The sum that enters LightEval's average."""
        return sum(values)


class NotApplicableStandardError(NotApplicable, StandardError):
    """The standard error of such a value. As a `StandardError`, it adds in quadrature."""

    @staticmethod
    def total_of(values: Sequence[float]) -> float:
        """The sum of standard errors of independent subsets (in quadrature)."""
        return math.hypot(*values)


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
