"""QIMMA's chart of a leaderboard: the average against parameters."""

from dataclasses import replace

from cultureval.reports.charts import Chart, Point, chart_names, scatter, without_size
from cultureval.reports.leaderboard.board import BoardTable
from cultureval.reports.model_sizes import family
from cultureval.runs.table import AVERAGE
from cultureval.tasks.suite import SCORE


def charts(table: BoardTable) -> list[Chart]:
    """The chart, where two ranked models have a known size."""
    names = chart_names([row.name for row in table.ranked])
    points, unknown = [], []
    for row in table.ranked:
        cell, name = row.cells.get((AVERAGE, SCORE)), names[row.name]
        if cell is None or cell.value is None or row.entry is None:
            continue
        if size := row.entry.billions:
            points.append(Point(name, size, cell.value, y_error=cell.error, group=family(name)))
        else:
            unknown.append(name)
    if len(points) < 2:
        return []
    points = [replace(point, named=not any(p.x <= point.x and p.y > point.y for p in points)) for point in points]
    note = f"Names: models that no smaller model beats. {without_size(unknown)}".strip()
    axes = ("parameters", "QIMMA's average, percent")
    return [scatter("qimma_size", "Average and size", axes, points, sizes=True, note=note)]
