"""Checked access to the cells of a dataset row."""

import math
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cultureval.runtime.data.image_store import png_bytes, store_image
from cultureval.runtime.errors import BadRow, MissingColumn
from cultureval.runtime.zero_width import without_marks

# Signs of a broken encoding: the replacement character, controls except white space, lone surrogates.
_DAMAGE = re.compile("[\ufffd\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")


def cell(row: Mapping[str, Any], column: str) -> Any:
    """The value of a cell; MissingColumn, with the columns found, if the row has no such column."""
    if column not in row:
        found = ", ".join(name for name in map(str, row) if not name.startswith("__"))
        raise MissingColumn(f"no column {column!r}; columns found: {found}")
    return row[column]


def is_empty(value: Any) -> bool:
    """Whether a cell is null, NaN, or text of white space only."""
    return (
        value is None
        or (isinstance(value, float) and math.isnan(value))
        or (isinstance(value, str) and not value.strip())
    )


def text_cell(row: Mapping[str, Any], column: str) -> str:
    """The stripped text of a cell that must not be empty; numbers become their decimal text.

    Raises:
        MissingColumn: The row has no such column.
        BadRow: The cell is empty, not text, or not readable.
    """
    value = cell(row, column)
    if is_empty(value):
        raise BadRow(column, value, "is null or empty")
    return readable(value, column)


def optional_text(row: Mapping[str, Any], column: str) -> str | None:
    """As `text_cell`, but None if the cell is empty or the row has no such column."""
    return nullable_text(row, column) if column in row else None


def nullable_text(row: Mapping[str, Any], column: str) -> str | None:
    """As `text_cell`, but None if the cell is empty."""
    return None if is_empty(cell(row, column)) else readable(row[column], column)


def readable(value: Any, column: str) -> str:
    """The stripped text of a value, checked for signs of a broken encoding.

    Raises:
        BadRow: The value is neither text nor a number, or its text is damaged.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise BadRow(column, value, f"holds {type(value).__name__} where text is expected")
    text = str(value).strip()
    if _DAMAGE.search(text):
        raise BadRow(column, value, "is not readable text (broken encoding)")
    return text


def text_list(values: Any, column: str, fewest: int = 1) -> list[str]:
    """The stripped texts of a list of values, at least `fewest`, none of them empty; some may be equal.

    Raises:
        BadRow: Not a list, too short a list, or an empty or unreadable entry.
    """
    if not isinstance(values, list | tuple) or len(values) < fewest:
        raise BadRow(column, values, f"is not a list of {fewest} or more texts")
    if any(map(is_empty, values)):
        raise BadRow(column, values, "has an empty entry")
    return [readable(value, column) for value in values]


def comparable(text: str) -> str:
    """A text for comparisons: in NFC, without direction marks and zero-width characters, stripped."""
    return unicodedata.normalize("NFC", without_marks(text)).strip()


def image_cell(row: Mapping[str, Any], column: str, folder: Path) -> str:
    """Stores the image of a cell and returns its name for `stored_image`.

    The cell is a file's bytes, its path below the source's folder, the hub's pair of `bytes` and `path`, or a PIL image
    (kept as PNG).

    Raises:
        MissingColumn: The row has no such column.
        BadRow: No image, a path outside the folder or to no file, or an image that cannot be decoded.
    """
    value = cell(row, column)
    try:
        return store_image(image_bytes(value, folder))
    except (ValueError, OSError) as error:
        value = value.get("path") if isinstance(value, Mapping) else value
        raise BadRow(column, value if isinstance(value, str) else type(value).__name__, str(error)) from error


def image_bytes(value: Any, folder: Path) -> bytes:
    """The bytes of an image cell, unchecked; the forms of a cell are those of `image_cell`.

    Raises:
        ValueError: No image, or a path outside the folder or to no file.
        OSError: The file cannot be read.
    """
    if isinstance(value, Mapping):
        value = value.get("bytes") or value.get("path")
    if isinstance(value, bytes) and value:
        return value
    if isinstance(value, str | Path) and str(value).strip():
        path = (folder / value).resolve()
        if not any(path.is_relative_to(root) for root in _roots(folder)):
            raise ValueError("is a path outside the source's folder")
        if not path.is_file():
            raise ValueError(f"names no file below {folder}")
        return path.read_bytes()
    if hasattr(value, "save"):
        return png_bytes(value)
    raise ValueError("holds no image")


def _roots(folder: Path) -> list[Path]:
    """Folders of a source's files: its own and, for a snapshot in the hub's cache, the target of its links."""
    folder = folder.resolve()
    snapshots = next((parent for parent in folder.parents if parent.name == "snapshots"), None)
    return [folder, snapshots.parent / "blobs"] if snapshots else [folder]
