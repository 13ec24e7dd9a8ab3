"""Labels of options: parsing those in sources, and checking that a prompt shows those that are scored."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cultureval.prompts.cells import bare, comparable
from cultureval.prompts.gold_numbers import Meaning, meaning_of, note_letter, note_text, whole_number
from cultureval.runtime.errors import BadRow

# Abjad order, as QIMMA scores them; the fifth is two code points (heh and tatweel).
LABELS = tuple("أ ب ج د هـ و ز ح ط ي ك ل م ن س ع ف ص ق ر ش ت ث خ ذ ض ظ غ".split())

_SPELLINGS = {"ا": "أ", "إ": "أ", "آ": "أ", "ه": "هـ", "ى": "ي"}
_LETTERS = "|".join(sorted({*LABELS, *_SPELLINGS}, key=len, reverse=True))
LETTER = rf"(?:{_LETTERS})ـ?[\u064b-\u0652]?"  # also with a tatweel (جـ) or a short vowel
MOST_BETWEEN = 6  # characters between a label and its text: marks and spaces
# Up to three letters or digits and a mark, before the place at which the search ends.
_LABEL_BEFORE = re.compile(r"(?<![^\s(\[{*])([^\W_]{1,3})[^\w\s]{1,2}[^\S\n]{0,3}\Z")
_LABEL_PREFIX = re.compile(rf"^\s*\(?\s*({LETTER}|[A-Za-z])\s*[.):\-–]\s*")


def label_index(text: str) -> int | None:
    """The position that a label alone means: Arabic (أ or its variants, ه for هـ) or Latin, either case.

    Returns:
        0 for أ, ا, A, a; 4 for هـ, ه, E; None where the text is not just a label.
    """
    letter = re.sub(r"(?<=\w)[\u064b-\u0652]$", "", text.strip().strip("().:-– ").strip())
    if len(letter) == 1 and letter.isascii() and letter.isalpha():
        return ord(letter.upper()) - ord("A")
    letter = _one_spelling(letter) if len(letter) <= 2 else letter
    return LABELS.index(letter) if letter in LABELS else None


def split_label(text: str) -> tuple[int | None, str]:
    """(position, rest) of a text that begins with a label (`ب) نص`, `(ب) نص`, `ب. نص`); (None, text) of any other."""
    match = _LABEL_PREFIX.match(text)
    return (label_index(match.group(1)), text[match.end() :].strip()) if match else (None, text.strip())


def labels_for(count: int) -> list[str]:
    """The first `count` labels."""
    if count > len(LABELS):
        raise BadRow("choices", count, f"counts more options than the {len(LABELS)} labels")
    return list(LABELS[:count])


def gold_position(answer: Any, options: Sequence[str], column: str, labels: Sequence[str] = ()) -> int:
    """The position of the option that an answer names by label, by label and text, by index or by its text.

    A single letter is a label even where an option's text is the same letter (blood groups, for example).

    Args:
        answer: The cell. What a number means, its column tells (`gold_numbers`); alone it is an index from 0.
        labels: The labels of the template. If they begin neither أ ب ج nor A B C, only they count as labels, spelt as
            they are there, and an integer is an index only where they are 1 2 3.

    Raises:
        BadRow: The answer names no option or several, its label and its text name different ones, its text is that of
            no option, or it can be read in several ways.
        UndecidedNumbers: It is a number, and what it means is to be told by its column.
    """
    text = str(answer).strip()
    if labels and not _in_usual_order(labels):
        return _in_range(_position_by_own_labels(answer, options, column, labels), options, answer, column)
    if text in labels:
        note_letter()
        return _in_range(labels.index(text), options, answer, column)
    found = gold_positions(answer, options, column, labels, several=False)
    return found[0]


def gold_positions(
    answer: Any,
    options: Sequence[str],
    column: str,
    labels: Sequence[str] = (),
    numbers: Mapping[int, int] | None = None,
    usual: Meaning | None = None,
    several: bool = True,
) -> list[int]:
    """The positions of all options that an answer names: a list, the text of one, or `أ، ج`, `أ و ج`, `أج`, `0,2`.

    Args:
        labels: Labels for messages, where they are not أ ب ج.
        numbers: Position of the option at a place, counted from 0; None: the place.
        usual: 1 where the options' own labels are numbers.
        several: Whether several may be right.

    Returns:
        The positions, ascending.

    Raises:
        BadRow: It names no option, or one twice, or can be read in several ways or not at all.
        UndecidedNumbers: As `gold_position`.
    """
    places = {position: position for position in range(len(options))} if numbers is None else numbers
    answers = _listed(answer)
    if 1 < len(answers) == len(options) and {whole_number(one) for one in answers} == {0, 1}:
        raise BadRow(column, answer, "may mark each option as right (1) or wrong (0), or name places: write letters")
    found = _only_texts(answers, options)
    if found:
        answers = []
    for one in answers:
        read = _read(one, options, column, labels, places, usual, several and len(answers) == 1)
        if len(read) > 1 < len(answers):
            raise BadRow(column, answer, f"lists {one!r}, which is not one of the {len(options)} options")
        found += read
    if not found or len(set(found)) < len(found):
        raise BadRow(column, answer, "names no option, or a duplicated one")
    if len(found) > 1 and not several:
        raise BadRow(column, answer, "names several options of a question with one right answer")
    return sorted(found)


def _only_texts(answers: Sequence[Any], options: Sequence[str]) -> list[int]:
    """The positions of a list of options' whole texts of which not all are labels; [] for any other list."""
    seen, texts = [comparable(option) for option in options], [comparable(str(answer)) for answer in answers]
    labels = [label_index(text) for text in texts]
    if len(texts) < 2 or any(seen.count(text) != 1 for text in texts):
        return []
    if all(label in range(len(seen)) for label in labels):
        return []
    if all(whole_number(answer) is not None for answer in answers):  # texts or places: the column tells
        return []
    note_text()
    return [seen.index(text) for text in texts]


