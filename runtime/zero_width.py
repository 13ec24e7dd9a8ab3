"""Characters without a width, which set direction, join or break: a text looks the same without them."""

import re

# For character classes of regular expressions: soft hyphen, Arabic letter mark, Mongolian vowel separator, zero-width
# spaces, joiners and directional marks (U+200B to U+200F), embeddings and overrides (U+202A to U+202E), word joiner,
# invisible operators and isolates (U+2060 to U+2069), byte order mark.
INVISIBLE = "\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"
_MARKS = re.compile(f"[{INVISIBLE}]+")


def without_marks(text: str) -> str:
    """The text without these characters."""
    return _MARKS.sub("", text)
