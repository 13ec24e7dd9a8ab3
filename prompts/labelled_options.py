"""Options as sources write them, each perhaps with a label of its own, which decides where the answer names a label."""

import ast
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from cultureval.prompts.cells import comparable, is_empty, several, text_list
from cultureval.prompts.gold_numbers import Meaning, whole_number
from cultureval.prompts.option_labels import LETTER, gold_positions, label_index
from cultureval.runtime.errors import BadRow
from cultureval.runtime.zero_width import INVISIBLE

Style = Literal["bracket", "mark", "attached"]
LONGEST_LIST = 100_000  # characters of a list as Python writes it
TITLES = (0, 3, 12)  # أ. (teacher), د. (doctor), م. (engineer) before a name

_SPACE = rf"[\s{INVISIBLE}]"
_DIGITS = "[0-9٠-٩۰-۹]{1,2}"
_BEGINNINGS: dict[Style, re.Pattern[str]] = {
    "bracket": re.compile(
        rf"{_SPACE}*[(\[]?\s*(?P<label>{LETTER}|[A-Za-z]|{_DIGITS})\s*[)\]]"
        rf"(?!\s*(?:(?:و|أو|and|or)[\s(]|[+&،,]))(?:\s*[.:])?{_SPACE}*"  # `(أ) و (ب)` is a text about labels
    ),
    "mark": re.compile(
        rf"{_SPACE}*(?:(?P<label>{LETTER}|[A-Za-z])\s*|(?P<digits>{_DIGITS}))"
        rf"(?:\.{_SPACE}+|[:\-–—]{_SPACE}+(?!\w\W*$)|\.(?=[^\W\d_]{{2}})|[:\-–—](?=[\u0620-\u064a]{{2}}))"
    ),
    "attached": re.compile(rf"{_SPACE}*(?P<label>{LETTER}|[A-Za-z])\s*[.:\-–—]"),
}
_WITHIN = re.compile(
    rf"(?P<open>\(\s*)?(?:(?P<label>{LETTER}|[A-Za-z])|(?<![\w.])(?P<digits>{_DIGITS}))"
    rf"\s?(?:(?P<close>\))|[.:\-–](?=\s))"
)
_BETWEEN = " \t\n\r,،;؛"


@dataclass(frozen=True)
class Label:
    """The label that an option begins with.

    Attributes:
        ordinal: Its place in the order of labels, from 0; of a number the number less 1.
        text: The rest of the option.
        style: `أ)` is a bracket, `أ. ` a mark, and `أ:` before something else than a word, or before a single letter or
            digit, attached.
        script: "arabic", "latin" or "digits".
    """

    ordinal: int
    text: str
    style: Style
    script: str

    def may_be_initial(self) -> bool:
        """Whether it may abbreviate a title or a name: `د. حسن`, `E. coli`, `J. K. Rowling`."""
        if self.style != "mark":
            return False
        return self.ordinal in TITLES if self.script == "arabic" else bool(re.match(r"[a-z]|[A-Z]\.", self.text))


@dataclass(frozen=True)
class LabelledOptions:
    """The options of a row in the order of their own labels, or of the source where they have none.

    Attributes:
        texts: Their texts, without these labels.
        numbers: Position in `texts` of the option that a number in the answer names: number, counted from 0, ->
            position.
        numbered: Whether their labels are numbers.
        letters: Whether letters in the answer can name options: not where numbers label them in another order.
    """

    texts: list[str]
    numbers: Mapping[int, int]
    numbered: bool = False
    letters: bool = True

    def golds(self, answer: Any, column: str, several: bool = True) -> list[int]:
        """The positions of all options that an answer names, ascending.

        Raises:
            BadRow: As `gold_positions`; or it names a letter or a number that could mean either of two options.
        """
        if isinstance(answer, str) and not self.letters and label_index(comparable(answer)) is not None:
            raise BadRow(column, answer, "is a letter, but numbers label the options, in another order")
        usual: Meaning | None = 1 if self.numbered else None
        return gold_positions(answer, self.texts, column, numbers=self.numbers, usual=usual, several=several)

    def gold(self, answer: Any, column: str) -> int:
        """The position of the one option that an answer names; several are a `BadRow`."""
        return self.golds(answer, column, several=False)[0]


