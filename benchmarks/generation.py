"""`python -m benchmarks generation`: greedy answers by us, `generate`, LightEval and lm-eval, in turns."""

import contextlib
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.generation_runs import measure_generation
from cultureval.reports.terminal_tables import terminal_table

COLUMNS = {"seconds": "seconds", "tokens_per_second": "tokens/s", "same_texts": "same texts", "times_ours": "/ ours"}


def bench_generation(
    model: Annotated[
        Path | None,
        typer.Option(exists=True, file_okay=False, help="Folder of a text model; default: 99M random parameters."),
    ] = None,
    prompts: Annotated[int, typer.Option(min=2, help="Prompts.")] = 200,
    shared: Annotated[int, typer.Option(min=1, help="Tokens of the beginning that they share.")] = 500,
    new_tokens: Annotated[int, typer.Option(min=1, help="Most tokens of an answer.")] = 32,
    batch_size: Annotated[int, typer.Option(min=1, help="Batch size of the others; ours is auto.")] = 8,
    repeats: Annotated[int, typer.Option(min=1, help="Interleaved repeats; medians are shown.")] = 1,
    device: Annotated[str, typer.Option(help="cpu, cuda, ...")] = "cpu",
    dtype: Annotated[str, typer.Option(help="float32, bfloat16, ...")] = "float32",
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON object to stdout and nothing else.")] = False,
) -> None:
    """Times answers to prompts with a shared beginning. Example: python -m benchmarks generation --prompts 40"""
    with contextlib.redirect_stdout(sys.stderr):
        found = measure_generation(model, prompts, shared, new_tokens, repeats, batch_size, device, dtype)
    if as_json:
        print(json.dumps({"generation": found}))
        return
    rows = [[name, *(f"{numbers[key]:g}" for key in COLUMNS)] for name, numbers in found.items()]
    print(terminal_table(["", *COLUMNS.values()], rows, "lrrrr"))
