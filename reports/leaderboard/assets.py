"""Texts of others on pages and in names of files: visible, of bounded length, without power over their surroundings."""

import hashlib
import re

from cultureval.runtime.errors import escaped

LONGEST = 300  # letters of a text in a page


def shown(text: str, longest: int = LONGEST) -> str:
    """A text with control characters and signs of direction as escapes, cut where it is too long."""
    plain = escaped(text.encode("utf-8", "backslashreplace").decode("utf-8"))
    return plain if len(plain) <= longest else f"{plain[: longest - 1]}…"


def file_name(text: str) -> str:
    """A file's name for a text: ASCII letters and digits of it, and a hash, so that no two texts share one."""
    letters = re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.")[:48]
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    return f"{letters}-{digest}" if letters else digest
