"""`cultureval doctor`: what this machine has, and what each missing thing costs."""

from typing import Annotated

import typer


def doctor(
    patches: Annotated[
        bool, typer.Option("--patches", help="Instead: every place that changes another library, and whether it fits.")
    ] = False,
) -> None:
    """Says what is here and what each missing thing costs; exits 1 on a wrong version. Example: cultureval doctor"""
    from cultureval.reports.machine import machine_report, patches_table

    table, fits = patches_table() if patches else machine_report()
    print(table)
    raise SystemExit(not fits)
