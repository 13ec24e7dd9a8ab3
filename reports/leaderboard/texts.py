"""Texts of others in pages: visible, of bounded length, and without power over their surroundings."""

import hashlib
import re

from cultureval.runtime.errors import escaped

LONGEST = 300  # letters of a name in a page
_DIRECTIONS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufeff]")


def shown(text: str, longest: int = LONGEST) -> str:
    """A text with control characters and signs of direction as escapes, cut where it is too long.

    A name's own isolates, which terminals and figures need, are taken off: pages isolate names by markup.
    """
    plain = text.removeprefix("\u2068").removesuffix("\u2069").encode("utf-8", "backslashreplace").decode("utf-8")
    plain = _DIRECTIONS.sub(lambda found: f"\\u{ord(found[0]):04x}", escaped(plain))
    return plain if len(plain) <= longest else f"{plain[: longest - 1]}…"


def file_name(text: str) -> str:
    """A file's name for a text: ASCII letters and digits of it, and a hash, so that no two texts share one."""
    letters = re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.")[:48]
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    return f"{letters}-{digest}" if letters else digest
