"""Paired differences of runs on the same items: of tasks, of groups' means and of suites' main numbers."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cultureval.metrics.statistics import holm
from cultureval.runs.frame import Parts
from cultureval.runs.loading import Run, load, set_unique_names
from cultureval.runs.pairs import DRAWS, Pair, pair
from cultureval.runs.protocol import differences, protocol
from cultureval.runs.scores import Score, items_of
from cultureval.runs.table import tables_of
from cultureval.runs.warnings import warnings
from cultureval.runtime.errors import CulturevalError, did_you_mean, shown_names

if TYPE_CHECKING:
    import pandas

GROUP, SUBSET, AVERAGE = "group", "subset", "average"
ALL = "all"
ROW_FIELDS = ("rows", "form", "limit")  # fields of a protocol that change the items
MOST_REASONS = 8
Place = tuple[str, str]  # task with `|k`, metric
Number = tuple[str, str, str, Parts]  # level, name, metric and parts of a `Row`


@dataclass(frozen=True)
class Row:
    """A difference.

    Attributes:
        level: "group" (a group's mean, or its only task), "subset", or "average" (a suite's main number).
        name: Of the group, the task, or the suite's number.
        metric: The metric, or the column of the suite's table.
        first: Name of the first run; likewise `second`.
        parts: The averaged scores, with weights.
        scores: The scores of both runs over their scored items; None: no item is scored.
        pair: The difference and its test; unscored items count as the worst score.
        p_holm: The p-value by Holm among the rows of the level; averages and groups are one family.
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
    """Two runs, the numbers to compare, the frame of both by score, and sentences on what is not compared."""

    first: Run
    second: Run
    numbers: list[Number]
    items: Mapping[Place, "pandas.DataFrame"]
    notes: list[str]


class Comparison(NamedTuple):
    """All pairs of some runs, their differences, the runs' warnings, and sentences on what is not compared."""

    pairs: list[TwoRuns]
    rows: list[Row]
    warnings: list[str]
    notes: list[str]


def load_sides(paths: Sequence[Path], least: int = 2) -> tuple[list[Run], list[str]]:
    """The runs of some paths with distinct names, and sentences on files that are left out.

    Args:
        paths: Output folders, folders in them, or results files; each model of a folder is a run.
        least: How many runs are needed.

    Raises:
        CulturevalError: A path has no results, two paths have the same run, or there are fewer runs.
    """
    loaded = [load(path) for path in paths]
    runs = [run for results in loaded for run in results.runs]
    if twice := [str(file) for file, count in Counter(run.file.resolve() for run in runs).items() if count > 1]:
        raise CulturevalError(f"{shown_names(twice)} is given twice: give two different runs.")
    sentences = list(dict.fromkeys(file.sentence for results in loaded for file in results.left_out))
    if len(runs) < least:
        problem = (
            f"{', '.join(map(str, paths))}: there is one run, and a comparison needs two. If one model was run twice, "
            "give two results files (results/<model>/results_<date>.json)."
        )
        raise CulturevalError("\n".join([problem, *sentences]))
    set_unique_names(runs)
    return runs, [f"left out: {sentence}" for sentence in sentences]


def compare(
    runs: Sequence[Run],
    metrics: Sequence[str] = (),
    allowed: Sequence[str] = (),
    draws: int = DRAWS,
    seed: int = 0,
) -> Comparison:
    """The differences of every two of some runs.

    Args:
        runs: At least two, of different names.
        metrics: Metrics to compare; (): each task's headline, and the suites' main numbers.
        allowed: Fields of the protocol that may differ, or "all".
        draws: Random swaps of a permutation test.
        seed: Of the swaps, the same for each row.

    Raises:
        CulturevalError: Protocols differ in a field not allowed, no run has a metric, or nothing can be compared.
    """
    known = dict.fromkeys(name for run in runs for name in run.items["metric"].unique())
    for metric in metrics:
        if metric not in known:
            raise CulturevalError(f"--metric {metric}: no run has it.{did_you_mean(metric, known)}")
    pairs = [two_runs(first, second, metrics) for first, second in combinations(runs, 2)]
    require_equal_protocols(pairs, allowed)
    rows = with_holm([row for two in pairs for row in _rows(two, draws, seed)], lambda row: row.level == SUBSET)
    notes = list(dict.fromkeys(note for two in pairs for note in two.notes))
    if not rows:
        raise CulturevalError("\n  ".join(["the runs share no scores that can be compared.", *notes[:MOST_REASONS]]))
    return Comparison(pairs, rows, warnings_of(runs), notes)


