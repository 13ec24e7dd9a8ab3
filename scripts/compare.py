"""`cultureval compare m2cqa` and `compare cvlue`: compare prompts and models of finished runs: tables, tests, plots."""

from pathlib import Path
from typing import Annotated

import typer

from cultureval.metrics.m2cqa.names import Profile
from cultureval.runtime.printing import print_note
from cultureval.scripts.figure_options import ALL_FORMATS, Figures


def compare_m2cqa(
    results: Annotated[list[Path], typer.Argument(metavar="RESULTS...", help="Output folders or results files.")],
    output_dir: Annotated[Path, typer.Option(help="Output folder of tables and figures.")] = Path("results/compare"),
    profile: Annotated[Profile, typer.Option(help="How verdicts are parsed; the paper's is strict.")] = "strict",
    resamples: Annotated[int, typer.Option(min=1, help="Bootstrap resamples of items.")] = 1000,
    seed: Annotated[int, typer.Option(help="Random seed of the resamples.")] = 0,
    size: Annotated[
        list[str] | None, typer.Option(help="MODEL=BILLIONS of parameters, if the name has no size such as -32B-.")
    ] = None,
    q_plus_border: Annotated[float, typer.Option(help="Q+ accuracy from which it counts as high.")] = 0.8,
    cfhr_border: Annotated[float, typer.Option(help="CFHR from which it counts as high.")] = 0.3,
    figures: Figures = ALL_FORMATS,
    force: Annotated[
        bool, typer.Option(help="Compare runs with different signatures, on the items that both have.")
    ] = False,
) -> None:
    """Compares prompts and models of M2CQA. Example: cultureval compare m2cqa out-a out-b"""
    from cultureval.reports.drawing import figure_formats
    from cultureval.reports.m2cqa.comparison import write_comparison
    from cultureval.reports.m2cqa.comparison_rows import Borders

    borders = Borders(q_plus_border, cfhr_border)
    formats = figure_formats(figures)
    found = write_comparison(results, output_dir, profile, resamples, seed, size or [], borders, force, formats)
    print(found.text)
    for note in found.notes:
        print_note(note)
    drawn = f" ({', '.join(file.name for file in found.figures)})" if found.figures else ""
    print(f"Tables and plots: {output_dir.resolve()}{drawn}")


def compare_cvlue(
    results: Annotated[list[Path], typer.Argument(metavar="RESULTS...", help="Output folders or results files.")],
    output_dir: Annotated[Path, typer.Option(help="Output folder of tables.")] = Path("results/compare"),
    force: Annotated[bool, typer.Option(help="Compare runs of different data, on the items that both have.")] = False,
) -> None:
    """Compares models on CVLUE, beside the paper's Table 10. Example: cultureval compare cvlue out-a out-b"""
    from cultureval.reports.cvlue.comparison import compare_runs_of_cvlue

    text, notes = compare_runs_of_cvlue(results, output_dir, force)
    print(text)
    for note in notes:
        print_note(note)
    print(f"Tables: {output_dir.resolve()} (scores.csv, differences.csv)")
