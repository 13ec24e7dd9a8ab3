"""`python -m benchmarks scoring`: our scoring of choices against LightEval's and lm-eval's, interleaved."""

import contextlib
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.scoring_runs import FORMS_OF_DATA, SCENARIOS, measure_scoring
from benchmarks.scoring_speed import table


def bench_scoring(
    model: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            file_okay=False,
            help="Folder of a text model; default: 8 layers, 512 wide, 64,000 tokens, random.",
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help=f"{FORMS_OF_DATA}; default: the shipped rows of ArabicMMLU.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON object to stdout and nothing else.")] = False,
    questions: Annotated[
        int, typer.Option(min=1, help="Questions of letters and full_text, of 4 choices or more.")
    ] = 24,
    repeats: Annotated[int, typer.Option(min=1, help="Interleaved repeats; medians are shown.")] = 3,
    batch_size: Annotated[int, typer.Option(min=1, help="Batch size of LightEval and lm-eval.")] = 8,
    scenario: Annotated[list[str] | None, typer.Option(help=f"Only this one of {', '.join(SCENARIOS)}.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, ...")] = "cpu",
    dtype: Annotated[str, typer.Option(help="float32, bfloat16, ...")] = "float32",
) -> None:
    """Times the scoring of choices. Example: python -m benchmarks scoring --data ArabicMMLU.csv --json"""
    with contextlib.redirect_stdout(sys.stderr):
        results = measure_scoring(model, data, questions, repeats, batch_size, device, dtype, scenario or SCENARIOS)
    print(json.dumps({"scenarios": results}) if as_json else table(results))
