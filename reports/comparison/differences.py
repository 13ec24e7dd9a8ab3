"""Differences of runs on the same items: of tasks, of groups' means and of suites' main numbers, pair by pair."""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cultureval.metrics.statistics import holm
from cultureval.runs.frame import Parts
from cultureval.runs.loading import Run, load, name_apart
from cultureval.runs.pairs import DRAWS, Pair, difference, pair_items
from cultureval.runs.protocol import differences, protocol
from cultureval.runs.scores import Score
from cultureval.runs.table import tables_of
from cultureval.runs.warnings import warnings
from cultureval.runtime.errors import CulturevalError, did_you_mean, shown_names

if TYPE_CHECKING:
    import pandas

GROUP, SUBSET, AVERAGE = "group", "subset", "average"
ALL = "all"
ROW_FIELDS = ("rows", "form", "limit")  # of a protocol: where one differs, the runs were asked other items
MOST_REASONS = 8
Place = tuple[str, str]  # task with `|k`, metric
Items = Mapping[Place, "pandas.DataFrame"]  # the frame of two runs, by place


@dataclass(frozen=True)
class Row:
    """A difference.

    Attributes:
        level: "group" (a group's mean, or its only task), "subset", or "average" (a suite's main number).
        name: Of the group, the task, or the suite's number.
        metric: The metric, or the column of the suite's table.
        first: Name of the first run; likewise `second`.
        parts: The scores that it is the mean of.
        scores: What every view shows of both runs: of the items that have a score; None: no item has one.
        pair: The difference and its test; items without a score count as the worst.
        p_holm: The p-value by Holm among the rows of the level; averages are tested with groups.
    """

    level: str
    name: str
    metric: str
    first: str
    second: str
    parts: Parts
    scores: tuple[Score | None, Score | None]
    pair: Pair
    p_holm: float = 1.0


class TwoRuns(NamedTuple):
    """Two runs with the items of the scores that both have, sentences on what is not compared, and the suite if one."""

    first: Run
    second: Run
    items: Items
    notes: list[str]
    suite: str = ""


class Comparison(NamedTuple):
    """All pairs of some runs, their differences, and sentences: the runs' warnings, then what is not compared."""

    runs: list[Run]
    pairs: list[TwoRuns]
    rows: list[Row]
    warnings: list[str]
    notes: list[str]


def load_sides(paths: Sequence[Path], least: int = 2) -> tuple[list[Run], list[str]]:
    """The runs of some paths, each loaded alone, with names of their own; and sentences on files left out.

    Args:
        paths: Output folders, folders in them, or results files; a folder with several models is a side for each.
        least: How many runs there must be.

    Raises:
        CulturevalError: A path has no results, one run is named twice, or there are fewer runs.
    """
    loaded = [load(path) for path in paths]
    runs = [run for results in loaded for run in results.runs]
    named = Counter(run.file.resolve() for run in runs)
    if twice := [str(file) for file, count in named.items() if count > 1]:
        raise CulturevalError(f"{shown_names(twice)} was named twice: name two runs.")
    left_out = list(dict.fromkeys(one.sentence for results in loaded for one in results.left_out))
    if len(runs) < least:
        one_run = (
            f"{', '.join(map(str, paths))}: there is one run, and a comparison needs two. Name two results files "
            "(results/<model>/results_<date>.json) where one model was run twice."
        )
        raise CulturevalError("\n".join([one_run, *left_out]))
    name_apart(runs)
    return runs, [f"left out: {sentence}" for sentence in left_out]


def compare(
    runs: Sequence[Run],
    metrics: Sequence[str] = (),
    allowed: Sequence[str] = (),
    draws: int = DRAWS,
    seed: int = 0,
    suite: str = "",
) -> Comparison:
    """The differences of every two of some runs.

    Args:
        runs: At least two, of different names.
        metrics: Those to compare; () each task's headline, and the suites' main numbers.
        allowed: Fields of the protocol that may differ, or "all".
        draws: Random swaps of a permutation test.
        seed: Of the swaps, the same for each row.
        suite: The one whose tasks are compared; "": all.

    Raises:
        CulturevalError: The runs differ in what is not allowed, no run has a metric, or nothing can be compared.
    """
    known = dict.fromkeys(name for run in runs for name in run.items["metric"].unique())
    for metric in metrics:
        if metric not in known:
            raise CulturevalError(f"--metric {metric}: no run has it.{did_you_mean(metric, known)}")
    pairs = [two_runs(first, second, metrics, suite) for first, second in combinations(runs, 2)]
    require_equal_protocols(pairs, allowed)
    rows = [row for two in pairs for row in _rows(two, metrics, draws, seed)]
    rows = with_holm(rows, [row.level == SUBSET for row in rows])
    notes = list(dict.fromkeys(note for two in pairs for note in two.notes))
    if not rows:
        raise CulturevalError("\n  ".join(["the runs share no scores that can be compared.", *notes[:MOST_REASONS]]))
    return Comparison(list(runs), pairs, rows, warnings_of(runs), notes)


