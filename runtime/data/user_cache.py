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
    """Writes records as JSON lines, atomically; Arabic and Chinese letters are not escaped."""
    lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    write_atomically(path, "".join(lines).encode("utf-8", "backslashreplace"))


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a file atomically: other processes never see half of it. Creates its folder.

    Raises:
        OSError: The file cannot be written; the error has its name, also on a full disk.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f"{secrets.token_hex(8)}.part")
    handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)  # permissions as of the umask
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(scratch, path)
    except BaseException as error:
        os.unlink(scratch)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)
        raise
