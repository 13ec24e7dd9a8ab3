"""Texts of others in pages: visible, of bounded length, and without power over their surroundings."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable

from cultureval.reports.charts import without_middle
from cultureval.runtime.errors import escaped

LONGEST = 300  # letters of a text in a page
LONGEST_NAME = 80  # of a model's name
ESCAPED = 10  # letters of an escaped one, at most


def shown(text: str, longest: int = LONGEST) -> str:
    """A text with control characters and signs of direction as escapes, cut where it is too long."""
    plain = escaped(text.encode("utf-8", "backslashreplace").decode("utf-8"))
    return plain if len(plain) <= longest else f"{plain[: longest - 1]}…"


def shown_apart(texts: Iterable[str]) -> dict[str, str]:
    """Names for pages, of which long ones lack their middle; whole where two would be alike."""
    whole = {text: shown(text, len(text) * ESCAPED + 1) for text in dict.fromkeys(texts)}
    cut = {text: without_middle(name, LONGEST_NAME) for text, name in whole.items()}
    taken = Counter(cut.values())
    return {text: name if taken[name] == 1 else whole[text] for text, name in cut.items()}


def file_name(text: str) -> str:
    """A file's name for a text: ASCII letters and digits of it, and a hash, so that no two texts share one."""
    letters = re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.")[:48]
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    return f"{letters}-{digest}" if letters else digest
