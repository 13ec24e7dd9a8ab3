"""Labels of options: parsing those in sources, and checking that a prompt shows those that are scored."""

import re
from collections.abc import Sequence
from typing import Any

from cultureval.runtime.errors import BadRow

# Abjad order, as QIMMA scores them; the fifth is two code points (heh and tatweel).
LABELS = tuple("أ ب ج د هـ و ز ح ط ي ك ل م ن س ع ف ص ق ر ش ت ث خ ذ ض ظ غ".split())

_SPELLINGS = {"ا": "أ", "إ": "أ", "آ": "أ", "ه": "هـ", "ى": "ي"}
_LETTER = "|".join(sorted({*LABELS, *_SPELLINGS, "أـ", "ا"}, key=len, reverse=True))
_LABEL_PREFIX = re.compile(rf"^\s*\(?\s*({_LETTER}|[A-Za-z])\s*[.):\-–]\s*")


def label_index(text: str) -> int | None:
    """The position that a label alone means: Arabic (أ or its variants, ه for هـ) or Latin, either case.

    Returns:
        0 for أ, ا, A, a; 4 for هـ, ه, E; None where the text is not just a label.
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


def gold_position(answer: Any, options: list[str], column: str, labels: Sequence[str] = ()) -> int:
    """The position of the option that an answer names by label, by `label. text`, by index or by its text.

    A single letter is a label even where an option's text is the same letter (blood groups, for example).

    Args:
        answer: The cell. An integer that is not a label is an index from 0.
        options: The options' texts.
        column: The cell's column, for messages.
        labels: The labels of the template. If they begin neither أ ب ج nor A B C, only they count as labels, spelt as
            they are there, and no integer is an index.

    Raises:
        BadRow: The answer names no option, or its label and its text name different ones.
    """
    text = str(answer).strip()
    if labels and not _in_usual_order(labels):
        return _in_range(_position_by_own_labels(text, options, column, labels), options, answer, column)
    if text in labels:
        return _in_range(labels.index(text), options, answer, column)
    if isinstance(answer, int) and not isinstance(answer, bool):
        return _in_range(answer, options, answer, column)
    lone = label_index(text)
    if lone is not None and (lone < len(options) or text not in options):
        return _in_range(lone, options, answer, column)
    position, rest = split_label(text)
    named = next((index for index, option in enumerate(options) if option in (text, rest)), None)
    if position is not None and named is not None and named != position and options[named] != text:
        names = [*labels, *LABELS[len(labels) :]]
        raise BadRow(column, answer, f"has label {names[position]} but the text of option {names[named]}")
    if named is not None:
        return named
    if position is None:
        raise BadRow(column, answer, f"is not among the {len(options)} options")
    return _in_range(position, options, answer, column)


def _in_usual_order(labels: Sequence[str]) -> bool:
    """Whether labels are أ ب ج ... or A B C ..., which sources use for each other."""
    return all(label_index(label) == position for position, label in enumerate(labels))


def _position_by_own_labels(text: str, options: list[str], column: str, labels: Sequence[str]) -> int:
    """The position that a text names by one of the labels, by `label. text`, or by a whole option text."""
    bare = text.strip("().:-– ")
    label = next((label for label in (text, bare) if label in labels), None)
    if label is not None:
        return labels.index(label)
    if text in options:
        return options.index(text)
    names = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    match = re.match(rf"\(?\s*({names})\s*[.):\-–]\s*", text)
    rest = text[match.end() :] if match else ""
    named = next((option for option in (rest, rest.rstrip(" .")) if option in options), None)
    if match is None or named is None:
        known = f"the labels of the template ({' '.join(labels)}) or the {len(options)} options"
        raise BadRow(column, text, f"is not among {known}")
    position = options.index(named)
    if labels.index(match[1]) != position:
        other = labels[position] if position < len(labels) else repr(named)
        raise BadRow(column, text, f"has label {match[1]} but the text of option {other}")
    return position


def _in_range(position: int, options: list[str], answer: Any, column: str) -> int:
    if not 0 <= position < len(options):
        raise BadRow(column, answer, f"points outside the {len(options)} options")
    return position


def check_shown(prompt: str, labels: Sequence[str], options: Sequence[str], template: str) -> None:
    """Checks that a prompt shows each option with its label in front: `1. text`, `(A) text`, or a line `A text`.

    Args:
        prompt: The prompt of one row.
        labels: What is scored, one for each option.
        options: The options' texts.
        template: Name of the template that names the labels, for the message.

    Raises:
        BadRow: It does not, so that scores of the labels would be meaningless.
    """
    pairs = zip(labels, options, strict=True)
    missing = [label.strip() for label, text in pairs if not _is_shown(prompt, label.strip(), text)]
    if missing:
        raise BadRow(
            "prompt",
            prompt,
            f"does not show {', '.join(missing)} as the labels of its options; these would be scored "
            f"(the template {template} names them, and {{label}}. {{text}} has to be in the prompt)",
        )


def check_not_others(prompt: str, labels: Sequence[str], options: Sequence[str]) -> None:
    """Checks that the labels in a ready-made prompt, where they can be parsed, are those that are scored.

    A prompt that does not show every option after a label is not checked.

    Raises:
        BadRow: Every option has a label, and one of them differs from the scored one.
    """
    found = [_labels_before(prompt, text) for text in options]
    if not all(found):
        return
    for label, shown in zip(labels, found, strict=True):
        if _one_spelling(label) not in map(_one_spelling, shown):
            raise BadRow("prompt", prompt, f"labels an option {' or '.join(shown)}, where {label} would be scored")


def _one_spelling(label: str) -> str:
    """A label without tatweel and with one form of alef, heh and yeh: `جـ` is ج, and ه is هـ."""
    letter = label.replace("ـ", "").replace("ٱ", "ا")
    return _SPELLINGS.get(letter, letter)


def _is_shown(prompt: str, label: str, text: str) -> bool:
    """Whether a label precedes a text: at the start of a line, or with a punctuation mark between."""
    name, option = re.escape(label), _spaced(text)
    line_start, marked = (
        rf"^[^\w\n]*{name}",
        rf"(?:(?<!\w){name}(?=[^\w\s])|(?<=[(\[{{]){name}|(?<!\w){name}(?<=[^\w\s]))",
    )
    return re.search(rf"(?:{line_start}|{marked})(?!\w)[^\w\n]{{0,6}}{option}", prompt, re.MULTILINE) is not None


def _labels_before(prompt: str, text: str) -> list[str]:
    """Possible labels of an option: up to three letters or digits and a punctuation mark before its text."""
    pattern = rf"(?<![^\s(\[{{*])([^\W_]{{1,3}})[^\w\s]{{1,2}}[^\S\n]{{0,3}}{_spaced(text)}"
    return list(dict.fromkeys(re.findall(pattern, prompt)))


def _spaced(text: str) -> str:
    return r"\s+".join(map(re.escape, text.split()))
