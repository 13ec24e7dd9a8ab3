"""The options that several commands share, each said once."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

import typer

from cultureval.runtime.settings import Settings, current_settings, use_settings

# What is read.
Data = Annotated[str | None, typer.Option(metavar="DIR", help="Data root, or `samples`; default: the hub.")]
Form = Annotated[
    Literal["curated", "original", "mixed"] | None,
    typer.Option(help="Version of QIMMA's data; default: curated."),
]
Columns = Annotated[
    str | None, typer.Option("--columns", metavar="NAME=THEIRS,...", help="Names of columns in the data.")
]

# What is written and printed.
OutputDir = Annotated[str, typer.Option(metavar="DIR", help="Output folder of results and details.")]
OnlyJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as one JSON document.")]

# Of commands that ask judges, or other models, for replies which cost something.
JudgeNothing = Annotated[bool, typer.Option(help="Print the number of calls and their estimated cost; judge nothing.")]
JudgeBudget = Annotated[float | None, typer.Option(min=0, help="Maximal cost of each judge's verdicts.")]


@contextmanager
def data_settings(data: str | None, form: str | None, columns: str | None = None) -> Iterator[Settings]:
    """A context whose settings hold the values of these options."""
    options = {"data_root": data, "form": form, "columns": columns}
    with use_settings(current_settings().with_(**options)) as used:
        yield used
