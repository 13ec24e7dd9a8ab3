"""Labels of options in sources, and golds that are a letter.

A gold is an Arabic or Latin letter, or a number with a base from the source's card; nothing is inferred from a column.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

from cultureval.prompts.cells import cell, comparable, is_empty, readable, text_cell, text_list
from cultureval.runtime.errors import BadRow

# Abjad order, as QIMMA scores them; the fifth is two code points (heh and tatweel).
LABELS = tuple("أ ب ج د هـ و ز ح ط ي ك ل م ن س ع ف ص ق ر ش ت ث خ ذ ض ظ غ".split())

_SPELLINGS = {"ا": "أ", "إ": "أ", "آ": "أ", "ه": "هـ", "ى": "ي"}
_LETTERS = "|".join(sorted({*LABELS, *_SPELLINGS}, key=len, reverse=True))
LETTER = rf"(?:{_LETTERS})ـ?[\u064b-\u0652]?"  # also with a tatweel (جـ) or a short vowel
_LABEL = re.compile(rf"\s*[(\[]?\s*(?P<label>{LETTER}|[A-Za-z])\s*[.):\]\-–—][.:]?\s*")
_WITHIN = re.compile(rf"(?:^|[\s,،;؛]+)(?P<label>{LETTER})\s*(?:\)|\.(?=\s))\s*")
LONGEST_LIST = 100_000  # characters of a list as Python writes it


def label_index(text: str) -> int | None:
    """The position of a label: Arabic (أ or its variants, ه for هـ) or Latin, in either case.

    Returns:
        0 for أ, ا, A, a; 4 for هـ, ه, E; None if the text is not only a label.
    """
    letter = re.sub(r"(?<=\w)[\u064b-\u0652]$", "", text.strip().strip("().:-– ").strip())
    if len(letter) == 1 and letter.isascii() and letter.isalpha():
        return ord(letter.upper()) - ord("A")
    letter = letter.replace("ـ", "") if len(letter) <= 2 else letter
    letter = _SPELLINGS.get(letter, letter)
    return LABELS.index(letter) if letter in LABELS else None


def split_label(text: str) -> tuple[int | None, str]:
    """(position, rest) of a text that begins with a label (`ب) نص`, `(ب) نص`, `B. text`); (None, text) of any other."""
    match = _LABEL.match(comparable(text))
    return (label_index(match["label"]), comparable(text)[match.end() :].strip()) if match else (None, text.strip())


def gold_position(value: Any, count: int, column: str) -> int:
    """The position, from 0, of the option with this letter among `count`; BadRow for any other value."""
    position = label_index(comparable(value)) if isinstance(value, str) else None
    if position is None or position >= count:
        raise BadRow(column, value, f"is not the letter of one of the {count} options")
    return position


def checked_positions(positions: Sequence[int], count: int, value: Any, column: str) -> list[int]:
    """Positions of right options, ascending; BadRow for none, a repeated or an outside position."""
    if (
        not positions
        or len(set(positions)) < len(positions)
        or not all(0 <= position < count for position in positions)
    ):
        raise BadRow(column, value, f"does not name one or more of the {count} options, each once")
    return sorted(positions)


def lettered_columns(
    row: Mapping[str, Any], columns: Sequence[str], answer: str, labelled: bool = False
) -> tuple[list[str], int]:
    """The options of a row with a column for each option, and the position of the right one.

    Args:
        columns: The options' columns, in the order of the letters; an empty cell is no option.
        answer: The column of the gold, a letter.
        labelled: Whether options may begin with the letters of their columns, which are removed.

    Raises:
        MissingColumn: A column is missing.
        BadRow: There are fewer than two options, the gold is no option, or only some options have their letter.
    """
    texts = [None if is_empty(cell(row, column)) else readable(row[column], column) for column in columns]
    places = [place for place, text in enumerate(texts) if text is not None]
    gold = gold_position(text_cell(row, answer), len(columns), answer)
    if gold not in places:
        raise BadRow(answer, row[answer], f"points at the empty column {columns[gold]!r}")
    options = text_list([text for text in texts if text is not None], ", ".join(columns), fewest=2)
    parts = [split_label(text) for text in options] if labelled else []
    if any(place is not None for place, _ in parts):
        if [place for place, _ in parts] != places:
            raise BadRow(", ".join(columns), options, "does not begin each option with the letter of its column")
        options = text_list([rest for _, rest in parts], ", ".join(columns), fewest=2)
    return options, places.index(gold)


def listed_options(value: Any, column: str) -> tuple[list[str], list[str]]:
    """(labels, texts) of a list of labelled options, `["(أ) text", ...]`, or of the list as Python writes it.

    Raises:
        BadRow: It is no such list, or a label is missing or repeated.
    """
    if isinstance(value, str):
        try:
            value = ast.literal_eval(value.strip()[:LONGEST_LIST])
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            raise BadRow(column, value, "is no list of options") from None
    found = [re.match(r"\(?\s*(\w{1,2})\s*[).]\s*(?=\S)", text) for text in text_list(value, column, fewest=2)]
    labels = [match[1] for match in found if match]
    if len(set(labels)) < len(found):
        raise BadRow(column, value, "does not label each option once, as in `(أ) text`")
    texts = [text[match.end() :] for text, match in zip(map(str.strip, value), found, strict=True) if match]
    return labels, texts


def options_in_text(value: Any, column: str) -> list[str]:
    """The options of one text, `أ) واحد ب) اثنان` or `أ. واحد, ب. اثنان`, which may be alone in a list.

    Raises:
        BadRow: It does not begin with a label, or its labels are not أ ب ج ..., each once and in order.
    """
    text = comparable(text_list(value if isinstance(value, list) else [value], column)[0])
    found = list(_WITHIN.finditer(text))
    ordered = [label_index(match["label"]) for match in found] == list(range(len(found)))
    if len(found) < 2 or not ordered or found[0].start() or (isinstance(value, list) and len(value) > 1):
        raise BadRow(column, value, "is not one text with the labels أ ب ج ..., each once and in order")
    ends = [match.start() for match in found[1:]] + [len(text)]
    texts = [text[match.end() : end] for match, end in zip(found, ends, strict=True)]
    return text_list(texts, column, fewest=2)
