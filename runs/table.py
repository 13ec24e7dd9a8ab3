"""A suite's tables of a run, with cells declared as means of scores.

The function `tables` of a suite (in `reports/<suite>/table.py`, named in its `Suite`) declares them. `tables_of` fills
them for a run, `published` with the paper's numbers. The summary, the leaderboard, the comparison and the exports show
them.
"""

import csv
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.metrics.declared import SHARE
from cultureval.runs.frame import Parts, ends
from cultureval.runs.loading import Run
from cultureval.runs.record import TaskRecord, weights_of
from cultureval.runtime.errors import described
from cultureval.runtime.rounding import printed
from cultureval.tasks import catalogue
from cultureval.tasks.catalogue import all_suites, all_tasks, name_and_shots
from cultureval.tasks.suite import SCORE

if TYPE_CHECKING:
    from cultureval.tasks.suite import Suite

AVERAGE, OTHER_TASKS = "Average", "other tasks"
MOST_SUBSETS = 12  # of a mean, for which a table has a row each
JUDGE = "judge_"
_INSTRUCTION_TUNED = re.compile(r"(?<=[-_\s])(it|inst)(?=$|[-_\s])")
Place = tuple[str, str]  # row and column of a table
ScoreNames = Mapping[str, Iterable[str]]  # task without `|k` -> the names of its scores
Numbers = Mapping[tuple[str, str], float]  # by place, or by task (without `|k`) and metric


@dataclass(frozen=True)
class Mean:
    """The content of a cell: the weighted mean of scores of tasks.

    Attributes:
        parts: Task without `|k` and metric -> weight.
        scale: Factor of the mean: 100 for percent.
        digits: Decimal places.
        of_present: Whether a run's missing parts are left out of its mean; else a mean needs all parts.
        ours: Whether the paper has no such number.
    """

    parts: Parts
    scale: float = 1.0
    digits: int = 2
    of_present: bool = False
    ours: bool = False


@dataclass(frozen=True)
class Table:
    """A table as a suite declares it.

    Attributes:
        name: The same for all runs.
        cells: By row and column, in order.
        unit: Of the numbers, in words.
        main: The cell that ranks runs.
        lower: The columns where lower is better.
        published: Model -> the paper's numbers, without few-shot examples.
        notes: The function (run, number of few-shot examples) -> lines below the table.
        judge: For a table of one judge's scores; else "".
    """

    name: str
    cells: Mapping[Place, Mean]
    unit: str = ""
    main: Place | None = None
    lower: frozenset[str] = frozenset()
    published: Mapping[str, Numbers] = field(default_factory=dict)
    notes: Callable[[Run, int], list[str]] | None = None
    judge: str = ""


@dataclass(frozen=True)
class Cell:
    """A number of a run with its error and 95% interval, in the table's unit; None where unknown.

    Attributes:
        n: Items with a score; `asked`: all items.
        published: The paper's number for a model of the same name.
        digits: Decimal places.
        parts: Task with `|k` and metric -> weight in the mean; weights sum to 1.
        words: "" if all parts are there, "3/7" if some are, "n/a" if none is. A number with words has other parts than
            other runs, so it is not ranked.
    """

    value: float | None
    error: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    asked: int | None = None
    published: float | None = None
    digits: int = 2
    parts: Parts = field(default_factory=dict)
    words: str = ""

    @property
    def shown_error(self) -> str:
        """The standard error as printed; "" where it is unknown, or rounds to 0."""
        text = "" if self.error is None else printed(self.error, self.digits)
        return text if text.strip("0.") else ""


@dataclass(frozen=True)
class TableOfRun:
    """A filled table of a run or of a paper's model, without empty rows and columns; a single place may be empty.

    The other fields are as in `Table`; `name` ends with the number of few-shot examples, if any.
    """

    name: str
    suite: str
    unit: str
    rows: list[str]
    columns: list[str]
    lower: frozenset[str]
    cells: dict[Place, Cell]
    main: Place | None
    notes: list[str]
    judge: str = ""


