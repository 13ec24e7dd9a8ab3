"""The rows of CVLUE's paper in a leaderboard: one row a model, Chinese and English apart (Table 10)."""

from collections.abc import Mapping, Sequence

from cultureval.metrics.cvlue.names import MACRO
from cultureval.reports.cvlue.headline import DIGITS, ENGLISH_ROWS, PUBLISHED, ROWS, TITLES, headline
from cultureval.reports.published import published_rows
from cultureval.reports.run_record import Run
from cultureval.reports.standings import Column, Standing
from cultureval.reports.summary import Cell, SummaryTable

MAIN = Column("Macro")
SHOWN = {"cvlue": ROWS, "cvlue_en": ENGLISH_ROWS}
UNIT = "percent"


def standings(run: Run) -> list[Standing]:
    """A row in the Chinese, and one in the English table.

    Args:
        run: With one number of few-shot examples.
    """
    prefixes = {title.partition(",")[0]: prefix for prefix, title in TITLES.items()}
    tasks = {record.task.partition("|")[0]: record.task for record in run.tasks_of("cvlue")}
    parts = {(tasks.get(f"cvlue_{part}", ""), metric): 1.0 for part, names in MACRO.items() for metric in names}
    return [_standing(prefixes[table.title.partition(",")[0]], table, parts) for table in headline(run)]


def _standing(prefix: str, table: SummaryTable, parts: Mapping[tuple[str, str], float]) -> Standing:
    cells: dict[Column, Cell | str | None] = {}
    for row in table.rows:
        kind, *numbers = row.cells
        if row.label == MAIN.name:
            cells = {MAIN: numbers[0]} | cells
            continue
        _, name, metrics = SHOWN[prefix][row.label]
        cells |= dict(zip(_columns(row.label, name, metrics), numbers, strict=False))
    ranked = isinstance(cells.get(MAIN), Cell)
    return Standing(_table(prefix), cells, UNIT, MAIN if MAIN in cells else None, parts if ranked else {}, table.notes)


def published_standings() -> dict[str, list[Standing]]:
    """Model -> its rows; the paper has no macro-average."""
    found: dict[str, list[Standing]] = {}
    for row in published_rows(PUBLISHED):
        for prefix, shown in SHOWN.items():
            cells: dict[Column, Cell | str | None] = {}
            for label, (part, name, metrics) in shown.items():
                for column, metric in zip(_columns(label, name, metrics), metrics, strict=True):
                    if value := row.get(f"{prefix}_{part}:{metric}"):
                        cells[column] = Cell(float(value), digits=DIGITS)
            found.setdefault(row["model"], []).append(Standing(_table(prefix), cells, UNIT))
    return found


def _table(prefix: str) -> str:
    return "CVLUE, Chinese" if prefix == "cvlue" else "CVLUE, English counterparts"


def _columns(label: str, kind: str, metrics: Sequence[str]) -> list[Column]:
    if len(metrics) == 1:
        return [Column(kind, label)]
    return [Column(f"@{metric.partition('@')[2]}", label) for metric in metrics]
