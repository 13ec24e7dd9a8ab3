"""`cultureval check`: reads all rows of suites' data without a model."""

import json as json_format
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cultureval.runtime.settings import current_settings, use_settings
from cultureval.scripts.custom_suites import SourcesFile, with_sources
from cultureval.tasks.catalogue import require_suites
from cultureval.tasks.options import read_data_options

if TYPE_CHECKING:
    from cultureval.tasks.checking import DataReport, GroupCounts, ListedRow, SubsetCounts

FIRST = 10  # listed rows that are shown without --full
COLUMNS = ("subset", "source", "scored", "few-shot", "broken", "duplicate", "published", "")


def check(
    suite: Annotated[list[str], typer.Argument(metavar="SUITE...", help="Suites (qimma).")],
    data: Annotated[str | None, typer.Option(help="Data root (DIR/<org>/<name>), or `samples`; default: hub.")] = None,
    form: Annotated[
        Literal["auto", "curated", "original"] | None,
        typer.Option(help="Version of the data: QIMMA's curated copy or the original."),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Print all subsets, files and listed rows.")] = False,
    rows: Annotated[Path | None, typer.Option(help="Write all listed rows into this file, as JSON lines.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    sources: SourcesFile = None,
) -> None:
    """Reads every row of the suites' data and lists what is broken, duplicate or read by no task.

    Exit status 1: a row is broken. Example: cultureval check qimma --data DIR
    """
    settings = with_sources(current_settings(), sources)
    with use_settings(settings.with_(data_root=data, form=form)):
        require_suites(suite)
        from cultureval.tasks.checking import check_data

        report = check_data(suite, read_data_options())
    if rows:
        lines = (json_format.dumps(asdict(row), ensure_ascii=False) for row in report.listed)
        rows.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(json_format.dumps(asdict(report), ensure_ascii=False, indent=2) if json else _text(report, full))
    if report.is_broken():
        raise typer.Exit(1)


def _text(report: "DataReport", full: bool) -> str:
    from cultureval.reports.terminal_tables import terminal_table

    parts = []
    shown = report.listed if full else _first_of_each(report.listed)
    if shown:
        cells = [(one.kind, one.source, _place(one), one.task, _what(one)) for one in shown]
        parts.append(terminal_table(("", "source", "row", "task", "what"), cells))
    if more := len(report.listed) - len(shown):
        parts.append(f"... and {more} more: --full shows them, --rows FILE writes them into a file.")
    if full:
        header = ("file", "rows", "scored", "few-shot", "broken", "unselected")
        files = [
            (f"{one.source}/{one.file}", *map(str, (one.rows, one.scored, one.few_shot, one.broken, one.unselected)))
            for one in report.files
        ]
        parts.append(terminal_table(header, files, align="lr"))
    unsound = [one for one in report.subsets if full or (not one.missing and _is_unsound(one))]
    cells = [_subset_cells(one) for one in (unsound if full else unsound[:FIRST])]
    # The rows listed above name their source: without it the table fits terminals of 80 columns.
    table = [COLUMNS, *cells] if full else [(first, *rest) for first, _, *rest in (COLUMNS, *cells)]
    parts += [terminal_table(table[0], table[1:], align="llrrrrrl" if full else "lrrrrrl")] if cells else []
    if more := len(unsound) - len(cells):
        parts.append(f"... and {more} more subsets: --full shows them.")
    sums = [one for one in report.groups if full or one.differs()]
    if sums:
        cells = [(one.group, one.form, *map(str, (one.rows, one.few_shot, one.expected)), _remark(one)) for one in sums]
        parts.append(terminal_table(("group", "data", "rows", "few-shot", "published", ""), cells, align="llrrrl"))
    return "\n\n".join([*parts, _totals(report)])


def _remark(one: "GroupCounts") -> str:
    return "differs" if one.differs() else "" if one.complete else "some subsets have no data"


def _is_unsound(one: "SubsetCounts") -> bool:
    return bool(one.problem or one.broken or one.duplicates or one.differs())


def _subset_cells(one: "SubsetCounts") -> tuple[str, ...]:
    counts = (one.scored, one.few_shot, one.broken, one.duplicates)
    remark = "no data" if one.missing else one.problem or ("differs" if one.differs() else "")
    return one.task, one.source, *map(str, counts), "?" if one.expected is None else str(one.expected), remark


def _first_of_each(listed: "list[ListedRow]") -> "list[ListedRow]":
    kinds = dict.fromkeys(row.kind for row in listed)
    return [row for kind in kinds for row in [one for one in listed if one.kind == kind][:FIRST]]


def _place(row: "ListedRow") -> str:
    return f"{row.file} ({row.rows} rows)" if row.row is None else f"{row.file}:{row.row}"


def _what(row: "ListedRow") -> str:
    return f"column {row.column!r} {row.reason} (value: {row.value})" if row.column else row.reason


def _totals(report: "DataReport") -> str:
    files = report.files
    rows, scored, shots, broken, rest = (
        sum(getattr(one, name) for one in files) for name in ("rows", "scored", "few_shot", "broken", "unselected")
    )
    read = [one for one in report.subsets if not one.missing]
    duplicates = sum(one.duplicates for one in report.subsets)
    differing = sum(one.differs() for one in read)
    return (
        f"{len(read)} of {len(report.subsets)} subsets have data; {differing} have more or fewer rows than published.\n"
        f"{rows} rows in {len(files)} files = {scored} scored + {shots} few-shot + {broken} broken\n"
        f"+ {rest} that no task reads; {duplicates} of the scored and few-shot ones are duplicates."
    )
