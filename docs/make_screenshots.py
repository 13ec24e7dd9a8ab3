"""Draws the pictures of the docs: summaries of runs as terminals of 80 and 120 columns, and the leaderboard's pages.

Usage, after `make demo`: .venv/bin/python docs/make_screenshots.py results/demo (docs/summaries/<suite>_<width>.svg)
or .venv/bin/python docs/make_screenshots.py (docs/leaderboard/<suite>_<width>_<light or dark>.png, of invented runs)
"""

import io
import re
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from cultureval.reports import load
from cultureval.reports.leaderboard.board import read_board
from cultureval.reports.leaderboard.site import write_site
from cultureval.reports.summary_text import shown_run
from cultureval.runs.record import Run
from cultureval.tasks.catalogue import all_tasks

FOLDER = Path(__file__).with_name("summaries")
WIDTHS = (80, 120)
PAGES = Path(__file__).with_name("leaderboard")
SHOWN = {"qimma": "QIMMA", "alqasida": "AL-QASIDA", "m2cqa": "M2CQA"}  # suite -> its tab
PICTURES = (("qimma", 1400, "light"), ("alqasida", 1400, "dark"), ("qimma", 400, "dark"), ("m2cqa", 400, "light"))
MODELS, ITEMS = 20, 200


def main(results: str) -> None:
    """Draws the newest run of each suite."""
    FOLDER.mkdir(exist_ok=True)
    newest: dict[str, Run] = {}
    for run in reversed(load(results)):
        for suite in dict.fromkeys(task.suite for task in run.record.tasks.values() if len(run.record.tasks) > 1):
            tasks = {name: task for name, task in run.record.tasks.items() if task.suite == suite}
            newest[suite] = replace(run, record=run.record.model_copy(update={"tasks": tasks}))
    for suite, run in newest.items():
        for width in WIDTHS:
            file = FOLDER / f"{suite}_{width}.svg"
            file.write_text(terminal_as_svg(shown_run(run, width), width, f"cultureval show {results}"), "utf-8")
            print(file)


def terminal_as_svg(text: str, width: int, title: str) -> str:
    """A terminal that shows a text; it loads no fonts from the web."""
    console = Console(record=True, width=width, file=io.StringIO(), color_system=None)
    console.print(Text(text))
    drawn = console.export_svg(title=title).replace("font-family: arial;", "font-family: arial, sans-serif;")
    return re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)


def draw_pages() -> None:
    """Draws the pages of invented runs in chromium."""
    from playwright.sync_api import sync_playwright

    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from board_runs import invented_models, write_run

    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as play:
        results, site = Path(scratch, "results"), Path(scratch, "site")
        for name, able in invented_models(MODELS).items():
            for day, suite in enumerate(SHOWN, start=1):
                tasks = [task.task for task in all_tasks().values() if task.suite == suite]
                write_run(results, name, tasks, able, ITEMS, signed={}, date=f"2026-11-0{day}T10-00-00")
        write_site(read_board([results]), site, "Arabic models (invented runs)", ("svg",))
        browser = play.chromium.launch(executable_path=shutil.which("chromium"))
        for suite, width, scheme in PICTURES:
            page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
            page.goto((site / "index.html").as_uri())
            page.locator("[role=tab]", has_text=re.compile(f"^{SHOWN[suite]}$")).click()
            file = PAGES / f"{suite}_{width}_{scheme}.png"
            page.screenshot(path=file)
            print(file)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1]) if len(sys.argv) > 1 else draw_pages()
