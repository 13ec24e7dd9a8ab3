"""A run's row in the tables of a leaderboard, where each model is a row.

A suite's `standings` (a function of `reports/<suite>/`, named in its `Suite`) makes them from a `Run`; of a suite
without one they are the cells of its summary's tables, one after the other.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cultureval.reports.estimates import Estimate, mean_of
from cultureval.reports.run_record import Run
from cultureval.reports.summary import Cell, SummaryTable, suite_tables
from cultureval.runtime.errors import described

if TYPE_CHECKING:
    from cultureval.tasks.suite import Suite

LOWER = ("CFHR", "invalid", "instability")  # beginnings of columns' names in which lower is better
INCOMPLETE = "no average"


@dataclass(frozen=True)
class Column:
    """A column of a leaderboard's table.

    Attributes:
        name: Its name.
        above: What stands above it and its neighbours, such as the dialect; "" for nothing.
        lower: Whether lower values are better.
    """

    name: str
    above: str = ""
    lower: bool = False

    @property
    def whole(self) -> str:
        """Its name with what stands above it."""
        return f"{self.above}: {self.name}" if self.above else self.name


@dataclass(frozen=True)
class Standing:
    """A run's row in one table.

    Attributes:
        table: Name of the table, the same for all runs.
        cells: A cell or a text by column, in order.
        unit: What the numbers are.
        main: The column by which models are ranked, if there is one.
        parts: The scores that the main column is the weighted mean of: (task with `|k`, metric) -> weight; empty where
            it is no such mean, so that its rank has no interval.
        notes: What must be known of this run's numbers.
    """

    table: str
    cells: Mapping[Column, Cell | str | None]
    unit: str = ""
    main: Column | None = None
    parts: Mapping[tuple[str, str], float] = field(default_factory=dict)
    notes: Sequence[str] = field(default_factory=tuple)


Standings = Callable[[Run], Sequence[Standing]]


def standings(run: Run, suite: "Suite | None", name: str) -> list[Standing]:
    """The rows of a run in the tables of a suite.

    Args:
        run: With tasks of this suite alone, with one number of few-shot examples.
        suite: The suite, where it is registered.
        name: Its name.
    """
    try:
        own = suite.part("standings") if suite else None
        if own:
            return list(own(run))
    except Exception as error:  # of another package's function, on a run that may be of another version
        problem = f"The suite's own table cannot be made: {described(error)}."
        return [replace(row, notes=(problem, *row.notes)) for row in _flattened(run, name)]
    return _flattened(run, name)


def _flattened(run: Run, name: str) -> list[Standing]:
    return [row for table in suite_tables(run).get(name, ()) if (row := flattened(table)).cells]


def flattened(table: SummaryTable) -> Standing:
    """A summary's table as one row: its cells with numbers, row after row.

    Args:
        table: Of one run.
    """
    name, _, unit = table.title.partition(":")
    cells: dict[Column, Cell | str | None] = {}
    main = None
    for row in table.rows:
        for column, cell in zip(table.columns[1:], row.cells, strict=True):
            if not isinstance(cell, Cell):
                continue
            place = Column(column, row.label, column.startswith(LOWER))
            cells[place] = cell
            main = main or (place if row.label in ("Average", "Macro") else None)
    return Standing(name.strip(), cells, unit.strip(), main, notes=table.notes)


def ranked_by(row: Standing, name: str, tasks: Mapping[str, str], metric: str) -> Standing:
    """A row whose main column is the mean over its lines: ours, where the paper has none.

    Args:
        row: Such as of `flattened`.
        name: The column whose cells are averaged; with a single line it is the main column itself.
        tasks: What stands above the cells -> the task with `|k` that the score is from.
        metric: Of these tasks.

    Returns:
        The row with the mean in front; the row itself where a score is missing.
    """
    known = {column: cell for column, cell in row.cells.items() if column.name == name and column.above in tasks}
    cells = [cell for cell in known.values() if isinstance(cell, Cell) and cell.value is not None]
    if not tasks or len(cells) < len(tasks):
        return row
    parts = {(task, metric): 1.0 for task in tasks.values()}
    if len(cells) == 1:
        return replace(row, main=next(iter(known)), parts=parts)
    main = Column(name, f"Mean of {', '.join(tasks)}", name.startswith(LOWER))
    mean = mean_of([Estimate(cell.value or 0.0, cell.stderr, cell.n) for cell in cells], same_items=True)
    cell = replace(cells[0], value=mean.value, stderr=mean.stderr, n=mean.n, published=None)
    return replace(row, cells={main: cell} | dict(row.cells), main=main, parts=parts)
