"""QIMMA's charts of a leaderboard: average against size (the paper's Figure 5), domains as a radar."""

from collections.abc import Sequence

from cultureval.reports.charts import MOST_SERIES, Chart, Charted, Point, radar, scatter
from cultureval.reports.qimma.table import DOMAINS, MAIN, tables
from cultureval.runs.table import Cell, Column, one_row


def charts(models: Sequence[Charted]) -> list[Chart]:
    """The charts that the models' scores allow.

    Args:
        models: Comparable ones, the best first.
    """
    rows = [(model, row.cells) for model in models for row in map(one_row, tables(model.run))]
    found = []
    points = [
        Point(model.label, model.billions, cell.value, y_error=cell.stderr, group=model.family)
        for model, cells in rows
        if model.billions and isinstance(cell := cells[MAIN], Cell) and cell.value is not None
    ]
    if len(points) > 1:
        axes = ("parameters, billions", "QIMMA's average, percent")
        note = "One standard error on either side."
        found.append(scatter("qimma_size", "Average and size", axes, points, log_x=True, note=note))
    domains = {model.label: known for model, cells in rows if (known := _domains(cells))}
    if domains:
        note = (
            f"The first {MOST_SERIES} models; a click on a name shows it alone." if len(domains) > MOST_SERIES else ""
        )
        found.append(radar("qimma_domains", "Domains, percent", domains, note))
    return found


def _domains(cells: dict[Column, object]) -> dict[str, float]:
    """The domains' scores; nothing unless all are there."""
    found = {column.name: cell for column, cell in cells.items() if column.above == DOMAINS}
    known = {name: cell.value for name, cell in found.items() if isinstance(cell, Cell) and cell.value is not None}
    return known if len(known) == len(found) else {}
