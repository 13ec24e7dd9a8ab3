"""The folders that a command writes into, checked before a model is loaded."""

import shutil
import tempfile
from pathlib import Path

from cultureval.runtime.errors import CulturevalError

LEAST_FREE = 64 * 2**20  # bytes; the details of a suite take some tens of MiB


def require_output_folder(folder: str | Path) -> None:
    """As `require_folder`, of a command's output folder; fsspec addresses, which LightEval writes to, pass."""
    if "://" not in str(folder):  # an fsspec address, which LightEval writes to
        require_folder(Path(folder), "--output-dir")


def require_folder(folder: Path, option: str) -> None:
    """Checks that the folder of an option, or the one it will be made in, is writable and has room; leaves no file.

    Raises:
        CulturevalError: Nothing can be written there.
    """
    path = folder.absolute()
    try:
        place = next(place for place in (path, *path.parents) if place.exists())
        tempfile.TemporaryFile(dir=place).close()
        free = shutil.disk_usage(place).free
    except OSError as error:
        raise CulturevalError(
            f"Nothing can be written into {option} {folder} ({error.strerror}): name another folder."
        ) from error
    if free < LEAST_FREE:
        raise CulturevalError(
            f"{option} {folder} has room for {free / 2**20:.0f} MiB only: free some, or name another folder."
        )
