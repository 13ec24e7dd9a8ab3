"""Options of the commands that ask judges, or other models, for replies which cost something."""

from typing import Annotated, Literal

import typer

Sample = Annotated[int | None, typer.Option(min=1, help="Judge this many random items per task (see --seed).")]
Seed = Annotated[int, typer.Option(help="Random seed of the sample; the same items for all models.")]
JudgeNothing = Annotated[bool, typer.Option(help="Print the number of calls and their estimated cost; judge nothing.")]
JudgeBudget = Annotated[float | None, typer.Option(min=0, help="Maximal cost of each judge's verdicts.")]
Delimit = Annotated[
    Literal["always", "never"] | None,
    typer.Option(help="Marks around the texts in all prompts, or the papers' wording; default: the judge's setting."),
]
ReuseVerdicts = Annotated[
    bool | None,
    typer.Option(
        "--resume/--no-resume",
        help="Reuse the verdicts that are in the journal; default: CULTUREVAL_RESUME, else reuse them.",
    ),
]
ReuseReplies = Annotated[
    bool | None,
    typer.Option(
        "--resume/--no-resume",
        help="Reuse the replies that are in the journal; default: CULTUREVAL_RESUME, else reuse them.",
    ),
]