def tables_of(run: Run) -> list[TableOfRun]:
    """The tables of a run, suite by suite, for each number of few-shot examples.

    A suite that declares no `tables` gets a row a group and their averages (`group_table`).
    """
    tasks = [
        *run.record.tasks.values(),
        *(_unrecorded(run, task) for task in run.files if task not in run.record.tasks),
    ]
    known = list(all_suites())
    unknown = [task.suite for task in tasks if task.suite not in known]
    found: list[TableOfRun] = []
    for suite in dict.fromkeys([*known, *unknown]):
        of_suite = [task for task in tasks if task.suite == suite]
        for shots in dict.fromkeys(task.shots for task in of_suite):
            tables, notes = _declared(run, suite, [task for task in of_suite if task.shots == shots])
            made = [_filled(run, table, suite, shots) for table in tables]
            found += [replace(table, notes=[*table.notes, *notes]) for table in made if table.cells]
    return found


def _unrecorded(run: Run, name: str) -> TaskRecord:
    """The record of a task without one, of stock LightEval or another package."""
    bare, shots = name_and_shots(name)
    group, names = bare.partition(":")[0], tuple(run.scores[name])
    about: dict[str, Any] = {"suite": OTHER_TASKS, "benchmark": group, "group": group, "subset": bare}
    return TaskRecord(task=name, shots=int(shots or 0), metrics=names, **about)


def published(suite: str) -> dict[str, list[TableOfRun]]:
    """The numbers of a suite's paper: model -> tables; means of the paper's numbers are computed."""
    known = all_suites().get(suite)
    score_names = {task.task: task.metrics for task in all_tasks().values() if task.suite == suite}
    tables = known.part("tables")(score_names) if known and known.tables else []
    found: dict[str, list[TableOfRun]] = {}
    for table in tables:
        for model, numbers in table.published.items():
            cells = {}
            for place, mean in table.cells.items():
                parts = {part: mean.parts[part] for part in mean.parts if part in numbers or not mean.of_present}
                if (value := _paper(numbers, place, mean, parts)) is not None:
                    words = f"{len(parts)}/{len(mean.parts)}" if len(parts) < len(mean.parts) else ""
                    cells[place] = Cell(value, digits=mean.digits, words=words)
            if cells:
                found.setdefault(model, []).append(_of_cells(table, suite, table.name, cells, []))
    return found


def _declared(run: Run, suite: str, tasks: Sequence[TaskRecord]) -> tuple[Sequence[Table], list[str]]:
    """A suite's tables and notes; the table of groups and a note if its function fails."""
    known = all_suites().get(suite)
    if known is None or not known.tables:
        return [group_table(suite, tasks)], []
    try:
        return known.part("tables")({name_and_shots(task.task)[0]: run.scores.get(task.task, {}) for task in tasks}), []
    except Exception as error:  # another package's function, or a run of another version
        return [group_table(suite, tasks)], [f"The suite's own tables cannot be made: {described(error)}."]


def _filled(run: Run, table: Table, suite: str, shots: int) -> TableOfRun:
    """A table with a run's numbers, without empty rows and columns."""
    model = published_model(run.model, table.published) if table.published and not shots else None
    numbers = table.published[model] if model else {}
    cells = {place: _cell(run, place, mean, shots, numbers) for place, mean in table.cells.items()}
    records = run.record.tasks
    known = {
        name: {*scores, *(records[name].metrics if name in records else ())} for name, scores in run.scores.items()
    }
    present = [
        place
        for place, mean in table.cells.items()
        if any(metric in known.get(f"{task}|{shots}", ()) for task, metric in mean.parts)
    ]
    rows, columns = {row for row, _ in present}, {column for _, column in present}
    cells = {place: cell for place, cell in cells.items() if place[0] in rows and place[1] in columns}
    name = f"{table.name}{of_shots(shots)}"
    notes = table.notes(run, shots) if table.notes and cells else []
    return _of_cells(table, suite, name, cells, notes)


def _of_cells(table: Table, suite: str, name: str, cells: dict[Place, Cell], notes: list[str]) -> TableOfRun:
    rows, columns = (list(dict.fromkeys(place[side] for place in cells)) for side in (0, 1))
    main = table.main if table.main in cells else None
    lower = table.lower & set(columns)
    return TableOfRun(name, suite, table.unit, rows, columns, lower, cells, main, notes, table.judge)


