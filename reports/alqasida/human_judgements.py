"""Human judgements of AL-QASIDA's texts: averages, and correlations of fluency and TVD with dialectal fidelity."""

import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cultureval.metrics.alqasida.feature_analysis import spearman
from cultureval.reports.alqasida.ratings import CRITERIA, read_alqasida_ratings
from cultureval.reports.human_ratings import Rating
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.csv_files import write_csv

Row = dict[str, Any]


def write_human_judgements(files: Sequence[Path], folder: Path) -> str:
    """Write `human_judgements.csv`, one row per file, dialect and model; returns the same as a table for printing.

    Raises:
        CulturevalError: A file cannot be read.
    """
    rows = [{"file": file.name, **row} for file in files for row in human_rows(read_alqasida_ratings(file)[0])]
    write_csv(folder / "human_judgements.csv", rows)
    cells = [[_shown(value) for value in row.values()] for row in rows]
    return terminal_table(list(rows[0]) if rows else (), cells, "lllr", "Human judgements:")


def human_rows(ratings: Sequence[Rating]) -> list[Row]:
    """By dialect and model: means of the criteria and of TVD, and Spearman's rho of fluency, and TVD, with fidelity."""
    groups: dict[tuple[str, str], list[Rating]] = defaultdict(list)
    for rating in ratings:
        groups[rating.group, rating.model].append(rating)
    rows = []
    for (dialect, model), members in groups.items():
        columns = {name: [one.scores.get(name, math.nan) for one in members] for name in CRITERIA}
        columns["TVD"] = [one.metrics.get("TVD", math.nan) for one in members]
        row: Row = {"dialect": dialect, "model": model, "texts": len(members)}
        for name, column in columns.items():
            kept = [value for value in column if not math.isnan(value)]
            row[name] = sum(kept) / len(kept) if kept else None
        for name in ("Fluency", "TVD"):
            found = spearman(columns[name], columns["Dialectal Accuracy"])
            row |= {f"{name}_Fidelity_SpearmanR": found.rho, f"{name}_Fidelity_p": found.p}
        rows.append(row)
    return rows


def _shown(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "n/a"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
