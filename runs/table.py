"""A suite's typed table of a run: the numbers of its paper, from which every view is drawn.

A suite's `tables` (a function of `reports/<suite>/table.py`, named in its `Suite`) makes them from a `Run`. A terminal
shows rows and columns (`SuiteTable`), at most 25 lines a suite; a leaderboard and a comparison have one row a run
(`one_row`): there a number stands in the column that its cell names, else in that of its row and column.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cultureval.metrics.declared import SHARE
from cultureval.runs.judged import is_of_judge
from cultureval.runs.means import Estimate, agree, as_written, estimate, mean_of, members_of
from cultureval.runs.record import Run, TaskRecord
from cultureval.runtime.errors import described
from cultureval.tasks.catalogue import declared_metric

if TYPE_CHECKING:
    from cultureval.tasks.suite import Suite

MOST_LINES = 25  # of a suite: titles, headers, rows and notes together
NO_AVERAGE = "no average"
AVERAGE = "Average"
Parts = Mapping[tuple[str, str], float]  # task with `|k` and metric -> weight in a mean of them


@dataclass(frozen=True)
class Column:
    """A column of numbers.

    Attributes:
        name: Its name.
        above: What stands above it and its neighbours in a table of one row a run, such as the dialect; "": nothing.
        lower: Whether lower values are better.
    """

    name: str
    above: str = ""
    lower: bool = field(default=False, compare=False)

    @property
    def whole(self) -> str:
        """Its name with what stands above it."""
        return f"{self.above}: {self.name}" if self.above else self.name


@dataclass(frozen=True)
class Coverage:
    """How many of its parts a mean has.

    Attributes:
        present: Those that are there.
        total: All.
        column: Where it stands in one row a run; None: nowhere.
        words: What stands before it in the terminal.
    """

    present: int
    total: int
    column: Column | None = None
    words: str = ""

    @property
    def whole(self) -> bool:
        """Whether no part is missing."""
        return self.present >= self.total

    def __str__(self) -> str:
        return f"{self.present}/{self.total}"


@dataclass(frozen=True)
class Cell:
    """One number.

    Attributes:
        value: In the unit that is shown (percent where the paper has percent); None is shown as `words`.
        stderr: Its standard error in the same unit; None where unknown.
        n: Items that it is the mean of.
        asked: Items that have a score, where a rate counts only some of them; None: as `n`.
        published: The paper's number for a model of the same name, where the paper lists it.
        digits: Decimal places.
        published_digits: Those of the paper's number; None: as `digits`.
        column: Where it stands in one row a run; None: in the column of its row's label and its column's name.
        coverage: How many of its parts a mean has; where some are missing it stands behind the number in one row a
            run, since other runs' means are of others.
        parts: The scores that it is the weighted mean of; empty where it is no such mean.
        words: What stands in place of a value that is not there.
        spans: Whether it is of several rows of the table, so that their n stands not in the row's column n.
    """

    value: float | None
    stderr: float | None = None
    n: int | None = None
    published: float | None = None
    digits: int = 2
    published_digits: int | None = None
    column: Column | None = None
    coverage: Coverage | None = None
    parts: Parts = field(default_factory=dict)
    words: str = "n/a"
    asked: int | None = field(default=None, compare=False)
    spans: bool = field(default=False, compare=False)

    @property
    def in_part(self) -> str:
        """How many of its parts it is of, where some are missing: `3/7`; else ""."""
        return str(self.coverage) if self.coverage and not self.coverage.whole and self.coverage.present else ""


Content = Cell | Coverage | str | None


def cell_of(
    found: Estimate | None, published: float | None = None, digits: int = 2, published_digits: int | None = None
) -> Cell:
    """The cell of an estimate; n/a without one."""
    value, stderr, n = found or (None, None, None)
    return Cell(value, stderr, n, published, digits, published_digits)


@dataclass(frozen=True)
class Row:
    """A row: its label, and a number, a coverage or a text for each column; None is an empty cell."""

    label: str
    cells: Sequence[Content]


@dataclass(frozen=True)
class SuiteTable:
    """A table of a run.

    Attributes:
        name: The same for all runs.
        unit: Of the numbers, whichever columns a view shows; "" where these say it.
        columns: The columns, that of the labels first; a name alone is a column without more.
        rows: Its rows.
        notes: Lines below it.
        heading: Above it in the terminal; "": name and unit.
        family: Tables of one family share the paper's rows (one for each judge); "": the name.
        main: What runs are ranked by; None: nothing.
        first: Cells of one row a run that the terminal does not show, before the others.
        order: Columns of one row a run that stand first, in this order, also where a run has none of their numbers.
        judge: The name of the judge whose scores alone it has; "" of other tables.
    """

    name: str
    unit: str
    columns: Sequence[Column | str]
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    heading: str = ""
    family: str = ""
    main: Column | None = None
    first: Mapping[Column, Content] = field(default_factory=dict)
    order: Sequence[Column] = ()
    judge: str = ""

    @property
    def title(self) -> str:
        """What stands above it in the terminal."""
        lower = ", ".join(one.name for one in self.columns if isinstance(one, Column) and one.lower)
        told = "; ".join(filter(None, (self.unit, lower and f"lower is better: {lower}")))
        return self.heading or (f"{self.name}: {told}" if told else self.name)

    def placed(self) -> Iterator[tuple[Column, Cell | Coverage | str]]:
        """Its numbers, and the bounds of a judge's, with the columns in which they stand in one row a run."""
        for row in self.rows:
            for column, cell in zip(self.columns[1:], row.cells, strict=False):
                if isinstance(cell, Cell) or self.judge and isinstance(cell, str):
                    known = column if isinstance(column, Column) else Column(column)
                    yield (isinstance(cell, Cell) and cell.column) or replace(known, above=row.label), cell
                elif isinstance(cell, Coverage) and cell.column:
                    yield cell.column, cell


