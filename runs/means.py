"""Means of scores with their standard errors: of items, of subsets, of benchmarks, of domains."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cultureval.metrics.declared import Range
from cultureval.metrics.proportions import NORMAL_95, interval_of_error
from cultureval.runs.record import Run, TaskRecord
from cultureval.runtime.patches.lighteval.group_averages import square_of_unknown
from cultureval.tasks.catalogue import all_tasks, declared_metric

ROUNDING = 1e-6  # by which a score may differ from what it is made of, relative to itself where that is above 1


class Estimate(NamedTuple):
    """A score.

    Attributes:
        value: In any unit.
        stderr: Its standard error in that unit; None where unknown (one item, or a file without errors).
        n: Items that it is a mean of; None where unknown.
    """

    value: float
    stderr: float | None = None
    n: int | None = None

    def interval(self, bounds: Range | None = None) -> tuple[float, float] | None:
        """The 95% interval, never beyond the range of the score.

        Between two finite bounds it is `interval_of_error`, which holds near them too; else 1.96 standard errors on
        either side, cut at the one bound that there is.

        Args:
            bounds: The lowest and the highest value that there can be, in the unit of the value; None: nobody knows.

        Returns:
            Low and high; None without a standard error.
        """
        if self.stderr is None or not math.isfinite(self.stderr):
            return None
        low, high = bounds or (-math.inf, math.inf)
        if not (math.isfinite(low) and math.isfinite(high) and low <= self.value <= high):
            reach = NORMAL_95 * self.stderr
            return max(low, self.value - reach), min(high, self.value + reach)
        width = high - low
        least, most = interval_of_error((self.value - low) / width, self.stderr / width)
        return low + width * least, low + width * most


def estimate(run: Run, task: TaskRecord, metric: str, scale: float = 1.0) -> Estimate | None:
    """A task's score, with its error times `scale`; None where the run has none, or an undefined one."""
    value, stderr = run.value(task.task, metric), run.stderr(task.task, metric)
    if value is None:
        return None
    return Estimate(scale * value, None if stderr is None else scale * stderr, task.n_of(metric) or None)


def percentage(run: Run, task: TaskRecord, metric: str) -> Estimate | None:
    """A task's score between 0 and 1 in percent; None where the run has none, or an undefined one."""
    return estimate(run, task, metric, 100)


def interval_of(task: str, metric: str, value: float | None, stderr: float | None) -> tuple[float, float] | None:
    """The 95% interval of a score, in the metric's declared range; None where the score or its error is unknown."""
    if value is None:
        return None
    declared = declared_metric(task, metric)
    return Estimate(value, stderr).interval(declared.range if declared else None)


def mean_of(estimates: Sequence[Estimate], same_items: bool = False) -> Estimate:
    """The unweighted mean of independent estimates; its standard error is sqrt(sum of squared errors) / count.

    Estimates of the same items (a sentence in several dialects) vary together: their error is the mean of their errors,
    an upper bound.

    An estimate without an error (a subset of one item has none) does not take it from the mean: its squared error is
    the other estimates' variance of an item, pooled by their counts, over its own count. Where a count is unknown, it
    is the mean of the other squared errors.

    Args:
        estimates: At least one.
        same_items: Whether they are of the same items.

    Returns:
        The mean; its count is the sum. Without any known error it has none.
    """
    value = math.fsum(estimate.value for estimate in estimates) / len(estimates)
    counts = [estimate.n for estimate in estimates if estimate.n is not None]
    known = [estimate for estimate in estimates if estimate.stderr is not None]
    stderr = None
    if known:
        errors = [math.sqrt(_squared_error(estimate, known)) for estimate in estimates]
        stderr = (math.fsum(errors) if same_items else math.hypot(*errors)) / len(estimates)
    return Estimate(value, stderr, sum(counts) if len(counts) == len(estimates) else None)


def _squared_error(estimate: Estimate, known: Sequence[Estimate]) -> float:
    """The squared standard error of an estimate, where it is unknown from those of `known`."""
    if estimate.stderr is not None:
        return estimate.stderr**2
    return square_of_unknown(estimate.n, [(other.stderr, other.n) for other in known])


def members_of(name: str, scores: Iterable[str]) -> list[str] | None:
    """The tasks with `|k` that an average is of: those of a group that are in `scores`, or all of a declared mean.

    None of what is no average.
    """
    bare, _, shots = name.partition("|")
    group, sign, mean = bare.partition(":_")
    if not sign:
        return None
    if mean != "average":
        return [f"{task.task}|{shots}" for task in all_tasks().values() if task.mean == bare] or None
    found = ((task, *task.partition("|")[::2]) for task in scores)
    return [
        task
        for task, plain, own in found
        if own == shots and plain.startswith(f"{group}:") and not plain.startswith(f"{group}:_")
    ]


def count_of(run: Run, name: str, metric: str) -> tuple[int | None, float | None]:
    """Of how many items a score of a task or an average is, and the share of all that were asked that have one.

    Both are None where nobody knows, and of a metric that does not apply to the task.
    """
    known_tasks = run.record.unanswered | run.record.tasks
    members = members_of(name, [*run.scores, *run.record.unanswered])
    records = [known_tasks.get(task) for task in ([name] if members is None else members)]
    known = [one for one in records if one and one.n]
    if len(known) < len(records):
        return None, None
    known = [one for one in known if metric not in one.not_applicable or run.value(one.task, metric) is not None]
    total = sum(one.n for one in known)
    n = sum(one.n_of(metric) for one in known) if known else None
    return n, sum(one.items_with(metric) for one in known) / total if total else None


def as_written(run: Run, name: str, metric: str, mean: Estimate, scale: float = 1.0) -> Estimate:
    """A mean over tasks with the value and error that the results file has of it (`group:_average|0`), times `scale`.

    The file's error is made while the items are known: tasks that share some are not independent.
    """
    value, stderr = run.value(name, metric), run.stderr(name, metric)
    return mean if value is None or stderr is None else Estimate(scale * value, scale * stderr, mean.n)


def agree(value: float, other: float) -> bool:
    """Whether two numbers are the same up to rounding."""
    return abs(value - other) <= ROUNDING * max(1.0, abs(other))
