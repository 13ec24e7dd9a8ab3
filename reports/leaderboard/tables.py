"""The tables of a leaderboard: a row a model, a column a number of the suite's paper."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from cultureval.reports.leaderboard.entries import PAPER, Division, Entry, Group, judges_that_differ
from cultureval.reports.ranks import Ranking
from cultureval.runs.table import NO_AVERAGE, Cell, Column, OneRow, of_shots, one_row, suite_rows
from cultureval.runtime.errors import shorten
from cultureval.runtime.rounding import printed
from cultureval.tasks.catalogue import all_suites

UNDEFINED = "n/a"
Named = tuple[str, Entry | None, Sequence[OneRow]]  # a model's label, its entry (None: of a paper), its tables


@dataclass(frozen=True)
class BoardRow:
    """A row of a table.

    Attributes:
        label: The model's name as shown.
        cells: A cell or a text for each column; None is an empty cell.
        entry: Of whose scores; None for a row of a paper.
        rank: "1" or "2–5"; "" where unknown.
        top: Whether the data leave open that it is the best.
        notes: On this row alone.
        unproven: Whether its rank counts items without a score as wrong: none of its scores is called the best.
    """

    label: str
    cells: Sequence[Cell | str | None]
    entry: Entry | None = None
    rank: str = ""
    top: bool = False
    notes: Sequence[str] = ()
    unproven: bool = False


@dataclass(frozen=True)
class BoardTable:
    """A table of a leaderboard.

    Attributes:
        title: Above it.
        unit: What the numbers are.
        columns: Of the numbers, in order.
        rows: The best first where there is a main column; the paper's among them.
        main: Place of the main column among `columns`; None without one.
        notes: Below it.
        ranking: Of its models by the main column; None where they have no ranks.
        name: Of the suite's table that it is of.
    """

    title: str
    unit: str
    columns: Sequence[Column]
    rows: Sequence[BoardRow]
    main: int | None = None
    notes: Sequence[str] = field(default_factory=tuple)
    ranking: Ranking | None = None
    name: str = ""


def tables_of(division: Division, group: Group, published: bool = False) -> list[BoardTable]:
    """The tables of a group of comparable entries.

    Args:
        published: Whether the rows of the suite's paper stand among those of the first group.
    """
    suite, first = all_suites().get(division.suite), group is division.groups[0]
    rows: list[Named] = [(entry.label, entry, suite_rows(entry.run, division.suite)) for entry in group.entries]
    paper = suite.part("published_tables") if suite and published and first and not division.shots else None
    for model, tables in (paper() if paper else {}).items():
        rows.append((f"{model} ({PAPER})", None, [one_row(table) for table in tables]))
    ours = dict.fromkeys((row.table, row.judge) for _, entry, found in rows if entry for row in found)
    own = bool(suite and suite.tables)  # else the groups' table, which stands in where they cannot be made, is all
    ordered = sorted(ours, key=lambda one: own and one[0] == division.suite)
    found = [table for name, judge in ordered for table in _by_judges(name, judge, rows)]
    return [replace(table, title=f"{table.title}{of_shots(division.shots)}") for table in found]


def _by_judges(name: str, judge: str, rows: Sequence[Named]) -> list[BoardTable]:
    """A table; of judges' scores, of which those of two judges of a name are not comparable, one for each of them."""
    parts: list[list[Entry]] = []
    for _, entry, own in rows:
        if entry and any(row.table == name for row in own):
            alike = [one for one in parts if not any(judge and judges_that_differ(entry, two, judge) for two in one)]
            parts += [] if alike else [[]]
            (alike or parts[-1:])[0].append(entry)
    tables = []
    for number, part in enumerate(parts, start=1):
        table = _table(name, [row for row in rows if row[1] is None or any(row[1] is one for one in part)])
        if number > 1:
            here, there = judges_that_differ(part[0], parts[0][0], judge) or ("", "")
            told = f"Another judge of the name {judge} than in the first of these tables: {shorten(here, 90)} here, "
            notes = [f"{told}{shorten(there, 90)} there. Scores of two judges are not comparable.", *table.notes]
            table = replace(table, title=f"{name} ({number})", notes=notes)
        tables.append(table)
    return tables


def _table(name: str, rows: Sequence[Named]) -> BoardTable:
    families = {row.family for _, entry, own in rows for row in own if entry and row.table == name}
    found = [
        (label, entry, row)
        for label, entry, own in rows
        for row in own
        if (row.table == name if entry else row.family in families)
    ]
    columns = _columns([row for _, entry, row in found if entry])
    columns = [column for column in columns if any(_tells(row.cells.get(column)) for _, entry, row in found if entry)]
    first = next(row for _, entry, row in found if entry)
    main = _main_column([row for _, entry, row in found if entry])
    main = main if main in columns else None
    if main:  # what models are ranked by stands first
        columns.sort(key=lambda column: column.above != main.above)
    shared = [note for note in first.notes if all(note in row.notes for _, entry, row in found if entry)]
    listed = [
        BoardRow(
            label,
            [row.cells.get(column) for column in columns],
            entry,
            notes=[note for note in row.notes if entry and note not in shared],
        )
        for label, entry, row in found
        if entry or any(whole_number(row.cells.get(column)) is not None for column in columns)
    ]
    place = columns.index(main) if main else None
    if main and place is not None:
        listed.sort(key=lambda row: _sorting(row.cells[place], main.lower))
    return BoardTable(name, first.unit, columns, listed, place, shared, name=name)


