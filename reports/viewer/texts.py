"""Texts of others in Inspect's viewer: shown letter by letter, never as markup, Arabic in its order.

The viewer has two ways. In logs that it is told not to trust it shows plain text: no markup, no links, directions line
by line, invisible letters made visible, and no images. In all others it shows Markdown with links and formulas, and
images. Logs with images therefore have their texts escaped, and right-to-left lines isolated.
"""

import re
import unicodedata

from cultureval.runtime.errors import escaped

LONGEST = 100_000  # letters of a text; the whole is in the details
LINE = 200  # of a text in a table
_MARKUP = re.compile(r"[\\`*_{}\[\]()#+\-.!|~$:=^]")  # the viewer itself writes & < > and quotes as entities
_ISOLATE, _END = "\u2067", "\u2069"


def plain_text(text: str, longest: int = LONGEST) -> str:
    """A text that any JSON reader takes: broken letters and control characters as escapes, cut where it is too long."""
    cut = text[:longest].encode("utf-8", "backslashreplace").decode("utf-8")
    shown = escaped(cut, keep="\n\t\u200c\u200d")  # joiners belong to words, and to emoji
    return shown if len(text) <= longest else f"{shown}\n… {len(text) - longest:,} more letters: cultureval show"


def markdown_text(text: str) -> str:
    """A `plain_text` as Markdown that shows it as it is, with indentation, right-to-left lines between isolates."""
    return "\n".join(_line(line) for line in plain_text(text).split("\n"))


def one_line(text: str) -> str:
    """The beginning of a text in one line, for tables."""
    return plain_text(" ".join(text[: 2 * LINE].split()), LINE).partition("\n")[0]


def _line(line: str) -> str:
    rest = line.lstrip(" \t")
    indent = line[: len(line) - len(rest)].replace("\t", "    ").replace(" ", "\u00a0")
    # A > at the beginning is a quotation, which a no-break space in front prevents.
    quoted = "\u00a0" if rest.startswith(">") and not indent else ""
    text = indent + quoted + _MARKUP.sub(r"\\\g<0>", rest)
    return f"{_ISOLATE}{text}{_END}" if is_right_to_left(line) else text


def is_right_to_left(line: str) -> bool:
    """Whether the first letter of a line with a direction is written from right to left."""
    kinds = (unicodedata.bidirectional(letter) for letter in line)
    return next((kind in ("R", "AL") for kind in kinds if kind in ("L", "R", "AL")), False)
