"""The content of a leaderboard as data: tables with a row for each run, ranked among runs with one protocol."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cultureval.reports.charts import Chart, Point, chart_names, intervals
from cultureval.reports.leaderboard.assets import shown
from cultureval.reports.model_sizes import billions_of
from cultureval.runs.files import LeftOut
from cultureval.runs.frame import COLUMNS
from cultureval.runs.loading import Run, load
from cultureval.runs.pairs import Ranked, ranks
from cultureval.runs.protocol import differences, protocol
from cultureval.runs.scores import items_of
from cultureval.runs.table import Cell, Place, TableOfRun, published, tables_of
from cultureval.runs.warnings import Warning, warnings
from cultureval.runtime.errors import counted, shown_names
from cultureval.tasks.catalogue import all_suites, name_and_shots

if TYPE_CHECKING:
    import pandas

Part = tuple[str, str]  # a task with `|k` and its metric
Protocols = Mapping[Part, Mapping[str, str]]


@dataclass(frozen=True)
class Entry:
    """A run without its items: its tables, and its warnings in all and by table."""

    run: Run
    tables: Sequence[TableOfRun]
    warnings: Sequence[Warning]
    warnings_by_table: Mapping[str, Sequence[Warning]]

    @property
    def billions(self) -> float | None:
        """Parameters in billions: from the record, else from the model's name, else None."""
        parameters = self.run.record.model.parameters
        return parameters / 1e9 if parameters else billions_of(self.run.model)


@dataclass(frozen=True)
class Row:
    """A row of a table: a run, or, without an `entry`, a model of the paper.

    Attributes:
        warnings: The run's warnings on this table.
        notes: Of this row alone.
        rank: Its rank, and the ends of the rank's 95 % interval; None: not ranked.
        unranked: Why it has no rank.
        differs: A sentence for each setting that differs from the ranked rows' settings.
    """

    name: str
    cells: Mapping[Place, Cell]
    entry: Entry | None = None
    warnings: Sequence[Warning] = ()
    notes: Sequence[str] = ()
    rank: Ranked | None = None
    unranked: str = ""
    differs: Sequence[str] = ()

    @property
    def interval(self) -> str:
        """The interval of its rank as text: `1`, `2–5`; "" without a rank."""
        return "–".join(map(str, dict.fromkeys((self.rank.low, self.rank.high)))) if self.rank else ""


@dataclass(frozen=True)
class BoardTable:
    """A table of a leaderboard; name, suite, unit and main number are those of the runs' tables.

    Attributes:
        columns: Row and column of each number in the runs' own tables; the main number comes first.
        lower: The `columns` where lower is better.
        rows: The best first; runs with other settings come last.
    """

    name: str
    suite: str
    unit: str
    main: Place | None
    columns: Sequence[Place]
    lower: Collection[Place]
    rows: Sequence[Row]
    notes: Sequence[str]

    @property
    def ranked(self) -> list[Row]:
        """The rows with a rank, the best first."""
        return [row for row in self.rows if row.rank]

    def heads(self, place: Place) -> tuple[str, str]:
        """The group above a column's name, or "", and the name."""
        if len({column for _, column in self.columns}) == 1:
            return "", place[0]
        return ("", place[1]) if len({row for row, _ in self.columns}) == 1 else place

    def title(self, place: Place) -> str:
        """The name of a column on one line."""
        return ": ".join(filter(None, self.heads(place)))

    def is_best(self, row: Row, place: Place) -> bool:
        """Whether a ranked row has the best number of a column. A number with unscored items is never the best."""
        cells = {other.name: other.cells.get(place) for other in self.ranked}
        values = {name: cell.value for name, cell in cells.items() if cell and cell.n == cell.asked}
        known = [value for value in values.values() if value is not None]
        best = (min if place in self.lower else max)(known, default=None)
        return len(set(known)) > 1 and values.get(row.name) == best


@dataclass(frozen=True)
class Section:
    """The tables and charts of a suite."""

    suite: str
    tables: Sequence[BoardTable]
    charts: Sequence[Chart]


@dataclass(frozen=True)
class Board:
    """A leaderboard: runs, the newest first; suites in the catalogue's order; files that were left out."""

    entries: Sequence[Entry]
    sections: Sequence[Section]
    left_out: Sequence[LeftOut] = ()


