"""Ranks of runs from their items: what a leaderboard's column needs besides its scores."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cultureval.metrics.paired_tests import ratio
from cultureval.metrics.resampling import LEAST_DEFINED
from cultureval.reports.ranks import ITERATIONS, Ranking, Resamples, SubsetScores, rank_models, resample
from cultureval.runs.comparable import asked_otherwise, hashes_of_rows, in_no_details, is_content_alike, record_of
from cultureval.runs.files import details_files_of_run
from cultureval.runs.items import ItemScores, aligned, drawn_with, gives, item_scores, note_lacking
from cultureval.runs.record import Run, TaskRecord
from cultureval.runs.warnings import published_rows
from cultureval.runtime.errors import CulturevalError, counted, shown_names
from cultureval.tasks.catalogue import all_suites, groups

Parts = Mapping[tuple[str, str], float]  # task with `|k` and metric -> weight in the average
MARKED = 0.01  # of a benchmark's items: a model that has no score for more of them is marked with the benchmark
LeftOut = dict[Any, NDArray[np.bool_]]  # ((benchmark, task), keys) -> which of these items lack one of its scores
Model = tuple[str, Mapping[str, Run]]  # a name, and the run that each task's score is from


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
        left_out: Model -> a sentence on the items that it has no score for, which count as wrong in its rank.
    """

    ranking: Ranking | None = None
    labels: Sequence[str] = ()
    resamples: Resamples | None = None
    subsets: Sequence[SubsetScores] = ()
    without: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)


def average_weights(tasks: Sequence[TaskRecord]) -> dict[str, float]:
    """The weight of each task, by its name with `|k`, in an average over benchmarks of the means of their subsets.

    Benchmarks are those of the suite's declared average (`Suite.averages`), else those that the tasks name.
    """
    places = {
        name: (suite, number)
        for suite in dict.fromkeys(task.suite for task in tasks)
        for number, member in enumerate(_averaged(suite))
        for name in member
    }
    benchmarks: dict[tuple[str, int | str], list[str]] = {}
    for task in tasks:
        place = places.get(task.task.partition("|")[0], (task.suite, task.benchmark))
        benchmarks.setdefault(place, []).append(task.task)
    return {name: 1 / len(benchmarks) / len(members) for members in benchmarks.values() for name in members}


def _averaged(suite: str) -> list[dict[str, str]]:
    """The benchmarks of a suite's own average, each as its tasks with their metrics; [] without such an average."""
    known = all_suites().get(suite)
    declared = {one.name: one for one in known.part("averages")()} if known and known.averages else {}
    members = declared[suite].members if suite in declared else {}

    def tasks(name: str, metric: str) -> dict[str, str]:
        if name in declared:
            return {task: key for one, own in declared[name].members.items() for task, key in tasks(one, own).items()}
        return dict.fromkeys(groups(suite).get(name, [name]), metric)

    return [tasks(name, metric) for name, metric in members.items()]


def rank_items(
    models: Sequence[Model], parts: Parts, iterations: int = ITERATIONS, higher_is_better: bool = True
) -> RankedItems:
    """Ranks models by the weighted average of scores of tasks, on the items that any of them has.

    Items that a model has no score for, or that are absent from its details, count as wrong in its rank: no model gains
    by leaving them out, and ranks never shrink to what one model answered. One whose score could not be checked by what
    it is made of (`Run.unchecked`) has no rank.

    Args:
        models: Comparable ones (the caller's to see).
        parts: The scores, each a mean or a ratio of sums over items. Those of one task are drawn together.
    """
    sources = {run.file: run for _, runs in models for run in runs.values()}
    files = {file: details_files_of_run(run) for file, run in sources.items()}
    without: dict[str, str] = {}
    subsets, lacking, left_out = _subsets(models, parts, files)
    while lacking:  # without them others may have all items
        without |= {models[place][0]: why for place, why in lacking.items()}
        models = [model for place, model in enumerate(models) if place not in lacking]
        subsets, lacking, left_out = _subsets(models, parts, files)
    if len(models) < 2 or not parts or len(subsets) < len(parts):
        return RankedItems(without=without)
    labels = [label for label, _ in models]
    try:
        resamples = resample(subsets, iterations)
        undefined = {
            label: why
            for label, why in zip(labels, map(_undefined, resamples.values, resamples.draws.T), strict=True)
            if why
        }
        if undefined:
            defined = [model for model in models if model[0] not in undefined]
            rest = rank_items(defined, parts, iterations, higher_is_better)
            return replace(rest, without=without | dict(sorted(undefined.items())) | rest.without)
        ranking = rank_models(labels, resamples, higher_is_better=higher_is_better)
    except ValueError as error:
        return RankedItems(without=without, notes=[f"there are no ranks: {error}."])
    marked = {label: told for label, counts in left_out.items() if (told := _marked(counts))}
    return RankedItems(ranking, labels, resamples, subsets, without, left_out=marked)


