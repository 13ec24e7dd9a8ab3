"""Paired tests of runs: of every group of tasks, its subsets and suites' averages, for each pair of sides."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from cultureval.metrics.judges.items import JUDGED
from cultureval.metrics.paired_tests import Floats, PairedResult, PairedSubset, compare_paired
from cultureval.metrics.proportions import holm
from cultureval.metrics.resampling import LEAST_DEFINED
from cultureval.reports.comparison.compared_models import ComparedTask, Side
from cultureval.runs.comparable import (
    KINDS,
    Reason,
    hashes_of_rows,
    in_no_details,
    is_content_alike,
    protocol_of,
    reasons,
    reasons_in_details,
    record_of,
)
from cultureval.runs.files import derived_from
from cultureval.runs.items import (
    ItemScores,
    aligned,
    drawn_with,
    gives,
    in_denominator,
    item_scores,
    metric_names,
    note_lacking,
    score_of_all,
    verdicts_asked,
)
from cultureval.runs.record import Run, RunRecord
from cultureval.runs.table import averages, of_shots
from cultureval.runs.task_records import task_records
from cultureval.runs.warnings import run_warnings
from cultureval.runtime.errors import CulturevalError, did_you_mean, shown_names
from cultureval.tasks.catalogue import all_tasks, declared_metric, groups

MOST_REASONS = 8
POWER = float(norm.ppf(0.975) + norm.ppf(0.8))  # standard errors of a difference that is found 4 times in 5
GROUP, SUBSET, AVERAGE = "group", "subset", "average"


@dataclass(frozen=True)
class PairedTask:
    """A task that two sides have.

    Attributes:
        task: Its name with `|k`, of the first side.
        metric: The metric.
        first: The items that both have scores for, of the first side.
        second: The same items of the second.
        sides: The task in both.
        all_items: Every item of the data, of both sides; those without a score are left out of `first` and `second`.
    """

    task: str
    metric: str
    first: ItemScores
    second: ItemScores
    sides: tuple[ComparedTask, ComparedTask]
    all_items: tuple[ItemScores, ItemScores]

    def subset(self, weight: float, tasks: Sequence[str]) -> PairedSubset:
        """For `compare_paired`: the items that both have scores for; arguments as of `filled`."""
        return self._paired(self.first, (self.first.parts, self.second.parts), weight, tasks)

    def filled(self, better: int, weight: float, tasks: Sequence[str]) -> PairedSubset | None:
        """All items, those that were left out as good as they can be for one side and as bad as can be for the other.

        Args:
            better: The side for which they are good, 0 or 1.
            weight: As of `PairedSubset`.
            tasks: Of all scores in the average.

        Returns:
            None where nothing bounds them.
        """
        parts = [items.filled(best=side == better) for side, items in enumerate(self.all_items)]
        known = [table for table in parts if table is not None]
        return (
            self._paired(self.all_items[0], (known[0], known[1]), weight, tasks) if len(known) == len(parts) else None
        )

    def _paired(
        self, items: ItemScores, parts: tuple[Floats, Floats], weight: float, tasks: Sequence[str]
    ) -> PairedSubset:
        return PairedSubset(*parts, items.score, drawn_with(items, self.task, tasks), weight)


@dataclass(frozen=True)
class TestedDifference:
    """A row of a comparison.

    Attributes:
        level: "group", "subset" or "average".
        name: Of the group, the task or the average.
        metric: The metric, or "headlines" of an average over benchmarks.
        first: Name of the first side; likewise `second`.
        result: The difference with its interval and test; where it is not between `lowest` and `highest`, which all
            items are, the interval reaches over theirs, too.
        p_holm: The p-value, or the larger `p_left_out`, by Holm for all rows of the level; None without one.
        subsets: Number of tasks in it.
        left_out: Items of its tasks that the first has no score for, and that the second has none for; the result is
            of those that both have scores for.
        lowest: The smallest of the differences that there would be if what was left out were as good for one side and
            as bad for the other as it can be; None where nothing is left out, or nothing bounds the scores.
        highest: The largest.
        p_left_out: The largest p-value that the left-out items allow: that of `lowest` or `highest`, or 1 where they
            could turn the difference or nothing bounds them; None where nothing is left out.
        counted: Of a rate that is over fewer items than have a score (CFHR), how many the first's is over, and the
            second's; None of other metrics.
        can_show: The difference that so many items find 4 times in 5; None where nothing tells it, or it is larger
            than scores within the metric's range can differ.
        unknown: Tasks of its groups that are not in it, since their items cannot be compared; it decides nothing.
    """

    level: str
    name: str
    metric: str
    first: str
    second: str
    result: PairedResult
    subsets: int
    p_holm: float | None = None
    left_out: tuple[int, int] = (0, 0)
    lowest: float | None = None
    highest: float | None = None
    p_left_out: float | None = None
    counted: tuple[int, int] | None = None
    can_show: float | None = None
    unknown: tuple[str, ...] = ()

    @property
    def could_turn(self) -> bool:
        """Whether nobody knows whose score is higher: what was left out could give the difference another sign."""
        if not any(self.left_out) or self.unknown:
            return bool(self.unknown)
        ends = (self.lowest, self.highest)
        return any(end is None or not end * self.result.difference > 0 for end in ends)


class Pairs(NamedTuple):
    """What two sides have in common.

    Attributes:
        first: Name of the first side; likewise `second`.
        tasks: Their tasks.
        incompatible: What differs although it may.
        notes: Sentences on what is not compared.
        shared: Whether they have any task in common.
        lost: Tasks of groups in common whose items one side alone has; the other has no score for any.
        unknown: Tasks of these groups that a side has, whose scores of items cannot be compared, each with the number
            of examples of those that it belongs to.
    """

    first: str
    second: str
    tasks: list[PairedTask]
    incompatible: list[Reason]
    notes: list[str]
    shared: bool = True
    lost: Sequence[PairedTask] = ()
    unknown: Sequence[tuple[str, str]] = ()


Weighted = Sequence[tuple[PairedTask, float]]  # tasks with their weights in an average
RowTasks = tuple[str, str, str, Weighted]  # level, name, metric, tasks


def pair_sides(
    sides: Sequence[Side], metrics: Sequence[str], allowed: Sequence[str], needed: bool = True
) -> list[Pairs]:
    """The tasks that each two sides share, on the items that both have.

    Args:
        sides: At least two.
        metrics: Those to compare; [] each task's headline.
        allowed: What may differ, of `KINDS`.
        needed: Whether it is an error that nothing can be compared. A suite's own tables, for which it is none, show
            scores beside each other that cannot be tested (undefined ones), too: what differs of them is also refused.

    Raises:
        CulturevalError: What may not differ does, with where it does; a kind is unknown; or no task is shared.
    """
    for name in allowed:
        if name not in KINDS:
            raise CulturevalError(f"--allow {name}: it takes {', '.join(KINDS)}.{did_you_mean(name, KINDS)}")
    found = [_pair(first, second, metrics, needed) for first, second in combinations(sides, 2)]
    refused = [(pairs, one) for pairs in found for one in pairs.incompatible if one.kind not in allowed]
    if refused:
        lines = [f"  {pairs.first} / {pairs.second}, {one.kind}: {one.text}" for pairs, one in refused[:MOST_REASONS]]
        more = [f"  and {len(refused) - MOST_REASONS} more"] if len(refused) > MOST_REASONS else []
        of_sides = {name for pairs, _ in refused for name in (pairs.first, pairs.second)}
        told = [(side, one) for side in sides if side.name in of_sides and side.run for one in run_warnings(side.run)]
        more += [f"  {side.name}: {one}" for side, one in told if one.kind == "apart"]
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
    if needed and not any(pairs.tasks for pairs in found):
        notes = list(dict.fromkeys(note for pairs in found for note in pairs.notes))
        raise CulturevalError("the runs share no task whose items can be compared.\n  " + "\n  ".join(notes[:5]))
    return found


def tested_differences(
    pairs: Sequence[Pairs], draws: int, seed: int, rows_of: Callable[[Pairs], Iterable[RowTasks]] | None = None
) -> list[TestedDifference]:
    """The rows of a comparison, p-values adjusted by Holm among the rows of each level, averages with groups.

    Args:
        pairs: As of `pair_sides`.
        seed: Of the draws, the same for each row.
        rows_of: Which tasks of a pair are a row; None: each group, its subsets, and averages of suites.
    """
    rows = [row for one in pairs for row in _tested_rows((rows_of or _row_tasks)(one), one, draws, seed)]
    families = [family_of(row) for row in rows]
    for family in dict.fromkeys(families):
        places = [at for at, row in enumerate(rows) if families[at] == family and row.result.p_value is not None]
        adjusted = holm([max(rows[place].result.p_value or 0.0, rows[place].p_left_out or 0.0) for place in places])
        for place, p_value in zip(places, adjusted, strict=True):
            rows[place] = replace(rows[place], p_holm=p_value)
    return rows


def family_of(row: TestedDifference) -> str:
    """The rows among which a row's p-value is adjusted: those of its level, averages among the groups."""
    return GROUP if row.level == AVERAGE else row.level


