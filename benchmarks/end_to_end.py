"""`python -m benchmarks end-to-end`: the whole command, from typing to table, against `lm_eval` on the same rows."""

import json
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.end_to_end_runs import measure_end_to_end
from cultureval.runtime.printing import print_note


def bench_end_to_end(
    data: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="ArabicMMLU's table (CSV, parquet); default: the shipped rows."),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(exists=True, file_okay=False, help="Folder of a text model; default: a random one.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most this many rows of a subject.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each command, in turns; medians are shown.")] = 1,
    batch_size: Annotated[int, typer.Option(min=1, help="Batch size of lm-eval.")] = 8,
    device: Annotated[str, typer.Option(help="cpu, cuda, ...")] = "cpu",
    dtype: Annotated[str, typer.Option(help="float32, bfloat16, ...")] = "float32",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Times eval and lm_eval as commands. Example: python -m benchmarks end-to-end --data ArabicMMLU.csv"""
    if data is None:
        print_note("no --data: a few shipped rows, on which starting is most of the time.")
    figures = measure_end_to_end(data, model, limit, repeats, batch_size, device, dtype)
    if as_json:
        return print(json.dumps(figures))
    rows, same = figures["rows"], figures["rows_with_same_scores"]
    print(f"{rows} rows; seconds of the commands, medians of {repeats}:")
    print(f"  cultureval eval  {figures['ours_s']:.1f}, of which the model computes {figures['model_s']:.1f}")
    print(f"  lm_eval          {figures['lm_eval_s']:.1f}")
    print(
        f"ours / the model's own: {figures['ratio_to_model']:.2f}; lm_eval / ours: {figures['speedup_vs_lm_eval']:.1f}"
    )
    difference = figures["max_abs_difference"]
    print(f"same scores in {same} of {rows} rows; largest difference of a log-probability: {difference:.0e}")
