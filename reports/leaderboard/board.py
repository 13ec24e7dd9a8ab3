"""All that a leaderboard shows, as data: tables with a row a run, ranked where runs share a protocol."""

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
    """A run, whose items are no longer in memory: its tables, and its warnings in all and by table."""

    run: Run
    tables: Sequence[TableOfRun]
    warnings: Sequence[Warning]
    told: Mapping[str, Sequence[Warning]]

    @property
    def billions(self) -> float | None:
        """Parameters in billions: as the record counts them, else as the name says, if it does."""
        known = self.run.record.model.parameters
        return known / 1e9 if known else billions_of(self.run.model)


@dataclass(frozen=True)
class Row:
    """A row of a table: a run, or, without an `entry`, a model of the paper.

    Attributes:
        warnings: What a reader of the row must know.
        notes: Of this row alone.
        rank: Its rank, and the ends of the rank's 95 % interval; None without one.
        unranked: Why it has none.
        differs: In what its settings differ from those of the ranked rows, a sentence a field; else empty.
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
        """Its rank as people read it: `1`, `2–5`; "" without one."""
        return "–".join(map(str, dict.fromkeys((self.rank.low, self.rank.high)))) if self.rank else ""


@dataclass(frozen=True)
class BoardTable:
    """A table of a leaderboard; name, suite, unit and main number are those of the runs' tables.

    Attributes:
        columns: Row and column of each number in the runs' own tables; that of the ranks stands first.
        lower: Of `columns` those where lower is better.
        rows: The best first; runs with other settings are the last.
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
        """What stands above a column's name, or "", and its name."""
        if len({column for _, column in self.columns}) == 1:
            return "", place[0]
        return ("", place[1]) if len({row for row, _ in self.columns}) == 1 else place

    def title(self, place: Place) -> str:
        """The name of a column on one line."""
        return ": ".join(filter(None, self.heads(place)))

    def is_best(self, row: Row, place: Place) -> bool:
        """Whether a ranked row has the best number of a column; one of fewer items than were asked is not the best."""
        values = {
            one.name: cell.value for one in self.ranked if (cell := one.cells.get(place)) and cell.n == cell.asked
        }
        known = [value for value in values.values() if value is not None]
        best = (min if place in self.lower else max)(known, default=None)
        return len(set(known)) > 1 and values.get(row.name) == best


@dataclass(frozen=True)
class Section:
    """What a leaderboard shows of a suite."""

    suite: str
    tables: Sequence[BoardTable]
    charts: Sequence[Chart]


@dataclass(frozen=True)
class Board:
    """A leaderboard: its runs, the newest first, its suites in the catalogue's order, and files that were left out."""

    entries: Sequence[Entry]
    sections: Sequence[Section]
    left_out: Sequence[LeftOut] = ()


def read_board(paths: Sequence[Path], *, papers: bool = False, strict: bool = False) -> Board:
    """Reads results into a leaderboard; of the items those that ranks need are kept.

    Args:
        paths: Results files and folders that hold some.
        papers: Whether the rows of the suites' papers stand among ours.
        strict: Whether a file that cannot be read stops; else it is left out, and named.

    Raises:
        CulturevalError: A path has no results that can be read.
    """
    results, entries, kept = load(*paths, strict=strict), [], _Items()
    for run in results.runs:
        tables = tables_of(run)
        told = {table.name: warnings(run, _tasks_of(table)) for table in tables}
        entries.append(Entry(run, tables, warnings(run), told))
        kept.add(items_of(run.items, {part: 1.0 for table in tables for part in _main_parts(table)}))
        run.release()
    items = kept.frame()
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
    """The scores, with weights, of the number that a run is ranked by; {} where it lacks some of them."""
    cell = table.cells.get(table.main) if table.main else None
    return cell.parts if cell and cell.value is not None and not cell.words else {}


class _Items:
    """The frames of many runs as one, in which each name is in memory once."""

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
        """All of them, once; names are categories."""
        import pandas

        found = {name: np.concatenate(self.columns.pop(name) or [[]]) for name in COLUMNS}
        for name, known in self.names.items():
            found[name] = pandas.Categorical.from_codes(found[name], categories=list(known))
        return pandas.DataFrame(found, copy=False)


def _table(
    pairs: Sequence[tuple[Entry, TableOfRun]], items: "pandas.DataFrame", paper: Mapping[str, Sequence[TableOfRun]]
) -> BoardTable:
    """A table of the runs that have it, with ranks."""
    whole = Counter(tuple(sorted(weights.items())) for _, table in pairs if (weights := _main_parts(table)))
    parts = dict(whole.most_common(1)[0][0]) if whole else {}
    notes = [note for note in pairs[0][1].notes if all(note in table.notes for _, table in pairs)]
    protocols = [_protocols(entry.run, parts, table) for entry, table in pairs]
    rows = []
    for entry, table in pairs:
        own = [note for note in table.notes if note not in notes]
        why = _unranked(entry.run, table, parts)
        rows.append(Row(entry.run.name, table.cells, entry, entry.told[table.name], own, unranked=why))
    voters = [place for place, row in enumerate(rows) if not row.unranked] or range(len(rows))
    home = _most_shared([(pairs[place][0].run.model, protocols[place]) for place in voters])
    rows = [replace(row, differs=_differences(one, home)) for row, one in zip(rows, protocols, strict=True)]
    names = [row.name for row in rows if not row.unranked and not row.differs]
    found = {one.run: one for one in ranks(items[items["run"].isin(names)], parts)} if names and parts else {}
    reason = "a missing answer has no worst score"
    rows = [
        replace(row, rank=found.get(row.name), unranked=row.unranked or ("" if row.name in found else reason))
        for row in rows
    ]
    name = pairs[0][1].name
    rows += [Row(model, one.cells) for model, tables in paper.items() for one in tables if one.name == name]
    return _arranged([table for _, table in pairs], rows, notes)


