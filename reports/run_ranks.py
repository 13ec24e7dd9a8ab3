"""Ranks of runs from their items: what a leaderboard's column needs besides its scores."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cultureval.metrics.paired_tests import ratio
from cultureval.reports.item_scores import ItemScores, gives, item_scores
from cultureval.reports.qimma.headline import benchmark_of
from cultureval.reports.ranks import ITERATIONS, LEVEL, Ranking, SubsetScores, rank_models, resample
from cultureval.reports.run_record import Run, TaskRecord
from cultureval.reports.saved_results import details_files_of_run
from cultureval.runtime.errors import CulturevalError, shown_names


class RankedRuns(NamedTuple):
    """The ranks of runs in one column.

    Attributes:
        ranking: None where fewer than two runs have their items.
        notes: Sentences on what is not in it, and why.
    """

    ranking: Ranking | None
    notes: list[str]


def average_weights(tasks: Sequence[TaskRecord]) -> dict[str, float]:
    """The weight of each task, by its name with `|k`, in an average over benchmarks of the means of their subsets.

    QIMMA's two groups of MedArabiQ are one benchmark, its two code tasks are two.
    """
    groups: dict[str, list[str]] = {}
    for task in tasks:
        groups.setdefault(benchmark_of(task.group, task.benchmark, task.subset), []).append(task.task)
    return {name: 1 / len(groups) / len(members) for members in groups.values() for name in members}


def rank_runs(
    runs: Sequence[Run],
    metrics: Mapping[str, str],
    weights: Mapping[str, float] | None = None,
    names: Sequence[str] | None = None,
    iterations: int = ITERATIONS,
    seed: int = 0,
    level: float = LEVEL,
    higher_is_better: bool = True,
) -> RankedRuns:
    """Ranks runs by the weighted average of tasks, on the items that all of them have.

    Runs are comparable (the caller's to see: the same data, prompts and scorers).

    Args:
        runs: One a model.
        metrics: Task with `|k` -> its metric.
        weights: Of the tasks, as of `average_weights`; None: all alike.
        names: Of the runs; None: their models' names.
        iterations: Resamples.
        seed: Of the resamples.
        level: Of confidence.
        higher_is_better: Whether the largest score is first.

    Returns:
        The ranking. A run without the details of a task, or without a metric's items in them, is not in it.

    Raises:
        CulturevalError: Details cannot be read.
    """
    labels = list(names or (run.model for run in runs))
    found, notes = [], []
    for run, label in zip(runs, labels, strict=True):
        items, lacking = _items(run, metrics)
        if lacking:
            names_of_lacking = shown_names(lacking, 3)
            notes.append(f"{label} has no rank: its details lack the items' scores of {names_of_lacking}.")
        else:
            found.append((label, items))
    if len(found) < 2 or not metrics:
        return RankedRuns(None, notes)
    subsets = []
    for task in metrics:
        tables = [items[task] for _, items in found]
        shared = _shared(tables)
        if not shared:
            return RankedRuns(None, [*notes, f"there are no ranks: the models share no item of {task}."])
        most = max(len(table.keys) for table in tables)
        if len(shared) < most:
            notes.append(f"ranks count the {len(shared)} of {most} items of {task} that all models have.")
        subsets.append(_subset([table.on(shared) for table in tables], task, weights[task] if weights else 1.0))
    ranked = [label for label, _ in found]
    try:
        ranking = rank_models(ranked, resample(subsets, iterations, seed), level, higher_is_better)
    except ValueError as error:
        return RankedRuns(None, [*notes, f"there are no ranks: {error}."])
    return RankedRuns(ranking, notes)


def _items(run: Run, metrics: Mapping[str, str]) -> tuple[dict[str, ItemScores], list[str]]:
    """The items of a run's tasks, and the tasks whose items are not known."""
    files = details_files_of_run(run)
    items = {
        task: item_scores(files[task], task, metric) if task in files else None for task, metric in metrics.items()
    }
    known = {task: one for task, one in items.items() if one and gives(one, run.value(task, metrics[task]))}
    return known, [task for task in metrics if task not in known]


def _shared(tables: Sequence[ItemScores]) -> list[str]:
    """Names of the items that all have, in the order of the first."""
    others = [set(table.keys) for table in tables[1:]]
    return [key for key in tables[0].keys if all(key in keys for keys in others)]


def _subset(tables: Sequence[ItemScores], task: str, weight: float) -> SubsetScores:
    if any(table.score is not ratio for table in tables):
        raise CulturevalError(f"{task}: its score is no mean or ratio of items, so that ranks need another metric.")
    scores, totals = (np.column_stack([table.parts[:, column] for table in tables]) for column in (0, 1))
    group = task.partition("|")[0].partition(":")[0]
    clusters = [None if name is None else (group, name) for name in tables[0].clusters]
    return SubsetScores(scores, clusters, totals, weight)
