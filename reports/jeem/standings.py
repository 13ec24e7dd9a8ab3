"""JEEM in a leaderboard: reference metrics by variety (its paper's Table 3), and judges' scores (Tables 3 and 5).

Ours: the mean of CIDEr over varieties, by which models are ranked.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from cultureval.reports.jeem.headline import (
    ANSWERS,
    BY_JUDGE,
    CAPTIONS,
    CRITERIA,
    METRICS,
    SETTINGS,
    headline,
    variety_of,
)
from cultureval.reports.published import published_rows
from cultureval.reports.run_record import Run
from cultureval.reports.standings import Column, Standing, flattened, ranked_by
from cultureval.reports.summary import Cell

TABLES = {"jeem_caption": "JEEM, captions", "jeem_vqa": "JEEM, answers"}
MAIN = "cider"  # the first metric of the tasks
PAPERS_JUDGE = "GPT-4"


def standings(run: Run) -> list[Standing]:
    """A row in the table of captions, one in that of answers, one in that of each judge."""
    found = [row for row in map(flattened, headline(run)) if row.cells]
    for group, name in TABLES.items():
        tasks = {variety_of(one): one.task for one in run.tasks_of("jeem") if one.group == group}
        found = [ranked_by(row, METRICS[MAIN][0], tasks, MAIN) if row.table == name else row for row in found]
    return found


def published_standings() -> dict[str, list[Standing]]:
    """Model -> its row of reference metrics; and, under a name that says so, its row by the paper's judge.

    The latter stands in the tables of all judges: the numbers of two judges are not comparable.
    """
    metrics: dict[str, dict[Column, Cell | str | None]] = {}
    for row in published_rows(CAPTIONS):
        cells = {Column(name, row["variety"]): Cell(float(row[key])) for name, key in METRICS.values() if row[key]}
        metrics.setdefault(row["model"], {}).update(cells)
    judged: dict[str, dict[Column, Cell | str | None]] = {}
    for setting, label in SETTINGS.items():
        file, prefix = (ANSWERS, "") if setting == "vqa" else (CAPTIONS, f"{setting}_")
        for model, column, value in _criteria(file, prefix, label):
            judged.setdefault(f"{model}, judged by {PAPERS_JUDGE}", {})[column] = Cell(value)
    found = {model: [Standing(TABLES["jeem_caption"], cells)] for model, cells in metrics.items() if cells}
    return found | {model: [Standing(BY_JUDGE, cells)] for model, cells in judged.items()}


def _criteria(file: Path, prefix: str, label: str) -> Iterator[tuple[str, Column, float]]:
    for row in published_rows(file):
        yield from _numbers(row, prefix, f"{row['variety']}, {label}")


def _numbers(row: Mapping[str, str], prefix: str, above: str) -> Iterator[tuple[str, Column, float]]:
    for key, name in CRITERIA.items():
        if value := row.get(f"{prefix}{key}"):
            yield row["model"], Column(name, above), float(value)