def options_of_cell(cell: Any, column: str) -> LabelledOptions:
    """The options of one cell: a list, an object, the text of either, or one text with labels (`أ) .. ب) ..`).

    Raises:
        BadRow: The options, or their labels, are not understood.
    """
    cell, quoted = listed_options(cell, column), False
    if isinstance(cell, str) and cell.strip().startswith("[") and cell.strip().endswith("]"):  # no list that is one
        quoted, cell = True, cell.strip()[1:-1]
    entries = text_list(cell if isinstance(cell, list) else [cell], column)
    if len(entries) > 1:
        return options_of_list(entries, column)
    text = entries[0].strip()
    if text.startswith("[") and text.endswith("]") and not quoted:
        return options_of_cell(text, column)
    return in_order_of_labels(_labels_within(text.strip("'\"") if quoted else text, column, quoted), column)


def listed_options(cell: Any, column: str) -> Any:
    """A cell as a list of options, where it is a list, an object, or the text of either; else the cell as it is.

    An object is `{"A": ..., "B": ...}` in any order of its names, which may begin with a word (`option_a`, `choice1`),
    or `{"text": [...], "label": [...]}`.

    Raises:
        BadRow: It is an object of other names, or its labels are not complete, each once.
    """
    if isinstance(cell, str) and cell.strip().startswith(("[", "{")):
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
                cell = ast.literal_eval(cell.strip()[:LONGEST_LIST])
    if isinstance(cell, Mapping):
        texts = next((cell[name] for name in ("text", "texts") if isinstance(cell.get(name), list | tuple)), None)
        labels = cell.get("label", cell.get("labels"))
        if texts is None:
            named = {str(name): text for name, text in cell.items() if not is_empty(text)}
        elif isinstance(labels, list | tuple) and len(labels) == len(texts):
            named = {str(name): text for name, text in zip(labels, texts, strict=True)}
        else:
            return list(texts)
        return _in_order_of_names(named, cell, column)
    return list(cell) if isinstance(cell, list | tuple) else cell


def _in_order_of_names(named: Mapping[str, Any], cell: Any, column: str) -> list[Any]:
    """The options of an object; those that numbers from 1 on name keep them as labels, which the gold may mean."""
    ends = {name: re.sub(r"^(?:option|choice|answer|opt|الخيار|خيار)[\s_-]*", "", name, flags=re.I) for name in named}
    places = {name: label_index(end) if whole_number(end) is None else whole_number(end) for name, end in ends.items()}
    first = 1 if all(whole_number(end) is not None for end in ends.values()) and 0 not in places.values() else 0
    by_place = {place: name for name, place in places.items()}
    if not named or set(by_place) != set(range(first, len(named) + first)):
        raise BadRow(column, cell, "is an object whose names are not those of options: A, B, C, each once, or 1, 2, 3")
    texts = [named[by_place[place]] for place in range(first, len(named) + first)]
    return [f"{number}) {text}" for number, text in enumerate(texts, first)] if first else texts


def options_of_list(entries: Sequence[str], column: str) -> LabelledOptions:
    """The options of a list, each perhaps with a label; labels must be understood."""
    labels = own_labels(entries, column)
    if labels:
        return in_order_of_labels(labels, column)
    return LabelledOptions(several(entries, column), {position: position for position in range(len(entries))})


