"""Inspect's viewer of logs: opened on this machine, or as a static folder for publishing."""

import contextlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cultureval.reports.viewer.logs import TaskLog
from cultureval.reports.viewer_links import MARK
from cultureval.runtime.errors import CulturevalError


def check_bundle(folder: Path) -> None:
    """Checks that a bundle may be written to a folder, all of which it replaces.

    Raises:
        CulturevalError: It is a file, or holds what is no bundle of ours.
    """
    if folder.exists() and not folder.is_dir():
        raise CulturevalError(f"--bundle {folder} is a file: name a folder.")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise CulturevalError(f"--bundle {folder} holds files of others: name an empty folder.")


def write_bundle(logs: Sequence[TaskLog], folder: Path, gated: bool = False) -> list[TaskLog]:
    """Writes the logs with Inspect's viewer as a static site; it needs a web server, any one.

    Args:
        folder: A bundle in it is replaced.
        gated: Whether tasks are in it whose data may not be passed on.

    Returns:
        The logs that were left out, since their data are gated.

    Raises:
        CulturevalError: As of `check_bundle`, or nothing would be in it.
    """
    from inspect_ai.log import bundle_log_dir

    check_bundle(folder)
    kept = [log for log in logs if gated or not log.gated]
    if not kept:
        raise CulturevalError(
            "All of these tasks have gated data, whose texts may not be published; --gated makes a bundle with them."
        )
    with gathered(kept) as place, contextlib.redirect_stdout(io.StringIO()):
        # Absolute, since Inspect takes hf/ORG/NAME for a Space to upload to.
        bundle_log_dir(str(place), str(folder.absolute()), overwrite=True)
    content = {
        "made_by": "cultureval view",
        "logs": {log.name: [log.model, log.task] for log in kept},
        "gated": [log.name for log in kept if log.gated],
        "dates": {log.name: log.dates for log in kept},
    }
    (folder / MARK).write_text(json.dumps(content), encoding="utf-8")
    return [log for log in logs if log not in kept]


@contextmanager
def gathered(logs: Sequence[TaskLog]) -> Iterator[Path]:
    """A temporary folder with the logs under their names, so that those of several output folders are together."""
    with tempfile.TemporaryDirectory(prefix="cultureval-view-") as folder:
        for log in logs:
            place = Path(folder, log.name)
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(log.file, place)
            except OSError:  # another file system
                shutil.copyfile(log.file, place)
        yield Path(folder)


def serve(logs: Sequence[TaskLog], port: int) -> None:
    """Runs Inspect's viewer on this machine until it is interrupted.

    Args:
        port: On 127.0.0.1.

    Raises:
        CulturevalError: The viewer's server does not start.
    """
    from inspect_ai import view

    with gathered(logs) as folder:
        try:
            view(log_dir=str(folder), port=port)
        except BaseExceptionGroup as error:  # anyio's, around our error of SIGTERM and SIGHUP
            interruptions = error.subgroup(KeyboardInterrupt)
            while isinstance(interruptions, BaseExceptionGroup):
                interruptions = interruptions.exceptions[0]
            if not interruptions and error.subgroup(SystemExit):  # the server's, which has logged its error
                raise CulturevalError(
                    f"The viewer did not start on port {port}: where another program has it, name another by --port."
                ) from None
            raise interruptions or error from None
