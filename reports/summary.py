"""The tables that people read at the end of a run: the numbers of a suite's paper, at most 25 lines a suite.

A suite's `headline` (a function of `reports/<suite>/headline.py`, named in its `Suite`) makes them from a `Run`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cultureval.reports.estimates import Estimate
from cultureval.reports.run_record import Run, TaskRecord
from cultureval.runtime.errors import described

if TYPE_CHECKING:
    from cultureval.tasks.suite import Suite

MOST_LINES = 25  # of a suite: titles, headers, rows and notes together


@dataclass(frozen=True)
class Cell:
    """One number of a summary.

    Attributes:
        value: In the unit that is shown (percent where the paper has percent); None is shown as n/a.
        stderr: Its standard error in the same unit; None where unknown.
        n: Items that it is the mean of.
        published: The paper's number for a model of the same name, where the paper lists it.
        digits: Decimal places.
        published_digits: Those of the paper's number; None: as `digits`.
    """

    value: float | None
    stderr: float | None = None
    n: int | None = None
    published: float | None = None
    digits: int = 2
    published_digits: int | None = None


def cell_of(
    found: Estimate | None, published: float | None = None, digits: int = 2, published_digits: int | None = None
) -> Cell:
    """The cell of an estimate; n/a without one."""
    value, stderr, n = found or (None, None, None)
    return Cell(value, stderr, n, published, digits, published_digits)


@dataclass(frozen=True)
class Row:
    """A row of a summary: its label, and a `Cell` or a text for each column; None is an empty cell."""

    label: str
    cells: Sequence[Cell | str | None]


@dataclass(frozen=True)
class SummaryTable:
    """A table of a summary.

    Attributes:
        title: Above it; names the unit.
        columns: Names of the columns, that of the labels first.
        rows: Its rows.
        notes: Lines below it ("Average (14/14): 53.21", "coverage 9/14, no average").
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Row]
    notes: Sequence[str] = ()


Headline = Callable[[Run], Sequence[SummaryTable]]


def suite_tables(run: Run) -> dict[str, list[SummaryTable]]:
    """The tables of each suite of a run, by the suite's name, in the catalogue's order.

    A suite without a `headline` has one row a group (`group_table`).

    Args:
        run: A results file.
    """
    from cultureval.tasks.catalogue import all_suites

    found = dict.fromkeys(task.suite for task in run.record.tasks.values())
    registered = {name: suite for name, suite in all_suites().items() if name in found}
    tables: dict[str, list[SummaryTable]] = {}
    for name in [*registered, *(name for name in found if name not in registered)]:
        tables[name] = _tables_of(run, name, registered.get(name))
    return tables


def _tables_of(run: Run, name: str, suite: "Suite | None") -> list[SummaryTable]:
    """A suite's tables. An error in its `headline` costs a finished run nothing: the groups' table says so."""
    try:
        headline = suite.part("headline") if suite else None
        tables = list(headline(run)) if headline else [group_table(run, name)]
        return [*tables[:-1], *(replace(table, notes=(*table.notes, *_unjudged(run, name))) for table in tables[-1:])]
    except Exception as error:  # of another package's function, on a run that may be of another version
        problem = f"The suite's own tables cannot be made: {described(error)}."
        return [replace(group_table(run, name), notes=(problem,))]


def _unjudged(run: Run, suite: str) -> list[str]:
    """A line for each judge that scored nothing of a suite, since it could not be asked."""
    names = {name for task in run.tasks_of(suite) for name in task.left_out}
    counts = {judge: sum(name.startswith(f"judge_{judge}_") for name in names) for judge in run.record.unjudged}
    return [f"Judge {judge}: n/a, its {count} metrics are left out." for judge, count in counts.items() if count]


def group_table(run: Run, suite: str) -> SummaryTable:
    """The headline metric of each group of a suite, as in the results file: a table for suites without a `headline`.

    Args:
        run: A results file.
        suite: The suite's name.
    """
    groups: dict[str, list[TaskRecord]] = {}
    for task in run.tasks_of(suite):
        groups.setdefault(f"{task.group}|{task.shots}", []).append(task)
    rows = []
    for name, tasks in groups.items():
        group, _, shots = name.partition("|")
        score = tasks[0].task if len(tasks) == 1 else f"{group}:_average|{shots}"
        metric = tasks[0].metrics[0] if tasks[0].metrics else ""
        cell = Cell(run.value(score, metric), run.stderr(score, metric), sum(task.rows for task in tasks), digits=4)
        rows.append(Row(name, (metric, cell, str(len(tasks)))))
    return SummaryTable(suite, ("Group", "metric", "score", "tasks"), rows)
