"""The folder in which cultureval caches files for later runs."""

import json
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cultureval.runtime.settings import current_settings


def user_cache() -> Path:
    """The folder of CULTUREVAL_CACHE, or `~/.cache/cultureval`, absolute; it is created on the first write."""
    return current_settings().cache or Path("~/.cache/cultureval").expanduser().absolute()


def write_json_lines(path: Path, records: Iterable[Any]) -> None:
    """Write records as JSON, one a line, as `write_atomically` does; Arabic and Chinese stand as they are."""
    lines = (json.dumps(one, ensure_ascii=False) + "\n" for one in records)
    write_atomically(path, "".join(lines).encode("utf-8", "backslashreplace"))


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file atomically: other processes never see half of it; its folder is created if needed.

    Raises:
        OSError: It cannot be written; the error holds a file's name, also where the disk is full.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f"{secrets.token_hex(8)}.part")
    handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)  # readable as the umask has it
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(scratch, path)
    except BaseException as error:
        os.unlink(scratch)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)
        raise