def _pair(first: Side, second: Side, metrics: Sequence[str], needed: bool) -> Pairs:
    tasks: list[PairedTask] = []
    found: list[Reason] = []
    left_out: dict[str, list[str]] = {}
    shared = list(shared_tasks(first, second))
    for one, other in shared:
        names = metrics_of(one, metrics)
        reasons = [] if names else ["no such metric."]
        for metric in names:
            one, other = (_holding(task, metric) for task in (one, other))
            try:
                tasks += _paired_task(one, other, metric)
            except CulturevalError as error:
                reasons.append(str(error))
                if needed:
                    continue
            found += incompatibilities(one, other, (first.name, second.name), metric)
        for reason in reasons:
            left_out.setdefault(reason, []).append(one.saved.task)
    notes = [f"not compared: {shown_names(names, 3)}: {reason}" for reason, names in left_out.items()]
    key = _key(first, second)
    for side, other in ((first, second), (second, first)):
        there = _by_key(other, key)
        if several := [name for name, tasks_ in _by_key(side, key).items() if len(tasks_) > 1 and name in there]:
            told = f"{side.name} has it with several numbers of examples, {other.name} with none of them"
            notes.append(f"not compared: {shown_names(several, 3)}: {told}. Name the results file of one.")
        if alone := [name for name in side.tasks if key(name) not in there]:
            scored = {name for task in other.tasks.values() if task.run for name in task.run.record.tasks}
            notes += [
                f"{what} {shown_names(names, 3)}."
                for what, names in (
                    (f"the details of {other.name} are not there of", [name for name in alone if name in scored]),
                    (f"{side.name} has, and {other.name} not,", [name for name in alone if name not in scored]),
                )
                if names
            ]
    differ = list(dict.fromkeys(found))
    return Pairs(first.name, second.name, tasks, differ, notes, bool(shared), *_lost(first, second, tasks, metrics))