def read_board(paths: Sequence[Path], *, papers: bool = False, strict: bool = False) -> Board:
    """Reads results into a leaderboard; keeps only the items that ranks need in memory.

    Args:
        paths: Results files and folders of them.
        papers: Whether tables have the rows of the suites' papers.
        strict: Whether an unreadable file raises an error; else it is listed in `left_out`.

    Raises:
        CulturevalError: A path has no results that can be read.
    """
    results, entries, items_of_runs = load(*paths, strict=strict), [], _Items()
    for run in results.runs:
        tables = tables_of(run)
        by_table = {table.name: warnings(run, _tasks_of(table)) for table in tables}
        entries.append(Entry(run, tables, warnings(run), by_table))
        items_of_runs.add(items_of(run.items, {part: 1.0 for table in tables for part in _main_parts(table)}))
        run.release()
    items = items_of_runs.frame()
    found: dict[str, dict[str, list[tuple[Entry, TableOfRun]]]] = {}
    for entry in entries:
        for table in entry.tables:
            found.setdefault(table.suite, {}).setdefault(table.name, []).append((entry, table))
    order = {name: place for place, name in enumerate(all_suites())}
    sections = []
    for suite in sorted(found, key=lambda name: order.get(name, len(order))):
        paper = published(suite) if papers else {}
        sections.append(_section(suite, [_table(pairs, items, paper) for pairs in found[suite].values()]))
    return Board(entries, sections, results.left_out)


def _tasks_of(table: TableOfRun) -> list[str]:
    return sorted({task for cell in table.cells.values() for task, _ in cell.parts})


def _main_parts(table: TableOfRun) -> Mapping[Part, float]:
    """The scores, with weights, of the number that ranks a run; {} if some are missing."""
    cell = table.cells.get(table.main) if table.main else None
    return cell.parts if cell and cell.value is not None and not cell.words else {}


class _Items:
    """Joins the frames of many runs with each name in memory once."""

    def __init__(self) -> None:
        self.names: dict[str, dict[str, int]] = {}
        self.columns: dict[str, list[NDArray[Any]]] = {name: [] for name in COLUMNS}

    def add(self, frame: "pandas.DataFrame") -> None:
        """Adds the items of a run."""
        for name in COLUMNS if len(frame) else ():
            values = frame[name]
            if hasattr(values, "cat"):
                kept, known = values.cat.remove_unused_categories().cat, self.names.setdefault(name, {})
                place = np.array([known.setdefault(text, len(known)) for text in kept.categories.tolist()], np.int32)
                self.columns[name].append(place[kept.codes])
            else:
                self.columns[name].append(values.to_numpy())

    def frame(self) -> "pandas.DataFrame":
        """The joined frame; names are categories. It can be called once."""
        import pandas

        found = {name: np.concatenate(self.columns.pop(name) or [[]]) for name in COLUMNS}
        for name, known in self.names.items():
            found[name] = pandas.Categorical.from_codes(found[name], categories=list(known))
        return pandas.DataFrame(found, copy=False)


def _table(
    pairs: Sequence[tuple[Entry, TableOfRun]], items: "pandas.DataFrame", paper: Mapping[str, Sequence[TableOfRun]]
) -> BoardTable:
    """A table of all runs that have it, with ranks."""
    whole = Counter(tuple(sorted(weights.items())) for _, table in pairs if (weights := _main_parts(table)))
    parts = dict(whole.most_common(1)[0][0]) if whole else {}
    notes = [note for note in pairs[0][1].notes if all(note in table.notes for _, table in pairs)]
    protocols = [_protocols(entry.run, parts, table) for entry, table in pairs]
    rows = []
    for entry, table in pairs:
        notes_of_row = [note for note in table.notes if note not in notes]
        why = _unranked(entry.run, table, parts)
        rows.append(
            Row(entry.run.name, table.cells, entry, entry.warnings_by_table[table.name], notes_of_row, unranked=why)
        )
    voters = [place for place, row in enumerate(rows) if not row.unranked] or range(len(rows))
    shared = _most_shared([(pairs[place][0].run.model, protocols[place]) for place in voters])
    rows = [replace(row, differs=_differences(settings, shared)) for row, settings in zip(rows, protocols, strict=True)]
    names = [row.name for row in rows if not row.unranked and not row.differs]
    ranked = ranks(items[items["run"].isin(names)], parts) if names and parts else []
    found = {rank.run: rank for rank in ranked}
    reason = "a missing answer has no worst score"
    rows = [
        replace(row, rank=found.get(row.name), unranked=row.unranked or ("" if row.name in found else reason))
        for row in rows
    ]
    name = pairs[0][1].name
    rows += [Row(model, table.cells) for model, tables in paper.items() for table in tables if table.name == name]
    return _arranged([table for _, table in pairs], rows, notes)


def _unranked(run: Run, table: TableOfRun, parts: Mapping[Part, float]) -> str:
    """Why a run has no rank; "" if it may have one."""
    if not parts or dict(_main_parts(table)) != parts:
        return "tasks missing"
    return "unverified" if any(task in run.unverified for task, _ in parts) else ""


