"""What whole numbers among the golds of a column mean: places of options from 0 or from 1, or options' texts.

One row cannot tell: of four options, 2 is the third one or the second. So the readers of golds ask the column that is
being read, and where it is not known yet, all of its rows are looked at once before any is scored.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from cultureval.prompts.cells import comparable
from cultureval.runtime.errors import BadRow, MissingColumn

Meaning = Literal[0, 1, "text"]
FEW = 0.1  # share of golds that may contradict the others, and are broken rows then
_WHOLE = re.compile(r"[+-]?\d{1,9}(?:\.0+)?")


class UndecidedNumbers(Exception):
    """A number was read before it is known what numbers of its column mean."""


class GoldNumber(NamedTuple):
    """A whole number among the golds of a column, in a row of `options` options.

    Attributes:
        same: Position of the option whose text it is; None without one.
        usual: What it means where nothing else tells: 1 where the options' own labels are numbers; else None.
    """

    number: int
    options: int
    same: int | None
    usual: Meaning | None


@dataclass
class GoldColumn:
    """The golds of a column.

    Attributes:
        means: What its numbers mean; None while that is not known.
        collecting: Whether its rows are being looked at to learn it.
        numbers: The whole numbers that were met.
        letters: How many golds were labels.
        texts: How many were texts of options that are no numbers.
    """

    means: Meaning | None = None
    collecting: bool = False
    numbers: list[GoldNumber] = field(default_factory=list)
    letters: int = 0
    texts: int = 0

    def decide(self) -> str:
        """Sets what its numbers mean, by all of them.

        Returns:
            Why that cannot be told, as a clause; "" where it can.
        """
        unmatched = [one for one in self.numbers if one.same is None]
        outside = [one for one in self.numbers if not 0 <= one.number <= one.options]
        if not unmatched or len(outside) >= len(unmatched) or self.texts > len(unmatched):
            return self._as_texts(outside)
        first, why = self._first()
        usual = {one.usual for one in self.numbers}
        if self.letters or self.texts:
            kind = "letters" if self.letters else "options' texts"
            return f"some are numbers ({self._examples()}) and others {kind}"
        if not why and usual - {None} and usual != {first}:
            return f"the options are counted from {usual.pop()}, and the golds ({self._examples()}) from {first}"
        self.means = first
        return why

    def _as_texts(self, outside: Sequence[GoldNumber]) -> str:
        """Numbers that are texts of options, unless they could as well all be places of other ones."""
        same = [one for one in self.numbers if one.same is not None]
        alike = any(all(one.same == one.number - first for one in same) for first in (0, 1))
        if self.letters or self.texts or outside or alike:
            self.means = "text"
            return ""
        return f"they ({self._examples()}) may be places of options or their texts"

    def _first(self) -> tuple[Meaning | None, str]:
        """What the number of the first option is, and why that is not known."""
        zeros = sum(one.number == 0 for one in self.numbers)
        lasts = sum(one.number == one.options for one in self.numbers)
        if zeros != lasts and min(zeros, lasts) <= FEW * max(zeros, lasts):
            return (0, "") if zeros > lasts else (1, "")
        usual = {one.usual for one in self.numbers}
        if not zeros and len(usual) == 1 and usual != {None}:
            return usual.pop(), ""
        if zeros:
            return None, f"{zeros} of them are 0 and {lasts} the number of options"
        return None, f"they ({self._examples()}) may begin with 0 or with 1: none is 0, and none the number of options"

    def _examples(self) -> str:
        return ", ".join(map(str, sorted({one.number for one in self.numbers})[:5]))


_COLUMN: ContextVar[GoldColumn | None] = ContextVar("golds", default=None)


@contextmanager
def golds_of(column: GoldColumn) -> Iterator[None]:
    """A context in which golds are read as those of that column, also by the readers of other packages' suites."""
    token = _COLUMN.set(column)
    try:
        yield
    finally:
        _COLUMN.reset(token)


def note_letter() -> None:
    """Counts a gold that is a label."""
    if column := _COLUMN.get():
        column.letters += column.collecting


def note_text() -> None:
    """Counts a gold that is the text of an option, and no number."""
    if column := _COLUMN.get():
        column.texts += column.collecting


def whole_number(value: Any) -> int | None:
    """The whole number that a cell is: an integer, 2.0, or the text of one in any script's digits; else None."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, str):
        text = comparable(value)
        return int(float(text)) if _WHOLE.fullmatch(text) else None
    return int(value) if float(value).is_integer() else None


def meaning_of(number: int, cell: Any, options: int, same: int | None, name: str, usual: Meaning | None) -> Meaning:
    """What a number among the golds means; the arguments are those of `GoldNumber`, and its cell and column.

    Raises:
        UndecidedNumbers: It is not known yet: the column's rows have to be looked at.
        MissingColumn: It is 0 where 1 was given as the first option's number: all others may be shifted.
        BadRow: The row is read alone, and the number is both the text of an option and the place of another.
    """
    column = _COLUMN.get()
    if column and column.collecting:
        column.numbers.append(GoldNumber(number, options, same, usual))
        return 0
    if column and column.means is None:
        raise UndecidedNumbers
    if column and column.means is not None:
        if column.means == 1 and number == 0 and not column.numbers:
            raise MissingColumn(f"{name!r} holds a 0, and gold_numbers says that the first option is 1")
        return column.means
    if same is None:  # a row that is read alone
        return usual or 0
    if isinstance(cell, str) or same == number or not 0 <= number < options:
        return "text"
    raise BadRow(name, cell, "can be read in several ways")
