"""The options that sub-commands of `cultureval audit` share."""

from typing import Annotated, Literal

import typer

SourceNames = Annotated[
    list[str],
    typer.Argument(metavar="SOURCE...", help="Tasks, groups, suites (qimma), or files and folders of data."),
]
Data = Annotated[str | None, typer.Option(help="Data root (DIR/<org>/<name>), or `samples`; default: hub.")]
Form = Annotated[
    Literal["auto", "curated", "original"] | None,
    typer.Option(help="Version of the data: QIMMA's curated copy or the original."),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="NAME=COLUMN,...",
        help="Columns of data by path: question=Q,options=A+B+C+D,gold=answer,context=passage,image=file; default: by "
        "their usual names.",
    ),
]
