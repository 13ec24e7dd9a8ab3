"""Links from a leaderboard's scores to answers in a published bundle of Inspect's viewer."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cultureval.runs.files import date_of, model_folder
from cultureval.runs.loading import Run
from cultureval.runtime.errors import CulturevalError

MARK = "cultureval_viewer.json"  # the list of logs in a bundle of `cultureval show --web`


class PublishedAnswers(NamedTuple):
    """A bundle of the viewer: its address, relative to the leaderboard's first page, and the names of its logs.

    `logs` maps [the model's folder, the run's date, the task with `|k`] to a name.
    """

    address: str = ""
    logs: Mapping[tuple[str, ...], str] = {}

    def of(self, run: Run, task: str) -> str:
        """The address of a run's answers to a task (with `|k`); "" if they are not published."""
        file = run.files[task]
        name = self.logs.get((model_folder(file) or run.model, date_of(file), task))
        return f"{self.address.rstrip('/')}/index.html#/logs/{name}/samples" if name else ""


def read_published(site: Path, address: str) -> PublishedAnswers:
    """The answers of a bundle below a site; only the address if the bundle is elsewhere."""
    file = site / address / MARK
    if not address or "://" in address or {"..", "/"} & {*Path(address).parts} or not file.is_file():
        return PublishedAnswers(address)
    content = _content(file)
    if content is None:
        raise CulturevalError(f"{file} cannot be read: write the bundle again with `cultureval show --web`.")
    return PublishedAnswers(address, {tuple(of): str(name) for name, of in content["logs"].items()})


def gated_answers(site: Path) -> list[Path]:
    """The folders of a site with answers to gated data, or with logs that no readable list has."""
    bundles = {file.parent: _content(file) for file in sorted(site.rglob(MARK))}
    logs = sorted({file.parent for file in site.rglob("*.eval")})
    found = [folder for folder in logs if not bundles.keys() & {folder, *folder.parents}]  # such as of a killed command
    return found + [folder for folder, content in bundles.items() if content is None or content["gated"]]


def _content(file: Path) -> dict[str, Any] | None:
    """The content of a bundle's list; None if it cannot be read."""
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return content if content["gated"] is not None and content["logs"].items() is not None else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
