"""Ranks of runs from their items: what a leaderboard's column needs besides its scores."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cultureval.metrics.paired_tests import ratio
from cultureval.reports.item_scores import ItemScores, gives, item_scores
from cultureval.reports.ranks import ITERATIONS, LEVEL, Ranking, Resamples, SubsetScores, rank_models, resample
from cultureval.reports.run_record import Run, TaskRecord
from cultureval.reports.saved_results import details_files_of_run
from cultureval.runtime.errors import CulturevalError, shown_names
from cultureval.tasks.qimma.averages import benchmark_of

Parts = Mapping[tuple[str, str], float]  # task with `|k` and metric -> weight in the average
LEAST_DEFINED = 0.95  # of resamples: those of all models are the ones in which every score is defined
Model = tuple[str, Mapping[str, Run]]  # a name, and the run that each task's score is from


class RankedRuns(NamedTuple):
    """The ranks of runs in one column.

    Attributes:
        ranking: None where fewer than two runs have their items.
        notes: Sentences on what is not in it, and why.
    """

    ranking: Ranking | None
    notes: list[str]


@dataclass(frozen=True)
class RankedItems:
    """The ranks of models in one column, and what they were computed from.

    Attributes:
        ranking: None where fewer than two models have their items.
        labels: Of the models in `resamples`.
        resamples: Their averages; None without a ranking.
        subsets: The items of the same models.
        without: Model -> why it has no rank.
        notes: Sentences on what the ranks count.
    """

    ranking: Ranking | None = None
    labels: Sequence[str] = ()
    resamples: Resamples | None = None
    subsets: Sequence[SubsetScores] = ()
    without: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


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
    """
    labels = names or [run.model for run in runs]
    models = [(label, dict.fromkeys(metrics, run)) for label, run in zip(labels, runs, strict=True)]
    parts = {(task, metric): weights[task] if weights else 1.0 for task, metric in metrics.items()}
    found = rank_items(models, parts, iterations, seed, level, higher_is_better)
    return RankedRuns(found.ranking, [*(f"{label} has no rank: {why}." for label, why in found.without), *found.notes])


def rank_items(
    models: Sequence[Model],
    parts: Parts,
    iterations: int = ITERATIONS,
    seed: int = 0,
    level: float = LEVEL,
    higher_is_better: bool = True,
) -> RankedItems:
    """Ranks models by the weighted average of scores of tasks, on the items that all of them have.

    Args:
        models: Comparable ones (the caller's to see).
        parts: The scores, each a mean or a ratio of sums over items. Those of one task are drawn together.
        iterations: Resamples.
        seed: Of the resamples.
        level: Of confidence.
        higher_is_better: Whether the largest score is first.
    """
    sources = {run.file: run for _, runs in models for run in runs.values()}
    files = {file: details_files_of_run(run) for file, run in sources.items()}
    subsets, notes, lacking = _subsets(models, parts, files)
    without = [(models[place][0], why) for place, why in lacking.items()]
    if lacking:
        models = [model for place, model in enumerate(models) if place not in lacking]
        subsets, notes, _ = _subsets(models, parts, files)
    if len(models) < 2 or not parts or len(subsets) < len(parts):
        return RankedItems(without=without, notes=notes)
    labels = [label for label, _ in models]
    try:
        resamples = resample(subsets, iterations, seed)
        undefined = {
            label: why
            for label, why in zip(labels, map(_undefined, resamples.values, resamples.draws.T), strict=True)
            if why
        }
        if undefined:
            rest = rank_items(
                [model for model in models if model[0] not in undefined],
                parts,
                iterations,
                seed,
                level,
                higher_is_better,
            )
            return replace(rest, without=[*without, *sorted(undefined.items()), *rest.without])
        ranking = rank_models(labels, resamples, level, higher_is_better)
    except ValueError as error:
        return RankedItems(without=without, notes=[*notes, f"there are no ranks: {error}."])
    return RankedItems(ranking, labels, resamples, subsets, without, notes)


def _undefined(value: float, draws: NDArray[np.float64]) -> str:
    """Why a score that is often undefined, of the items or of resamples of them, takes no part in ranks; else ""."""
    if not math.isfinite(value):
        return "its score is not defined on the items that all have"
    share = float(np.isfinite(draws).mean())
    return "" if share >= LEAST_DEFINED else f"its score is not defined in {1 - share:.0%} of resamples of the items"


def _subsets(
    models: Sequence[Model], parts: Parts, files: Mapping[Path, Mapping[str, Path]]
) -> tuple[list[SubsetScores], list[str], dict[int, str]]:
    """The parts' items that all models have, notes on those that only some have, and why models lack some."""
    subsets: list[SubsetScores] = []
    fewer: list[tuple[str, int, int]] = []
    lacking: dict[int, list[str]] = {}
    broken: dict[int, str] = {}
    tasks = [task for task, _ in parts]
    for (task, metric), weight in parts.items():
        tables = []
        for place, (_, runs) in enumerate(models):
            try:
                items = _items(runs[task], task, metric, files)
            except CulturevalError as error:
                items = broken.setdefault(place, str(error).rstrip(".")) and None
            if items is None:
                lacking.setdefault(place, []).append(task)
            else:
                tables.append(items)
        if lacking or len(tables) < 2:
            continue
        shared = _shared(tables)
        if not shared:
            return [], [f"there are no ranks: the models share no item of {task}."], {}
        most = max(len(table.keys) for table in tables)
        if len(shared) < most:
            fewer.append((task, len(shared), most))
        subsets.append(_subset([table.on(shared) for table in tables], task, weight, tasks.count(task) > 1))
    why = {place: f"its details lack the items' scores of {shown_names(names, 3)}" for place, names in lacking.items()}
    return subsets, _notes(fewer), why | broken


def _notes(fewer: Sequence[tuple[str, int, int]]) -> list[str]:
    if not fewer:
        return []
    task, count, most = fewer[0]
    others = f", and not all of {len(fewer) - 1} more tasks" if len(fewer) > 1 else ""
    return [f"ranks count the {count} of {most} items of {task} that all models have{others}."]


def _items(run: Run, task: str, metric: str, files: Mapping[Path, Mapping[str, Path]]) -> ItemScores | None:
    """The items of a run's task; None where they are not known, or do not give the score of the results file."""
    file = files[run.file].get(task)
    found = item_scores(file, task, metric) if file else None
    return found if found and gives(found, run.value(task, metric)) else None


def _shared(tables: Sequence[ItemScores]) -> Sequence[str]:
    """Names of the items that all have, in the order of the first."""
    first, *rest = tables
    others = [set(table.keys) for table in rest if table.keys != first.keys]
    return [key for key in first.keys if all(key in keys for keys in others)] if others else first.keys


def _subset(tables: Sequence[ItemScores], task: str, weight: float, together: bool) -> SubsetScores:
    """A part's items; `together`: each is drawn with its namesake of the task's other metrics."""
    group = task.partition("|")[0].partition(":")[0]
    alone = [(task, key) if together else None for key in tables[0].keys]
    clusters = [own if name is None else (group, name) for name, own in zip(tables[0].clusters, alone, strict=True)]
    score = tables[0].score
    if score is not ratio:
        return SubsetScores(np.stack([table.parts for table in tables], axis=1), clusters, None, weight, score)
    scores, totals = (np.column_stack([table.parts[:, column] for table in tables]) for column in (0, 1))
    same = (totals == totals[:, :1]).all()
    return SubsetScores(scores, clusters, totals[:, 0] if same else totals, weight)
