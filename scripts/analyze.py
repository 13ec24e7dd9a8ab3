"""`cultureval analyze`: which features explain the scores of saved runs: tables and plots."""

from pathlib import Path
from typing import Annotated

import typer

from cultureval.runtime.errors import CulturevalError
from cultureval.scripts.options import ALL_FORMATS, Figures


def analyze_alqasida(
    results: Annotated[
        list[Path] | None, typer.Argument(metavar="RESULTS...", help="Output folders, results or details files.")
    ] = None,
    human: Annotated[
        list[Path] | None, typer.Option(help="Human judgements in upstream's format (*_humeval.csv). Repeatable.")
    ] = None,
    output_dir: Annotated[Path, typer.Option(help="Output folder of tables (CSV) and plots.")] = Path(
        "results/analysis"
    ),
    figures: Figures = ALL_FORMATS,
) -> None:
    """Correlations, analysis of variance, trees, plots, human scores. Example: cultureval analyze alqasida results"""
    if not results and not human:
        raise CulturevalError("Give output folders of `cultureval eval`, or files of human judgements with --human.")
    from cultureval.reports.alqasida.analysis import write_analysis
    from cultureval.reports.charts import chart_formats

    formats = chart_formats(figures, "--figures")
    saved, judged = ([path.expanduser() for path in paths or ()] for paths in (results, human))
    print(write_analysis(saved, judged, output_dir, formats))
    print(f"Tables and plots: {output_dir.resolve()}")
