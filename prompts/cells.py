"""Checked access to the cells of a dataset row, by any of the known names of a column."""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cultureval.runtime.data.image_store import png_bytes, store_image
from cultureval.runtime.errors import BadRow, MissingColumn
from cultureval.runtime.zero_width import without_marks

# A column of a row: one name, a key of ALIASES, or all names in sources. The first one present is read.
Column = str | tuple[str, ...]

# Names of common columns. Those of a single suite are tuples in `prompts/<suite>/columns.py`.
ALIASES: dict[str, tuple[str, ...]] = {
    "question": ("question", "Question", "question_text", "Question Text", "السؤال", "Question - Arabic", "query"),
    "context": ("context", "Context", "passage", "Passage", "paragraph", "النص"),
    "options": ("options", "choices", "Options", "Choices", "الخيارات", "answers_list", "candidates", "endings"),
    "answer": ("answer", "Answer", "correct_answer", "Correct Answer", "correct_choice", "label", "الإجابة"),
    "answers": (
        "answers",
        "correct_answers",
        "Correct Answers",
        "correct_choices",
        "labels",
        "gold",
        "answer",
        "Answer",
    ),
}

FEWEST_LETTERS = 3  # accented ones of a text below which they may be a language's own
# Characters of sound texts that are not printable: white space, and invisible marks of Arabic and other scripts.
_USUAL = dict.fromkeys(map(ord, "\t\n\r\x0b\x0c\x85\xa0\xad\u200b\u200c\u200d\u200e\u200f\u2003\u2009\u202f\ufeff"))


def has_column(row: Mapping[str, Any], column: Column) -> bool:
    """Whether the row has the column under one of its known names, filled or not."""
    return any(name in row for name in _names(column))


def column_name(row: Mapping[str, Any], column: Column) -> str:
    """The name under which the row has the column; the error lists the columns found."""
    names = _names(column)
    for name in names:
        if name in row:
            return name
    found = ", ".join(name for name in map(str, row) if not name.startswith("__"))
    raise MissingColumn(f"no column {' or '.join(repr(name) for name in names)}; columns found: {found}")


def _names(column: Column) -> tuple[str, ...]:
    return column if isinstance(column, tuple) else ALIASES.get(column, (column,))


def is_empty(value: Any) -> bool:
    """Whether a cell holds nothing: null, NaN, or text of white space only."""
    return (
        value is None
        or (isinstance(value, float) and math.isnan(value))
        or (isinstance(value, str) and not value.strip())
    )


def text_cell(row: Mapping[str, Any], column: Column) -> str:
    """The stripped text of a cell that must not be empty; numbers become their decimal text.

    Raises:
        BadRow: The cell is empty, not text, or not readable.
    """
    name = column_name(row, column)
    text = optional_text(row, column)
    if text is None:
        raise BadRow(name, row[name], "is null or empty")
    return text


def optional_text(row: Mapping[str, Any], column: Column) -> str | None:
    """As `text_cell`, but None where the cell, or the column, is missing or empty."""
    if not has_column(row, column):
        return None
    name = column_name(row, column)
    return None if is_empty(row[name]) else readable(row[name], name)