def _marked(counts: LeftOut) -> str:
    """The sentence on a model's items without a score: of benchmarks with many of them by name; "" without any."""
    of_benchmarks: dict[str, list[NDArray[np.bool_]]] = {}
    for ((benchmark, _), _), lacking in counts.items():
        of_benchmarks.setdefault(benchmark, []).append(lacking)
    joined = {name: np.concatenate(parts) for name, parts in of_benchmarks.items()}
    total = sum(int(lacking.sum()) for lacking in joined.values())
    many = [
        f"{lacking.sum()} of {lacking.size} of {name}"
        for name, lacking in joined.items()
        if lacking.sum() > MARKED * lacking.size
    ]
    named = f" ({', '.join(many)})" if many else ""
    told = (
        f"{counted(total, 'item')} without a score{named} {'counts' if total == 1 else 'count'} as wrong in its rank."
    )
    return told if total else ""


def _undefined(value: float, draws: NDArray[np.float64]) -> str:
    """Why a score that is often undefined, of the items or of resamples of them, takes no part in ranks; else ""."""
    if not math.isfinite(value):
        return "its score is not defined"
    share = float(np.isfinite(draws).mean())
    return "" if share >= LEAST_DEFINED else f"its score is not defined in {1 - share:.0%} of resamples of the items"


def _subsets(
    models: Sequence[Model], parts: Parts, files: Mapping[Path, Mapping[str, Path]]
) -> tuple[list[SubsetScores], dict[int, str], dict[str, LeftOut]]:
    """The parts' items that any model has, why models cannot be ranked on them, and what of them models lack."""
    subsets: list[SubsetScores] = []
    lacking: dict[int, dict[str, None]] = {}
    broken: dict[int, str] = {}
    other: dict[int, str] = {}
    left_out: dict[str, LeftOut] = {}
    tasks = [task for task, _ in parts]
    for (task, metric), weight in parts.items():
        tables: dict[int, ItemScores] = {}
        for place, (_, runs) in enumerate(models):
            try:
                items = _items(runs[task], task, metric, files)
            except CulturevalError as error:
                items = broken.setdefault(place, str(error).rstrip(".")) and None
            if items is None:
                lacking.setdefault(place, {})[task] = None  # once, however many of its metrics
            else:
                tables[place] = items
                if task in runs[task].unchecked:
                    broken.setdefault(place, runs[task].unchecked[task])
        if len(tables) < 2:
            continue
        tables, others = _of_the_same_rows(models, task, tables, files)
        other |= {place: f"it has other {what} of {task}" for place, what in others.items()}
        whole = aligned(list(tables.values()))
        refused = in_no_details([record_of(models[place][1][task], task) for place in tables], len(whole[0].keys))
        whole = [items.with_lacking(refused) for items in whole]
        unbounded = {place: _unbounded(items, task) for place, items in zip(tables, whole, strict=True)}
        broken |= {place: why for place, why in unbounded.items() if why}
        if lacking or broken or other:
            continue
        subsets.append(_subset(whole, drawn_with(whole[0], task, tasks), weight))
        for place, items in zip(tables, whole, strict=True):
            label, runs = models[place]
            note_lacking(left_out.setdefault(label, {}), (_benchmark(runs[task], task), task), items)
    why = {
        place: f"its details lack the items' scores of {shown_names(list(names), 3)}"
        for place, names in lacking.items()
    }
    return subsets, why | broken or other, left_out  # others' rows are those of a model that stays


