"""The summary of a run as text or data: warnings, paths of files, then the suites' tables."""

import json
import shlex
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.files import output_folder
from cultureval.runs.loading import Run
from cultureval.runs.table import Cell, TableOfRun, tables_of
from cultureval.runs.warnings import warnings
from cultureval.runtime.errors import escaped
from cultureval.runtime.printing import folded
from cultureval.runtime.rounding import printed, without_nan

MOST_LINES = 25  # of a suite
PLAIN_WIDTH = 120  # where standard output is no terminal
ERRORS = "±: one standard error; n: items with a score, of those that were asked."
PUBLISHED = "[ ]: the paper's number for a model of this name."


def shown_run(run: Run, width: int | None, full: bool = False, hidden: Collection[str] = ()) -> str:
    """What people read of a run; the tables of its suites come last.

    Args:
        width: Of the terminal in cells; None: standard output is no terminal.
        full: Whether all scores, notes on the data and signatures come first.
        hidden: Kinds of warnings that are left out.
    """
    limit = width or PLAIN_WIDTH
    lines = [*(full_lines(run, width) if full else ()), *folded(f"{run.name}, {run.date}", limit).splitlines()]
    lines += listed([warning.sentence for warning in warnings(run) if warning.kind not in hidden], limit)
    lines += filter(None, [_reused(run), _speed(run), _cost(run)])
    lines += [f"Results: {shlex.quote(str(_shortest(run.file)))}"]
    if not full:
        folder = _shortest(output_folder(run.file.resolve()) or run.file)
        lines += [f"All scores and signatures: cultureval show {shlex.quote(str(folder))} --full"]
    tables: dict[str, list[TableOfRun]] = {}
    for table in tables_of(run):
        tables.setdefault(table.suite, []).append(table)
    cells = [cell for members in tables.values() for table in members for cell in table.cells.values()]
    lines += [ERRORS] if any(cell.error is not None for cell in cells) else []
    lines += [PUBLISHED] if any(cell.published is not None for cell in cells) else []
    lines += [line for suite in tables.values() for line in ("", *suite_lines(suite, limit))]
    return escaped("\n".join(lines), keep="\n")


def suite_lines(tables: Sequence[TableOfRun], width: int) -> list[str]:
    """The lines of a suite's tables, at most `MOST_LINES`; if they are more, notes and last rows are left out."""
    lines = [line for table in tables for line in table_lines(table, width)]
    if len(lines) <= MOST_LINES:
        return lines
    for most in range(MOST_LINES, 0, -1):
        lines = [line for table in tables for line in table_lines(table, width, most)]
        if len(lines) < MOST_LINES:
            break
    return [*lines, "(more rows and notes: --full or --json)"]


def table_lines(table: TableOfRun, width: int, most: int | None = None) -> list[str]:
    """The lines of a table: title, header, rows, notes. Errors are left out if the table is wider than `width`.

    Args:
        most: At most so many rows, one of them the main number's, and no notes; None: all rows and notes.
    """
    from rich.cells import cell_len

    lower = ", ".join(name for name in table.columns if name in table.lower)
    about = "; ".join(filter(None, (table.unit, lower and f"lower is better: {lower}")))
    rows = table.rows[:most]
    if table.main and table.main[0] in table.rows[len(rows) :]:
        rows = [*rows[:-1], table.main[0]]
    header = ["", *table.columns, "n"]
    for errors in (True, False):
        cells = [[row, *_texts(table, row, errors), _count(table, row)] for row in rows]
        lines = terminal_table(header, cells, "lr", indent=2, width=10_000).splitlines()
        if max(map(cell_len, lines)) <= width:
            break
    else:
        lines = terminal_table(header, cells, "lr", indent=2, width=width).splitlines()
    notes = [line for note in table.notes for line in folded(note, width - 2).splitlines()] if most is None else []
    title = folded(f"{table.name}: {about}" if about else table.name, width).splitlines()
    return [*title, *lines, *(f"  {line}" for line in notes)]


def _texts(table: TableOfRun, row: str, errors: bool) -> list[str]:
    return [_text(table.cells.get((row, column)), errors) for column in table.columns]


def _text(cell: Cell | None, errors: bool) -> str:
    """A number with its error, its number of parts and the paper's number; or the cell's words."""
    if cell is None:
        return ""
    parts = [] if cell.value is None else [printed(cell.value, cell.digits)]
    if errors and cell.value is not None and cell.shown_error:
        parts.append(f"±{cell.shown_error}")
    parts += [f"({cell.words})" if parts else cell.words] if cell.words else []
    parts += [f"[{printed(cell.published, cell.digits)}]"] if cell.published is not None else []
    return " ".join(parts)


def _count(table: TableOfRun, row: str) -> str:
    """The items of a row's cells: `980 of 1,000`; if cells differ, the smallest and largest number."""
    cells = [cell for column in table.columns if (cell := table.cells.get((row, column))) and cell.n is not None]
    counts = sorted({(cell.n or 0, cell.asked or cell.n or 0) for cell in cells})
    if len(counts) == 1:
        return of_asked(*counts[0])
    return f"{counts[0][0]:,}-{counts[-1][0]:,}" if counts else ""


