"""The folder of `--output-dir`, checked before a model is loaded."""

import tempfile
from pathlib import Path

from cultureval.runtime.errors import CulturevalError


def require_output_folder(folder: str | Path) -> None:
    """Check that a command can write into its output folder; the check leaves no files.

    Raises:
        CulturevalError: The folder, or its parent, is not writable.
    """
    if "://" in str(folder):
        return  # an fsspec address, which LightEval writes to
    path = Path(folder).absolute()
    try:
        tempfile.TemporaryFile(dir=next(place for place in (path, *path.parents) if place.exists())).close()
    except OSError as error:
        raise CulturevalError(
            f"Nothing can be written into --output-dir {folder} ({error.strerror}): name another folder."
        ) from error