def _main_column(rows: Sequence[OneRow]) -> Column | None:
    """What most rows are ranked by; of two, the mean of more scores: rows with other subsets have another mean."""
    most = {row.main: len(row.parts) for row in sorted(rows, key=lambda row: len(row.parts))}
    counts = Counter(row.main for row in rows if row.main in row.cells)
    return max(counts, key=lambda column: (counts[column], most[column]), default=None)


def _columns(rows: Sequence[OneRow]) -> list[Column]:
    """The columns of all rows, each after the one that it follows in the row that brings it."""
    columns: list[Column] = []
    for row in sorted(rows, key=lambda row: -len(row.cells)):
        place = 0
        for column in row.cells:
            if column in columns:
                place = columns.index(column) + 1
            else:
                columns.insert(place, column)
                place += 1
    return columns


def _tells(cell: Cell | str | None) -> bool:
    """Whether a cell has a number, or how much there is of one; a column of other cells alone is not shown."""
    return cell.value is not None if isinstance(cell, Cell) else cell not in (None, "", NO_AVERAGE)


def _sorting(cell: Cell | str | None, lower: bool) -> tuple[bool, float]:
    value = whole_number(cell)
    return value is None, 0.0 if value is None else value if lower else -value


def whole_number(cell: Cell | str | None) -> float | None:
    """The number of a cell that may be compared with others of its column: none of a mean without all of its parts."""
    return cell.value if isinstance(cell, Cell) and not cell.in_part else None


def column_spans(table: BoardTable) -> list[tuple[str, int]]:
    """The header above the columns' names: each name with the number of columns below it; [] where there is none."""
    found = [(name, len(list(columns))) for name, columns in groupby(table.columns, lambda column: column.above)]
    return found if any(name for name, _ in found) else []


def best_cells(table: BoardTable) -> set[tuple[int, int]]:
    """Row and column of the best value of each column among our rows of all items, where the row has a rank; none
    where fewer than two have one, or all the same. A value of fewer items than another's is not among them.
    """
    best = set()
    limit = max((row.entry.limit for row in table.rows if row.entry), default=0)
    for place, column in enumerate(table.columns):
        rows = enumerate(table.rows)
        cells = {number: row.cells[place] for number, row in rows if row.entry and row.entry.limit == limit}
        most = max((cell.asked or cell.n or 0 for cell in cells.values() if isinstance(cell, Cell)), default=0)
        values = {
            number: value
            for number, cell in cells.items()
            if (value := whole_number(cell)) is not None and isinstance(cell, Cell)
            if cell.n is None or (cell.asked or cell.n) == most
            if (row := table.rows[number]).entry and row.entry.may_be_best and not row.unproven
        }
        if len({*values.values()}) > 1:
            top = min(values.values()) if column.lower else max(values.values())
            best |= {(number, place) for number, value in values.items() if value == top and table.rows[number].rank}
    return best


def shared_counts(table: BoardTable) -> list[int | None]:
    """For each column the number of items that all of its numbers are of; None where they differ, or nobody knows."""
    columns = ([row.cells[place] for row in table.rows] for place in range(len(table.columns)))
    counts = ({cell.n for cell in cells if isinstance(cell, Cell) and cell.n is not None} for cells in columns)
    return [found.pop() if len(found) == 1 else None for found in counts]


def with_count(text: str, count: int | None) -> str:
    """A number, or its column's name, with of how many items it is."""
    return text if count is None else f"{text} (n {count:,})"


def cell_text(cell: Cell | str | None, errors: bool = True) -> str:
    """A cell as text: `65.81 ± 0.32`; of a mean without all of its parts with how many it has: `65.81 (3/7)`."""
    if not isinstance(cell, Cell):
        return cell or ""
    if cell.value is None:
        return UNDEFINED
    error = f" ± {printed(cell.stderr, cell.digits)}" if errors and cell.stderr is not None else ""
    return f"{printed(cell.value, cell.digits)}{error}{f' ({cell.in_part})' if cell.in_part else ''}"


def cell_data(cell: Cell | str | None) -> object:
    """A cell as data for JSON; `coverage` is there where a mean lacks some of its parts."""
    if not isinstance(cell, Cell):
        return cell
    found = {"value": cell.value, "stderr": cell.stderr, "n": cell.n}
    return found | {"coverage": cell.in_part} if cell.in_part else found
