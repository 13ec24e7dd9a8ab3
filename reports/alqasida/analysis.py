"""Which features explain AL-QASIDA's scores: tables and figures of saved runs and of human judgements."""

import math
from collections.abc import Sequence
from pathlib import Path

from cultureval.metrics.alqasida.names import ADI2
from cultureval.reports.alqasida.feature_tables import (
    NUMERIC,
    TREE_DEPTH,
    Row,
    correlation_rows,
    mean_rows,
    translation_rows,
    tree_rows,
    variance_rows,
)
from cultureval.reports.alqasida.figures import draw_figures
from cultureval.reports.alqasida.human_judgements import write_human_judgements
from cultureval.reports.alqasida.plots import tree
from cultureval.reports.alqasida.samples import ANALYSED, KINDS, Sample, samples_of
from cultureval.reports.charts import FORMATS, chart_files
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.csv_files import write_csv
from cultureval.runtime.errors import counted


def write_analysis(
    results: Sequence[Path], human: Sequence[Path], folder: Path, formats: Sequence[str] = FORMATS
) -> str:
    """Write the tables and figures of saved runs and of human judgements.

    Args:
        results: Output folders, results files or details files; [] for human judgements only.
        human: Files of human judgements in upstream's format.
        folder: Output folder; created if missing.
        formats: Of the figures; () draws none.

    Returns:
        The strongest features and the human judgements as tables for printing.

    Raises:
        CulturevalError: Results have no details of AL-QASIDA's tasks, or a file cannot be read.
    """
    tables = write_samples(*samples_of(results), folder, formats) if results else []
    if human:
        tables.append(write_human_judgements(human, folder))
    return "\n\n".join(tables)


def write_samples(
    samples: Sequence[Sample], tasks: Sequence[Sample], folder: Path, formats: Sequence[str] = FORMATS
) -> list[str]:
    """Write every table and figure of saved runs; returns a table of the features that explain ADI2 for each kind."""
    write_csv(folder / "samples.csv", samples)
    write_csv(folder / "means.csv", mean_rows(samples))
    tables = []
    for kind in ANALYSED:
        of_kind = [sample for sample in samples if sample["kind"] == kind]
        if not of_kind:
            continue
        correlations, variances = correlation_rows(of_kind), variance_rows(of_kind)
        write_csv(folder / f"{kind}_spearman.csv", correlations)
        write_csv(folder / f"{kind}_anova.csv", variances)
        trees = tree_rows(of_kind)
        write_csv(folder / f"{kind}_tree_depth_{TREE_DEPTH}.csv", trees)
        if formats and (nodes := [row for row in trees if row["score"] == ADI2]):
            chart = tree(f"{kind}_tree", f"{KINDS[kind].capitalize()}: what ADI2 depends on", nodes)
            chart_files(chart, folder, formats)
        tables.append(_feature_table(f"{KINDS[kind]} ({counted(len(of_kind), 'sample')})", correlations, variances))
    translations = [task for task in tasks if task["kind"] == "mt"]
    if translations:
        write_csv(folder / "translation.csv", translation_rows(translations))
    draw_figures(samples, translations, folder, formats)
    return tables


def _feature_table(samples: str, correlations: Sequence[Row], variances: Sequence[Row]) -> str:
    rows = [
        [row["feature"], "Spearman's rho", f"{row['rho']:+.3f}", "", f"{row['p']:.2g}"]
        for row in correlations
        if row["score"] == ADI2 and row["feature"] in NUMERIC and not math.isnan(row["rho"])
    ]
    defined = [row for row in variances if row["score"] == ADI2 and not math.isnan(row["eta_squared"])]
    rows += [
        [row["feature"], "eta squared", f"{row['eta_squared']:.3f}", f"{row['f']:.2f}", f"{row['p']:.2g}"]
        for row in sorted(defined, key=lambda row: -row["eta_squared"])
    ]
    if not rows:
        return f"{samples}: no feature varies, so none explains ADI2."
    return terminal_table(["feature", "statistic", "value", "F", "p"], rows, "llr", f"{samples}, ADI2 by feature:")
