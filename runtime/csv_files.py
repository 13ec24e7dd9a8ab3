"""CSV files for people and their spreadsheets: a writer without formulas, and a reader of tables that people filled in.

The writer puts an apostrophe before a text that a spreadsheet would take for a formula; the reader removes it.
"""

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cultureval.runtime.data.row_files import utf8_text
from cultureval.runtime.data.user_cache import write_atomically
from cultureval.runtime.errors import CulturevalError, shown_names

# Spreadsheets read full-width and small signs as the common ones and skip white space before a sign. Tabs and line ends
# would split a pasted cell.
FORMULA = re.compile(r"'*(?:[\t\r\n]|\s*[=+\-@＝＋－＠﹦﹢﹣﹫−])")
NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
LONGEST_CELL = 1 << 28  # characters
HOLDS_VERDICTS = "holds people's verdicts: move it, or name another --output-dir."


def write_csv(
    file: Path,
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str] | None = None,
    encoding: str = "utf-8",
    exact: bool = False,
) -> None:
    """Writes rows as a CSV file with a header, atomically; None, nan and missing values become empty cells.

    Args:
        rows: Mappings from column to value; a ValueError on a column that is not in `columns`.
        columns: In order; None: the columns of the first row.
        encoding: "utf-8-sig" begins the file with a byte-order mark, without which Excel misreads Chinese and Arabic.
        exact: Writes formulas as they are, for an official format that programs read.
    """
    write_atomically(file, csv_text(rows, columns, exact).encode(encoding, "backslashreplace"))


def csv_text(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None, exact: bool = False) -> str:
    """The text of the file that `write_csv` writes."""
    columns = list(rows[0] if rows else ()) if columns is None else columns
    if unknown := {name for row in rows for name in row} - {*columns}:
        raise ValueError(f"rows have columns that are not in the table: {', '.join(sorted(unknown))}")
    return csv_lines([columns, *([row.get(name) for name in columns] for row in rows)], exact)


def csv_lines(lines: Iterable[Sequence[Any]], exact: bool = False) -> str:
    """The CSV text of lines of cells; the first line holds the column names, which may repeat."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows([_cell(value, exact) for value in line] for line in lines)
    return text.getvalue()


def _cell(value: Any, exact: bool) -> Any:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    text = str(value)
    plain = exact or isinstance(value, int | float) or NUMBER.fullmatch(text) or not FORMULA.match(text)
    return value if plain else f"'{text}"


def _without_apostrophe(text: str) -> str:
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text


def read_csv(file: Path, columns: Sequence[str] = ()) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a table that `write_csv` wrote and people filled in, as their spreadsheet saved it.

    Commas, semicolons or tabs separate cells: the sign that the header has most of. Raises a CulturevalError where the
    file cannot be read, a column is missing or repeated, or a row has more cells than columns.

    Yields:
        The line where the row begins, and its cells by column; missing cells at its end are empty.
    """
    text = utf8_text(file)
    csv.field_size_limit(LONGEST_CELL)
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True, restval="")
    line = 1
    try:
        names = [_without_apostrophe(name) for name in reader.fieldnames or ()]
        if missing := [name for name in columns if name not in names]:
            raise CulturevalError(f"{file} has no column {', '.join(missing)}: it has {shown_names(names) or 'none'}.")
        if twice := [name for name, count in Counter(names).items() if name and count > 1]:
            raise CulturevalError(f"{file} has several columns {twice[0]}: rename all but one.")
        reader.fieldnames = names
        line = reader.line_num + 1
        for row in reader:
            if None in row:
                raise csv.Error("the row has more cells than the header")
            yield line, {name: _without_apostrophe(cell) for name, cell in row.items()}
            line = reader.line_num + 1
    except csv.Error as error:
        raise CulturevalError(f"{file}, line {line}: {error}.") from error


def require_unfilled(file: Path, columns: Sequence[str] = ("verdict",)) -> None:
    """Refuses to replace a table for people, if it is there, in which a cell of these columns is filled.

    Raises:
        CulturevalError: A cell is filled, or the file cannot be read as such a table.
    """
    if file.is_file() and any(row[name].strip() for _, row in read_csv(file, columns) for name in columns):
        raise CulturevalError(f"{file} {HOLDS_VERDICTS}")
