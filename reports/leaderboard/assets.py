"""Makes foreign texts safe for pages and file names: escaped and of bounded length."""

import hashlib
import re

from cultureval.runtime.errors import escaped

LONGEST = 300  # letters of a text in a page


def shown(text: str, longest: int = LONGEST) -> str:
    """A text with control and direction characters as escapes, cut to `longest` letters."""
    plain = escaped(text.encode("utf-8", "backslashreplace").decode("utf-8"))
    return plain if len(plain) <= longest else f"{plain[: longest - 1]}…"


def file_name(text: str) -> str:
    """A file name from a text's ASCII letters and digits and a hash, unique for each text."""
    letters = re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.")[:48]
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    return f"{letters}-{digest}" if letters else digest
