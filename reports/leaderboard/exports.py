"""Tables of a leaderboard as files for other programs and for papers: CSV, Markdown, LaTeX, JSON."""

import json
import re
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import Any

from cultureval.reports.leaderboard.tables import (
    BoardRow,
    BoardTable,
    best_cells,
    cell_data,
    cell_text,
    column_spans,
    shared_counts,
    with_count,
)
from cultureval.runs.table import Cell
from cultureval.runtime.csv_files import csv_lines
from cultureval.runtime.rounding import printed

LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "±": r"$\pm$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}
RULES = {"l": "---", "r": "---:"}
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_MARKUP = re.compile(r"[\\`*_{}\[\]<>()#!|&~$]")


def as_csv(table: BoardTable) -> str:
    """The table as CSV: for each column its values, standard errors and numbers of items, in full precision."""
    of_columns = (name for one in table.columns for name in (one.whole, f"{one.whole} stderr", f"{one.whole} n"))
    names = ["model", "rank", "warnings", *of_columns]
    lines: list[list[Any]] = [names]
    for row in table.rows:
        values: list[Any] = [row.label, row.rank, " ".join([*row.entry.warnings, *row.notes]) if row.entry else ""]
        for cell in row.cells:
            if isinstance(cell, Cell):
                values += [cell_text(cell, errors=False) if cell.in_part else cell.value, cell.stderr, cell.n]
            else:
                values += [cell, None, None]
        lines.append(values)
    return csv_lines(lines)


def as_markdown(table: BoardTable) -> str:
    """The table in Markdown below its title and unit, the best value of each column in bold.

    n stands at a column, or in cells that differ.
    """
    best, counts = best_cells(table), shared_counts(table)
    lines = []
    for number, row in enumerate(table.rows):
        texts = [with_count(cell_text(cell), n) for cell, n in zip(row.cells, _own_counts(row, counts), strict=True)]
        cells = [escaped_markdown(text) for text in texts]
        cells = [f"**{text}**" if (number, place) in best else text for place, text in enumerate(cells)]
        lines.append([row.rank, escaped_markdown(_marked(row)), *cells])
    names = [escaped_markdown(with_count(one.whole, n)) for one, n in zip(table.columns, counts, strict=True)]
    text = markdown_table(["Rank", "Model", *names], lines, "rlr")
    notes = [*table.notes, *(f"{row.label}: {note}" for row in table.rows for note in row.notes)]
    return "\n\n".join([escaped_markdown(_caption(table)), text, *map(escaped_markdown, notes)]) + "\n"


def _caption(table: BoardTable) -> str:
    return " ".join(": ".join(filter(None, (table.title, table.unit))).split())


def as_latex(table: BoardTable) -> str:
    """The table in LaTeX with booktabs, the best value of each column in bold; standard errors are small."""
    best, counts = best_cells(table), shared_counts(table)
    above = column_spans(table)
    lines = [
        f"% {_latex(_caption(table))}",
        r"% needs \usepackage{booktabs}",
        rf"\begin{{tabular}}{{ll{'r' * len(table.columns)}}}",
        r"\toprule",
    ]
    if above:
        lines.append(" & & " + " & ".join(rf"\multicolumn{{{n}}}{{c}}{{{_latex(name)}}}" for name, n in above) + r" \\")
    names = [_latex(with_count(column.name, n)) for column, n in zip(table.columns, counts, strict=True)]
    lines += ["Rank & Model & " + " & ".join(names) + r" \\", r"\midrule"]
    for number, row in enumerate(table.rows):
        texts = [_latex_cell(cell, (number, place) in best) for place, cell in enumerate(row.cells)]
        cells = [with_count(text, n) for text, n in zip(texts, _own_counts(row, counts), strict=True)]
        lines.append(" & ".join([_latex(row.rank), _latex(_marked(row)), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def as_data(table: BoardTable) -> dict[str, Any]:
    """The table as data for JSON: columns with `name`, `above` and `lower`, rows with `model`, `rank`, and cells."""
    return {
        "title": table.title,
        "unit": table.unit,
        "columns": [{"name": one.name, "above": one.above, "lower_is_better": one.lower} for one in table.columns],
        "main": None if table.main is None else table.columns[table.main].whole,
        "rows": [
            {
                "model": row.entry.model if row.entry else row.label,
                "label": row.label,
                "published": row.entry is None,
                "warnings": list(row.entry.warnings) if row.entry else [],
                "notes": list(row.notes),
                "rank": row.rank,
                "cells": [cell_data(cell) for cell in row.cells],
            }
            for row in table.rows
        ],
        "notes": list(table.notes),
    }


def as_json(data: Any) -> str:
    """Data as JSON text."""
    return json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


FORMATS = {
    "csv": as_csv,
    "md": as_markdown,
    "tex": as_latex,
    "json": lambda table: as_json(as_data(table)),
}


def _own_counts(row: BoardRow, shared: Sequence[int | None]) -> list[int | None]:
    """The n that stands in each cell of a row, since its column has none."""
    cells = zip(row.cells, shared, strict=True)
    return [cell.n if isinstance(cell, Cell) and cell.value is not None and n is None else None for cell, n in cells]


def _marked(row: BoardRow) -> str:
    """A model's name with its warnings in a word each."""
    return f"{row.label} ({', '.join(row.entry.marks)})" if row.entry and row.entry.marks else row.label


def _latex(text: str) -> str:
    return "".join(LATEX.get(letter, letter) for letter in without_controls(text))


def _latex_cell(cell: Cell | str | None, best: bool) -> str:
    if not isinstance(cell, Cell) or cell.value is None:
        return _latex(cell_text(cell))
    value = printed(cell.value, cell.digits)
    value = rf"\textbf{{{value}}}" if best else value
    value = f"{value} ({cell.in_part})" if cell.in_part else value
    return value if cell.stderr is None else rf"{value} {{\scriptsize$\pm${printed(cell.stderr, cell.digits)}}}"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], align: str = "l") -> str:
    """A table of cells in Markdown (`escaped_markdown`); "l" or "r" aligns a column, the last all further ones."""
    rules = [RULES[letter] for letter, _ in zip(chain(align, repeat(align[-1])), header, strict=False)]
    first, *rest = (f"| {' | '.join(line)} |" for line in (header, *rows))
    return "\n".join([first, f"|{'|'.join(rules)}|", *rest])


def escaped_markdown(text: str) -> str:
    """A text in which Markdown and HTML have no meaning, on one line, without characters that turn its direction."""
    return _MARKUP.sub(r"\\\g<0>", without_controls(text))


def without_controls(text: str) -> str:
    """A text with spaces for control characters, line breaks and characters that turn the direction of what follows."""
    return _CONTROLS.sub(" ", text)
