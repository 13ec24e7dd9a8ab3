"""`cultureval doctor`: what is installed on this machine, and what of a run's settings differs from it."""

from pathlib import Path
from typing import Annotated

import typer

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.progress import working


def doctor(
    results: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RESULTS...]", help="A run to compare with this machine, or two with each other."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Print also what is in order: versions, patches.")] = False,
    patches: Annotated[
        bool, typer.Option("--patches", help="Print all patches of other libraries, and whether they fit.")
    ] = False,
) -> None:
    """Reports what is installed or missing, or what of results differs; then exits 1. Example: cultureval doctor"""
    if results:
        from cultureval.reports.settings_diff import compare_runs, compare_with_here

        if len(results) > 2:
            raise CulturevalError(f"doctor compares two runs at most, and {len(results)} were named.")
        text, fits = compare_runs(*results) if len(results) == 2 else compare_with_here(results[0])
    else:
        from cultureval.reports.doctor import machine_report, patches_table

        with working("Looking at this machine"):
            text, fits = patches_table() if patches else machine_report(everything)
    print(text)
    raise SystemExit(not fits)
