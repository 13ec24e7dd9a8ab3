"""All that a leaderboard shows, as data: tables, ranks, charts, models, and why groups differ."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cultureval.metrics.paired_tests import FEW_DIFFER, compare_paired
from cultureval.metrics.resampling import percentile_tail
from cultureval.reports.charts import Chart, Charted, Point, intervals, isolated
from cultureval.reports.leaderboard.assets import shown
from cultureval.reports.leaderboard.entries import Division, Entry, Group, divisions
from cultureval.reports.leaderboard.models import ModelFacts, facts_of, read_models
from cultureval.reports.leaderboard.tables import BoardRow, BoardTable, tables_of
from cultureval.reports.ranks import TINY
from cultureval.reports.run_ranks import RankedItems, rank_items
from cultureval.runs.files import LeftOut
from cultureval.runs.load_runs import load_all
from cultureval.runs.record import Run
from cultureval.runs.table import Column, OneRow, suite_rows
from cultureval.runtime.errors import CulturevalError, described, shown_names
from cultureval.tasks.catalogue import all_suites


@dataclass(frozen=True)
class Section:
    """A group of comparable entries of a suite, with its tables and charts."""

    division: Division
    group: Group
    tables: Sequence[BoardTable]
    charts: Sequence[Chart]


@dataclass(frozen=True)
class Board:
    """A leaderboard.

    Attributes:
        runs: All that were read, the newest first.
        sections: In the catalogue's order of suites.
        models: Facts of models by their labels, in the order of the tables.
        left_out: Files that could not be read.
    """

    runs: Sequence[Run]
    sections: Sequence[Section]
    models: dict[str, ModelFacts]
    left_out: Sequence[LeftOut] = ()


def read_board(
    paths: Sequence[Path],
    *,
    published: bool = False,
    allowed: Collection[str] = (),
    models: Path | None = None,
    ranks: bool = True,
    partial: bool = False,
    strict: bool = False,
) -> Board:
    """Reads results into a leaderboard.

    Args:
        paths: Results files and folders that hold some.
        published: Whether the rows of the suites' papers stand among ours.
        allowed: Fields of signatures that may differ within a group.
        models: A table of families, sizes and licences.
        ranks: Whether rank intervals are computed from the items.
        partial: Whether the papers' rows also stand among runs of other rows than published.
        strict: Whether a file that cannot be read stops; else it is left out, and named.

    Raises:
        CulturevalError: A path has no results that can be read.
    """
    given = read_models(models)
    runs = load_all(paths, strict)
    suites = divisions(runs, allowed)
    if not suites:
        raise CulturevalError("These results have no task of a known suite: a leaderboard is of `cultureval tasks`.")
    facts = facts_of((entry for one in suites for group in one.groups for entry in group.entries), given)
    sections = [
        _section(division, group, published, ranks, facts, partial) for division in suites for group in division.groups
    ]
    return Board(runs, sections, facts, runs.left_out)


def _is_partial(group: Group) -> bool:
    return any(entry.partial for entry in group.entries)


def _section(
    division: Division, group: Group, published: bool, ranks: bool, facts: dict[str, ModelFacts], partial: bool
) -> Section:
    tables: list[BoardTable] = []
    charts: list[Chart] = []
    beside = published and (partial or not _is_partial(group))
    for table in tables_of(division, group, beside):
        found = ranks_of(table, division) if ranks else None
        if found:
            notes = [*_sentences(found), *table.notes]
            table = replace(table, rows=_with_ranks(table, found), notes=notes, ranking=found.ranking)
        tables.append(table if table.ranking else replace(table, rows=_proven_first(table.rows)))
        charts += _forest(table, division, found, len(charts)) if found else []
    told = [group.told] if group.told else []
    if (
        published
        and not beside
        and any(row.entry is None for one in tables_of(division, group, True) for row in one.rows)
    ):
        told.append("The rows of papers are left out, since runs here are of other rows than published: --partial.")
    if tables and told:
        tables[0] = replace(tables[0], notes=[*tables[0].notes, *told])
    try:
        charts = [*_charts(division, group, tables, facts), *charts]
    except Exception as error:  # of another package's function, as for tables: one file never ends the page
        problem = f"The suite's own charts cannot be made: {described(error)}."
        tables[:1] = [replace(table, notes=[*table.notes, problem]) for table in tables[:1]]
    if division.shots:
        charts = [replace(chart, name=f"{chart.name}_{division.shots}_shot") for chart in charts]
    return Section(division, group, tables, charts)


def ranks_of(table: BoardTable, division: Division) -> RankedItems | None:
    """The ranks of a table whose main column is a mean of items; None for others."""
    if table.main is None:
        return None
    rows: list[tuple[Entry, OneRow]] = []
    for row in table.rows:
        for one in suite_rows(row.entry.run, division.suite) if row.entry else ():
            if row.entry and one.table == table.name:
                rows.append((row.entry, one))
    if not any(row.parts for _, row in rows):
        return None
    unranked = {entry.label: entry.unranked for entry, _ in rows if entry.unranked}
    found = item_ranks([row for row in rows if row[0].label not in unranked], table.columns[table.main])
    return replace(found, without=unranked | found.without)


def item_ranks(rows: Sequence[tuple[Entry, OneRow]], main: Column) -> RankedItems:
    """Ranks with intervals by a paired bootstrap of items within subsets.

    Args:
        rows: Comparable entries, each with its row; those whose rows have no `parts` get no rank.
        main: The column by which they are ranked; rows that are ranked by another get no rank.
    """
    parts = max((row.parts for _, row in rows if row.main == main), key=len, default={})
    without = {entry.label: "it has no score in the main column" for entry, row in rows if not row.parts}
    without |= {entry.label: "it has other subsets" for entry, row in rows if row.parts and row.parts != parts}
    models = [
        (entry.label, {task: entry.sources[task] for task, _ in parts}) for entry, row in rows if row.parts == parts
    ]
    found = rank_items(models if parts else [], parts, higher_is_better=not main.lower)
    return replace(found, without=without | found.without)


def _behind(found: RankedItems) -> dict[str, tuple[float, float, float]]:
    """Paired differences to the best model, each with percentiles of its resamples, for few clusters wider ones.

    Where few items differ, or all alike, the interval reaches as far as that of `compare`, which is no single point.
    """
    import numpy as np

    ranking, resamples = found.ranking, found.resamples
    if ranking is None or resamples is None:
        return {}
    tail = percentile_tail(resamples.freedom, ranking.level)
    best = found.labels.index(ranking.rows[0].model)
    behind = {}
    for row in ranking.rows[1:]:
        place = found.labels.index(row.model)
        drawn = resamples.draws[:, place] - resamples.draws[:, best]
        difference = float(resamples.values[place] - resamples.values[best])
        low, high = np.quantile(drawn[np.isfinite(drawn)], [tail, 1 - tail])
        pairs = [subset.pair(place, best) for subset in found.subsets]
        differ = sum(int((np.asarray(pair.first) != pair.second).any(axis=1).sum()) for pair in pairs)
        if differ < FEW_DIFFER or high - low < TINY:
            result = compare_paired(pairs, len(resamples.draws), resamples.seed)
            bounds = [low, high, *(bound for bound in (result.low, result.high) if bound is not None)]
            low, high = min(bounds), max(bounds)
        behind[row.model] = (difference, float(low), float(high))
    return behind


def _forest(table: BoardTable, division: Division, found: RankedItems, number: int) -> list[Chart]:
    """Differences to the best model with their intervals; `number` of the suite's charts of this kind."""
    behind = _behind(found)
    if not behind or not found.ranking or table.main is None:
        return []
    percent = "percent" in table.unit
    scale = 100 if percent else 1
    points = [
        Point(isolated(shown(label)), scale * x, low=scale * low, high=scale * high)
        for label, (x, low, high) in behind.items()
    ]
    best, column = isolated(shown(found.ranking.rows[0].model)), table.columns[table.main]
    title = f"{shown(table.title)}: difference from {best}, the best by {column.whole}"
    unit = "percentage points" if percent else f"difference in {column.name}"
    note = "Paired differences with 95 % intervals, each for itself: not adjusted for their number, as ranks are."
    name = "_".join([division.suite, "differences", *([str(number)] if number else [])])
    return [intervals(name, title, unit, points, bars=False, note=note)]


