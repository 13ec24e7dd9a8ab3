"""How texts are compared by the checks."""

import re
import unicodedata
from functools import lru_cache

from cultureval.prompts.cells import comparable

TATWEEL = "\u0640"
_LETTERS = str.maketrans("أإآٱىةؤئ", "ااااياوي")
_MARK = re.compile("[\u064c-\u0650\u0652]")
_OPTIONAL = re.compile("[\u064b\u0651]")  # tanwin on or before its alef, and shadda
_ARABIC_WORD = re.compile("[\u0621-\u0652]+")
_DASHES = dict.fromkeys([*range(0x2010, 0x2016), 0x2212], "-")
_SIGN = re.compile(r"-(?=\s*(?:\d|\w\b))|[^\w\s-]")  # a hyphen only before what it may be taken from
_NO_SYMBOLS = "#%*/\\^&@-"  # for Unicode, but they tell formulas and names apart
_WORD = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]|[^\W_\u3400-\u4dbf\u4e00-\u9fff]+")


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
