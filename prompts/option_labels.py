"""Arabic option labels: the letters that are scored, and reading the letters that sources write."""

import re
from typing import Any

from cultureval.runtime.errors import BadRow

# Abjad order, as QIMMA scores them; the fifth is two code points (heh and tatweel).
LABELS = tuple("أ ب ج د هـ و ز ح ط ي ك ل م ن س ع ف ص ق ر ش ت ث خ ذ ض ظ غ".split())

_SPELLINGS = {"ا": "أ", "إ": "أ", "آ": "أ", "ه": "هـ", "ى": "ي"}
_LETTER = "|".join(sorted({*LABELS, *_SPELLINGS, "أـ", "ا"}, key=len, reverse=True))
_LABEL_PREFIX = re.compile(rf"^\s*\(?\s*({_LETTER}|[A-Za-z])\s*[.):\-–]\s*")


def label_index(text: str) -> int | None:
    """The position that a lone label stands for: Arabic (أ or its variants, ه for هـ) or Latin, either case.

    Returns:
        0 for أ, ا, A, a; 4 for هـ, ه, E; None where the text is not a lone label.
    """
    letter = text.strip().strip("().:-– ").strip()
    if len(letter) == 1 and letter.isascii() and letter.isalpha():
        return ord(letter.upper()) - ord("A")
    letter = _SPELLINGS.get(letter, letter)
    return LABELS.index(letter) if letter in LABELS else None


def split_label(text: str) -> tuple[int | None, str]:
    """The position and the rest of a text that begins with a label (`ب) نص`, `(ب) نص`, `ب. نص`).

    Returns:
        (position, rest); (None, text) where the text begins with no label.
    """
    match = _LABEL_PREFIX.match(text)
    return (label_index(match.group(1)), text[match.end() :].strip()) if match else (None, text.strip())


def labels_for(count: int) -> list[str]:
    """The first `count` labels.

    Raises:
        BadRow: There are more options than labels.
    """
    if count > len(LABELS):
        raise BadRow("choices", count, f"counts more options than the {len(LABELS)} labels")
    return list(LABELS[:count])


def gold_position(answer: Any, options: list[str], column: str) -> int:
    """The position of the option that an answer names by label, by `label. text`, by index or by its text.

    A lone letter is a label even where an option's text is the same letter (blood groups, say).

    Raises:
        BadRow: The answer names no option, or its label and its text name different ones.
    """
    if isinstance(answer, int) and not isinstance(answer, bool):
        return _in_range(answer, options, answer, column)
    text = str(answer).strip()
    lone = label_index(text)
    if lone is not None and (lone < len(options) or text not in options):
        return _in_range(lone, options, answer, column)
    position, rest = split_label(text)
    named = next((index for index, option in enumerate(options) if option in (text, rest)), None)
    if position is not None and named is not None and named != position and options[named] != text:
        raise BadRow(column, answer, f"has label {LABELS[position]} but the text of option {LABELS[named]}")
    if named is not None:
        return named
    if position is None:
        raise BadRow(column, answer, f"is not among the {len(options)} options")
    return _in_range(position, options, answer, column)


def _in_range(position: int, options: list[str], answer: Any, column: str) -> int:
    if not 0 <= position < len(options):
        raise BadRow(column, answer, f"points outside the {len(options)} options")
    return position
