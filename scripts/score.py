"""`cultureval score`: answers, solutions and submission files that were made elsewhere."""

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import typer

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.printing import print_result
from cultureval.runtime.rounding import without_nan
from cultureval.runtime.saving import require_folder
from cultureval.scripts.options import data_settings

Output = Annotated[Path, typer.Option(help="Output folder of results, tables and figures.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Parallel sandboxes; default: one per core.")]


def score(
    form: Annotated[
        str, typer.Argument(metavar="FORMAT", help="humaneval, mbpp, alqasida, cvlue-vqa, ...; a wrong name lists all.")
    ],
    pred: Annotated[list[Path], typer.Option(help="Solutions, a submission or outputs: file or folder. Repeatable.")],
    gold: Annotated[Path | None, typer.Option(help="Gold file of a submission, or folder of released data.")] = None,
    output_dir: Output = Path("results/score"),
    model_name: Annotated[str | None, typer.Option(help="Model in the results; default: the file's name.")] = None,
    data: Annotated[str | None, typer.Option(help="humaneval, mbpp: data root, or `samples`; default: hub.")] = None,
    workers: Workers = None,
    partial: Annotated[bool, typer.Option("--partial", help="humaneval, mbpp: score incomplete solutions.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="humaneval, mbpp: print the report as JSON.")] = False,
) -> None:
    """Scores answers made elsewhere, in an official format. Example: cultureval score cvlue-vqa --gold G --pred P"""
    from cultureval.reports.submissions import CODE, scorer_of

    require_folder(output_dir)
    if form in CODE:
        with data_settings(data, None):
            report, text = _judged(form, pred, output_dir, partial, workers, model_name)
        as_text = json.dumps(without_nan(report), ensure_ascii=False, indent=1) if as_json else text
        return print_result(as_text, Path(report["results"]))
    score_files = scorer_of(form, gold)
    output_dir.mkdir(parents=True, exist_ok=True)
    text, problems = score_files(pred, output_dir, model_name)
    path = output_dir / f"{form}.txt"
    path.write_text(f"{text}\n", encoding="utf-8")
    print_result(text, path)
    if problems:
        raise CulturevalError("\n".join(["Not scored:", *(f"  {problem}" for problem in problems)]))


def _judged(form: str, pred: list[Path], *how: Any) -> tuple[dict[str, Any], str]:
    """Judges EvalPlus's .jsonl file of solutions; the report, also as text."""
    from cultureval.tasks.qimma.code_data import load_problems

    if len(pred) != 1:
        raise CulturevalError(f"score {form}: give one file of solutions with --pred.")
    with redirect_stdout(sys.stderr):  # what EvalPlus prints
        problems = load_problems(form)
        from cultureval.reports.code.evaluation import evaluate_solutions, report_text

        report = evaluate_solutions(pred[0], problems, *how)
    return report, report_text(report)