def _lost(
    first: Side, second: Side, tasks: Sequence[PairedTask], metrics: Sequence[str]
) -> tuple[list[PairedTask], list[tuple[str, str]]]:
    """As of `Pairs`: what the sides do not share of the groups that they do. A side would gain by losing a subset."""
    key = _key(first, second)
    shots = {(_row(key(task.task)), task.metric): task.task.partition("|")[2] for task in tasks}
    paired = {(key(task.task), task.metric) for task in tasks}
    there = [{key(name): task for name, task in side.tasks.items()} for side in (first, second)]
    runs = [task.run for side in there for task in side.values() if task.run]
    unknown = {key(name) for run in runs for name in run.record.tasks} - there[0].keys() - there[1].keys()
    lost: list[PairedTask] = []
    alone = [
        (place, name, one, metric)
        for place, side in enumerate(there)
        for name, one in side.items()
        for metric in metrics_of(one, metrics)
        if (_row(name), metric) in shots and (name, metric) not in paired
        if not (one.record and metric in one.record.not_applicable)
    ]
    for place, name, one, metric in alone:
        held = _holding(one, metric)
        items = None if name in there[1 - place] else _items_if_any(held, metric)
        if items is None:
            unknown.add(name)
            continue
        nothing = replace(items, parts=np.zeros_like(items.parts), scored=np.zeros_like(items.scored))
        both, empty = ((items, nothing), (nothing, items))[place], items.on([])
        task = f"{name.partition('|')[0]}|{shots[_row(name), metric]}"
        lost.append(PairedTask(task, metric, empty, empty, (held, held), both))
    unanswered = [
        {key(name): one.n for name, one in side.run.record.unanswered.items()} for side in (first, second) if side.run
    ]
    lost += _refused_whole(unanswered, {(_row(key(task.task)), task.metric): task for task in tasks})
    rows = {(row, k) for (row, _), k in shots.items()}
    return lost, [(name.partition("|")[0], k) for name in sorted(unknown) for row, k in rows if row == _row(name)]


