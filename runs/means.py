"""Means of scores with their standard errors: of items, of subsets, of benchmarks, of domains.

The numbers of a results file are checked against what they are made of (`checked`): what differs is told and replaced.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from cultureval.metrics.declared import Range
from cultureval.metrics.proportions import NORMAL_95, interval_of_error
from cultureval.metrics.standard_errors import clustered_standard_error
from cultureval.runs.files import (
    ColumnOfScores,
    details_by_task,
    details_files_of_run,
    details_means,
    output_folder,
    own_details,
)
from cultureval.runs.items import ItemScores, item_scores
from cultureval.runs.record import Claim, Run, TaskRecord
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.lighteval_patches.group_averages import square_of_unknown
from cultureval.tasks.catalogue import declared_metric

ROUNDING = 1e-6  # by which a score may differ from what it is made of, relative to itself where that is above 1
ROWS = "rows"
OUTSIDE = "which it does not give"
Found = tuple[str, float, float | None]  # metric, value, standard error


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


def interval_of(task: str, metric: str, value: float | None, stderr: float | None) -> tuple[float, float] | None:
    """The 95% interval of a task's score as in the results file; None where the score or its error is unknown.

    Args:
        task: Its name with `|k`.
        metric: A metric of it, whose declared range the interval keeps.
        value: The score.
        stderr: Its standard error.
    """
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


def agree(value: float, other: float) -> bool:
    """Whether two numbers are the same up to rounding."""
    return abs(value - other) <= ROUNDING * max(1.0, abs(other))


def checked(run: Run) -> Run:
    """A run whose scores are those that its items, and for averages its subsets, give; `claims` has what differs.

    Means of rows' values are checked for every metric, other headlines from their statistics, but for those that need
    the replies' texts (`Suite.slow_statistics`), which comparisons check. What has no details stays as it is.
    """
    files = details_files_of_run(run)
    claims: list[Claim] = []
    unchecked: dict[str, str] = {}
    scores: dict[str, Mapping[str, float | None]] = dict(run.scores)
    tasks = dict(run.record.tasks)
    for name, record in run.record.tasks.items():
        if name not in files:
            unchecked |= {name: "its details are not there"} if files and run.scores.get(name) else {}
            continue
        try:
            of_task, tasks[name], outside = _of_items(run, record, files[name])
        except CulturevalError as error:
            unchecked[name] = str(error).rstrip(".")
            continue
        unchecked |= {name: outside} if outside else {}
        claims += [claim for claim, _ in of_task]
        scores[name] = {**scores.get(name, {}), **_corrections(of_task)}
    averages = list(_of_subsets(scores))
    for claim, error in averages:
        scores[claim.task] = {**scores[claim.task], **_corrections([(claim, error)])}
    claims += [claim for claim, _ in averages]
    if not claims and not unchecked and all(tasks[name] is known for name, known in run.record.tasks.items()):
        return run
    record = run.record.model_copy(update={"tasks": tasks})
    return replace(run, scores=scores, record=record, claims=(*run.claims, *claims), unchecked=unchecked)


def checked_judgement(run: Run) -> tuple[dict[str, dict[str, float | None]], list[Claim]]:
    """A judge's scores of a judgement as its verdicts in the details give them, and what its file says otherwise.

    Details that cannot be read, or are not there, leave the file's scores as they are.
    """
    files = {} if output_folder(run.file) is None else details_by_task(own_details(run.file))
    scores = {task: dict(values) for task, values in run.scores.items()}
    claims = []
    for task, values in scores.items():
        try:
            _, found = details_means(files[task], list(values)) if task in files else (0, {})
        except CulturevalError:
            continue
        for metric, column in found.items():
            claimed = values[metric]
            if claimed is not None and column.count and not agree(column.mean, claimed):
                claims.append(Claim(task, metric, claimed, column.mean, "items"))
                values |= {metric: column.mean, f"{metric}_stderr": None}
    return scores, claims


def _corrections(claims: Sequence[tuple[Claim, float | None]]) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for claim, error in claims:
        if claim.metric != ROWS:
            found |= {claim.metric: None if math.isnan(claim.found) else claim.found, f"{claim.metric}_stderr": error}
    return found


def _of_items(run: Run, record: TaskRecord, file: Path) -> tuple[list[tuple[Claim, float | None]], TaskRecord, str]:
    """What a task's scores are by its details, where the file says otherwise, and what is wrong with the details."""
    claims: list[tuple[Claim, float | None]] = []
    rows, found = details_means(file, [one for one in record.metrics if one not in record.not_means])
    if record.rows and rows != record.rows:
        claims.append((Claim(record.task, ROWS, record.rows, rows, "details"), None))
        record = record.model_copy(update={"rows": rows, "items": None, "scored": {}})
    counts = {metric: _scored(run, record, file, metric, column.count, rows) for metric, column in found.items()}
    record = _with_counts(record, rows, counts)
    means = {metric: column.mean for metric, column in found.items() if column.count}
    headline, slow = record.metrics[0] if record.metrics else "", _slow_metrics(record)
    if headline and headline not in found and headline not in record.not_means and slow is not None:
        items = None if headline in slow else _known_items(record, file, headline)
        means |= {headline: float(items.score(items.parts.sum(axis=0)))} if items else {}
    for metric, mean in means.items():
        claimed = run.value(record.task, metric)
        if metric in record.not_applicable or metric in (slow or ()) or claimed is None or agree(mean, claimed):
            continue
        items = _known_items(record, file, metric)  # whose score may count items otherwise than their mean does
        mean = float(items.score(items.parts.sum(axis=0))) if items else mean
        if not agree(mean, claimed):
            claims.append((Claim(record.task, metric, claimed, mean, "items"), _error_of(items)))
    return claims, record, _outside(record.task, headline, found[headline]) if headline in found else ""