def own_labels(entries: Sequence[str], column: str, places: Sequence[int] = ()) -> list[Label] | None:
    """The labels that all options begin with; None where what they begin with is no label but a part of the text.

    Args:
        places: What the source itself calls them (0 for a column A, ...); without it they are a list.

    Raises:
        BadRow: Some begin with labels that contradict their places, or the labels are not أ ب ج in any order.
    """
    read = [read_label(entry) for entry in entries]
    labels = [label for label in read if label]
    if not any(label.text for label in labels):
        return None
    named = list(places or range(len(entries)))
    if len(labels) < len(entries) or len({label.script == "digits" for label in labels}) > 1:
        _require_no_labels(read, named, entries, column)
        return None
    ordinals = [label.ordinal for label in labels]
    complete = sorted(ordinals) == list(range(len(entries)))
    if labels[0].script == "digits":
        return labels if complete and all(label.style != "attached" for label in labels) else None
    if ordinals == named or complete:
        return _unless_text(labels, ordinals == named, bool(places), entries, column)
    if all(label.may_be_initial() for label in labels) or all(label.style == "attached" for label in labels):
        return None
    if min(ordinals) >= len(entries):  # variables: `(س) ...`, `(ص) ...`
        return None
    raise BadRow(column, list(entries), "holds labels that are not أ ب ج ..., each once")


def _require_no_labels(read: list[Label | None], named: list[int], entries: Sequence[str], column: str) -> None:
    """Refuses options of which some begin with what can only be labels."""
    letters = [(label, place) for label, place in zip(read, named, strict=True) if label and label.script != "digits"]
    for label, place in letters:
        if label.style != "attached" and label.ordinal < len(entries) and label.ordinal != place:
            if not label.may_be_initial():
                raise BadRow(column, list(entries), "holds a label that contradicts the place of its option")
    if sum(label.style == "bracket" and label.ordinal == place for label, place in letters) > 1:
        raise BadRow(column, list(entries), "holds labels of some of its options only")


def _unless_text(
    labels: list[Label], in_order: bool, columns: bool, entries: Sequence[str], column: str
) -> list[Label] | None:
    """Labels that are complete, unless they may be part of the texts (`A-1`, `E. coli`)."""
    if any(label.style == "attached" for label in labels):
        if in_order:
            return None
        raise BadRow(column, list(entries), "begins with what may be labels, in another order than the options")
    if columns and not in_order and all(label.may_be_initial() for label in labels):
        return None
    return labels


def read_label(entry: str) -> Label | None:
    """The label that a text may begin with, and the rest."""
    entry = re.sub(r"^[\W_]*\w[\u0653-\u0655]?", lambda first: unicodedata.normalize("NFKC", first[0]), entry)
    for style, pattern in _BEGINNINGS.items():
        match = pattern.match(entry)
        if match:
            return _label(match[match.lastgroup or "label"], entry[match.end() :].strip(), style)
    return None


def _label(name: str, rest: str, style: Style) -> Label:
    if name.isdecimal():
        return Label(int(name) - 1, rest, style, "digits")
    position = label_index(name)
    assert position is not None  # the patterns match labels alone
    return Label(position, rest, style, "latin" if name.isascii() else "arabic")


def in_order_of_labels(labels: Sequence[Label], column: str) -> LabelledOptions:
    """Options in the order of their labels, which are complete.

    Raises:
        BadRow: An option is empty.
    """
    order = sorted(range(len(labels)), key=lambda number: labels[number].ordinal)
    texts = [labels[number].text for number in order]
    if any(is_empty(text) for text in texts):
        raise BadRow(column, texts, "has an empty entry")
    numbered = labels[0].script == "digits"
    fixed = {number: place for place, number in enumerate(order) if number == place}
    numbers = {place: place for place in range(len(order))} if numbered else fixed
    return LabelledOptions(several(texts, column), numbers, numbered, not numbered or len(fixed) == len(order))


