"""Answers that are published in Inspect's viewer beside a leaderboard: links from its scores to them, and back."""

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cultureval.runs.files import date_of, model_folder
from cultureval.runs.loading import Run
from cultureval.runtime.errors import CulturevalError

MARK = "cultureval_viewer.json"  # in a bundle of `cultureval view`: what its logs are of
BACK = "cultureval-back"
STYLE = "position:fixed;right:8px;bottom:8px;z-index:9;padding:4px 10px;border-radius:6px;background:#0b57a4;color:#fff"


@dataclass(frozen=True)
class PublishedAnswers:
    """A bundle of the viewer, as a leaderboard links it.

    Attributes:
        address: Of the bundle, relative to the leaderboard's first page; "": none.
        logs: The model's folder, the run's date and the task with `|k` -> the log's name in the bundle.
    """

    address: str = ""
    logs: Mapping[tuple[str, str, str], str] = field(default_factory=dict)

    def of(self, run: Run, task: str) -> str:
        """The address of a run's answers to a task, named with `|k`; "" where they are not published."""
        file = run.files[task]
        name = self.logs.get((model_folder(file) or run.model, date_of(file), task))
        return f"{self.address.rstrip('/')}/index.html#/logs/{name}/samples" if name else ""


def read_published(site: Path, address: str) -> PublishedAnswers:
    """Reads which answers a bundle has; of one that lies elsewhere only its address is known.

    Args:
        address: Of the bundle, relative to the leaderboard's first page, or a whole one. Only one below is read.

    Raises:
        CulturevalError: The bundle's own list cannot be read.
    """
    file = site / address / MARK
    if not address or "://" in address or {"..", "/"} & {*Path(address).parts} or not file.is_file():
        return PublishedAnswers(address)
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        logs = {(str(model), str(date), str(task)): str(name) for name, (model, date, task) in content["logs"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CulturevalError(f"{file} cannot be read: write the bundle again with `cultureval view`.") from error
    return PublishedAnswers(address, logs)


def gated_answers(site: Path) -> list[Path]:
    """The folders below a folder with answers to gated data, or with logs that no readable list of a bundle names."""
    bundles = {file.parent: file for file in sorted(site.rglob(MARK))}
    logs = sorted({file.parent for file in site.rglob("*.eval")})
    found = [folder for folder in logs if not bundles.keys() & {folder, *folder.parents}]  # such as of a killed command
    for file in bundles.values():
        try:
            gated = json.loads(file.read_text(encoding="utf-8"))["gated"]
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            gated = ["?"]
        found += [file.parent] if gated else []
    return found


def link_back(site: Path, answers: PublishedAnswers, title: str) -> None:
    """Writes a link to the leaderboard into the viewer's page; one of an earlier call is replaced.

    Args:
        answers: A bundle without logs, or elsewhere, stays as it is.
    """
    if not answers.logs:
        return
    page = site / answers.address / "index.html"
    if page.is_symlink() or not page.is_file():
        return
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if f'id="{BACK}"' not in line]
    home = "../" * len(Path(answers.address).parts)
    link = f'<a id="{BACK}" href="{home}index.html" style="{STYLE}">{html.escape(title)}</a>'
    place = next((number for number, line in enumerate(lines) if '<div id="app">' in line), None)
    if place is not None:
        page.write_text("\n".join([*lines[:place], link, *lines[place:]]) + "\n", encoding="utf-8")