def _row(name: str) -> tuple[str, str]:
    """What subsets stand in one row: their group, and the number of examples where the name has it."""
    return _group(name), name.partition("|")[2]


def _refused_whole(
    unanswered: Sequence[Mapping[str, int]], like: Mapping[tuple[tuple[str, str], str], PairedTask]
) -> Iterator[PairedTask]:
    """The tasks of groups in common of which no side has any answer; their items are like those of another of these.

    Args:
        unanswered: Of each side its tasks without an answer -> their items.
        like: Row and metric -> a task of it.
    """
    for name in unanswered[0] if len(unanswered) == 2 else ():
        count = max(one.get(name, 0) for one in unanswered) if name in unanswered[1] else 0
        for (row, metric), one in like.items() if count else ():
            if row == _row(name):
                all_items = [items.with_lacking(count) for items in one.all_items]
                first, second = (items.on(items.keys[-count:]) for items in all_items)
                task, nothing = f"{name.partition('|')[0]}|{one.task.partition('|')[2]}", first.on([])
                yield PairedTask(task, metric, nothing, nothing, one.sides, (first, second))


def _items_if_any(task: ComparedTask, metric: str) -> ItemScores | None:
    """The items of a task; None where they cannot be read, or do not give its score."""
    try:
        return _known_items(task, metric)
    except CulturevalError:
        return None


def _group(task: str) -> str:
    """The group of a task, whose name `|k` may follow."""
    return task.partition("|")[0].partition(":")[0]


def incompatibilities(first: ComparedTask, second: ComparedTask, names: tuple[str, str], metric: str) -> list[Reason]:
    """Why two runs of a task, of sides of these names, are not comparable by a metric; [] if they are.

    Raises:
        CulturevalError: Details cannot be read.
    """
    runs = [side.run or Run(side.saved.results_file, side.saved.model, side.saved.date, {}) for side in (first, second)]
    records = [record_of(run, side.saved.task) for run, side in zip(runs, (first, second), strict=True)]
    task = first.saved.task
    found = reasons_in_details((records[0], records[1]), (first.saved.file, second.saved.file), task, names)
    protocols = [protocol_of(run, record, metric) for run, record in zip(runs, records, strict=True)]
    return [*found, *reasons(*protocols, task, records=not found)]  # the texts say more than hashes of them


