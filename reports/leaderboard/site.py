"""A leaderboard as a folder that opens without a server: pages, tables, charts and JSON."""

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cultureval.reports.charts import chart_files
from cultureval.reports.leaderboard.assets import file_name, shown
from cultureval.reports.leaderboard.board import Board
from cultureval.reports.leaderboard.exports import FORMATS, as_data, as_json
from cultureval.reports.leaderboard.pages import Pages
from cultureval.reports.leaderboard.publishing import space_card
from cultureval.reports.viewer_links import read_published
from cultureval.runtime.errors import CulturevalError, counted
from cultureval.runtime.saving import require_folder

MARK = ".cultureval-leaderboard"  # a folder with it may be written again
FIRST = "index.html"
PARTS = ("charts", "models", "tables")
NEW = ".cultureval-new"  # in the folder: a site that is being written


def write_site(board: Board, folder: Path, title: str, formats: Sequence[str], logs: str = "", about: str = "") -> Path:
    """Writes the site; returns its first page.

    Args:
        folder: Empty, missing, or an earlier site, which is replaced after the new site is complete.
        formats: File formats of charts; empty: no charts.
        logs: Address of Inspect's viewer of single answers, relative to the first page; "": none.
        about: The text below the heading: the models and data of the scores.

    Raises:
        CulturevalError: The folder has other files, or cannot be written.
    """
    _prepare(folder, logs)
    made = Pages(board, shown(title), formats, read_published(folder, logs), shown(about, 1000))
    new = folder / NEW
    shutil.rmtree(new, ignore_errors=True)  # of a command that was killed
    try:
        files = {**dict(made.all()), "README.md": space_card(title), "leaderboard.json": as_json(board_data(board))}
        for table in (table for section in board.sections for table in section.tables):
            files |= {f"tables/{file_name(table.name)}.{suffix}": make(table) for suffix, make in FORMATS.items()}
        for name, text in files.items():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            (new / name).write_bytes(text.encode("utf-8", "backslashreplace"))
        for chart in (chart for section in board.sections for chart in section.charts):
            chart_files(chart, new / "charts", formats)
        (folder / FIRST).unlink(missing_ok=True)
        for part in PARTS:
            shutil.rmtree(folder / part, ignore_errors=True)
        for path in sorted(new.iterdir(), key=lambda file: file.name == FIRST):  # the first page is the last to come
            path.replace(folder / path.name)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return folder / FIRST


def _prepare(folder: Path, logs: str) -> None:
    """Makes the folder and marks it as a site; refuses a folder with other files."""
    require_folder(folder, "--out")
    if folder.exists() and not folder.is_dir():
        raise CulturevalError(f"--out {folder} is a file: name a folder.")
    expected = (MARK, *Path(logs).parts[:1])  # the viewer's bundle may be there before the first page
    is_foreign = folder.is_dir() and any(path.name not in expected for path in folder.iterdir())
    if is_foreign and not (folder / MARK).is_file():
        raise CulturevalError(f"--out {folder} has other files: name an empty folder.")
    if links := [part for part in (*PARTS, NEW) if (folder / part).is_symlink()]:  # its target would be deleted
        raise CulturevalError(f"--out {folder}: {links[0]} is a link: remove it, or name another folder.")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()


def site_summary(board: Board, page: Path) -> str:
    """The printed summary: numbers of models and runs, runs with other settings, and the page's path."""
    models = len({entry.run.model for entry in board.entries})
    lines = [f"{counted(models, 'model')}, {counted(len(board.entries), 'run')}"]
    lines += [file.sentence for file in board.left_out]
    for table in (table for section in board.sections for table in section.tables):
        if different := [row for row in table.rows if row.differs]:
            more = f" and {counted(len(different) - 1, 'more run')}" if len(different) > 1 else ""
            lines.append(f"{table.name}: other settings: {different[0].name}{more}: {different[0].differs[0]}")
    return "\n".join([*lines, f"Page: {shlex.quote(str(page.resolve()))}"])


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
                "warnings": [warning.sentence for warning in entry.warnings],
            }
            for entry in board.entries
        ],
        "tables": [as_data(table) for section in board.sections for table in section.tables],
        "left_out": [{"file": str(file.file), "reason": file.reason} for file in board.left_out],
    }
