"""The one folder of the user's disk where cultureval keeps what it may need again."""

import os
import tempfile
from pathlib import Path

from cultureval.runtime.settings import current_settings


def user_cache() -> Path:
    """Return the folder of CULTUREVAL_CACHE, or `~/.cache/cultureval`; it is created by whoever writes into it.

    Returns:
        An absolute path with `~` expanded.
    """
    return current_settings().cache or Path("~/.cache/cultureval").expanduser().absolute()


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that other processes see whole or not at all; its folder is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(scratch, path)
    except BaseException:
        os.unlink(scratch)
        raise
