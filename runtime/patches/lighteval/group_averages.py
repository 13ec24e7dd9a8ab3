"""Numbers that LightEval averages correctly over a group's subsets and over all tasks.

LightEval averages every value of the results as sum(values) / count. What needs another sum or count is a float here
that overrides addition and division.
"""

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Self


class StandardError(float):
    """A standard error that adds in quadrature; nan where a subset has none.

    Subsets that share clusters of items (a request in each dialect) are not independent: what a cluster adds to the
    errors of several subsets is added before it is squared. A subset without an error (a single item) is given that of
    `square_of_unknown`.
    """

    parts: tuple[tuple[float, int | None], ...]  # error (nan: none) and items (None: unknown) of each subset in a sum
    clusters: Mapping[str, float]  # what each cluster that other subsets may share adds to the error

    def __new__(
        cls,
        error: float | str,
        items: int | None = None,
        clusters: Mapping[str, float] | None = None,
        parts: tuple[tuple[float, int | None], ...] = (),
    ) -> "StandardError":
        """The error of a subset of so many items; with `parts`, of a sum over subsets."""
        value = super().__new__(cls, error)
        value.parts = parts or ((float(value), items),)
        value.clusters = clusters or {}
        return value

    @classmethod
    def of_whole(cls, error: float, items: int, clusters: Collection[Hashable]) -> Self:
        """The error of a score of items in clusters, of which nobody knows what each adds: all add the same.

        What subsets share then varies together, an upper bound. Clusters that are no names are shared with none.
        """
        names = (name for name in clusters if isinstance(name, str) and not math.isnan(error))
        return cls(error, items, dict.fromkeys(names, error / math.sqrt(max(len(clusters), 1))))

    def __add__(self, other: float) -> "StandardError":
        if type(other) is int and other == 0:  # the start value of sum(), not a subset's error
            return self
        one, two = (each if isinstance(each, StandardError) else StandardError(each) for each in (self, other))
        squares = [float(part) ** 2 for part in (one, two) if not math.isnan(part)]
        together = math.fsum(
            2 * share * two.clusters[name] for name, share in one.clusters.items() if name in two.clusters
        )
        clusters = {
            name: one.clusters.get(name, 0.0) + two.clusters.get(name, 0.0) for name in {**one.clusters, **two.clusters}
        }
        error = math.sqrt(max(0.0, math.fsum([*squares, together]))) if squares else math.nan
        return StandardError(error, clusters=clusters, parts=one.parts + two.parts)

    __radd__ = __add__

    def __truediv__(self, count: float) -> "StandardError":
        known = [(error, items) for error, items in self.parts if not math.isnan(error)]
        unknown = [square_of_unknown(items, known) for error, items in self.parts if math.isnan(error)]
        return StandardError(math.sqrt(math.fsum([float(self) ** 2, *unknown])) / count if known else math.nan)

    def __reduce__(self) -> tuple:
        return StandardError, (float(self), None, self.clusters, self.parts)


def square_of_unknown(items: int | None, known: Sequence[tuple[float, int | None]]) -> float:
    """The squared standard error that a part of a mean without one (a single item) is given.

    It is the other parts' variance of an item, pooled by their numbers of items, over its own number (nan without any
    `known` part); where a number is unknown, the mean of their squared errors.
    """
    if not known:
        return math.nan
    numbers = [number for _, number in known if number]
    if not items or len(numbers) < len(known):
        return math.fsum(error**2 for error, _ in known) / len(known)
    squares = (number * number * error**2 for (error, _), number in zip(known, numbers, strict=True))
    return math.fsum(squares) / sum(numbers) / items


class Rate(float):
    """A metric that may be undefined (nan), and is then left out of averages instead of counting as 0."""

    defined: int  # values in a sum, by which it is divided

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
