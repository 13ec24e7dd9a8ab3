"""Tables and texts in Markdown."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain, repeat

RULES = {"l": "---", "r": "---:"}
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_MARKUP = re.compile(r"[\\`*_{}\[\]<>()#!|&~$]")


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], align: str = "l") -> str:
    """A table of cells in Markdown (`escaped_markdown`); "l" or "r" aligns a column, the last all further ones."""
    rules = [RULES[letter] for letter, _ in zip(chain(align, repeat(align[-1])), header, strict=False)]
    first, *rest = (f"| {' | '.join(line)} |" for line in (header, *rows))
    return "\n".join([first, f"|{'|'.join(rules)}|", *rest])


def escaped_markdown(text: str) -> str:
    """A text in which Markdown and HTML have no meaning, on one line, without characters that turn its direction."""
    return _MARKUP.sub(r"\\\g<0>", without_controls(text))


def without_controls(text: str) -> str:
    """A text with spaces for control characters, line breaks and characters that turn the direction of what follows."""
    return _CONTROLS.sub(" ", text)