def _labels_within(text: str, column: str, quoted: bool) -> list[Label]:
    """The labelled options of one text, if there is exactly one way to divide it."""
    text = unicodedata.normalize("NFC", text)
    around = _BETWEEN + ("'\"" if quoted else "")
    found = _candidates(text)
    letters = [one for one in found if one.match["label"]]
    readings = _readings(letters, text, around) or _readings([one for one in found if one not in letters], text, around)
    if len(readings) > 1:
        raise BadRow(column, text, "can be divided by its labels in several ways")
    if not readings:
        return _labels_between_commas(text, column)
    (starts,) = readings
    if any(one.is_stray(starts) for one in letters if one not in starts):
        raise BadRow(column, text, "holds further labels, which are not understood")
    ends = [one.match.start() for one in starts[1:]] + [len(text)]
    texts = [text[one.match.end() : end].strip(around) for one, end in zip(starts, ends, strict=True)]
    return [_label(one.name, rest, "bracket") for one, rest in zip(starts, texts, strict=True)]


@dataclass(frozen=True)
class _Candidate:
    """What may be a label within a text; doubtful where its bracket may close an earlier one, or it is in a word."""

    match: re.Match[str]
    doubtful: bool

    @property
    def name(self) -> str:
        return str(self.match["label"] or self.match["digits"])

    @property
    def place(self) -> int:
        return _label(self.name, "", "bracket").ordinal

    @property
    def style(self) -> str:
        return "mark" if not self.match["close"] else "(L)" if self.match["open"] else "L)"

    def is_stray(self, labels: "list[_Candidate]") -> bool:
        """Whether it is neither one of these labels nor a part of the text (a title, a point in brackets)."""
        if self.style == "mark":
            return self.place <= len(labels) and (self.place not in TITLES or labels[0].style == "mark")
        return not self.doubtful and (self.style == "L)" or labels[0].style != "L)")


def _candidates(text: str) -> list[_Candidate]:
    """All that may be labels within a text, in order."""
    closing, depth = set[int](), 0
    for place, character in enumerate(text):
        depth += character == "("
        if character == ")" and depth:
            depth -= 1
            closing.add(place)
    found = []
    for match in _WITHIN.finditer(text):
        before = text[match.start() - 1 : match.start()]
        apart = not before or before.isspace() or before in ",،;؛.'\"|"
        closes = not match["open"] and match.end() - 1 in closing
        if apart or (match["close"] and match["label"] and not closes):
            called = bool(match["open"]) and before.isalpha()  # f(x)
            found.append(_Candidate(match, bool(match["close"]) and (closes or called)))
    return found


def _readings(found: Sequence[_Candidate], text: str, around: str) -> list[list[_Candidate]]:
    """The ways to take candidates of one style, or of all, so that they are complete and the text begins with one."""
    sure = [one for one in found if not one.doubtful]
    style = sure[0].style if sure else ""
    ways = [
        list(found),
        sure,
        [one for one in sure if one.style == style],
        [one for one in found if one.style == style],
    ]
    places = [one.place for one in found]
    if style == "mark" and places != sorted(places):  # some may be titles before names
        ways.append([one for one in found if one.place not in TITLES[1:]])
    readings: list[list[_Candidate]] = []
    for way in ways:
        complete = len(way) > 1 and sorted(one.place for one in way) == list(range(len(way)))
        if complete and not text[: way[0].match.start()].strip(around) and way not in readings:
            readings.append(way)
    return readings


def _labels_between_commas(text: str, column: str) -> list[Label]:
    """The options of `أ واحد, ب اثنان`: labels without brackets at the beginning of each part."""
    labels = []
    for part in re.split(r"[,،;؛\n|](?![^()]*\))", text):
        entry = part.strip(_BETWEEN + "'\"")
        bare = re.match(rf"({LETTER}|[A-Za-z])\s+(?=\S)", entry)
        labels.append(_label(bare[1], entry[bare.end() :], "mark") if bare else read_label(entry))
    known = [label for label in labels if label and label.script != "digits"]
    if len(known) < max(2, len(labels)) or sorted(label.ordinal for label in known) != list(range(len(known))):
        raise BadRow(column, text, "holds fewer than two labelled options, or labels that are not complete, each once")
    return known