def readable(value: Any, column: str) -> str:
    """The stripped text of a value, checked for signs of a broken encoding.

    Raises:
        BadRow: The value is neither text nor a number, or its text is damaged.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise BadRow(column, value, f"holds {type(value).__name__} where text is expected")
    text = str(value).strip()
    if _has_odd_characters(text) and (any(map(_is_damage, text)) or _is_private(text)) or is_mojibake(text):
        raise BadRow(column, value, "is not readable text (broken encoding)")
    return text


def text_list(values: Any, column: str) -> list[str]:
    """The stripped texts of a list of values, none of them empty.

    Raises:
        BadRow: Not a list, an empty list, or an empty or unreadable entry.
    """
    if isinstance(values, tuple):
        values = list(values)
    if not isinstance(values, list) or not values:
        raise BadRow(column, values, "is not a non-empty list")
    for value in values:
        if is_empty(value):
            raise BadRow(column, values, "has an empty entry")
    return [readable(value, column) for value in values]


def several(options: Sequence[str], column: str) -> list[str]:
    """The options, checked: at least two, none empty (in NFC, without what is not seen); some may be the same.

    Raises:
        BadRow: Fewer than two options, or an empty one.
    """
    if len(options) < 2:
        raise BadRow(column, list(options), "holds fewer than two options")
    if not all(map(comparable, options)):
        raise BadRow(column, list(options), "has an empty entry")
    return list(options)


def comparable(text: str) -> str:
    """A text as it is compared with others: in NFC, without direction marks and zero-width characters, stripped."""
    return unicodedata.normalize("NFC", without_marks(text)).strip()


def bare(text: str) -> str:
    """A text without what its writing may add: vowel marks, tatweel, shapes of letters, a final stop, double spaces."""
    plain = unicodedata.normalize("NFKC", without_marks(text)).replace("\u0640", "")
    return " ".join(re.sub("[\u064b-\u0652\u0670]", "", plain).split()).rstrip(" .،")


def alike(text: str) -> str:
    """What texts that ask the same have in common: as `bare`, in one case, digits of one script, no punctuation."""
    digits = re.sub(r"(?![0-9])\d", lambda found: str(unicodedata.decimal(found[0])), bare(text).casefold())
    return " ".join(re.sub(r"(?<!\d)[.,،:]|[.,،:](?!\d)|[؛;!?؟。，？！]", " ", digits).split())


def image_cell(row: Mapping[str, Any], column: Column, folder: Path) -> str:
    """Stores the image of a cell and returns its name for `stored_image`.

    The cell is a file's bytes, its path below the source's folder, the hub's pair of `bytes` and `path`, or a PIL image
    (kept as PNG).

    Raises:
        MissingColumn: The row has no such column.
        BadRow: No image, a path outside the folder or to no file, or an image that cannot be decoded.
    """
    name = column_name(row, column)
    value = row[name]
    try:
        return store_image(image_bytes(value, folder))
    except (ValueError, OSError) as error:
        value = value.get("path") if isinstance(value, Mapping) else value
        raise BadRow(name, value if isinstance(value, str) else type(value).__name__, str(error)) from error


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
    """Folders of a source's files: its own and, for a snapshot in the hub's cache, the one it links to."""
    folder = folder.resolve()
    snapshots = next((parent for parent in folder.parents if parent.name == "snapshots"), None)
    return [folder, snapshots.parent / "blobs"] if snapshots else [folder]


def _has_odd_characters(text: str) -> bool:
    """Whether there may be damaged or private characters in a text: there are in few, and this is fast."""
    return "\ufffd" in text or not text.translate(_USUAL).isprintable()


def _is_damage(character: str) -> bool:
    if character == "\ufffd":
        return True
    if "\U0001f000" <= character <= "\U0001fbff":
        return False  # emoji, also those that are newer than Python's tables
    return unicodedata.category(character) in ("Cc", "Cs", "Cn") and character not in "\t\n\r\x0b\x0c\x85"


def _is_private(text: str) -> bool:
    """Whether a text is in private-use characters; single ones, such as bullets of word processors, do no harm."""
    private = sum(unicodedata.category(character) == "Co" for character in text)
    return private > sum(character.isalnum() for character in text)


def is_mojibake(text: str) -> bool:
    """Arabic in UTF-8 or Windows-1256 that was wrongly decoded as Windows-1252 or Latin-1 (`Ø§Ù„`, `ÃÍãÏ`)."""
    if _is_windows_1256(text):
        return True
    if "Ø" not in text and "Ù" not in text:
        return False
    for encoding in ("cp1252", "latin-1"):
        try:
            repaired = text.encode(encoding).decode("utf-8")
        except UnicodeError:
            continue
        if any("\u0600" <= character <= "\u06ff" for character in repaired):
            return True
    return False


def _is_windows_1256(text: str) -> bool:
    """Whether nearly all letters are accented Latin ones that are Arabic in Windows-1256, as in no language's words."""
    high = len(re.findall("[\u00c0-\u00ff]", text))
    if high < FEWEST_LETTERS or high < 0.6 * sum(letter.isalpha() for letter in text):
        return False
    arabic = text.encode("cp1252", "ignore").decode("cp1256", "ignore")
    return sum("\u0620" <= letter <= "\u0652" for letter in arabic) >= high - 1
