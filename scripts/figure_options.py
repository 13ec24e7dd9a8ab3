"""The option of all commands that draw figures."""

from typing import Annotated

import typer

Figures = Annotated[
    str,
    typer.Option(metavar="FORMATS", help="Formats of the figures, separated by commas: pdf, svg, png; or none."),
]
ALL_FORMATS = "pdf,svg,png"
