"""Draws the summaries of a folder of runs as terminals of 80 and 120 columns: docs/summaries/<suite>_<width>.svg.

Usage, after `make demo`: .venv/bin/python docs/make_screenshots.py results/demo
"""

import io
import re
import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from cultureval.reports import load
from cultureval.reports.summary_text import shown_run
from cultureval.runs.record import Run

FOLDER = Path(__file__).with_name("summaries")
WIDTHS = (80, 120)


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


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "results/demo")