def _of_the_same_rows(
    models: Sequence[Model], task: str, tables: Mapping[int, ItemScores], files: Mapping[Path, Mapping[str, Path]]
) -> tuple[dict[int, ItemScores], dict[int, str]]:
    """The tables whose rows are those of one of them, with its names of items; of the others what they have otherwise.

    It is one of the published number of rows, else of the most: how many files say otherwise counts for nothing.
    """
    runs = {place: models[place][1][task] for place in tables}
    records = {place: record_of(run, task) for place, run in runs.items()}
    hashes = dict(zip(tables, hashes_of_rows(list(records.values())), strict=True))
    first = max(tables, key=lambda place: _number_of_rows(records[place], tables[place]))
    home, found, others = tables[first], dict[int, ItemScores](), dict[int, str]()
    for place, items in tables.items():
        if (items.keys, items.clusters) != (home.keys, home.clusters):
            pair = records[first], records[place], *(files[runs[at].file][task] for at in (first, place))
            unlike = asked_otherwise(*pair)
            others |= {place: "clusters"} if "clusters" in unlike else {}
            others |= {place: "rows"} if "items" in unlike else {}
            items = replace(items, keys=home.keys) if is_content_alike(*pair) and items.rows == home.rows else items
        if hashes[place] and hashes[first] and hashes[place] != hashes[first]:
            others[place] = "rows"
        found |= {place: items} if place not in others else {}
    return found, others


def _number_of_rows(record: TaskRecord, items: ItemScores) -> tuple[bool, int, int]:
    """By what the table is chosen whose rows are ranked: is it of the published rows, how many, how many are here."""
    rows = sum(map(len, items.rows)) + record.refused
    return rows == published_rows(record), rows, -record.refused


def _unbounded(items: ItemScores, task: str) -> str:
    """Why a model has no rank: nothing bounds the scores that it lacks; else ""."""
    if items.filled() is not None:
        return ""
    count = counted(int((~items.scored).sum()), "item")
    return f"{count} of {task} without a score, and nothing bounds what it could be"


def _benchmark(run: Run, task: str) -> str:
    record = run.record.tasks.get(task)
    return record.benchmark if record else task.partition("|")[0].partition(":")[0]


def _items(run: Run, task: str, metric: str, files: Mapping[Path, Mapping[str, Path]]) -> ItemScores | None:
    """The items of a run's task; None where they are not known, or do not give the score of the results file."""
    file = files[run.file].get(task)
    found = item_scores(file, task, metric) if file else None
    return found if found and gives(found, run.value(task, metric)) else None


def _subset(tables: Sequence[ItemScores], clusters: Sequence[Hashable], weight: float) -> SubsetScores:
    """A part's items."""
    score = tables[0].score
    filled = [parts for table in tables if (parts := table.filled()) is not None]
    if score is not ratio:
        return SubsetScores(np.stack(filled, axis=1), clusters, None, weight, score)
    scores, totals = (np.column_stack([parts[:, column] for parts in filled]) for column in (0, 1))
    same = (totals == totals[:, :1]).all()
    spans = None if all(table.scored.all() for table in tables) else _spans(tables)
    return SubsetScores(scores, clusters, totals[:, 0] if same else totals, weight, spans=spans)


def _spans(tables: Sequence[ItemScores]) -> NDArray[np.float64]:
    """[N, M] from the worst score to the best of items without a score; infinite where nothing bounds the best."""
    spans = np.zeros((len(tables[0].keys), len(tables)))
    for place, table in enumerate(tables):
        if table.worst is not None:
            best = np.inf if table.best is None else table.best[:, 0]
            spans[:, place] = np.where(table.scored, 0.0, best - table.worst[:, 0])
    return spans