def _outside(task: str, metric: str, column: ColumnOfScores) -> str:
    """Words for scores of items that a metric does not give; "" for others."""
    declared = declared_metric(task, metric)
    if declared is None or not column.count:
        return ""
    low, high = declared.range
    inside = low - ROUNDING <= column.low and column.high <= high + ROUNDING
    return "" if inside else f"items have a {metric} of {column.low:g} to {column.high:g}, {OUTSIDE}"


def _scored(run: Run, record: TaskRecord, file: Path, metric: str, count: int, rows: int) -> int:
    """How many rows a metric has a score of; rows that it does not apply to need none."""
    if count == rows or not run.record.schema_ or record.scored.get(metric) == count:
        return count
    items = _known_items(record, file, metric)
    return rows - int((~items.scored).sum()) if items and len(items.keys) == rows else count


def _known_items(record: TaskRecord, file: Path, metric: str) -> ItemScores | None:
    """A metric's items; None where they are not known, or what makes them (a classifier's file) is not here."""
    try:
        return item_scores(file, record.task, metric)
    except CulturevalError:
        return None


def _with_counts(record: TaskRecord, rows: int, counts: Mapping[str, int]) -> TaskRecord:
    """The record with the numbers of rows that have a score, as the details have them: stock LightEval tells none."""
    told = {metric: count for metric, count in counts.items() if metric not in record.not_applicable}
    scored = {metric: count for metric, count in record.scored.items() if metric not in told}
    scored |= {metric: count for metric, count in told.items() if count < rows}
    changed = {"rows": rows, "scored": scored}
    same = (record.rows, record.scored) == (rows, scored)
    return record if same else record.model_copy(update=changed)


def _slow_metrics(record: TaskRecord) -> tuple[str, ...] | None:
    """The metrics whose statistics take too long for a look; None of suites without statistics."""
    from cultureval.tasks.catalogue import all_suites

    suite = all_suites().get(record.suite)
    return suite.slow_statistics if suite and suite.statistics else None


def _error_of(items: ItemScores | None) -> float | None:
    """The standard error of a mean of items; None of other scores, and of a single item."""
    if items is None:
        return None
    values = items.values()
    known = [
        (float(value), cluster or (place,))
        for place, (value, cluster) in enumerate(zip(values, items.clusters, strict=True))
        if value == value
    ]
    if items.parts.shape[1] != 2 or len(known) < 2:
        return None
    error = clustered_standard_error(*zip(*known, strict=True))
    return None if math.isnan(error) else float(error)


def _of_subsets(scores: Mapping[str, Mapping[str, float | None]]) -> Iterator[tuple[Claim, float | None]]:
    """The averages that are not those of their subsets, each with its standard error."""
    for name, values in scores.items():
        members = _members(name, scores)
        for metric, claimed in values.items() if members else ():
            if metric.endswith("_stderr") or claimed is None or not all(metric in member for member in members):
                continue
            parts = [member[metric] for member in members]
            known = [part for part in parts if part is not None]
            # Counts are added in the means that tables declare; undefined parts may be left out.
            if any(agree(found, claimed) for found in (math.fsum(known) / max(len(known), 1), math.fsum(known))):
                continue
            errors = [member.get(f"{metric}_stderr") for member in members]
            mean = (
                mean_of([Estimate(part, error) for part, error in zip(known, errors, strict=False)]) if known else None
            )
            value, error = (mean.value, mean.stderr) if mean and len(known) == len(parts) else (math.nan, None)
            yield Claim(name, metric, claimed, value, "subsets"), error


def _members(name: str, scores: Mapping[str, Mapping[str, float | None]]) -> list[Mapping[str, float | None]]:
    """The scores of the subsets that an average is of; [] of other names, and where a subset is missing."""
    from cultureval.tasks.catalogue import all_tasks

    bare, _, shots = name.partition("|")
    group, sign, mean = bare.partition(":_")
    if not sign:
        return []
    if mean == "average":
        return [values for task, values in scores.items() if _is_subset(task, group, shots)]
    wanted = [f"{task.task}|{shots}" for task in all_tasks().values() if task.mean == bare]
    return [scores[task] for task in wanted] if all(task in scores for task in wanted) else []


def _is_subset(task: str, group: str, shots: str) -> bool:
    bare, _, own = task.partition("|")
    return own == shots and bare.startswith(f"{group}:") and not bare.startswith(f"{group}:_")