def _listed(answer: Any) -> list[Any]:
    """The entries of a list or of the text of one; else the answer alone."""
    if isinstance(answer, str) and re.fullmatch(r"\s*\[.*\]\s*", answer, re.DOTALL):
        try:
            answer = ast.literal_eval(answer.strip()[:10_000])
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            answer = answer.strip()[1:-1]
    return list(answer) if isinstance(answer, list | tuple) else [answer]


def _read(
    answer: Any,
    options: Sequence[str],
    column: str,
    labels: Sequence[str],
    places: Mapping[int, int],
    usual: Meaning | None,
    several: bool,
) -> list[int]:
    """The positions that one answer names, if it can be read in exactly one way."""
    if isinstance(answer, bool) or not isinstance(answer, str | int | float):
        raise BadRow(column, answer, f"is not among the {len(options)} options")
    seen = [comparable(option) for option in options]
    if (number := whole_number(answer)) is not None:
        return [_by_number(number, answer, seen, places, usual, column)]
    text = comparable(str(answer))
    same = _place_of(text, seen)
    lone = label_index(text)
    if lone is not None and (same is None or (text.isalpha() and lone < len(options))):
        note_letter()
        return [_in_range(lone, options, answer, column)]
    readings = {(same,)} if same is not None else set[tuple[int, ...]]()
    readings |= _by_label_and_text(text, seen, answer, column, labels)
    if several or not readings or (same is None and label_index(split_label(text)[1]) is not None):
        compounds = _compounds(text, len(options))
        readings |= {one for one in compounds if not readings or len(set(one)) == len(one)}
    if several and (listed := _numbers_within(text)):
        readings |= {tuple(_by_number(one, answer, seen, places, usual, column, same) for one in listed)}
    if len(readings) > 1:
        raise BadRow(column, answer, "can be read in several ways")
    if not readings:
        label = split_label(text)[0]
        what = "is not among" if label is None else "has a label with a text that is not among"
        what = "is the text of several of" if seen.count(text) > 1 else what
        raise BadRow(column, answer, f"{what} the {len(options)} options")
    note_text()
    return list(readings.pop())


