"""Tables of a leaderboard as CSV, Markdown, LaTeX and JSON."""

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cultureval.reports.leaderboard.board import BoardTable, Row
from cultureval.runs.table import Cell
from cultureval.runtime.csv_files import csv_lines
from cultureval.runtime.rounding import printed

if TYPE_CHECKING:
    import pandas

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_MARKUP = re.compile(r"[\\`*_{}\[\]<>()#!|&~$]")


def cell_text(cell: Cell | None, errors: bool = True) -> str:
    """A cell as text: `65.81 ± 0.32`; `65.81 (3/7)` for a mean of 3 of 7 parts; the cell's words without a number."""
    if cell is None or cell.value is None:
        return "" if cell is None else cell.words or "n/a"
    error = f" ± {cell.shown_error}" if errors and cell.shown_error else ""
    return f"{printed(cell.value, cell.digits)}{error}{f' ({cell.words})' if cell.words else ''}"


def marked(row: Row) -> str:
    """A row's name with a word for each warning, or with `paper` for a paper's model."""
    marks = [warning.mark for warning in row.warnings if warning.mark] if row.entry else ["paper"]
    marks += ["other settings"] if row.differs else []
    return f"{row.name} ({', '.join(marks)})" if marks else row.name


def as_csv(table: BoardTable) -> str:
    """The table as CSV with value, standard error, interval and numbers of items of each column, unrounded."""
    parts = ("", " stderr", " low", " high", " n", " asked")
    head = ["model", "rank", "rank_low", "rank_high", "warnings", "other_settings"]
    lines: list[list[Any]] = [[*head, *(f"{table.title(place)}{part}" for place in table.columns for part in parts)]]
    for row in table.rows:
        rank = (row.rank.rank, row.rank.low, row.rank.high) if row.rank else (None, None, None)
        notes = " ".join([*(warning.sentence for warning in row.warnings), *row.notes])
        line = [row.name if row.entry else marked(row), *rank, notes, "; ".join(row.differs)]
        for place in table.columns:
            cell = row.cells.get(place) or Cell(None)
            value = cell.value if not cell.words or cell.value is None else cell_text(cell, errors=False)
            line += [value, cell.error, cell.low, cell.high, cell.n, cell.asked]
        lines.append(line)
    return csv_lines(lines)


def as_frame(table: BoardTable, text: Callable[[str], str]) -> "pandas.DataFrame":
    """The table as texts, a row for each run: rank, name, and each column's number with its error.

    Args:
        text: Escapes a text.
    """
    import pandas

    rows = [
        [row.interval, text(marked(row)), *(text(cell_text(row.cells.get(place))) for place in table.columns)]
        for row in table.rows
    ]
    return pandas.DataFrame(rows, columns=["Rank", "Model", *(text(table.title(place)) for place in table.columns)])


def as_markdown(table: BoardTable) -> str:
    """The table in Markdown below its title and unit, with the notes below it."""
    frame = as_frame(table, escaped_markdown)
    rules = ["---", "---", *["---:"] * len(table.columns)]
    text = "\n".join(f"| {' | '.join(line)} |" for line in (frame.columns, rules, *frame.to_numpy().tolist()))
    notes = [*table.notes, *(f"{row.name}: {note}" for row in table.rows for note in (*row.notes, *row.differs))]
    return "\n\n".join([escaped_markdown(caption(table)), text, *map(escaped_markdown, notes)]) + "\n"


def as_latex(table: BoardTable) -> str:
    """The table in LaTeX with booktabs."""
    text = as_frame(table, without_controls).to_latex(
        index=False, escape=True, column_format="ll" + "r" * len(table.columns)
    )
    lines = [f"% {without_controls(caption(table))}", r"% needs \usepackage{booktabs}", text.replace("±", r"$\pm$")]
    return "\n".join(lines)


def caption(table: BoardTable) -> str:
    """The table's name, with the unit of its numbers."""
    return ": ".join(filter(None, (table.name, table.unit)))


def as_data(table: BoardTable) -> dict[str, Any]:
    """The table as data for JSON."""
    columns = [
        {"row": row, "column": name, "lower_is_better": (row, name) in table.lower} for row, name in table.columns
    ]
    about = {"name": table.name, "suite": table.suite, "unit": table.unit, "main": table.main, "columns": columns}
    return about | {"rows": [_row_data(table, row) for row in table.rows], "notes": list(table.notes)}


def _row_data(table: BoardTable, row: Row) -> dict[str, Any]:
    names = ("value", "error", "low", "high", "n", "asked", "words")
    cells = [row.cells.get(place) for place in table.columns]
    return {
        "name": row.name,
        "model": row.entry.run.model if row.entry else row.name,
        "published": row.entry is None,
        "rank": {"rank": row.rank.rank, "low": row.rank.low, "high": row.rank.high} if row.rank else None,
        "unranked": row.unranked,
        "other_settings": list(row.differs),
        "warnings": [warning._asdict() for warning in row.warnings],
        "notes": list(row.notes),
        "cells": [cell and {name: getattr(cell, name) for name in names} for cell in cells],
    }


def as_json(data: Any) -> str:
    """Data as JSON text."""
    return json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


FORMATS: dict[str, Callable[[BoardTable], str]] = {
    "csv": as_csv,
    "md": as_markdown,
    "tex": as_latex,
    "json": lambda table: as_json(as_data(table)),
}


def escaped_markdown(text: str) -> str:
    """A text on one line with Markdown and HTML escaped, without direction characters."""
    return _MARKUP.sub(r"\\\g<0>", without_controls(text))


def without_controls(text: str) -> str:
    """A text with spaces instead of control characters, line breaks and direction characters."""
    return _CONTROLS.sub(" ", text)
