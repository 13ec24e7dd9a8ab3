"""`cultureval code evaluate`: judges solutions in the sandbox and scores them by EvalPlus's rules."""

import json as json_format
from pathlib import Path
from typing import Annotated, Literal

import typer

from cultureval.runtime.printing import print_result
from cultureval.runtime.rounding import without_nan
from cultureval.runtime.saving import require_output_folder
from cultureval.scripts.code.options import (
    Data,
    Dataset,
    Prompts,
    UnsafeNoSandbox,
    Workers,
    data_in_settings,
    notes_on_stderr,
    prepare_hub,
)
from cultureval.scripts.options import OnlyJson


def evaluate(
    samples: Annotated[Path, typer.Argument(metavar="SAMPLES", help="EvalPlus's .jsonl file or folder of solutions.")],
    dataset: Dataset,
    data: Data = None,
    prompts: Prompts = None,
    workers: Workers = None,
    json: OnlyJson = False,
    unsafe_no_sandbox: UnsafeNoSandbox = False,
    sanitize: Annotated[
        Literal["auto", "always", "never"],
        typer.Option(help="EvalPlus's sanitiser; auto: only for texts that are not yet a program."),
    ] = "auto",
    partial: Annotated[
        bool, typer.Option("--partial", help="Score incomplete samples or data, not comparable.")
    ] = False,
    model_name: Annotated[
        str | None, typer.Option(help="Name in the results; default: as generated, or the file's.")
    ] = None,
    output_dir: Annotated[Path, typer.Option(help="Output folder of LightEval's results and details.")] = Path(
        "results"
    ),
) -> None:
    """Judges and scores solutions. Example: cultureval code evaluate SAMPLES.jsonl --dataset humaneval"""
    with data_in_settings(data) as root:
        prepare_hub(root)
        from cultureval.reports.code.evaluation import evaluate_solutions, report_text
        from cultureval.runs.writing import write_summary
        from cultureval.tasks.qimma.code_data import load_problems

        problem_set = load_problems(dataset, prompts=prompts)
        require_output_folder(output_dir)
        with notes_on_stderr():
            report = evaluate_solutions(
                samples,
                problem_set,
                output_dir,
                sanitize=sanitize,
                partial=partial,
                workers=workers,
                sandboxed=not unsafe_no_sandbox,
                model_name=model_name,
            )
        text = report_text(report)
        path = write_summary(Path(report["results"]), text)
        print_result(json_format.dumps(without_nan(report), ensure_ascii=False, indent=1) if json else text, path)
