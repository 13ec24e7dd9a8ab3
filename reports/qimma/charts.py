"""QIMMA's charts of a leaderboard: average against size (the paper's Figure 5), domains with intervals."""

from collections.abc import Mapping, Sequence

from cultureval.reports.charts import Chart, Charted, Interval, Point, dots, interval_of_cell, scatter, without_size
from cultureval.reports.qimma.table import DOMAINS, MAIN, tables
from cultureval.runs.table import Cell, Column, one_row


def charts(models: Sequence[Charted]) -> list[Chart]:
    """The charts that the models' scores allow.

    Args:
        models: Comparable ones, the best first.
    """
    rows = [(model, row.cells) for model in models for row in map(one_row, tables(model.run))]
    found = []
    averages = [
        (model, cell) for model, cells in rows if isinstance(cell := cells[MAIN], Cell) and cell.value is not None
    ]
    points = [
        Point(model.label, model.billions, cell.value, y_error=cell.stderr, group=model.family)
        for model, cell in averages
        if model.billions
    ]
    if len(points) > 1:
        axes = ("parameters", "QIMMA's average, percent")
        note = without_size([model.label for model, _ in averages if not model.billions])
        found.append(scatter("qimma_size", "Average and size", axes, points, sizes=True, note=note))
    domains = {model.label: known for model, cells in rows if (known := _domains(cells))}
    if domains:
        found.append(dots("qimma_domains", "Domains, percent", domains))
    return found


def _domains(cells: Mapping[Column, object]) -> dict[str, Interval]:
    """The domains' scores that are there."""
    found = {column.name: interval_of_cell(cell) for column, cell in cells.items() if column.above == DOMAINS}
    return {name: interval for name, interval in found.items() if interval}
