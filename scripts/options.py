"""The options that several commands share, each said once."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from cultureval.runtime.settings import Settings, current_settings, use_settings

# What is read.
Tasks = Annotated[
    list[str], typer.Argument(metavar="TASKS...", help="Tasks, groups, suites or files; TASK|2 is 2-shot.")
]
Data = Annotated[str | None, typer.Option(metavar="DIR", help="Data root, or `samples`; default: the hub.")]
Form = Annotated[
    Literal["curated", "original", "mixed"] | None,
    typer.Option(help="Version of QIMMA's data; default: curated."),
]
Columns = Annotated[
    str | None, typer.Option("--columns", metavar="NAME=THEIRS,...", help="Names of columns in the data.")
]
Manifests = Annotated[list[Path] | None, typer.Option(metavar="FILE", help="Leave out rows by an audit's manifest.")]

# What is written and printed.
OutputDir = Annotated[str, typer.Option(metavar="DIR", help="Output folder of results and details.")]
OnlyJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Full = Annotated[bool, typer.Option("--full", help="All scores, notes and signatures above the summary.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as one JSON document.")]

# Of commands that ask judges, or other models, for replies which cost something.
Sample = Annotated[int | None, typer.Option(min=1, help="Judge this many random items per task (see --seed).")]
Seed = Annotated[int, typer.Option(help="Random seed of the sample; the same items for all models.")]
JudgeNothing = Annotated[bool, typer.Option(help="Print the number of calls and their estimated cost; judge nothing.")]
JudgeBudget = Annotated[float | None, typer.Option(min=0, help="Maximal cost of each judge's verdicts.")]
Delimit = Annotated[
    bool | None,
    typer.Option(
        "--delimit/--no-delimit",
        help="Delimiters around the texts in all prompts; default: the judge's setting, else not.",
    ),
]
ReuseVerdicts = Annotated[
    bool | None,
    typer.Option(
        "--resume/--no-resume",
        help="Reuse the verdicts that are in the journal; default: CULTUREVAL_RESUME, else reuse them.",
    ),
]


@contextmanager
def data_settings(
    data: str | None, form: str | None, resume: bool | None = None, columns: str | None = None
) -> Iterator[Settings]:
    """A context whose settings hold the values of these options."""
    options = {"data_root": data, "form": form, "resume": resume, "columns": columns}
    with use_settings(current_settings().with_(**options)) as used:
        yield used
