"""`cultureval score`: answers, solutions and submission files that were made elsewhere."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cultureval.runtime.errors import CulturevalError, did_you_mean
from cultureval.runtime.printing import print_result
from cultureval.runtime.saving import require_folder
from cultureval.scripts.code import score_solutions
from cultureval.tasks.catalogue import all_suites

if TYPE_CHECKING:
    from cultureval.tasks.suite import Suite


CODE = ("humaneval", "mbpp")  # files of solutions, as EvalPlus writes them


def score(
    form: Annotated[
        str,
        typer.Argument(metavar="FORMAT", help="humaneval, mbpp, alqasida, cvlue-vqa, ...; a wrong name lists all."),
    ],
    pred: Annotated[
        list[Path], typer.Option(help="Solutions, a submission or outputs: a file, or a folder. Repeatable.")
    ],
    gold: Annotated[
        Path | None, typer.Option(help="The gold file of a submission, or a folder with the released layout.")
    ] = None,
    output_dir: Annotated[Path, typer.Option(help="Output folder of results, tables (JSON, CSV) and plots.")] = Path(
        "results/score"
    ),
    model_name: Annotated[
        str | None, typer.Option(help="Name in the results; default: that of the submission's file or folder.")
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="humaneval, mbpp: data root, folder, or `samples`; default: hub.")
    ] = None,
    prompts: Annotated[Path | None, typer.Option(help="humaneval, mbpp: the refined prompts that were asked.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Parallel sandboxes; default: one per core.")] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="humaneval, mbpp: score incomplete solutions, not comparable.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="humaneval, mbpp: print the report as JSON.")] = False,
) -> None:
    """Scores answers made elsewhere, in an official format. Example: cultureval score cvlue-vqa --gold G --pred P"""
    if form in CODE:
        if len(pred) != 1:
            raise CulturevalError(f"score {form}: give one file of solutions with --pred.")
        require_folder(output_dir)
        given = {"workers": workers, "partial": partial, "model_name": model_name}
        return print_result(*score_solutions(form, pred[0], output_dir, data, prompts, as_json, **given))
    formats = _formats()
    if form not in formats:
        raise CulturevalError(
            f"There is no format {form!r}.{did_you_mean(form, formats)} They are {', '.join([*CODE, *formats])}."
        )
    suite = formats[form]
    require_folder(output_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    if suite.outputs and form == suite.name:
        text, problems = suite.part("outputs")(pred, output_dir), []
    elif gold is None:
        raise CulturevalError(f"score {form}: give the gold file with --gold.")
    else:
        text, problems = _submissions(suite, form, gold, pred, output_dir, model_name)
    path = output_dir / f"{form}.txt"
    path.write_text(f"{text}\n", encoding="utf-8")
    print_result(text, path)
    if problems:
        raise CulturevalError("\n".join(["Not scored:", *(f"  {problem}" for problem in problems)]))


def _submissions(
    suite: "Suite", form: str, gold: Path, pred: list[Path], output_dir: Path, model_name: str | None
) -> tuple[str, list[str]]:
    """The text to print, and what could not be scored."""
    from cultureval.reports.submissions import save_submissions

    started = time.time()
    scored = suite.scorers()[form](gold, pred, output_dir)
    files = save_submissions(scored, gold, output_dir, started, model_name)
    results = "\n".join(f"Results: {file.resolve()}" for file in files)
    return f"{scored.text}\nTables: {output_dir.resolve()}\n{results}", list(scored.problems)


def _formats() -> "Mapping[str, Suite]":
    """Format -> its suite."""
    suites = all_suites()
    found = {name: suite for name, suite in suites.items() if suite.outputs}
    return found | {form: suite for suite in suites.values() if suite.submissions for form in suite.scorers()}