def of_shots(count: int | str) -> str:
    """What a name ends with that is of a number of few-shot examples; "" for none."""
    return f", {count}-shot" if int(count or 0) else ""


def names_of_columns(table: SuiteTable) -> list[str]:
    """The names of a table's columns, that of the labels first."""
    return [column.name if isinstance(column, Column) else column for column in table.columns]


@dataclass(frozen=True)
class OneRow:
    """A table of a run as one row.

    Attributes:
        table: The table's name, the same for all runs; `family` and `judge` as of `SuiteTable`.
        cells: A cell or a text by column, in order.
        unit: What the numbers are.
        main: The column by which models are ranked, if there is one.
        parts: The scores that the main column is the weighted mean of; empty where it is no such mean, so that its
            rank has no interval.
        notes: What must be known of this run's numbers.
    """

    table: str
    cells: Mapping[Column, Cell | str | None]
    unit: str = ""
    main: Column | None = None
    parts: Parts = field(default_factory=dict)
    notes: Sequence[str] = field(default_factory=tuple)
    family: str = ""
    judge: str = ""


def one_row(table: SuiteTable) -> OneRow:
    """A table as one row: its numbers, row after row, each in the column that it names."""
    found: dict[Column, Content] = {**dict(table.placed()), **table.first}
    found = {column: found[column] for column in [*table.first, *found]}
    ordered = {column: found.get(column) for column in table.order} | found
    cells = {column: _shown(content) for column, content in ordered.items()}
    main = table.main if table.main in cells else None
    whole = found.get(main) if main else None
    parts = whole.parts if isinstance(whole, Cell) and whole.value is not None else {}
    return OneRow(table.name, cells, table.unit, main, parts, table.notes, table.family or table.name, table.judge)


def _shown(content: Content) -> Cell | str | None:
    """A cell of one row a run: the coverage, or the words, that stand in place of a number."""
    if isinstance(content, Coverage):
        return str(content)
    if isinstance(content, Cell) and content.value is None:
        return content.in_part or (content if content.words == "n/a" else content.words)
    return content


def suite_tables(run: Run) -> dict[str, list[SuiteTable]]:
    """The tables of each suite of a run, by the suite's name, in the catalogue's order.

    A suite without `tables` has one row a group and their average (`group_table`).
    """
    from cultureval.tasks.catalogue import all_suites

    found = dict.fromkeys(task.suite for task in run.record.tasks.values())
    registered = {name: suite for name, suite in all_suites().items() if name in found}
    tables: dict[str, list[SuiteTable]] = {}
    for name in [*registered, *(name for name in found if name not in registered)]:
        tables[name] = _tables_of(run, name, registered.get(name))
    return tables


