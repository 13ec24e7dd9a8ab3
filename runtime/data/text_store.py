"""Lists of texts below the user cache, named by their content: what rows of one data set share.

A metric sees the rows that are scored, maybe a part of the data. What it needs of all of them (the reference captions
of a language variety) is kept here once, and each row names it.
"""

import hashlib
import json
import re
from collections.abc import Sequence

from cultureval.runtime.data.user_cache import user_cache, write_whole
from cultureval.runtime.errors import CulturevalError

_NAME = re.compile(r"[0-9a-f]{64}\.json")


def store_texts(texts: Sequence[str]) -> str:
    """Keep a list of texts; gives the name to give to `stored_texts`, the SHA-256 of its content and a suffix."""
    content = json.dumps(list(texts), ensure_ascii=False).encode("utf-8", "surrogatepass")
    path = user_cache() / "texts" / f"{hashlib.sha256(content).hexdigest()}.json"
    if not path.is_file():
        write_whole(path, content)
    return path.name


def stored_texts(name: str) -> list[str]:
    """The texts of a stored list.

    Raises:
        CulturevalError: The name is none of `store_texts`, or its file is gone or damaged.
    """
    path = user_cache() / "texts" / name
    if not _NAME.fullmatch(name):
        raise CulturevalError(f"{name!r} does not name a stored list of texts.")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CulturevalError(f"The texts {path} are gone; run the same command again to make them anew.") from error
    if hashlib.sha256(content).hexdigest() != path.stem:
        raise CulturevalError(f"The texts {path} are damaged; delete the file and run the same command again.")
    return json.loads(content.decode("utf-8", "surrogatepass"))
