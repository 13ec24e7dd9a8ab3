"""What a judge's reply quotes is not what the judge gives: a refusal may repeat a text that holds ratings."""

import re
import unicodedata
from collections.abc import Callable

_MARKED = re.compile(r"<<<text\s+([0-9a-f]{6,})\b.*?(?:\1\s+text>>>|\Z)", re.DOTALL)
_BLOCK = re.compile(r"<blockquote>.*?(?:</blockquote>|\Z)", re.DOTALL | re.IGNORECASE)
_QUOTED_LINE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|‘[^’]*’|(?<!\w)'[^']*'(?!\w)")

_PASSAGES = (_MARKED, _BLOCK, _QUOTED_LINE)
_PAIRS = {'""', "“”", "„“", "„”", "«»", "‘’", "''", "「」", "『』"}


def without_quotations(text: str, is_rating: Callable[[str], bool]) -> tuple[str, bool]:
    """A reply without the passages that are marked as quotations, and whether there were any.

    Args:
        text: The reply, with newlines as its only line breaks.
        is_rating: Whether a passage in quotation marks holds a rating; others are kept, such as the name of a key.
    """
    kept = _MARKED.sub("\n", text)
    kept = _QUOTED_LINE.sub("", _BLOCK.sub("\n", kept))
    kept = _QUOTED.sub(lambda match: "\n" if is_rating(match.group()) else match.group(), kept)
    return kept, kept != text


def holding_quotation(text: str, start: int, stop: int) -> bool:
    """Whether the passage from `start` to `stop` stands in a marked quotation, or itself in quotation marks."""
    marked = any(match.start() < start < match.end() for one in _PASSAGES for match in one.finditer(text))
    return marked or (text[:start].rstrip()[-1:] + text[stop:].lstrip()[:1]) in _PAIRS


def letters_and_digits(text: str) -> str:
    """A text's letters and digits alone, in lower case: for finding it again in another dress."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text))).casefold()
