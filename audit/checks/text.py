"""How texts are compared by the checks."""

import re
import unicodedata
from functools import lru_cache

from cultureval.prompts.cells import comparable

TATWEEL = "\u0640"
_LETTERS = str.maketrans("أإآٱىةؤئ", "ااااياوي")
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