def _cell(run: Run, place: Place, mean: Mean, shots: int, numbers: Numbers) -> Cell:
    """A run's number, and the paper's number of the same parts."""
    present = {
        part: weight for part, weight in mean.parts.items() if part[1] in run.scores.get(f"{part[0]}|{shots}", {})
    }
    chosen = present if mean.of_present else mean.parts
    total = sum(chosen.values())
    parts = {(f"{task}|{shots}", metric): weight / total for (task, metric), weight in chosen.items()}
    paper = _paper(numbers, place, mean, chosen)
    whole = len(present) == len(mean.parts)
    words = "" if whole else f"{len(present)}/{len(mean.parts)}" if len(mean.parts) > 1 else "n/a"
    score = run.mean(parts) if present and (whole or mean.of_present) else None
    if score is None:
        return Cell(None, published=paper, digits=mean.digits, words=words or "n/a")
    score = score.times(mean.scale)
    return Cell(score.value, score.error, score.low, score.high, score.n, score.asked, paper, mean.digits, parts, words)


def _paper(numbers: Numbers, place: Place, mean: Mean, parts: Parts) -> float | None:
    """The paper's number: from its table, or the mean of its numbers of these parts."""
    if place in numbers:
        return numbers[place]
    if mean.ours or not parts or any(part not in numbers for part in parts):
        return None
    return sum(weight * numbers[part] for part, weight in parts.items()) / sum(parts.values())


def equal(parts: Iterable[tuple[str, str]]) -> dict[tuple[str, str], float]:
    """Scores with equal weights."""
    parts = list(parts)
    return {part: 1 / len(parts) for part in parts}


def mean_of_cells(cells: Iterable[Mean], **changed: object) -> Mean:
    """The unweighted mean of cells, in the form of the first; `changed` are fields that differ."""
    cells = list(cells)
    parts: dict[tuple[str, str], float] = {}
    for cell in cells:
        for part, weight in cell.parts.items():
            parts[part] = parts.get(part, 0.0) + weight / len(cells) / sum(cell.parts.values())
    return replace(cells[0], parts=parts, of_present=False, **changed)  # type: ignore[arg-type]


def with_subsets(cells: Mapping[Place, Mean], score_names: ScoreNames) -> dict[Place, Mean]:
    """Cells, and below a mean of two to twelve tasks of a run the rows of these tasks."""
    found: dict[Place, Mean] = {}
    for place, mean in cells.items():
        found[place] = mean
        present = [part for part in mean.parts if part[0] in score_names]
        if mean.of_present and 1 < len(present) <= MOST_SUBSETS:
            found |= {(part[0], place[1]): replace(mean, parts={part: 1.0}) for part in present}
    return found


def judges_of(score_names: ScoreNames, criteria: Iterable[str]) -> list[str]:
    """The judges whose scores a run has, from the names `judge_<judge>_<criterion>`.

    Args:
        criteria: Ends of the names, after the judge: `vqa_fluency`, `image_reference_fluency`.
    """
    ends = sorted((f"_{one}" for one in criteria), key=len, reverse=True)  # the longest first: one may end another
    names = dict.fromkeys(name for metrics in score_names.values() for name in metrics if name.startswith(JUDGE))
    found = (next((name[len(JUDGE) : -len(end)] for end in ends if name.endswith(end)), "") for name in names)
    return [judge for judge in dict.fromkeys(found) if judge]


def group_table(suite: str, tasks: Sequence[TaskRecord]) -> Table:
    """The table of a suite without declared tables: groups with their first metric, and averages.

    The averages are the declared ones (`Suite.averages`), else the mean of the groups, if all have the same first
    metric. A run has an average if it has all tasks of it.
    """
    groups: dict[tuple[str, str], dict[str, TaskRecord]] = {}
    for task in tasks:
        groups.setdefault((task.group, task.headline), {})[name_and_shots(task.task)[0]] = task
    known, cells = catalogue.groups(suite), dict[Place, Mean]()
    for (group, metric), present in groups.items():
        parts = equal((task, metric) for task in dict.fromkeys([*known.get(group, ()), *present]))
        if all(task.by_size for task in present.values()):
            weights = weights_of([*present.values()])
            parts = {(task, metric): weight for task, weight in zip(present, weights, strict=True)}
        cells[group, metric] = Mean(parts, digits=4, of_present=True)
    lower = frozenset(
        metric for (_, metric), names in groups.items() if not higher_is_better(next(iter(names)), metric)
    )
    averages = _averages(suite, known, cells)
    main = next(reversed(averages), None) or (next(iter(cells)) if len(cells) == 1 else None)
    score_names = {name_and_shots(task.task)[0]: task.metrics for task in tasks}
    shares = all(sorted(ends(next(iter(own)), metric)) == sorted(SHARE) for (_, metric), own in groups.items())
    unit = "0 to 1" if shares else "on the scales of the metrics"
    return Table(suite, with_subsets(cells, score_names) | averages, unit, main, lower)