def warnings_of(runs: Sequence[Run]) -> list[str]:
    """What a reader of some runs' scores must know, each sentence once with the runs that it is of."""
    told: dict[str, dict[str, None]] = {}
    for run in runs:
        for one in warnings(run):
            told.setdefault(one.sentence, {})[run.name] = None
    return [f"{', '.join(names)}: {sentence}" for sentence, names in told.items()]


def require_equal_protocols(pairs: Sequence[TwoRuns], allowed: Sequence[str]) -> None:
    """Refuses runs that differ in more than the model.

    Args:
        pairs: Runs that are to be compared.
        allowed: Fields of the protocol that may differ, or "all".

    Raises:
        CulturevalError: A score's protocols differ in another field, or no protocol has a field of that name.
    """
    found: dict[tuple[str, str, str], dict[str, None]] = {}
    fields: dict[str, None] = {ALL: None}
    for first, second, items, *_ in pairs:
        for task, metric in items:
            one, other = protocol(first, task, metric), protocol(second, task, metric)
            fields |= dict.fromkeys([*one, *other])
            for field, (x, y) in differences(one, other).items():
                if ALL not in allowed and field not in allowed:
                    found.setdefault((f"{first.name} / {second.name}", field, f"{x} / {y}"), {})[task] = None
    if unknown := [name for name in allowed if len(fields) > 1 and name not in fields]:
        raise CulturevalError(f"--allow {unknown[0]}: it takes {', '.join(fields)}.{did_you_mean(unknown[0], fields)}")
    if found:
        lines = [
            f"  {names}: {field}: {values} ({shown_names(list(tasks), 2)})"
            for (names, field, values), tasks in found.items()
        ]
        more = [f"  and {len(lines) - MOST_REASONS} more"] if len(lines) > MOST_REASONS else []
        wanted = ",".join(dict.fromkeys(field for _, field, _ in found))
        lead, end = "these runs differ in more than the model:", f"--allow '{wanted}' compares them all the same."
        raise CulturevalError("\n".join([lead, *lines[:MOST_REASONS], *more, end]))


def with_holm(rows: Sequence[Row], families: Sequence[Hashable]) -> list[Row]:
    """Rows with p-values adjusted by Holm among those of their family."""
    found = list(rows)
    for family in dict.fromkeys(families):
        places = [place for place, of_row in enumerate(families) if of_row == family]
        for place, p_value in zip(places, holm([rows[place].pair.p for place in places]), strict=True):
            found[place] = replace(rows[place], p_holm=p_value)
    return found


def items_by_place(frames: Sequence["pandas.DataFrame"]) -> dict[Place, "pandas.DataFrame"]:
    """The rows of some frames by task and metric."""
    import pandas

    names = ("run", "task", "metric", "item", "cluster", "reason")
    frame = pandas.concat(frames, ignore_index=True).astype(dict.fromkeys(names, "category"))
    return {(task, metric): rows for (task, metric), rows in frame.groupby(["task", "metric"], observed=True)}


def two_runs(first: Run, second: Run, metrics: Sequence[str] = (), suite: str = "") -> TwoRuns:
    """What two runs have in common; arguments as of `compare`."""
    notes: list[str] = []
    tasks = [_tasks_of(run, suite) for run in (first, second)]
    for run, other, own, theirs in ((first, second, tasks[0], tasks[1]), (second, first, tasks[1], tasks[0])):
        if unread := [f"{task} ({run.unverified[task]})" for task in own if task in run.unverified]:
            notes.append(f"not compared, since {run.name} is unverified: {shown_names(unread, 3)}.")
        if alone := [task for task in own if task not in theirs]:
            notes.append(f"not compared, since {other.name} has it not: {shown_names(alone, 3)}.")
    frames = []
    for run in (first, second):
        of_metrics = run.items["metric"].isin(_metrics_and_parts(run, metrics))
        frames.append(run.items[(run.items["task"].isin({*tasks[0]} & {*tasks[1]}) & of_metrics).to_numpy()])
    found: dict[Place, pandas.DataFrame] = {}
    for place, frame in items_by_place(frames).items():
        if frame["run"].nunique() < 2:
            continue
        frame = of_both(frame) if asked_otherwise((first, place), (second, place)) else _by_place(frame, first.name)
        if frame.empty:
            notes.append(f"not compared: {place[0]}: the runs share no item that the data name.")
        else:
            found[place] = frame
    return TwoRuns(first, second, found, notes, suite)


def _tasks_of(run: Run, suite: str) -> list[str]:
    """The tasks of a run, or those of one suite."""
    return [task.task for task in run.tasks_of(suite) if task.task in run.files] if suite else list(run.files)


