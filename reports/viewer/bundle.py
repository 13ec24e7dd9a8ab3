"""Inspect's log viewer: served on this machine, or as a static folder for publishing."""

import contextlib
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cultureval.reports.viewer.logs import TaskLog, write_logs
from cultureval.reports.viewer_links import MARK
from cultureval.runtime.errors import CulturevalError

# Files of Inspect that we have nothing for: the viewer looks for them, and its console shows an error for each 404.
NO_FILES = {"eval-set.json": "null", "flow.yaml": ""}


def write_bundle(paths: Sequence[Path], folder: Path, task: str | None = None, gated: bool = False) -> list[TaskLog]:
    """Writes logs with Inspect's viewer as a static site for any web server.

    Args:
        paths: As of `write_logs`, like `task`.
        folder: Empty, missing, or an earlier bundle, which is replaced.
        gated: Whether tasks with gated data are included.

    Returns:
        The logs of all tasks; logs of gated data may be not `written`.

    Raises:
        CulturevalError: The folder has other files, or the bundle would be empty.
    """
    from inspect_ai.log import bundle_log_dir

    if folder.is_file() or (folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file()):
        raise CulturevalError(f"--bundle {folder} has other files: name an empty folder.")
    with tempfile.TemporaryDirectory(prefix="cultureval-view-") as place, contextlib.redirect_stdout(io.StringIO()):
        logs = write_logs(paths, Path(place), task, gated)
        kept = [log for log in logs if log.written]
        if not kept:
            raise CulturevalError("All of these tasks have gated data, which may not be published; --gated has them.")
        # Absolute, since Inspect takes hf/ORG/NAME for a Space to upload to.
        bundle_log_dir(place, str(folder.absolute()), overwrite=True)
    for subfolder in [folder / "logs", *(one for one in (folder / "logs").iterdir() if one.is_dir())]:
        for name, text in NO_FILES.items():
            (subfolder / name).write_text(text, encoding="utf-8")
    names = {log.name: [log.model, log.date, log.task] for log in kept}
    content = {"made_by": "cultureval show --web", "logs": names, "gated": [log.name for log in kept if log.gated]}
    (folder / MARK).write_text(json.dumps(content), encoding="utf-8")
    return logs


def serve(folder: Path, port: int) -> None:
    """Serves a folder of logs with Inspect's viewer on 127.0.0.1 until it is interrupted.

    Raises:
        CulturevalError: The viewer's server does not start.
    """
    command = [sys.executable, "-m", "inspect_ai", "view", "start", f"--log-dir={folder}", f"--port={port}"]
    if subprocess.run(command).returncode:
        raise CulturevalError(f"The viewer did not start on port {port}. If another program uses it, try --port.")
