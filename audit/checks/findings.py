"""The types of the table of checks, and texts as checks compare them."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from cultureval.audit.items import AuditItem
from cultureval.prompts.cells import comparable

Severity = Literal["error", "warning", "notice"]
TATWEEL = "\u0640"
_LETTERS = str.maketrans("أإآٱىةؤئ", "ااااياوي")
_MARK = re.compile("[\u064c-\u0650\u0652]")
_OPTIONAL = re.compile("[\u064b\u0651]")  # tanwin on or before its alef, and shadda
_ARABIC_WORD = re.compile("[\u0621-\u0652]+")
_DASHES = dict.fromkeys([*range(0x2010, 0x2016), 0x2212], "-")
_SIGN = re.compile(r"-(?=\s*(?:\d|\w\b))|[^\w\s-]")  # a hyphen only before what it may be taken from
_NO_SYMBOLS = "#%*/\\^&@-"  # for Unicode, but they tell formulas and names apart
_WORD = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]|[^\W_\u3400-\u4dbf\u4e00-\u9fff]+")


@dataclass(frozen=True)
class Found:
    """What a check found in one item, or in a subset.

    Attributes:
        item: The item; the first one of the subset where the finding is about all of it.
        detail: The clause that completes the check's sentence; it may quote the item.
        of_subset: Whether it is about the whole subset.
        other: The id of the other item of a pair; "" without one.
    """

    item: AuditItem
    detail: str
    of_subset: bool = False
    other: str = ""


Look = Callable[[Sequence[AuditItem]], Iterator[Found]]


@dataclass(frozen=True)
class Check:
    """One check: from all items to what it finds.

    Attributes:
        severity: "error": the item cannot be scored fairly; "warning": a person should look; "notice": worth knowing.
        reason: Why it matters, one sentence.
    """

    name: str
    severity: Severity
    reason: str
    look: Look


@dataclass(frozen=True)
class Finding:
    """A finding with the check that made it; `task`, `row` and `hash` are "" for a whole subset."""

    check: str
    severity: Severity
    source: str
    subset: str
    task: str
    row: str
    hash: str
    detail: str
    other: str = ""


def check_each(severity: Severity, reason: str) -> Callable[[Callable[[AuditItem], str]], Check]:
    """A decorator: a function that looks at an item and returns a clause ("" where nothing is wrong) is a check."""

    def checked(look: Callable[[AuditItem], str]) -> Check:
        def all_items(items: Sequence[AuditItem]) -> Iterator[Found]:
            return (Found(item, detail) for item in items if (detail := look(item)))

        return Check(look.__name__, severity, reason, all_items)

    return checked


def check_all(severity: Severity, reason: str) -> Callable[[Look], Check]:
    """A decorator: a function that looks at all items together is a check."""
    return lambda look: Check(look.__name__, severity, reason, look)


def seen_as(text: str) -> str:
    """A text as a reader sees it: in NFC, without direction marks and tatweel, white space as single spaces."""
    return " ".join(comparable(text).replace(TATWEEL, "").split())


@lru_cache(maxsize=200_000)
def words(text: str) -> tuple[str, ...]:
    """The normalised words of a text: NFKC, one case, one form of alef, yeh and teh marbuta, no vowel marks.

    A Chinese character is a word. Digits become those of ASCII.
    """
    decomposed = unicodedata.normalize("NFKD", text.replace(TATWEEL, "").translate(_LETTERS))
    bare = "".join(letter for letter in decomposed if unicodedata.category(letter) != "Mn")
    plain = unicodedata.normalize("NFKC", bare).casefold().translate(_LETTERS)
    digits = "".join(str(unicodedata.digit(letter)) if letter.isdigit() else letter for letter in plain)
    return tuple(_WORD.findall(digits))


@lru_cache(maxsize=200_000)
def signs(text: str) -> tuple[str, ...]:
    """The symbols of a text in order, which `words` leaves out: `C++` and `C#`, 5 + 3 and 5 - 3 have the same words."""
    found = _SIGN.findall(unicodedata.normalize("NFKC", text).translate(_DASHES))
    return tuple(sign for sign in found if sign in _NO_SYMBOLS or unicodedata.category(sign)[0] == "S")


def vowelled(text: str) -> set[str]:
    """The Arabic words of a text that have vowel marks, with these."""
    return {word for word in _ARABIC_WORD.findall(_OPTIONAL.sub("", text)) if _MARK.search(word)}
