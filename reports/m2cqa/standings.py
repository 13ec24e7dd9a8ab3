"""The rows of M2CQA's paper in a leaderboard: one table a prompt, metrics by variety (Tables 2 and 10)."""

from cultureval.reports.m2cqa.headline import COLUMNS, PUBLISHED, VARIETIES
from cultureval.reports.published import published_rows
from cultureval.reports.standings import LOWER, Column, Standing
from cultureval.reports.summary import Cell
from cultureval.tasks.m2cqa.benchmarks import PROMPTS

LABELS = VARIETIES | {"dialect": "Dialect"}


def published_standings() -> dict[str, list[Standing]]:
    """Model -> a row in the table of each prompt; the columns are those of the summary."""
    cells: dict[tuple[str, str], dict[Column, Cell | str | None]] = {}
    for row in published_rows(PUBLISHED):
        found = cells.setdefault((row["model"], row["prompt"]), {})
        for metric, name in COLUMNS.items():
            if row.get(metric):
                found[Column(name, LABELS[row["variety"]], name.startswith(LOWER))] = Cell(float(row[metric]))
    standings: dict[str, list[Standing]] = {}
    for (model, prompt), numbers in cells.items():
        standings.setdefault(model, []).append(Standing(f"M2CQA, {PROMPTS[prompt]}", numbers))
    return standings