def suite_rows(run: Run, suite: str) -> list[OneRow]:
    """The tables of a suite of a run, as one row each; tables without a number are left out."""
    return [row for table in suite_tables(run).get(suite, ()) if (row := one_row(table)).cells]


def averages(run: Run) -> list[tuple[str, Parts]]:
    """The numbers by which runs are ranked and that are more than the average of one group of tasks.

    Returns:
        Their names, and the scores that each is the weighted mean of; those of which the run lacks a part are left out.
    """
    rows = [row for suite in suite_tables(run) for row in suite_rows(run, suite)]
    return [
        (f"{row.table}: {row.main.whole}", row.parts) for row in rows if row.main and not _is_of_one_group(row.parts)
    ]


def _is_of_one_group(parts: Parts) -> bool:
    """Whether a mean is that of a group, which has a row of its own wherever groups have rows."""
    groups = {task.partition(":")[0] for task, _ in parts}
    return len(groups) < 2 and len(set(parts.values())) < 2 and len({metric for _, metric in parts}) < 2


def _tables_of(run: Run, name: str, suite: "Suite | None") -> list[SuiteTable]:
    """A suite's tables. An error in its function costs a finished run nothing: the groups' table says so."""
    try:
        made = suite.part("tables") if suite else None
        tables = list(made(run)) if made else [group_table(run, name)]
        for table in tables:
            _require_one_place(table)
        return [*tables[:-1], *(replace(table, notes=(*table.notes, *_unjudged(run, name))) for table in tables[-1:])]
    except Exception as error:  # of another package's function, on a run that may be of another version
        problem = f"The suite's own tables cannot be made: {described(error)}."
        return [replace(group_table(run, name), notes=(problem,))]


def _require_one_place(table: SuiteTable) -> None:
    columns = [column.whole for column, _ in table.placed()]
    if twice := {name for name in columns if columns.count(name) > 1}:
        raise ValueError(f"two of its numbers stand in one column: {', '.join(sorted(twice))}")


def _unjudged(run: Run, suite: str) -> list[str]:
    """A line for each judge that scored nothing of a suite, since it could not be asked."""
    names = {name for task in run.tasks_of(suite) for name in task.left_out}
    counts = {judge: sum(is_of_judge(name, judge, suite) for name in names) for judge in run.record.unjudged}
    return [f"Judge {judge}: n/a, its {count} metrics are left out." for judge, count in counts.items() if count]


def group_table(run: Run, suite: str) -> SuiteTable:
    """The headline metric of each group of a suite and their average: the table of suites without one of their own.

    The average is that of the groups, with equal weights, where all groups of the suite were run with one metric.
    """
    groups: dict[str, list[TaskRecord]] = {}
    for task in run.tasks_of(suite):
        groups.setdefault(f"{task.group}|{task.shots}", []).append(task)
    ways = {name: higher_is_better(run, one[0].task, one[0].headline) for name, one in groups.items()}
    places = {name: Column(one[0].headline, name, not ways[name]) for name, one in groups.items()}
    cells = {name: replace(_group_cell(run, tasks), column=places[name]) for name, tasks in groups.items()}
    rows = [Row(name, (one[0].headline, cells[name], _coverage(one))) for name, one in groups.items()]
    lower = not any(ways.values())
    if len(groups) > 1:
        rows.append(Row(AVERAGE, (next(iter(groups.values()))[0].headline, _average(suite, groups, cells), None)))
    main = Column(AVERAGE) if len(groups) > 1 else next(iter(places.values()), Column("score"))
    columns = ("Group", "metric", Column("score", lower=lower), "tasks")
    declared = [declared_metric(task.task, task.headline) for task in run.tasks_of(suite)]
    shares = all(one is not None and one.range == SHARE for one in declared)
    unit = "0 to 1" if shares else "on the scales of the metrics"
    return SuiteTable(suite, unit, columns, rows, main=replace(main, lower=lower))


def _coverage(tasks: Sequence[TaskRecord]) -> Coverage:
    """How many of a group's tasks there are."""
    from cultureval.tasks.catalogue import groups

    return Coverage(len(tasks), max(len(groups().get(tasks[0].group, ())), len(tasks)))


