"""How `cultureval eval` and `cultureval show` print a run: for people, in full, or for machines."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cultureval.reports.terminal_tables import terminal_width
from cultureval.runtime.printing import print_result

if TYPE_CHECKING:
    from cultureval.runs.record import Run

Full = Annotated[bool, typer.Option("--full", help="All scores, notes and signatures above the summary.")]
AsJson = Annotated[bool, typer.Option("--json", help="The summary as one JSON document on standard output.")]


def print_run(run: "Run", path: Path, full: bool = False, as_json: bool = False) -> None:
    """Prints a run that is on the disk; nothing that happens while printing is an error.

    Args:
        run: The run.
        path: The file with its summary, or its results file.
        full: Whether all scores come before the summary.
        as_json: The summary's tables as JSON instead.
    """
    from cultureval.reports.summary_text import shown_run, summaries_json

    print_result(summaries_json([run]) if as_json else shown_run(run, terminal_width(), full), path)