def shared_tasks(first: Side, second: Side) -> Iterator[tuple[ComparedTask, ComparedTask]]:
    """The tasks of both sides, by their `_key`, but for those that a side has several times so."""
    ours, theirs = (_by_key(side, _key(first, second)) for side in (first, second))
    for name, own in ours.items():
        others = theirs.get(name, [])
        if len(own) == len(others) == 1:
            yield own[0], others[0]


def _by_key(side: Side, key: Callable[[str], str]) -> dict[str, list[ComparedTask]]:
    found: dict[str, list[ComparedTask]] = {}
    for name, task in side.tasks.items():
        found.setdefault(key(name), []).append(task)
    return found


def _key(first: Side, second: Side) -> Callable[[str], str]:
    """What two sides' tasks are paired by: the name with `|k`, or, where they share none so, without."""
    if first.tasks.keys() & second.tasks.keys():
        return str
    return lambda name: name.partition("|")[0]


def metrics_of(task: ComparedTask, wanted: Sequence[str]) -> list[str]:
    """The wanted metrics that a task has; without any, its headline."""
    name = task.saved.task
    scores = task.run.scores.get(name, {}) if task.run else {}
    known = all_tasks().get(name.partition("|")[0])
    if wanted:
        return [metric for metric in wanted if metric in scores or (known and metric in known.metrics)]
    own = [metric for metric in scores if not metric.endswith("_stderr")]
    return list(known.metrics[:1]) if known else own[:1]


def _holding(task: ComparedTask, metric: str) -> ComparedTask:
    """A task with the details that hold a metric: its own, or for a judge's those whose judge was asked most."""
    if not metric.startswith(JUDGED):
        return task
    files = [one for one in (task.saved, *derived_from(task.saved)) if metric in metric_names(one.file)]
    asked = {one: verdicts_asked(one.file, metric) for one in reversed(files)}
    return replace(task, saved=max(asked, key=lambda one: asked[one], default=task.saved))


def _paired_task(one: ComparedTask, other: ComparedTask, metric: str) -> list[PairedTask]:
    """A task of two sides; [] where they share no item.

    Raises:
        CulturevalError: The items do not give the metric's score, or no side has any.
    """
    first, second = (_known_items(task, metric) for task in (one, other))
    if first.keys != second.keys and first.rows == second.rows and _is_content_alike(one, other):
        second = replace(second, keys=first.keys)
    if first.keys != second.keys:
        theirs = set(second.keys)
        keys = [key for key in first.keys if key in theirs]
        if not keys:
            return []
        if _other_data(one, other):  # what one of them lacks was never asked of it
            first, second = first.on(keys), second.on(keys)
    if not (first.scored.any() or second.scored.any()):
        raise CulturevalError(f"{metric} is undefined.")
    first, second = aligned([first, second])
    both = [key for key, *scored in zip(first.keys, first.scored, second.scored, strict=True) if all(scored)]
    refused = _refused_by_both(one, other, len(first.keys))
    all_items = first.with_lacking(refused), second.with_lacking(refused)
    return [PairedTask(one.saved.task, metric, first.on(both), second.on(both), (one, other), all_items)]


def _refused_by_both(one: ComparedTask, other: ComparedTask, known: int) -> int:
    """How many items stand in no details of two runs of the same data, which have so many in theirs."""
    if not (one.record and other.record) or _other_data(one, other):
        return 0
    return in_no_details([one.record, other.record], known)


def _is_content_alike(one: ComparedTask, other: ComparedTask) -> bool:
    """Whether the runs asked the same rows in the same order, which files of other names hold."""
    if not (one.record and other.record):
        return False
    return is_content_alike(one.record, other.record, one.saved.file, other.saved.file)


def _other_data(one: ComparedTask, other: ComparedTask) -> bool:
    """Whether the runs say that they read other rows; else an item that a run lacks was refused or removed."""
    hashes = hashes_of_rows([task.record for task in (one, other) if task.record])
    return len(hashes) == 2 and all(hashes) and hashes[0] != hashes[1]