def higher_is_better(run: Run, task: str, metric: str) -> bool:
    """Whether higher values of a metric are better: as it is declared, else as the results file says it, else True."""
    if declared := declared_metric(task, metric):
        return declared.higher_is_better
    configs = run.content.get("config_tasks")
    config = configs.get(task) if isinstance(configs, Mapping) else None
    metrics = config.get("metrics") if isinstance(config, Mapping) else None
    for one in metrics if isinstance(metrics, Sequence) else ():
        told = one.get("higher_is_better") if isinstance(one, Mapping) else None
        if isinstance(told, Mapping) and metric in told:
            return bool(told[metric])
        if isinstance(told, bool) and one.get("metric_name") == metric:
            return told
    return True


def _group_cell(run: Run, tasks: Sequence[TaskRecord]) -> Cell:
    metric = tasks[0].headline
    estimates = [estimate(run, task, metric) for task in tasks]
    known = [one for one in estimates if one]
    if len(known) < len(tasks):
        return Cell(None, digits=4, coverage=_coverage(tasks))
    mean = known[0]
    if len(tasks) > 1:
        name = f"{tasks[0].group}:_average|{tasks[0].task.partition('|')[2]}"
        mean = as_written(run, name, metric, mean_of(known))
    parts = {(task.task, metric): 1 / len(tasks) for task in tasks}
    return Cell(mean.value, mean.stderr, mean.n, digits=4, parts=parts, coverage=_coverage(tasks))


def _average(suite: str, groups: Mapping[str, Sequence[TaskRecord]], cells: Mapping[str, Cell]) -> Cell:
    from cultureval.tasks.catalogue import groups as known_groups

    known = known_groups(suite) if any(suite == task.suite for tasks in groups.values() for task in tasks) else {}
    there = {name.partition("|")[0]: tasks for name, tasks in groups.items()}
    metrics = {tasks[0].headline for tasks in groups.values()}
    missing = [name for name, tasks in known.items() if len(there.get(name, ())) < len(tasks)]
    values = [Estimate(cell.value, cell.stderr, cell.n) for cell in cells.values() if cell.value is not None]
    if missing or len(metrics) > 1 or len(values) < len(cells) or len(there) < len(groups):
        return Cell(None, column=Column(AVERAGE), words=NO_AVERAGE)
    mean = mean_of(values)
    parts = {part: weight / len(cells) for cell in cells.values() for part, weight in cell.parts.items()}
    return replace(cell_of(mean, digits=4), column=Column(AVERAGE), parts=parts)


def with_mean_of_rows(
    run: Run, table: SuiteTable, name: str, tasks: Mapping[str, str], metric: str, named: str = ""
) -> SuiteTable:
    """A table whose runs are ranked by the mean over its rows: ours, where the paper has none.

    Args:
        run: Whose average of the same tasks, where it has one, gives the mean's error: it is made while it is known
            which items the tasks share.
        table: Of the run.
        name: The column whose numbers are averaged; with a single row it is the main column itself.
        tasks: Label of a row -> the task with `|k` that its number is from.
        metric: Of these tasks.
        named: What all of these rows are; "": their labels.

    Returns:
        The table with the mean in front, in one row a run only; the table itself where a score is missing.
    """
    known = {column: cell for column, cell in table.placed() if column.name == name and column.above in tasks}
    cells = [cell for cell in known.values() if isinstance(cell, Cell) and cell.value is not None]
    if not tasks or len(cells) < len(tasks):
        return table
    parts = {(task, metric): 1.0 for task in tasks.values()}
    column = next(iter(known))
    if len(cells) == 1:
        return replace(table, main=column, first={column: replace(cells[0], parts=parts)})
    main = Column(name, f"Mean of {named or ', '.join(tasks)}", column.lower)
    mean = mean_of([Estimate(cell.value or 0.0, cell.stderr, cell.n) for cell in cells], same_items=True)
    same = (one for one in run.scores if set(members_of(one, run.scores) or ()) == {*tasks.values()})
    average = next(same, "")
    value = run.value(average, metric)
    mean = as_written(run, average, metric, mean) if value is not None and agree(value, mean.value) else mean
    asked = sum(cell.asked or cell.n or 0 for cell in cells)
    cell = replace(cell_of(mean, digits=cells[0].digits), column=main, parts=parts, asked=asked or None)
    return replace(table, main=main, first={main: cell, **table.first})


def table_of_cells(name: str, cells: Mapping[Column, Content]) -> SuiteTable:
    """A table of a paper: numbers by their columns in one row a model."""
    return SuiteTable(name, "", (), (), first=cells)
