"""Write CSV files."""

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # with which spreadsheets begin what they compute


def no_formula(text: str) -> str:
    """A text of others as a cell that no spreadsheet computes."""
    return f"'{text}" if text.startswith(FORMULA) else text


def write_csv(
    file: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None, encoding: str = "utf-8"
) -> None:
    """Write rows as a CSV file with a header; missing folders are created.

    Args:
        file: Output file.
        rows: Mappings from column to value. None and nan become empty cells.
        columns: In order; None: those of the first row.
        encoding: "utf-8-sig" begins the file with a byte-order mark, without which Excel misreads Chinese and Arabic.

    Raises:
        ValueError: A row has a column that is not among the columns.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    if columns is None:
        columns = list(rows[0]) if rows else []
    with file.open("w", encoding=encoding, newline="") as stream:
        writer = csv.DictWriter(stream, columns)
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)


def _cell(value: Any) -> Any:
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else value