def _known_items(task: ComparedTask, metric: str) -> ItemScores:
    """The items of a task, if they give the score of the results file where there is one."""
    if task.run and task.saved.task in task.run.impossible:
        raise CulturevalError(f"{task.run.impossible[task.saved.task]}.")
    for claim in task.run.claims if task.run else ():  # the items' scores, which give the file's, are not the answers'
        if (claim.task, claim.metric, claim.made_of) == (task.saved.task, metric, "answers"):
            raise CulturevalError(f"{claim.sentence.removeprefix(claim.task).strip()}.")
    items = _items_of(task.saved.file, task.saved.task, metric, task.saved.file.stat().st_mtime_ns)
    if items is None:
        raise CulturevalError(f"the details have no scores of items for {metric}.")
    value = task.run.value(task.saved.task, metric) if task.run else None
    if value is None and items.scored.any() and math.isnan(score_of_all(items)):
        raise CulturevalError(f"{metric} is undefined.")
    if value is not None and not gives(items, value):
        raise CulturevalError(f"the items' scores do not give the {metric} of its results file.")
    return items


@lru_cache(maxsize=64)
def _items_of(file: Path, task: str, metric: str, changed: int) -> ItemScores | None:
    """The items of a details file, read once for all pairs."""
    return item_scores(file, task, metric)


def _tested_rows(rows: Iterable[RowTasks], pairs: Pairs, draws: int, seed: int) -> Iterator[TestedDifference]:
    for level, name, metric, weighted in rows:
        found = _tested(weighted, draws, seed)
        if found is None:
            pairs.notes.append(f"not compared: {name}: the two have no item with a score of both.")
        else:
            if found["result"].undefined > 1 - LEAST_DEFINED:
                pairs.notes.append(_often_undefined(name, pairs, weighted, found["result"].undefined))
            found |= {"counted": _counted(weighted), "can_show": _can_show(found["result"], weighted)}
            own = {(_group(task.task), task.task.partition("|")[2]) for task, _ in weighted}
            there = [name for name, shots in pairs.unknown if (_group(name), shots) in own]
            unknown = tuple(there if level in (GROUP, AVERAGE) else ())
            found |= {"unknown": unknown, "lowest": None, "highest": None, "p_left_out": 1.0} if unknown else {}
            yield TestedDifference(level, name, metric, pairs.first, pairs.second, subsets=len(weighted), **found)


def _in_rates(tasks: Iterable[PairedTask]) -> tuple[int, int]:
    """Over how many items the ratios of both sides are: those that count in their denominators."""
    both = [(in_denominator(task.first), in_denominator(task.second)) for task in tasks]
    return sum(first for first, _ in both), sum(second for _, second in both)


def _counted(weighted: Weighted) -> tuple[int, int] | None:
    """As of `TestedDifference`: where a record says so of a task."""
    tasks = [task for task, _ in weighted]
    told = any(side.record and task.metric in side.record.counted for task in tasks for side in task.sides)
    return _in_rates(tasks) if told and len({task.metric for task in tasks}) == 1 else None


def _can_show(result: PairedResult, weighted: Weighted) -> float | None:
    """As of `TestedDifference`."""
    if result.identical or not result.stderr:
        return None
    declared = [declared_metric(task.task, task.metric) for task, _ in weighted]
    widest = max(one.range[1] - one.range[0] if one else math.inf for one in declared)
    return found if (found := POWER * result.stderr) <= widest else None


def _often_undefined(name: str, pairs: Pairs, weighted: Weighted, share: float) -> str:
    """Why a row has no test: of how few items a ratio is."""
    counts = _in_rates(task for task, _ in weighted)
    return (
        f"{name}: no test: the difference is not defined in {share:.0%} of resamples of the items. "
        f"The score of {pairs.first} is of {counts[0]} items, that of {pairs.second} of {counts[1]}."
    )


