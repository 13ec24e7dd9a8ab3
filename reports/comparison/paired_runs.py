"""Paired tests of runs: of every group of tasks, of its subsets, and of QIMMA's average, for each pair of sides."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from cultureval.metrics.paired_tests import PairedResult, PairedSubset, compare_paired
from cultureval.metrics.proportions import holm
from cultureval.reports.comparison.obstacles import KINDS, Obstacle, obstacles
from cultureval.reports.comparison.sides import ComparedTask, Side
from cultureval.reports.item_scores import ItemScores, gives, item_scores
from cultureval.runtime.errors import CulturevalError, shown_names
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.qimma.averages import SUITE as QIMMA
from cultureval.tasks.qimma.averages import benchmark_of, benchmark_tasks

MOST_OBSTACLES = 8
GROUP, SUBSET, AVERAGE = "group", "subset", "average"


@dataclass(frozen=True)
class PairedTask:
    """A task that two sides have, on the items that both have.

    Attributes:
        task: Its name with `|k`, of the first side.
        metric: The metric.
        first: The items of the first side.
        second: The same items of the second.
        sides: The task in both.
    """

    task: str
    metric: str
    first: ItemScores
    second: ItemScores
    sides: tuple[ComparedTask, ComparedTask]

    def subset(self, weight: float = 1.0) -> PairedSubset:
        """For `compare_paired`; clusters of one name in several tasks of a group are one."""
        group = self.task.partition("|")[0].partition(":")[0]
        clusters = [None if name is None else (group, name) for name in self.first.clusters]
        return PairedSubset(self.first.parts, self.second.parts, self.first.score, clusters, weight)


@dataclass(frozen=True)
class TestedDifference:
    """A row of a comparison.

    Attributes:
        level: "group", "subset" or "average".
        name: Of the group, the task or the average.
        metric: The metric, or "headlines" of an average over benchmarks.
        first: Name of the first side; likewise `second`.
        result: The difference with its interval and test.
        p_holm: The p-value by Holm for all rows of the level; None without one.
        subsets: Number of tasks in it.
    """

    level: str
    name: str
    metric: str
    first: str
    second: str
    result: PairedResult
    subsets: int
    p_holm: float | None = None


class Pairs(NamedTuple):
    """What two sides have in common.

    Attributes:
        first: Name of the first side; likewise `second`.
        tasks: Their tasks.
        obstacles: What differs although it may.
        notes: Sentences on what is not compared.
    """

    first: str
    second: str
    tasks: list[PairedTask]
    obstacles: list[Obstacle]
    notes: list[str]


def pair_sides(sides: Sequence[Side], metrics: Sequence[str], allowed: Sequence[str]) -> list[Pairs]:
    """The tasks that each two sides share, on the items that both have.

    Args:
        sides: At least two.
        metrics: Those to compare; [] each task's headline.
        allowed: What may differ, of `KINDS`.

    Raises:
        CulturevalError: What may not differ does, with where it does; or no task is shared.
    """
    found = [_pair(first, second, metrics) for first, second in combinations(sides, 2)]
    refused = [(pairs, one) for pairs in found for one in pairs.obstacles if one.kind not in allowed]
    if refused:
        lines = [f"  {pairs.first} / {pairs.second}, {one.kind}: {one.text}" for pairs, one in refused[:MOST_OBSTACLES]]
        more = [f"  and {len(refused) - MOST_OBSTACLES} more"] if len(refused) > MOST_OBSTACLES else []
        wanted = ",".join(kind for kind in KINDS if any(one.kind == kind for _, one in refused))
        raise CulturevalError(
            "\n".join(
                [
                    "these runs differ in more than the model:",
                    *lines,
                    *more,
                    f"--allow {wanted} compares them all the same.",
                ]
            )
        )
    if not any(pairs.tasks for pairs in found):
        notes = list(dict.fromkeys(note for pairs in found for note in pairs.notes))
        raise CulturevalError("the runs share no task whose items can be compared.\n  " + "\n  ".join(notes[:5]))
    return found


def tested_differences(pairs: Sequence[Pairs], draws: int, seed: int) -> list[TestedDifference]:
    """The rows of a comparison, p-values adjusted by Holm among the rows of each level.

    Args:
        pairs: As of `pair_sides`.
        draws: Of bootstrap and permutation test.
        seed: Of the draws, the same for each row.
    """
    rows = [row for one in pairs for row in _rows(one, draws, seed)]
    for family in ((GROUP, AVERAGE), (SUBSET,)):
        places = [place for place, row in enumerate(rows) if row.level in family and row.result.p_value is not None]
        adjusted = holm([rows[place].result.p_value or 0.0 for place in places])
        for place, p_value in zip(places, adjusted, strict=True):
            rows[place] = replace(rows[place], p_holm=p_value)
    return rows


def _pair(first: Side, second: Side, metrics: Sequence[str]) -> Pairs:
    tasks: list[PairedTask] = []
    found: list[Obstacle] = []
    left_out: dict[str, list[str]] = {}
    for one, other in _shared_tasks(first, second):
        names = metrics_of(one, metrics)
        reasons = [] if names else ["no such metric."]
        for metric in names:
            try:
                tasks += _paired_task(one, other, metric)
            except CulturevalError as error:
                reasons.append(str(error))
            else:
                found += obstacles(one, other, (first.name, second.name), metric)
        for reason in reasons:
            left_out.setdefault(reason, []).append(one.saved.task)
    notes = [f"not compared: {shown_names(names, 3)}: {reason}" for reason, names in left_out.items()]
    for side, other in ((first, second), (second, first)):
        bare = {name.partition("|")[0] for name in other.tasks}
        if alone := [name for name in side.tasks if name.partition("|")[0] not in bare]:
            notes.append(f"only {side.name} has {shown_names(alone, 3)}.")
    return Pairs(first.name, second.name, tasks, list(dict.fromkeys(found)), notes)


def _shared_tasks(first: Side, second: Side) -> Iterator[tuple[ComparedTask, ComparedTask]]:
    """The tasks of both sides, by name with the number of examples, or without it where that differs."""
    by_name = {name.partition("|")[0]: task for name, task in second.tasks.items()}
    for name, task in first.tasks.items():
        other = second.tasks.get(name) or by_name.get(name.partition("|")[0])
        if other:
            yield task, other


def metrics_of(task: ComparedTask, wanted: Sequence[str]) -> list[str]:
    """The wanted metrics that a task has; without any, its headline."""
    name = task.saved.task
    scores = task.run.scores.get(name, {}) if task.run else {}
    known = all_tasks().get(name.partition("|")[0])
    if wanted:
        return [metric for metric in wanted if metric in scores or (known and metric in known.metrics)]
    own = [metric for metric in scores if not metric.endswith("_stderr")]
    return list(known.metrics[:1]) if known else own[:1]


def _paired_task(one: ComparedTask, other: ComparedTask, metric: str) -> list[PairedTask]:
    """A task of two sides on the items of both; [] where they share none.

    Raises:
        CulturevalError: The items do not give the metric's score.
    """
    first, second = (_known_items(task, metric) for task in (one, other))
    if first.keys != second.keys:
        theirs = set(second.keys)
        keys = [key for key in first.keys if key in theirs]
        first, second = first.on(keys), second.on(keys)
    return [PairedTask(one.saved.task, metric, first, second, (one, other))] if first.keys else []


def _known_items(task: ComparedTask, metric: str) -> ItemScores:
    """The items of a task, if they give the score of the results file where there is one."""
    items = item_scores(task.saved.file, task.saved.task, metric)
    if items is None:
        raise CulturevalError(f"the details have no scores of items for {metric}.")
    value = task.run.value(task.saved.task, metric) if task.run else None
    if value is None and np.isnan(items.score(items.parts.sum(axis=0))):
        raise CulturevalError(f"{metric} is undefined.")
    if value is not None and not gives(items, value):
        raise CulturevalError(f"the items' scores do not give the {metric} of its results file.")
    return items


def _rows(pairs: Pairs, draws: int, seed: int) -> Iterator[TestedDifference]:
    groups: dict[tuple[str, str], list[PairedTask]] = {}
    for task in pairs.tasks:
        bare, _, shots = task.task.partition("|")
        groups.setdefault((f"{bare.partition(':')[0]}|{shots}", task.metric), []).append(task)
    for (name, metric), members in groups.items():
        title = name if len(members) > 1 else members[0].task
        result = compare_paired([task.subset() for task in members], draws, seed)
        yield TestedDifference(GROUP, title, metric, pairs.first, pairs.second, result, len(members))
    for members in groups.values():
        for task in members if len(members) > 1 else ():
            result = compare_paired([task.subset()], draws, seed)
            yield TestedDifference(SUBSET, task.task, task.metric, pairs.first, pairs.second, result, 1)
    yield from _averages(pairs, draws, seed)


def _averages(pairs: Pairs, draws: int, seed: int) -> Iterator[TestedDifference]:
    """QIMMA's average, where both sides have all of its benchmarks and only headlines are compared."""
    wanted = {name: len(members) for name, members in benchmark_tasks().items()}
    benchmarks: dict[str, list[PairedTask]] = {}
    for task in pairs.tasks:
        known = all_tasks().get(task.task.partition("|")[0])
        if known and known.suite == QIMMA and task.metric == known.metrics[0]:
            benchmarks.setdefault(benchmark_of(known.group, known.benchmark, known.subset), []).append(task)
    if {name: len(members) for name, members in benchmarks.items()} == wanted:
        subsets = [task.subset(1 / len(members)) for members in benchmarks.values() for task in members]
        result = compare_paired(subsets, draws, seed)
        name = f"qimma: average of {len(benchmarks)} benchmarks"
        yield TestedDifference(AVERAGE, name, "headlines", pairs.first, pairs.second, result, len(subsets))