def _unranked(run: Run, table: TableOfRun, parts: Mapping[Part, float]) -> str:
    """Why a run has no rank; "" where it may have one."""
    if not parts or dict(_main_parts(table)) != parts:
        return "lacks tasks"
    return "unverified" if any(task in run.unverified for task, _ in parts) else ""


def _protocols(run: Run, parts: Mapping[Part, float], table: TableOfRun) -> Protocols:
    """The protocols of the scores that runs are ranked by; of a run that lacks some, those of all that it has."""
    own = {part for cell in table.cells.values() for part in cell.parts}
    return {part: protocol(run, *part) for part in (parts if parts and _main_parts(table) == parts else own)}


def _most_shared(given: Iterable[tuple[str, Protocols]]) -> Protocols:
    """The protocol that most models share; of several that of the most scores, then of the newest run."""
    found: dict[str, tuple[Protocols, set[str]]] = {}
    for model, one in given:
        key = repr(sorted((part, sorted(fields.items())) for part, fields in one.items()))
        found.setdefault(key, (one, set()))[1].add(model)
    return max(found.values(), key=lambda one: (len(one[1]), len(one[0])))[0]


def _differences(own: Protocols, home: Protocols) -> list[str]:
    """In what a run's settings differ from others, a sentence a field."""
    shared = [part for part in own if part in home]
    fields: dict[str, list[tuple[str, str]]] = {}
    for part in shared:
        for name, values in differences(own[part], home[part]).items():
            fields.setdefault(name, []).append(values)
    return ([] if shared or not home else ["no task in common"]) + [
        f"{name}: {shown(found[0][0], 80)} here, {shown(found[0][1], 80)} there ({counted(len(found), 'task')})"
        for name, found in fields.items()
    ]


def _arranged(tables: Sequence[TableOfRun], rows: Sequence[Row], notes: Sequence[str]) -> BoardTable:
    """The table in order: ranked rows by rank, the paper's among them by their numbers, then others by theirs."""
    first, main = tables[0], next((table.main for table in tables if table.main), None)
    wide = sorted(tables, key=lambda table: -len(table.cells))
    wanted = dict.fromkeys(place for table in wide for place in table.cells if not _is_subset(table, place))
    columns = [place for place in wanted if any(_is_told(row.cells.get(place)) for row in rows if row.entry)]
    columns.sort(key=lambda place: (place != main, main is None or place[0] != main[0]))
    sign = 1 if main and main[1] in first.lower else -1

    def value(row: Row) -> float:
        cell = row.cells.get(main) if main else None
        return float("inf") if cell is None or cell.value is None else sign * cell.value

    ordered = sorted((row for row in rows if row.rank), key=lambda row: row.rank.rank if row.rank else 0)
    for row in sorted((row for row in rows if not row.entry), key=value):
        below = (place for place, other in enumerate(ordered) if value(other) > value(row))
        ordered.insert(next(below, len(ordered)), row)
    others = [row for row in rows if row.entry and not row.rank]
    ordered += sorted(others, key=lambda row: (bool(row.differs), value(row)))
    lower = {place for place in columns if place[1] in first.lower}
    reasons: dict[str, list[str]] = {}
    for row in ordered if main else ():
        if row.entry and row.unranked and not row.differs:
            reasons.setdefault(row.unranked, []).append(row.name)
    left = [f"Not ranked: {shown_names(names, 3)} ({reason})." for reason, names in reasons.items()]
    return BoardTable(first.name, first.suite, first.unit, main, columns, lower, ordered, [*notes, *left])


def _is_subset(table: TableOfRun, place: Place) -> bool:
    """Whether a number is of one subset, which stands in a row of its own below that of its group."""
    parts = table.cells[place].parts
    return len(parts) == 1 and ":" in place[0] and any(name_and_shots(task)[0] == place[0] for task, _ in parts)


def _is_told(cell: Cell | None) -> bool:
    return cell is not None and (cell.value is not None or "/" in cell.words)


def _section(suite: str, tables: Sequence[BoardTable]) -> Section:
    """The tables, a chart of each one's main number, and the suite's own charts."""
    charts = [chart for number, table in enumerate(tables) for chart in _intervals(table, number)]
    known = all_suites().get(suite)
    draw: Callable[[BoardTable], list[Chart]] | None = known.part("charts") if known else None
    return Section(suite, tables, [*charts, *(draw(tables[0]) if draw else [])])


def _intervals(table: BoardTable, number: int) -> list[Chart]:
    """The main numbers of ranked rows with their intervals; [] of a single one."""
    if table.main is None or len(table.ranked) < 2:
        return []
    names = chart_names([row.name for row in table.ranked])
    cells = [(names[row.name], row.cells[table.main]) for row in table.ranked]
    points = [Point(label, cell.value or 0.0, low=cell.low, high=cell.high) for label, cell in cells]
    name, column = f"{table.suite or 'other'}_scores{number or ''}", table.title(table.main)
    label = f"{column}, {table.unit}".strip(", ")
    return [intervals(name, f"{table.name}: {column}", label, points, bars=False, zero=False, note="95 % intervals.")]
