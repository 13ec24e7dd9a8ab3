"""What `cultureval check` prints: rows that need a look, files, subsets and groups with other counts, totals."""

from collections.abc import Sequence

from cultureval.reports.terminal_tables import terminal_table
from cultureval.tasks.checking import DataReport, FileCounts, GroupCounts, ListedRow, SubsetCounts

FIRST = 10  # listed rows of a kind, and subsets, that are shown without --full
COLUMNS = ("subset", "source", "scored", "few-shot", "broken", "duplicate", "published", "")


def data_check_text(report: DataReport, full: bool) -> str:
    """The report as tables, and its totals as sentences; but for `full` only the first rows of each kind, and only
    subsets and groups that are not as published.
    """
    files = _files_table(report.files) if full else []
    parts = [*_listed_rows(report.listed, full), *files, *_subsets(report.subsets, full), *_groups(report.groups, full)]
    return "\n\n".join([*parts, _totals(report)])


def _listed_rows(listed: Sequence[ListedRow], full: bool) -> list[str]:
    shown = listed if full else _first_of_each(listed)
    if not shown:
        return []
    cells = [(one.kind, one.source, _place(one), one.task, _what(one)) for one in shown]
    more = len(listed) - len(shown)
    hint = [f"... and {more} more: --full shows them, --rows FILE writes them into a file."] if more else []
    return [terminal_table(("", "source", "row", "task", "what"), cells), *hint]


def _files_table(files: Sequence[FileCounts]) -> list[str]:
    header = ("file", "rows", "scored", "few-shot", "broken", "unselected")
    cells = [
        (f"{one.source}/{one.file}", *map(str, (one.rows, one.scored, one.few_shot, one.broken, one.unselected)))
        for one in files
    ]
    return [terminal_table(header, cells, align="lr")]


def _subsets(subsets: Sequence[SubsetCounts], full: bool) -> list[str]:
    chosen = [one for one in subsets if full or (not one.missing and _is_unsound(one))]
    if not chosen:
        return []
    if not full:  # the worst first
        chosen.sort(key=lambda one: (not one.problem, not one.broken, not one.duplicates))
    cells = [_subset_cells(one) for one in (chosen if full else chosen[:FIRST])]
    # The listed rows name their source: without it the table fits terminals of 80 columns.
    table = [COLUMNS, *cells] if full else [(first, *rest) for first, _, *rest in (COLUMNS, *cells)]
    more = len(chosen) - len(cells)
    hint = [f"... and {more} more subsets: --full shows them."] if more else []
    return [terminal_table(table[0], table[1:], align="llrrrrrl" if full else "lrrrrrl"), *hint]


def _groups(groups: Sequence[GroupCounts], full: bool) -> list[str]:
    chosen = [one for one in groups if full or one.differs()]
    if not chosen:
        return []
    cells = [(one.group, one.form, *map(str, (one.rows, one.few_shot, one.expected)), _note(one)) for one in chosen]
    return [terminal_table(("group", "data", "rows", "few-shot", "published", ""), cells, align="llrrrl")]


def _note(one: GroupCounts) -> str:
    return "differs" if one.differs() else "" if one.complete else "not all subsets are here"


def _is_unsound(one: SubsetCounts) -> bool:
    return bool(one.problem or one.broken or one.duplicates or one.differs())


def _subset_cells(one: SubsetCounts) -> tuple[str, ...]:
    counts = (one.scored, one.few_shot, one.broken, one.duplicates)
    note = "no data" if one.missing else one.problem or ("differs" if one.differs() else "")
    return one.task, one.source, *map(str, counts), "?" if one.expected is None else str(one.expected), note


def _first_of_each(listed: Sequence[ListedRow]) -> list[ListedRow]:
    kinds = dict.fromkeys(row.kind for row in listed)
    return [row for kind in kinds for row in [one for one in listed if one.kind == kind][:FIRST]]


def _place(row: ListedRow) -> str:
    return f"{row.file} ({row.rows} rows)" if row.row is None else f"{row.file}:{row.row}"


def _what(row: ListedRow) -> str:
    return f"column {row.column!r} {row.reason} (value: {row.value})" if row.column else row.reason


def _totals(report: DataReport) -> str:
    files = report.files
    rows, scored, shots, broken, rest = (
        sum(getattr(one, name) for one in files) for name in ("rows", "scored", "few_shot", "broken", "unselected")
    )
    read = [one for one in report.subsets if not one.missing]
    duplicates = sum(one.duplicates for one in report.subsets)
    differing = sum(one.differs() for one in read)
    stopped = sum(bool(one.problem) for one in read)
    problems = f"Subsets with a problem: {stopped} (named above).\n" if stopped else ""
    return (
        f"{problems}"
        f"{len(read)} of {len(report.subsets)} subsets have data, with other row counts than published: {differing}.\n"
        f"{rows} rows in {len(files)} files = {scored} scored + {shots} few-shot + {broken} broken\n"
        f"+ {rest} that none of these tasks reads.\n"
        f"{duplicates} of the scored and few-shot ones are duplicates."
    )
