"""Writes a leaderboard as a folder of pages, tables and charts that needs no server and no network."""

import fcntl
import json
import shlex
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cultureval.reports.charts import chart_files
from cultureval.reports.leaderboard.assets import shown, write_assets
from cultureval.reports.leaderboard.board import Board
from cultureval.reports.leaderboard.exports import FORMATS, as_data, as_json
from cultureval.reports.leaderboard.pages import Pages
from cultureval.reports.leaderboard.publishing import space_card
from cultureval.reports.viewer_links import link_back, read_published
from cultureval.runtime.errors import CulturevalError, counted, shown_names
from cultureval.runtime.saving import require_folder

MARK = ".cultureval-leaderboard"  # a folder with it may be written again
MOST_GROUPS = 8  # that the last message names
FIRST = "index.html"
DATA = "leaderboard.json"
PARTS = ("assets", "charts", "models", "tables", "tasks")
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
    pages = Pages(board, shown(title), formats, answers, shown(about, 1000))
    count, tables = 0, 0
    with _replacing(folder) as place:
        write_assets(place / "assets", charts=bool(formats))
        for name, text in pages.all():
            _write(place / name, text)
            count += 1
        for table, name in pages.tables():
            for suffix, make in FORMATS.items():
                _write(place / "tables" / f"{name}.{suffix}", make(table))
            tables += 1
        charts = [chart for section in board.sections for chart in pages.charts_of(section)]
        for chart in charts:
            chart_files(chart, place / "charts", formats)
        _write(place / "README.md", space_card(title))
        _write(place / DATA, as_json(board_data(board)))
        link_back(folder, answers, shown(title, 60))
    return Site(folder / FIRST, count, tables, len(charts))


def site_summary(board: Board, site: Site) -> str:
    """What a person reads at the end: how much there is, what is not comparable, where the page is."""
    parts = [
        counted(len({one.identity for section in board.sections for one in section.group.entries}), "model"),
        counted(len(board.runs), "results file"),
        counted(site.tables, "table"),
        counted(site.charts, "chart"),
        counted(site.pages, "page"),
    ]
    others = [section for section in board.sections if section.group.differences]
    lines = [", ".join(parts), *(one.sentence for one in board.left_out)]
    for section in others[:MOST_GROUPS]:
        labels = shown_names([entry.label for entry in section.group.entries], 3)
        lines.append(f"{section.division.suite}: {labels}, a group apart: {section.group.differences[0]}")
    if len(others) > MOST_GROUPS:
        lines.append(
            f"and {counted(len(others) - MOST_GROUPS, 'more group')}, with reasons, on the page (--allow FIELDS)"
        )
    return "\n".join([*lines, f"Page: {shlex.quote(str(site.index.resolve()))}"])


def board_data(board: Board) -> dict[str, Any]:
    """The leaderboard as data for JSON: every suite's groups with their tables, and the models."""
    return {
        "models": {label: facts.told() for label, facts in board.models.items()},
        "left_out": [{"file": str(one.file), "reason": one.reason} for one in board.left_out],
        "sections": [
            {
                "suite": section.division.suite,
                "shots": section.division.shots,
                "entries": [
                    {
                        "label": one.label,
                        "model": one.model,
                        "files": sorted({str(run.file) for run in one.sources.values()}),
                    }
                    for one in section.group.entries
                ],
                "differs_from_first_group": list(section.group.differences),
                "tables": [as_data(table) for table in section.tables],
            }
            for section in board.sections
        ],
    }


def _prepare(folder: Path, logs: str) -> None:
    own = (MARK, *Path(logs).parts[:1])  # the viewer's bundle may be there before the first page
    require_folder(folder, "--out")
    if folder.exists() and not folder.is_dir():
        raise CulturevalError(f"--out {folder} is a file: name a folder.")
    others = folder.is_dir() and any(one.name not in own for one in folder.iterdir())
    if others and not (folder / MARK).is_file():
        raise CulturevalError(f"--out {folder} holds files that are no leaderboard's: name an empty folder.")
    odd = [part for part in (*PARTS, NEW) if (folder / part).is_symlink() or (folder / part).is_file()]
    if odd:  # what lies behind a link would be deleted
        what = f"{', '.join(odd)} is a link or a file"
        raise CulturevalError(f"--out {folder}: {what}: remove it, or name another folder.")
    for part in PARTS:
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text(json.dumps({"made_by": "cultureval leaderboard"}), encoding="utf-8")


@contextmanager
def _replacing(folder: Path) -> Iterator[Path]:
    """A place for a site, which replaces the earlier one at the end; where writing it fails, the earlier one stays.

    Raises:
        CulturevalError: Another command is writing a site there, or a folder stands where a page belongs.
    """
    place = folder / NEW
    with (folder / MARK).open() as mark:
        try:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CulturevalError(f"--out {folder}: another command is writing a leaderboard there.") from None
        except OSError:  # a file system without locks
            pass
        shutil.rmtree(place, ignore_errors=True)  # of a command that was killed
        try:
            for part in PARTS:
                (place / part).mkdir(parents=True)
            yield place
            _replace(folder, place)
        finally:
            shutil.rmtree(place, ignore_errors=True)


def _replace(folder: Path, place: Path) -> None:
    """Puts a new site in the place of the earlier one."""
    written = [file.relative_to(place) for file in place.rglob("*") if file.is_file()]
    folders = [str(name) for name in written if (folder / name).is_dir() and not (folder / name).is_symlink()]
    if folders:
        raise CulturevalError(
            f"--out {folder}: {shown_names(folders, 3)} is a folder, where a page belongs: remove it."
        )
    for name in (FIRST, DATA):
        (folder / name).unlink(missing_ok=True)
    for part in PARTS:
        for file in (folder / part).iterdir():  # of models that are gone
            if file.is_symlink() or file.is_file():
                file.unlink()
    for name in sorted(written, key=lambda name: name == Path(FIRST)):  # last: a site that was cut short has none
        (place / name).replace(folder / name)


def _write(file: Path, text: str) -> None:
    file.write_bytes(text.encode("utf-8", "backslashreplace"))