def _averages(suite: str, groups: Mapping[str, Sequence[str]], cells: Mapping[Place, Mean]) -> dict[Place, Mean]:
    registered = all_suites().get(suite)
    if registered and registered.averages:
        declared = registered.part("averages")()
        return {
            (average.title, SCORE): Mean(parts_of_average(registered, average.name), digits=4)
            for average in sorted(declared, key=lambda average: average.name == suite)
        }
    metrics = {metric for _, metric in cells}
    names = dict.fromkeys([*groups, *(group for group, _ in cells)])
    if len(names) < 2 or len(metrics) > 1 or suite == OTHER_TASKS:
        return {}
    (metric,) = metrics
    wanted = [cells.get((name, metric)) or Mean(equal((task, metric) for task in groups[name])) for name in names]
    return {(AVERAGE, metric): mean_of_cells(wanted, digits=4)}


def parts_of_average(suite: "Suite", name: str, metric: str = SCORE) -> dict[tuple[str, str], float]:
    """The parts of a task, group or declared average of a suite: (task without `|k`, metric) -> weight."""
    declared = {average.name: average for average in suite.part("averages")()} if suite.averages else {}
    if name not in declared:
        return equal((task, metric) for task in catalogue.groups(suite.name).get(name, [name]))
    members = [parts_of_average(suite, member, of) for member, of in declared[name].members.items()]
    return dict(mean_of_cells(Mean(parts) for parts in members).parts)


def higher_is_better(task: str, metric: str) -> bool:
    """Whether higher values of a metric are better, as declared; default True."""
    worst, best = ends(task, metric)
    return worst < best


def of_shots(count: int | str) -> str:
    """The ending of a table's name for few-shot examples: `, 5-shot`; "" for none."""
    return f", {count}-shot" if int(count or 0) else ""


def mean_row(cells: Mapping[Place, Mean], rows: Sequence[str], all_rows: int) -> dict[Place, Mean]:
    """Our mean of rows in each column: `Mean`, or `Mean of A, B` if rows are missing.

    Returns:
        Its cells; for a single row, the cells of that row.
    """
    columns = dict.fromkeys(column for _, column in cells)
    label = "Mean" if len(rows) == all_rows else f"Mean of {', '.join(rows)}"
    if len(rows) == 1:
        return {place: mean for place, mean in cells.items() if place[0] == rows[0]}
    return {(label, column): mean_of_cells((cells[row, column] for row in rows), ours=True) for column in columns}


def published_model(name: str, listed: Iterable[str]) -> str | None:
    """The paper's model with the same name as a model; None without one.

    Names are compared without organisation or folder, case and punctuation. "+" is "plus", -it and -inst are -Instruct,
    and Meta-Llama is Llama. Any further part of a name (a version, a size, "Instruct", -AWQ) makes another model.
    """
    wanted = _plain(name)
    return next((model for model in listed if _plain(model) == wanted), None)


def published_rows(file: Path) -> list[dict[str, str]]:
    """The rows of a paper's table, a CSV with a header, as texts; lines with "#" name its source."""
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))


def _plain(name: str) -> str:
    parts = re.split(r"[/\\]", name.rstrip("/\\"))
    hub = [part for part in parts if part.startswith("models--")]  # a folder of the hub's cache: models--ORG--NAME
    text = (hub or parts)[-1].split("--")[-1].casefold().replace("+", "plus")
    text = _INSTRUCTION_TUNED.sub("instruct", text).removeprefix("meta-")
    # Between digits punctuation stays: Qwen2.5-7B is not Qwen2-57B.
    return re.sub(r"(?<!\d)[^\w.]+|[^\w.]+(?!\d)|(?<!\d)\.|\.(?!\d)|_", "", re.sub(r"(?<=\d)_(?=\d)", "-", text))