def _with_ranks(table: BoardTable, found: RankedItems) -> list[BoardRow]:
    """The rows with their ranks, in whose order they stand; our rows without one, whose scores may be higher, below."""
    ranks = {row.model: row for row in found.ranking.rows} if found.ranking else {}
    texts = {
        label: f"{row.low}" if row.low == row.high else f"{row.low}\u2013{row.high}" for label, row in ranks.items()
    }
    rows = [
        replace(
            row,
            rank=texts.get(row.label, "") if row.entry else "",
            unproven=bool(row.entry) and row.label in found.left_out,
            top=bool(row.entry) and row.label in ranks and ranks[row.label].tied_for_top,
            notes=[*row.notes, *([found.left_out[row.label]] if row.entry and row.label in found.left_out else [])],
        )
        for row in table.rows
    ]
    if not ranks:
        return rows
    order, own = {label: place for place, label in enumerate(ranks)}, [row for row in rows if row.entry]
    ours = iter(sorted(own, key=lambda row: order[row.label] if row.rank else len(order)))
    return [next(ours) if row.entry else row for row in rows]


def _proven_first(rows: Sequence[BoardRow]) -> list[BoardRow]:
    """The rows, ours that no items prove below our others."""
    ours = iter(sorted((row for row in rows if row.entry), key=lambda row: not (row.entry and row.entry.proven)))
    return [next(ours) if row.entry else row for row in rows]


def _sentences(found: RankedItems) -> list[str]:
    sentences = [found.ranking.sentence()] if found.ranking else []
    reasons: dict[str, list[str]] = {}
    for label, reason in found.without.items():
        reasons.setdefault(reason, []).append(label)
    for reason, labels in reasons.items():
        sentences.append(f"No rank for {shown_names(labels, 3)}: {reason}.")
    return [*sentences, *(f"{note[0].upper()}{note[1:]}" for note in found.notes)]


def _charts(
    division: Division, group: Group, tables: Sequence[BoardTable], facts: dict[str, ModelFacts]
) -> list[Chart]:
    suite = all_suites().get(division.suite)
    draw = suite.part("charts") if suite else None
    if not draw:
        return []
    order = [row.label for table in tables[:1] for row in table.rows]
    entries = sorted(group.entries, key=lambda one: order.index(one.label) if one.label in order else len(order))
    known = ((isolated(shown(one.label)), one.run, facts[one.label]) for one in entries)
    return list(draw([Charted(label, run, about.billions, about.family) for label, run, about in known]))
