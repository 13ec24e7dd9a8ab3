"""The one folder of the user's disk where cultureval keeps what it may need again."""

import os
from pathlib import Path


def user_cache() -> Path:
    """Return the folder of CULTUREVAL_CACHE, or `~/.cache/cultureval`; it is created by whoever writes into it.

    Returns:
        An absolute path with `~` expanded.
    """
    return Path(os.environ.get("CULTUREVAL_CACHE") or "~/.cache/cultureval").expanduser().absolute()
