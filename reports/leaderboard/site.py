"""A leaderboard as a folder of files that opens without a server: pages, tables, charts, and all of it as JSON."""

import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cultureval.reports.charts import chart_files
from cultureval.reports.leaderboard.assets import file_name, shown
from cultureval.reports.leaderboard.board import Board
from cultureval.reports.leaderboard.exports import FORMATS, as_data, as_json
from cultureval.reports.leaderboard.pages import Pages
from cultureval.reports.leaderboard.publishing import space_card
from cultureval.reports.viewer_links import link_back, read_published
from cultureval.runtime.errors import CulturevalError, counted
from cultureval.runtime.saving import require_folder

MARK = ".cultureval-leaderboard"  # a folder with it may be written again
FIRST, DATA = "index.html", "leaderboard.json"
PARTS = ("charts", "models", "tables")
NEW = ".cultureval-new"  # in the folder: a site that is being written


@dataclass(frozen=True)
class Site:
    """A site on the disk: its first page, and how many pages, tables and charts it has."""

    index: Path
    pages: int
    tables: int
    charts: int


def write_site(board: Board, folder: Path, title: str, formats: Sequence[str], logs: str = "", about: str = "") -> Site:
    """Writes the site.

    Args:
        folder: Empty, missing, or of an earlier site, which is replaced when all of the new one is written.
        formats: Of the charts' files; empty: none, and the page has no charts.
        logs: Where Inspect's viewer of single answers is published, an address relative to the first page; "": nowhere.
        about: What stands below the heading: of which models and data the scores are.

    Raises:
        CulturevalError: The folder holds something else, or cannot be written.
    """
    _prepare(folder, logs)
    answers = read_published(folder, logs)
    made = Pages(board, shown(title), formats, answers, shown(about, 1000))
    new = folder / NEW
    shutil.rmtree(new, ignore_errors=True)  # of a command that was killed
    try:
        files = {name: text for name, text in made.all()}
        pages = len(files)
        tables = [table for section in board.sections for table in section.tables]
        for table in tables:
            stem = f"tables/{file_name(table.name)}"
            files |= {f"{stem}.{suffix}": make(table) for suffix, make in FORMATS.items()}
        files |= {"README.md": space_card(title), DATA: as_json(board_data(board))}
        for name, text in files.items():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            (new / name).write_bytes(text.encode("utf-8", "backslashreplace"))
        for chart in made.charts():
            chart_files(chart, new / "charts", formats)
        _replace(folder, new)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    link_back(folder, answers, shown(title, 60))
    return Site(folder / FIRST, pages, len(tables), len(made.charts()))


def _prepare(folder: Path, logs: str) -> None:
    require_folder(folder, "--out")
    if folder.exists() and not folder.is_dir():
        raise CulturevalError(f"--out {folder} is a file: name a folder.")
    own = (MARK, *Path(logs).parts[:1])  # the viewer's bundle may be there before the first page
    others = folder.is_dir() and any(one.name not in own for one in folder.iterdir())
    if others and not (folder / MARK).is_file():
        raise CulturevalError(f"--out {folder} holds files that are no leaderboard's: name an empty folder.")
    odd = [part for part in (*PARTS, NEW) if (folder / part).is_symlink() or (folder / part).is_file()]
    if odd:  # what lies behind a link would be deleted
        what = f"{', '.join(odd)} is a link or a file"
        raise CulturevalError(f"--out {folder}: {what}: remove it, or name another folder.")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()


def _replace(folder: Path, new: Path) -> None:
    """Puts a new site in the place of the earlier one; the first page is the last to come."""
    (folder / FIRST).unlink(missing_ok=True)
    for part in PARTS:
        shutil.rmtree(folder / part, ignore_errors=True)
    for one in sorted(new.iterdir(), key=lambda file: file.name == FIRST):
        one.replace(folder / one.name)


def site_summary(board: Board, site: Site) -> str:
    """What a person reads at the end: how much there is, and where the page is."""
    models = len({entry.run.model for entry in board.entries})
    parts = [
        counted(number, what)
        for number, what in (
            (models, "model"),
            (len(board.entries), "run"),
            (site.tables, "table"),
            (site.charts, "chart"),
            (site.pages, "page"),
        )
    ]
    lines = [", ".join(parts), *(one.sentence for one in board.left_out)]
    for section in board.sections:
        for table in section.tables:
            if apart := [row for row in table.rows if row.differs]:
                others = f" and {counted(len(apart) - 1, 'more run')}" if len(apart) > 1 else ""
                lines.append(f"{table.name}: other settings: {apart[0].name}{others}: {apart[0].differs[0]}")
    return "\n".join([*lines, f"Page: {shlex.quote(str(site.index.resolve()))}"])


def board_data(board: Board) -> dict[str, Any]:
    """The leaderboard as data for JSON: its tables, runs, and files that were left out."""
    return {
        "runs": [
            {
                "name": entry.run.name,
                "model": entry.run.model,
                "date": entry.run.date,
                "billions": entry.billions,
                "files": sorted({str(file) for file in entry.run.files.values()}),
                "warnings": [one.sentence for one in entry.warnings],
            }
            for entry in board.entries
        ],
        "tables": [as_data(table) for section in board.sections for table in section.tables],
        "left_out": [{"file": str(one.file), "reason": one.reason} for one in board.left_out],
    }