def _protocols(run: Run, parts: Mapping[Part, float], table: TableOfRun) -> Protocols:
    """The protocols of the scores that rank runs; if a run misses some, of all its scores in the table."""
    parts_of_table = {part for cell in table.cells.values() for part in cell.parts}
    return {part: protocol(run, *part) for part in (parts if parts and _main_parts(table) == parts else parts_of_table)}


def _most_shared(protocols: Iterable[tuple[str, Protocols]]) -> Protocols:
    """The protocol of the most models; in a tie that with the most scores, then the newest run's."""
    found: dict[str, tuple[Protocols, set[str]]] = {}
    for model, settings in protocols:
        key = repr(sorted((part, sorted(fields.items())) for part, fields in settings.items()))
        found.setdefault(key, (settings, set()))[1].add(model)
    return max(found.values(), key=lambda group: (len(group[1]), len(group[0])))[0]


def _differences(protocols: Protocols, shared: Protocols) -> list[str]:
    """A sentence for each setting of a run that differs from the shared protocol."""
    parts = [part for part in protocols if part in shared]
    fields: dict[str, list[tuple[str, str]]] = {}
    for part in parts:
        for name, values in differences(protocols[part], shared[part]).items():
            fields.setdefault(name, []).append(values)
    return ([] if parts or not shared else ["no task in common"]) + [
        f"{name}: {shown(found[0][0], 80)} here, {shown(found[0][1], 80)} there ({counted(len(found), 'task')})"
        for name, found in fields.items()
    ]


def _arranged(tables: Sequence[TableOfRun], rows: Sequence[Row], notes: Sequence[str]) -> BoardTable:
    """The table in order: ranked rows with the paper's between them by number, then unranked rows by number."""
    first, main = tables[0], next((table.main for table in tables if table.main), None)
    wide = sorted(tables, key=lambda table: -len(table.cells))
    places = dict.fromkeys(column for table in wide for column in table.cells if not _is_subset(table, column))
    columns = [column for column in places if any(_has_number(row.cells.get(column)) for row in rows if row.entry)]
    columns.sort(key=lambda column: (column != main, main is None or column[0] != main[0]))
    sign = 1 if main and main[1] in first.lower else -1

    def value(row: Row) -> float:
        cell = row.cells.get(main) if main else None
        return float("inf") if cell is None or cell.value is None else sign * cell.value

    ordered = sorted((row for row in rows if row.rank), key=lambda row: row.rank.rank if row.rank else 0)
    for row in sorted((row for row in rows if not row.entry), key=value):
        below = (place for place, other in enumerate(ordered) if value(other) > value(row))
        ordered.insert(next(below, len(ordered)), row)
    unranked = [row for row in rows if row.entry and not row.rank]
    ordered += sorted(unranked, key=lambda row: (bool(row.differs), value(row)))
    lower = {column for column in columns if column[1] in first.lower}
    reasons: dict[str, list[str]] = {}
    for row in ordered if main else ():
        if row.entry and row.unranked and not row.differs:
            reasons.setdefault(row.unranked, []).append(row.name)
    unranked_notes = [f"Not ranked: {shown_names(names, 3)} ({reason})." for reason, names in reasons.items()]
    return BoardTable(first.name, first.suite, first.unit, main, columns, lower, ordered, [*notes, *unranked_notes])


def _is_subset(table: TableOfRun, place: Place) -> bool:
    """Whether a number is of a single subset below the row of its group."""
    parts = table.cells[place].parts
    return len(parts) == 1 and ":" in place[0] and any(name_and_shots(task)[0] == place[0] for task, _ in parts)


def _has_number(cell: Cell | None) -> bool:
    return cell is not None and (cell.value is not None or "/" in cell.words)


def _section(suite: str, tables: Sequence[BoardTable]) -> Section:
    """The tables, a chart of each table's main number, and the suite's own charts."""
    charts = [chart for number, table in enumerate(tables) for chart in _intervals(table, number)]
    found = all_suites().get(suite)
    draw: Callable[[BoardTable], list[Chart]] | None = found.part("charts") if found else None
    return Section(suite, tables, [*charts, *(draw(tables[0]) if draw else [])])


def _intervals(table: BoardTable, number: int) -> list[Chart]:
    """A chart of ranked rows' main numbers with intervals; [] for fewer than two rows."""
    if table.main is None or len(table.ranked) < 2:
        return []
    names = chart_names([row.name for row in table.ranked])
    cells = [(names[row.name], row.cells[table.main]) for row in table.ranked]
    points = [Point(label, cell.value or 0.0, low=cell.low, high=cell.high) for label, cell in cells]
    name, column = f"{table.suite or 'other'}_scores{number or ''}", table.title(table.main)
    label = f"{column}, {table.unit}".strip(", ")
    return [intervals(name, f"{table.name}: {column}", label, points, bars=False, zero=False, note="95 % intervals.")]
