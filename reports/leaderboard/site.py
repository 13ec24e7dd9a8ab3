"""Writes a leaderboard as a folder of pages, tables and charts that needs no server and no network."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cultureval.reports.charts import chart_files
from cultureval.reports.leaderboard.assets import write_assets
from cultureval.reports.leaderboard.board import Board
from cultureval.reports.leaderboard.exports import FORMATS, as_data, as_json
from cultureval.reports.leaderboard.pages import Pages
from cultureval.reports.leaderboard.publishing import space_card
from cultureval.reports.leaderboard.texts import shown
from cultureval.reports.published_answers import link_back, read_published
from cultureval.runtime.errors import CulturevalError, counted, shown_names
from cultureval.runtime.output_folder import require_folder

MARK = ".cultureval-leaderboard"  # a folder with it may be written again
MOST_GROUPS = 8  # that the last message names
FIRST = "index.html"
PARTS = ("assets", "charts", "models", "tables", "tasks")


@dataclass(frozen=True)
class Site:
    """A site on the disk.

    Attributes:
        index: Its first page.
        pages: Number of pages.
        tables: Number of tables.
        charts: Number of charts.
    """

    index: Path
    pages: int
    tables: int
    charts: int


def write_site(board: Board, folder: Path, title: str, formats: Sequence[str], logs: str = "") -> Site:
    """Writes the site.

    Args:
        board: The leaderboard.
        folder: Empty, missing, or of an earlier site, which is replaced.
        title: Heading of the first page.
        formats: Of the charts' files; empty: none, and the page has no charts.
        logs: Where Inspect's viewer of single answers is published, an address relative to the first page; "": nowhere.

    Raises:
        CulturevalError: The folder holds something else, or cannot be written.
    """
    _prepare(folder, logs)
    write_assets(folder / "assets", charts=bool(formats))
    answers = read_published(folder, logs)
    pages = Pages(board, shown(title), formats, answers)
    count, first = 0, ""
    for name, text in pages.all():
        if name == FIRST:
            first = text
        else:
            _write(folder / name, text)
        count += 1
    tables = 0
    for _, table, name in pages.tables():
        for suffix, make in FORMATS.items():
            _write(folder / "tables" / f"{name}.{suffix}", make(table))
        tables += 1
    charts = [chart for section in board.sections for chart in pages.charts_of(section)] + pages.subset_charts()
    for chart in charts:
        chart_files(chart, folder / "charts", formats)
    link_back(folder, answers, shown(title, 60))
    _write(folder / "README.md", space_card(title))
    _write(folder / "leaderboard.json", as_json(board_data(board)))
    _write(folder / FIRST, first)  # last: a site that was cut short has none
    return Site(folder / FIRST, count, tables, len(charts))


def site_summary(board: Board, site: Site) -> str:
    """What a person reads at the end: how much there is, what is not comparable, where the page is."""
    parts = [
        counted(len({one.model for section in board.sections for one in section.group.entries}), "model"),
        counted(len(board.runs), "results file"),
        counted(site.tables, "table"),
        counted(site.charts, "chart"),
        counted(site.pages, "page"),
    ]
    others = [section for section in board.sections if section.group.differences]
    lines = [", ".join(parts)]
    for section in others[:MOST_GROUPS]:
        labels = shown_names([entry.label for entry in section.group.entries], 3)
        lines.append(f"{section.division.suite}: {labels} in a group of their own: {section.group.differences[0]}")
    if len(others) > MOST_GROUPS:
        lines.append(
            f"and {counted(len(others) - MOST_GROUPS, 'more group')}, with reasons, on the page (--allow FIELDS)"
        )
    return "\n".join([*lines, f"Page: {site.index.resolve()}"])


def board_data(board: Board) -> dict[str, Any]:
    """The leaderboard as data for JSON: every suite's groups with their tables, and the models."""
    return {
        "models": {
            label: {"family": facts.family, "billions": facts.billions, "licence": facts.licence}
            for label, facts in board.models.items()
        },
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
    links = [part for part in PARTS if (folder / part).is_symlink()]
    if links:  # what lies behind one would be deleted
        raise CulturevalError(f"--out {folder}: {', '.join(links)} is a link: remove it, or name another folder.")
    for part in PARTS:
        (folder / part).mkdir(parents=True, exist_ok=True)
        for file in (folder / part).iterdir():  # of models that are gone
            if file.is_symlink() or file.is_file():
                file.unlink()
    for name in (FIRST, "leaderboard.json"):
        (folder / name).unlink(missing_ok=True)
    (folder / MARK).write_text(json.dumps({"made_by": "cultureval leaderboard"}), encoding="utf-8")


def _write(file: Path, text: str) -> None:
    if file.is_symlink():
        file.unlink()
    file.write_bytes(text.encode("utf-8", "backslashreplace"))