def _row_tasks(pairs: Pairs) -> Iterator[RowTasks]:
    made: dict[tuple[str, str], list[PairedTask]] = {}
    for task in [*pairs.tasks, *pairs.lost]:
        made.setdefault((f"{_group(task.task)}|{task.task.partition('|')[2]}", task.metric), []).append(task)
    for (name, metric), members in made.items():
        whole = len(groups().get(_group(name), ()))
        part = f" ({len(members)} of {whole} subsets)" if len(members) < whole else ""
        yield GROUP, name + part if len(members) > 1 else members[0].task, metric, [(task, 1.0) for task in members]
    for members in made.values():
        for task in members if len(members) > 1 else ():
            if task not in pairs.lost:
                yield SUBSET, task.task, task.metric, [(task, 1.0)]
    yield from _averages(pairs)


def _tested(weighted: Weighted, draws: int, seed: int) -> dict[str, Any] | None:
    """The result of a row, and what the items that were left out could change; None where no item has both scores."""
    tasks = [task.task for task, _ in weighted]
    shared = [task.subset(weight, tasks) for task, weight in weighted if task.first.keys]
    if not shared:
        return None
    once = {(task.task, task.all_items[0].keys): task for task, _ in weighted}.values()  # whatever their metrics
    lacking: tuple[dict[Any, Any], dict[Any, Any]] = ({}, {})
    for side, found_on in enumerate(lacking):
        for task, _ in weighted:
            note_lacking(found_on, task.task, task.all_items[side])
    first, second = (int(sum(map(np.sum, one.values()))) for one in lacking)
    result = replace(compare_paired(shared, draws, seed), items=sum(len(task.first.keys) for task in once))
    found: dict[str, Any] = {"result": result, "left_out": (first, second)}
    if not any(found["left_out"]):
        return found
    ends = []
    for better in (0, 1):
        filled = [task.filled(better, weight, tasks) for task, weight in weighted]
        known = [subset for subset in filled if subset is not None]
        ends += [compare_paired(known, draws, seed)] if len(known) == len(filled) else []
    gaps, p_values = [end.difference for end in ends], [end.p_value for end in ends]
    if len(ends) < 2 or any(math.isnan(gap) for gap in gaps):
        return found | {"p_left_out": 1.0}
    result = found["result"]
    same = all(gap * result.difference > 0 for gap in gaps)
    largest = max(p_values) if same and None not in p_values else 1.0
    lows, highs = zip(*((one.low, one.high) for one in (result, *ends)), strict=True)
    if None not in (*lows, *highs) and not min(gaps) <= result.difference <= max(gaps):
        found["result"] = replace(result, low=min(lows), high=max(highs))
    return found | {"lowest": min(gaps), "highest": max(gaps), "p_left_out": largest}


def _averages(pairs: Pairs) -> Iterator[RowTasks]:
    """The averages of suites of which both sides have all parts."""
    tasks = {(task.task, task.metric): task for task in [*pairs.tasks, *pairs.lost]}
    scores = {task.task: run.scores.get(task.task, {}) for task in pairs.tasks if (run := task.sides[0].run)}
    record = RunRecord(tasks=task_records(dict.fromkeys(task for task, _ in tasks), None))
    whole = Run(Path(), pairs.first, "", scores, record)  # the tasks of a side may be of several results files
    for named, parts in averages(whole):
        name = f"{named}{''.join(dict.fromkeys(of_shots(task.partition('|')[2]) for task, _ in parts))}"
        if other := dict.fromkeys(metric for task, metric in parts if (task, metric) not in tasks):
            told = f"it has more metrics than are compared ({shown_names(list(other), 3)}): --metric, once for each"
            pairs.notes.append(f"not compared: {name}: {told}.")
        else:
            yield AVERAGE, name, "headlines", [(tasks[part], weight) for part, weight in parts.items()]
