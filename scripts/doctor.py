"""`cultureval doctor`: what is installed on this machine, and what is impossible without the rest."""

from typing import Annotated

import typer


def doctor(
    patches: Annotated[
        bool, typer.Option("--patches", help="Print all patches of other libraries, and whether they fit.")
    ] = False,
) -> None:
    """Reports what is installed or missing; exits 1 on a wrong version. Example: cultureval doctor"""
    from cultureval.reports.machine import machine_report, patches_table

    table, fits = patches_table() if patches else machine_report()
    print(table)
    raise SystemExit(not fits)
