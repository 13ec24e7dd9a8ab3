"""Means of scores with their standard errors: of subsets, of benchmarks, of domains."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from cultureval.reports.run_record import Run, TaskRecord
from cultureval.runtime.lighteval_patches.group_averages import square_of_unknown


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


def estimate(run: Run, task: TaskRecord, metric: str, scale: float = 1.0) -> Estimate | None:
    """A task's score; None where the run has none, or an undefined one.

    Args:
        run: A results file.
        task: A task of it.
        metric: A metric.
        scale: Factor of the value and its error.
    """
    value, stderr = run.value(task.task, metric), run.stderr(task.task, metric)
    if value is None:
        return None
    return Estimate(
        scale * value, None if stderr is None else scale * stderr, task.scored.get(metric, task.rows) or None
    )


def percentage(run: Run, task: TaskRecord, metric: str) -> Estimate | None:
    """A task's score in percent; None where the run has none, or an undefined one.

    Args:
        run: A results file.
        task: A task of it.
        metric: A metric between 0 and 1.
    """
    return estimate(run, task, metric, 100)


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


def as_written(run: Run, name: str, metric: str, mean: Estimate, scale: float = 1.0) -> Estimate:
    """A mean over tasks with the value and error of the results file, where the file has it.

    The file's error is made while the items are known: tasks that share some are not independent.

    Args:
        run: A results file.
        name: Of the mean in it: `qimma_aradice:_average|0`.
        metric: A metric.
        mean: The mean over the same tasks.
        scale: Factor of the file's value and error.
    """
    value, stderr = run.value(name, metric), run.stderr(name, metric)
    return mean if value is None or stderr is None else Estimate(scale * value, scale * stderr, mean.n)