def warnings_of(runs: Sequence[Run]) -> list[str]:
    """The runs' warnings, each sentence once with the names of its runs."""
    names_of: dict[str, dict[str, None]] = {}
    for run in runs:
        for warning in warnings(run):
            names_of.setdefault(warning.sentence, {})[run.name] = None
    return [f"{', '.join(names)}: {sentence}" for sentence, names in names_of.items()]


def require_equal_protocols(pairs: Sequence[TwoRuns], allowed: Sequence[str]) -> None:
    """Refuses runs that differ in more than the model.

    Args:
        allowed: Fields of the protocol that may differ, or "all".

    Raises:
        CulturevalError: Protocols differ in a field that is not allowed, or `allowed` has an unknown field.
    """
    found: dict[str, dict[str, None]] = {}
    differing: dict[str, None] = {}
    fields: dict[str, None] = {ALL: None}
    for first, second, _, items, _ in pairs:
        for task, metric in items:
            fields_of_first, fields_of_second = protocol(first, task, metric), protocol(second, task, metric)
            fields |= dict.fromkeys([*fields_of_first, *fields_of_second])
            for field, (x, y) in differences(fields_of_first, fields_of_second).items():
                if not {ALL, field} & {*allowed}:
                    found.setdefault(f"{first.name} / {second.name}: {field}: {x} / {y}", {})[task] = None
                    differing[field] = None
    if unknown := [name for name in allowed if len(fields) > 1 and name not in fields]:
        raise CulturevalError(f"--allow {unknown[0]}: it takes {', '.join(fields)}.{did_you_mean(unknown[0], fields)}")
    if found:
        lines = [f"{difference} ({shown_names(list(tasks), 2)})" for difference, tasks in found.items()]
        more = [f"and {len(lines) - MOST_REASONS} more"] if len(lines) > MOST_REASONS else []
        lead, end = (
            "these runs differ in more than the model:",
            f"--allow '{','.join(differing)}' compares them all the same.",
        )
        raise CulturevalError("\n".join(["\n  ".join([lead, *lines[:MOST_REASONS], *more]), end]))


def with_holm(rows: Sequence[Row], family: Callable[[Row], Hashable]) -> list[Row]:
    """Rows with p-values adjusted by Holm among those of their family."""
    found, families = list(rows), [family(row) for row in rows]
    for group in dict.fromkeys(families):
        members = [place for place, of_row in enumerate(families) if of_row == group]
        for place, p_value in zip(members, holm([rows[place].pair.p for place in members]), strict=True):
            found[place] = replace(rows[place], p_holm=p_value)
    return found


def items_of_both(
    frames: Sequence["pandas.DataFrame"], other_rows: Callable[[Place], bool]
) -> dict[Place, "pandas.DataFrame"]:
    """The frame of two runs for each task and metric that both have; empty if they share no named item.

    Args:
        frames: Of the first, then of the second run.
        other_rows: Whether the runs have different rows; then only shared items are left.
    """
    import pandas

    names = ("run", "task", "metric", "item", "cluster", "reason")
    frame = pandas.concat(frames, ignore_index=True).astype(dict.fromkeys(names, "category"))
    groups = frame.groupby(["task", "metric"], observed=True)
    shared = {key: rows for key, rows in groups if rows["run"].nunique() == 2}
    return {key: _items_shared(rows) if other_rows(key) else _rows_by_position(rows) for key, rows in shared.items()}


def differ_in_rows(first: tuple[Run, Place], second: tuple[Run, Place]) -> bool:
    """Whether the tasks of two runs have different rows."""
    (run, key), (other_run, other_key) = first, second
    return bool({*ROW_FIELDS} & {*differences(protocol(run, *key), protocol(other_run, *other_key))})


def _items_shared(frame: "pandas.DataFrame") -> "pandas.DataFrame":
    """The items that two runs with different rows share; `row 3` names different items in them and is left out."""
    runs = frame.groupby("item", observed=True)["run"].transform("nunique")
    return frame[((runs == 2) & ~frame["item"].astype(str).str.match(r"row \d+$")).to_numpy()]