def _place_of(text: str, seen: Sequence[str]) -> int | None:
    """The position of the one option with a text; where none has it exactly, of the only one that reads the same."""
    if text in seen:
        return seen.index(text) if text and seen.count(text) == 1 else None
    loosely = [place for place, option in enumerate(seen) if bare(option) == bare(text)] if bare(text) else []
    return loosely[0] if len(loosely) == 1 else None


def _by_label_and_text(
    text: str, seen: Sequence[str], answer: Any, column: str, labels: Sequence[str]
) -> set[tuple[int, ...]]:
    position, rest = split_label(text)
    named = next((place for one in (rest, rest.rstrip(" .")) if (place := _place_of(one, seen)) is not None), None)
    if position is None or named is None:
        return set()
    if named != position and text not in seen:
        names = [*labels, *LABELS[len(labels) :]]
        raise BadRow(column, answer, f"has label {names[position]} but the text of option {names[named]}")
    return {(position,)} if named == position else set()


def _compounds(text: str, count: int) -> set[tuple[int, ...]]:
    """The readings of a text as two or more labels; و is a label or the word and."""
    words = [word for word in re.split(r"[\s,،;؛/|+&.\-–—()]+", text) if word and word.lower() != "and"]
    runs = [re.fullmatch(f"(?:{LETTER}|[A-Za-z])+", word) for word in words]
    if not words or not all(runs):
        return set()
    letters = [letter for word in words for letter in re.findall(f"{LETTER}|[A-Za-z]", word)]
    ends = (0, len(letters) - 1)
    without_and = [letter for place, letter in enumerate(letters) if letter != "و" or place in ends]
    readings = {tuple(label_index(letter) for letter in some) for some in (letters, without_and)}
    return {
        tuple(position for position in reading if position is not None)
        for reading in readings
        if len(reading) > 1 and all(position is not None and position < count for position in reading)
    }


def _numbers_within(text: str) -> list[int]:
    """The numbers of a text that is two or more of them: `0, 2`."""
    parts = re.split(r"[\s,،;؛|]+", text)
    return (
        [int(part) for part in parts] if len(parts) > 1 and all(re.fullmatch(r"\d{1,3}", one) for one in parts) else []
    )


def _by_number(
    number: int,
    answer: Any,
    seen: Sequence[str],
    places: Mapping[int, int],
    usual: Meaning | None,
    column: str,
    whole: int | None = None,
) -> int:
    """The position that a number means in its column; `whole` is that of an option whose text is the whole answer."""
    written = [place for place, text in enumerate(seen) if whole_number(text) == number]
    same = whole if whole is not None else written[0] if len(written) == 1 else None
    means = meaning_of(number, answer, len(seen), same, column, usual)
    if means == "text":
        if same is None:
            raise BadRow(column, answer, f"is not among the {len(seen)} options")
        return same
    if number - means in places:
        return places[number - means]
    if number - means in range(len(seen)):
        raise BadRow(column, answer, "is a number, but labels give the options another order")
    what = "is not among the numbers that label the options" if usual else f"points outside the {len(seen)} options"
    raise BadRow(column, answer, what)


def _in_usual_order(labels: Sequence[str]) -> bool:
    """Whether labels are أ ب ج ... or A B C ..., which sources use for each other."""
    return all(label_index(label) == position for position, label in enumerate(labels))