def of_asked(n: int, asked: int) -> str:
    """The number of scored items: `980 of 1,000`, or one number if all are scored."""
    return f"{n:,}" if n == asked else f"{n:,} of {asked:,}"


def summary_data(run: Run) -> dict[str, Any]:
    """The summary as data for JSON: model, date, results file, warnings, scores that differ from the file's, tables."""
    tables: dict[str, list[dict[str, Any]]] = {}
    for table in tables_of(run):
        tables.setdefault(table.suite, []).append(_table_data(table))
    return {
        "model": run.name,
        "date": run.date,
        "results": str(run.file.resolve()),
        "warnings": [item._asdict() for item in warnings(run)],
        "differs": [item._asdict() for item in run.differs],
        "notes": notes_of(run),
        "suites": tables,
    }


def summaries_json(runs: Iterable[Run]) -> str:
    """The `summary_data` of runs as one JSON document: {"runs": [...]}."""
    data = {"runs": [summary_data(run) for run in runs]}
    return json.dumps(without_nan(data), ensure_ascii=False, indent=2, allow_nan=False)


def _table_data(table: TableOfRun) -> dict[str, Any]:
    numbers = ("value", "error", "low", "high", "n", "asked", "published", "words")
    cells = [
        {"row": row, "column": column} | {name: getattr(cell, name) for name in numbers}
        for (row, column), cell in table.cells.items()
    ]
    main, lower = list(table.main) if table.main else None, sorted(table.lower)
    return {"name": table.name, "unit": table.unit, "main": main, "lower": lower, "cells": cells, "notes": table.notes}


def notes_of(run: Run) -> list[str]:
    """The notes on the data, each once, with the first task that has it."""
    notes: dict[str, str] = {}
    for task in run.record.tasks.values():
        for note in task.notes:
            notes.setdefault(note, task.task)
    return [f"{task}: {note}" for note, task in notes.items()]


def full_lines(run: Run, width: int | None) -> list[str]:
    """Every score of a run, on the scale of its metric, the notes on its data, and its signatures."""
    rows = [
        (
            task,
            metric,
            printed(score.value, 4),
            "" if score.error is None else printed(score.error, 4),
            of_asked(score.n, score.asked),
        )
        for task, scores in run.scores.items()
        for metric, score in scores.items()
    ]
    return [
        *terminal_table(("Task", "metric", "value", "±", "n"), rows, "llrrr", width=width).splitlines(),
        *notes_of(run),
        *(f"{task}: not verified: {why}" for task, why in run.unverified.items()),
        *(f"{item.task}: {item.metric} is {item.in_file:.6g} in the file" for item in run.differs),
        *("Signatures:" for _ in run.record.signatures[:1]),
        *(f"  {item.text}" for item in run.record.signatures),
        "",
    ]


def _reused(run: Run) -> str:
    """A line on answers that an earlier, unfinished run gave; "" if there are none."""
    tasks = run.record.tasks.values()
    reused, asked = sum(task.reused for task in tasks), sum(task.rows + task.refused for task in tasks)
    return f"Answers of an earlier run: {reused:,} of {asked:,}." if reused else ""


def _speed(run: Run) -> str:
    """A line on the tokens a second of a transformers model; "" for answers of earlier runs."""
    took, parts = run.record.timing, []
    if took.computing and took.tokens_computed:
        saved = 1 - took.tokens_computed / max(took.tokens_without_sharing or 0, took.tokens_computed)
        peak = f", {took.peak_share:.0%} of the card's peak" if took.peak_share else ""
        rate = took.tokens_computed / took.computing
        parts.append(f"choices at {rate:,.0f} tokens a second, {saved:.0%} of tokens saved by sharing{peak}")
    if took.generating and took.tokens_generated:
        parts.append(f"answers at {took.tokens_generated / took.generating:,.0f} tokens a second")
    return f"Speed: {'; '.join(parts)}." if parts else ""


def _cost(run: Run) -> str:
    """A line on the cost and tokens of a server's answers; "" without prices."""
    took = run.record.timing
    tokens = f"{took.tokens_paid_in or 0:,} tokens of prompts, {took.tokens_paid_out or 0:,} of answers"
    return f"Cost: {took.cost:.4g} for {tokens}. The provider's bill counts." if took.cost else ""


def listed(sentences: Iterable[str], width: int) -> list[str]:
    """The lines of a list of sentences, with indented continuation lines."""
    lines = []
    for sentence in sentences:
        first, *rest = folded(escaped(sentence), max(width - 2, 1)).splitlines() or [""]
        lines += [f"- {first}", *(f"  {line}" for line in rest)]
    return lines


def _shortest(file: Path) -> Path:
    """The path as one would type it: relative below the current folder."""
    path = file.resolve()
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
