"""`cultureval score`: scores submission files in a benchmark's official format."""

from pathlib import Path
from typing import Annotated

import typer

from cultureval.runtime.errors import CulturevalError

TASKS = ("cvlue", "cvlue-itr", "cvlue-vqa", "cvlue-vg", "cvlue-vd")


def score(
    task: Annotated[str, typer.Argument(metavar="TASK", help=f"{', '.join(TASKS)}; cvlue: all four, from folders.")],
    gold: Annotated[Path, typer.Option(help="The gold file, or a folder with the released layout.")],
    pred: Annotated[list[Path], typer.Option(help="The submission file (ITR: one or two), or a folder.")],
    output_dir: Annotated[Path, typer.Option(help="Output folder of tables (JSON, CSV) and plots.")] = Path(
        "results/score"
    ),
) -> None:
    """Scores submissions by task, category and field. Example: cultureval score cvlue-vqa --gold G --pred P"""
    from cultureval.reports.cvlue.official_scores import score_all, score_task

    if task not in TASKS:
        raise CulturevalError(f"Unknown task {task!r}; choose from {', '.join(TASKS)}.")
    name = task.partition("-")[2]
    print(score_task(name, gold, pred, output_dir)[0] if name else score_all(gold, pred, output_dir))
    print(f"Tables and plots: {output_dir.resolve()}")