def asked_otherwise(one: tuple[Run, Place], other: tuple[Run, Place]) -> bool:
    """Whether two runs were asked other items in their tasks."""
    (first, place), (second, another) = one, other
    return bool(set(ROW_FIELDS) & set(differences(protocol(first, *place), protocol(second, *another))))


def of_both(frame: "pandas.DataFrame") -> "pandas.DataFrame":
    """The items that two runs of other rows were both asked; a row's place (`row 3`) names no item then."""
    runs = frame.groupby("item", observed=True)["run"].transform("nunique")
    return frame[((runs == 2) & ~frame["item"].astype(str).str.match(r"row \d+$")).to_numpy()]


def _metrics_and_parts(run: Run, metrics: Sequence[str]) -> list[str]:
    """The metrics that are compared, and those of suites' main numbers."""
    if metrics:
        return list(metrics)
    found = {metric for task in run.files for metric in metrics_of(run, task)}
    return [*found, *(metric for _, _, parts in _main_numbers(run) for _, metric in parts)]


def metrics_of(run: Run, task: str, wanted: Sequence[str] = ()) -> list[str]:
    """The metrics of a task that are compared: the wanted ones, else its headline."""
    if wanted:
        return list(wanted)
    known = run.record.tasks.get(task)
    return list(known.metrics[:1] if known and known.metrics else list(run.scores.get(task, {}))[:1])


def _rows(two: TwoRuns, metrics: Sequence[str], draws: int, seed: int) -> Iterator[Row]:
    import pandas

    names = (two.first.name, two.second.name)
    if not two.items:
        return
    items = pair_items(pandas.concat(list(two.items.values()), ignore_index=True), *names)
    for level, name, metric, parts in [*_of_groups(two, metrics), *_of_suites(two)]:
        found = difference(items, parts, draws, seed)
        if found is None:
            two.notes.append(
                f"not compared: {name}, {metric}: no score, or nothing bounds the scores of missing items."
            )
            continue
        scores = (two.first.mean(parts), two.second.mean(parts))
        yield Row(level, name, metric, *names, parts, scores, found)


def _of_groups(two: TwoRuns, metrics: Sequence[str]) -> Iterator[tuple[str, str, str, Parts]]:
    """Each group of tasks with the weights of its mean, and its subsets; a group in part is no row, but told."""
    groups: dict[tuple[str, str], dict[str, None]] = {}
    for run in (two.first, two.second):
        for task in _tasks_of(run, two.suite):
            for metric in metrics_of(run, task, metrics):
                groups.setdefault((group_of(run, task), metric), {})[task] = None
    for (group, metric), tasks in groups.items():
        there = [task for task in tasks if (task, metric) in two.items]
        if there and len(there) < len(tasks):
            lacking = [task for task in tasks if task not in there]
            two.notes.append(f"not compared: the mean of {group}, {metric}: without {shown_names(lacking, 3)}.")
        elif there:
            name = group if len(tasks) > 1 else there[0]
            yield GROUP, name, metric, {(task, metric): 1 / len(there) for task in there}
        for task in there if len(tasks) > 1 else ():
            yield SUBSET, task, metric, {(task, metric): 1.0}


def group_of(run: Run, task: str) -> str:
    """The group of a task with `|k`; the task itself where nothing is known of it."""
    known = run.record.tasks.get(task)
    return f"{known.group}|{known.shots}" if known else task


def _of_suites(two: TwoRuns) -> Iterator[tuple[str, str, str, Parts]]:
    """The main numbers of the tables that both runs have, which are no single score or group."""
    theirs = {(name, metric): parts for name, metric, parts in _main_numbers(two.second)}
    for name, metric, parts in _main_numbers(two.first):
        groups = {(group_of(two.first, task), metric) for task, metric in parts}
        if theirs.get((name, metric)) == parts and len(groups) > 1 and all(place in two.items for place in parts):
            yield AVERAGE, name, metric, parts


def _by_place(frame: "pandas.DataFrame", first: str) -> "pandas.DataFrame":
    """Rows of the same content in files of other names (csv, shards), joined by their places as the first run has them.

    Names that both have join rows already; without any, and with other numbers of rows, nothing is left.
    """
    own = (frame["run"] == first).to_numpy()
    names, others = frame["item"][own].astype(str), frame["item"][~own].astype(str)
    if set(names) & set(others):
        return frame
    if len(names) != len(others):
        return frame[:0]
    columns = {name: frame[name].astype(object).to_numpy().copy() for name in ("item", "cluster")}
    for column in columns.values():
        column[~own] = column[own]
    return frame.assign(**columns)


@lru_cache(maxsize=64)
def _main_numbers(run: Run) -> list[tuple[str, str, Parts]]:
    """Name of the table and the row, column, and parts of each table's main number."""
    found = []
    for table in tables_of(run):
        cell = table.cells.get(table.main) if table.main else None
        if cell and table.main and cell.parts and not cell.words:
            found.append((f"{table.name}: {table.main[0]}", table.main[1], cell.parts))
    return found
