"""The folder of `--output-dir`, tried before a model is loaded."""

import tempfile
from pathlib import Path

from cultureval.runtime.errors import CulturevalError


def require_output_folder(folder: str | Path) -> None:
    """See to it that a command can write its folder when its work is done; nothing is left behind.

    Raises:
        CulturevalError: Nothing can be written there, or where the folder would be made.
    """
    if "://" in str(folder):
        return  # a place of fsspec, which LightEval writes to
    path = Path(folder).absolute()
    try:
        tempfile.TemporaryFile(dir=next(place for place in (path, *path.parents) if place.exists())).close()
    except OSError as error:
        raise CulturevalError(
            f"Nothing can be written into --output-dir {folder} ({error.strerror}): name another folder."
        ) from error