def _rows_by_position(frame: "pandas.DataFrame") -> "pandas.DataFrame":
    """Joins equal rows from differently named files (csv, shards) by position; names are those of the first run."""
    of_first = (frame["run"] == frame["run"].iloc[0]).to_numpy()
    if {*frame["item"][of_first]} & {*frame["item"][~of_first]}:
        return frame
    if 2 * of_first.sum() != len(of_first):
        return frame[:0]
    return frame.assign(**{name: [*frame[name][of_first]] * 2 for name in ("item", "cluster")})


def two_runs(first: Run, second: Run, metrics: Sequence[str] = ()) -> TwoRuns:
    """The shared items and numbers of two runs; arguments as of `compare`."""
    notes: list[str] = []
    for run, other in ((first, second), (second, first)):
        if unverified := [f"{task} ({why})" for task, why in run.unverified.items()]:
            notes.append(f"not compared, since {run.name} is unverified: {shown_names(unverified, 3)}.")
        if only_here := [task for task in run.files if task not in other.files]:
            notes.append(f"not compared, since {other.name} does not have it: {shown_names(only_here, 3)}.")
    numbers = [*_of_groups(first, second, metrics), *_of_suites(first, second, metrics)]
    weights = {key: 1.0 for *_, parts in numbers for key in parts}
    frames = [items_of(run.items, weights) for run in (first, second)]
    found = items_of_both(frames, lambda key: differ_in_rows((first, key), (second, key)))
    empty = [task for (task, _), items in found.items() if items.empty]
    notes += [f"not compared: {task}: the runs share no item that the data name." for task in empty]
    return TwoRuns(first, second, numbers, {key: frame for key, frame in found.items() if not frame.empty}, notes)


def _rows(two: TwoRuns, draws: int, seed: int) -> Iterator[Row]:
    import pandas

    names = (two.first.name, two.second.name)
    for level, name, metric, parts in two.numbers:
        missing = [task for task, score_name in parts if (task, score_name) not in two.items]
        if level == GROUP and 0 < len(missing) < len(parts):
            two.notes.append(f"not compared: the mean of {name}, {metric}: without {shown_names(missing, 3)}.")
        if missing:
            continue
        items = pandas.concat([two.items[place] for place in parts], ignore_index=True)
        if found := pair(items, *names, parts, draws, seed):
            yield Row(level, name, metric, *names, parts, (two.first.mean(parts), two.second.mean(parts)), found)
        else:
            reason = "no score, or nothing bounds the scores of missing items"
            two.notes.append(f"not compared: {name}, {metric}: {reason}.")


def _of_groups(first: Run, second: Run, metrics: Sequence[str]) -> Iterator[Number]:
    """Each group of tasks with the weights of its mean, and its subsets."""
    groups: dict[tuple[str, str], dict[str, None]] = {}
    for run in (first, second):
        for task in run.files:
            known = run.record.tasks.get(task)
            headline = list(known.metrics if known and known.metrics else run.scores.get(task, {}))[:1]
            for metric in metrics or headline:
                groups.setdefault((_group_of(run, task), metric), {})[task] = None
    for (group, metric), tasks in groups.items():
        name = group if len(tasks) > 1 else next(iter(tasks))
        yield GROUP, name, metric, first.weights(list(tasks), metric)
        for task in tasks if len(tasks) > 1 else ():
            yield SUBSET, task, metric, {(task, metric): 1.0}


def _group_of(run: Run, task: str) -> str:
    """The group of a task with `|k`; the task itself if the record does not have it."""
    known = run.record.tasks.get(task)
    return f"{known.group}|{known.shots}" if known else task


def _of_suites(first: Run, second: Run, metrics: Sequence[str]) -> Iterator[Number]:
    """Main numbers that both runs' tables have, without those of a single score or group."""
    of_second = {(name, column): parts for name, column, parts in _main_numbers(second)}
    for name, column, parts in _main_numbers(first):
        groups = {(_group_of(first, task), metric) for task, metric in parts}
        asked = not metrics or {metric for _, metric in parts} <= {*metrics}
        if of_second.get((name, column)) == parts and len(groups) > 1 and asked:
            yield AVERAGE, name, column, parts


@lru_cache(maxsize=64)
def _main_numbers(run: Run) -> list[tuple[str, str, Parts]]:
    """Name of the table and the row, column, and parts of each table's main number."""
    mains = [(table, table.main, table.cells[table.main]) for table in tables_of(run) if table.main]
    return [
        (f"{table.name}: {row}", column, cell.parts)
        for table, (row, column), cell in mains
        if cell.parts and not cell.words
    ]