def _position_by_own_labels(answer: Any, options: Sequence[str], column: str, labels: Sequence[str]) -> int:
    """The position that a text names by one of the labels, by `label. text`, or by a whole option text."""
    text = str(answer).strip()
    number = whole_number(answer)
    numbered = [whole_number(label) for label in labels] == list(range(1, len(labels) + 1))
    if number is not None and numbered and 0 <= number <= len(labels):
        means = meaning_of(number, answer, len(options), None, column, 1)
        if means == "text" and text in options:
            return list(options).index(text)
        if means != "text" and number >= means:
            return number - means
    bare = text.strip("().:-– ")
    label = next((label for label in (text, bare) if label in labels), None)
    if label is not None:
        return labels.index(label)
    if list(options).count(text) == 1:
        return list(options).index(text)
    names = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    match = re.match(rf"\(?\s*({names})\s*[.):\-–]\s*", text)
    rest = text[match.end() :] if match else ""
    position = labels.index(match[1]) if match else len(options)
    if position < len(options) and options[position] in (rest, rest.rstrip(" .")):
        return position
    named = next((option for option in (rest, rest.rstrip(" .")) if option in options), None)
    if match is None or named is None:
        known = f"the labels of the template ({' '.join(labels)}) or the {len(options)} options"
        raise BadRow(column, text, f"is not among {known}")
    place = list(options).index(named)
    other = labels[place] if place < len(labels) else repr(named)
    raise BadRow(column, text, f"has label {match[1]} but the text of option {other}")


def _in_range(position: int, options: Sequence[str], answer: Any, column: str) -> int:
    if not 0 <= position < len(options):
        raise BadRow(column, answer, f"points outside the {len(options)} options")
    return position


def check_shown(prompt: str, labels: Sequence[str], options: Sequence[str], template: str) -> None:
    """Checks that a prompt shows each option with its label in front: `1. text`, `(A) text`, or a line `A text`.

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
    """Checks that the labels in a ready-made prompt, where every option has one, are those that are scored."""
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
    return any(_follows_label(prompt, start, label) for start, _ in _places(prompt, text))


def _follows_label(prompt: str, start: int, label: str) -> bool:
    """Whether a label ends at most six characters before a place, none of them of words or a line's end."""
    for end in range(start, max(start - MOST_BETWEEN, 0) - 1, -1):
        first = end - len(label)
        if first >= 0 and prompt.startswith(label, first) and _is_label(prompt, first, end):
            return True
        if prompt[end - 1 : end] == "\n" or _of_words(prompt[end - 1 : end]):
            return False
    return False


def _is_label(prompt: str, first: int, end: int) -> bool:
    """Whether what stands there is a label: the first letters of its line, in a bracket, or with a mark at its end."""
    before, last, after = prompt[first - 1 : first] if first else "", prompt[end - 1 : end], prompt[end : end + 1]
    if _of_words(after):
        return False
    line = prompt[prompt.rfind("\n", 0, first) + 1 : first]
    if not any(map(_of_words, line)) or (before and before in "([{"):
        return True
    return not _of_words(before) and (_is_mark(after) or _is_mark(last))


def _labels_before(prompt: str, text: str) -> list[str]:
    """Possible labels of an option: up to three letters or digits and a punctuation mark before its text."""
    found, free = {}, 0
    for start, end in _places(prompt, text):
        if match := _LABEL_BEFORE.search(prompt, max(free, start - 8), start):
            found[match[1]], free = True, end
    return list(found)


def _places(prompt: str, text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each place of a text, with any white space between its words.

    A pattern made of the text would have to be compiled for each option of a data set.
    """
    first, *words = text.split() or [""]
    start = prompt.find(first)
    while start >= 0:
        end = start + len(first)
        for word in words:
            place = end
            while prompt[place : place + 1].isspace():
                place += 1
            if place == end or not prompt.startswith(word, place):
                break
            end = place + len(word)
        else:
            yield start, end
        start = prompt.find(first, start + 1)


def _of_words(character: str) -> bool:
    """Whether a pattern takes it for a letter, digit or underscore; False for ""."""
    return character.isalnum() or character == "_"


def _is_mark(character: str) -> bool:
    return bool(character) and not _of_words(character) and not character.isspace()
