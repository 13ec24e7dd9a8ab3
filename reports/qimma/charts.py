"""QIMMA's charts of a leaderboard: the average against parameters, and the domains with their intervals."""

from cultureval.reports.charts import Chart, Interval, Point, chart_names, dots, scatter, without_size
from cultureval.reports.leaderboard.assets import shown
from cultureval.reports.leaderboard.board import BoardTable
from cultureval.reports.model_sizes import family
from cultureval.runs.table import AVERAGE
from cultureval.tasks.qimma.benchmarks import benchmark_tasks
from cultureval.tasks.suite import SCORE


def charts(table: BoardTable) -> list[Chart]:
    """The charts that the ranked models' scores allow."""
    shorter = chart_names([shown(row.name) for row in table.ranked])
    names = {row.name: shorter[shown(row.name)] for row in table.ranked}
    points, unknown = [], []
    for row in table.ranked:
        cell = row.cells.get((AVERAGE, SCORE))
        if cell is None or cell.value is None:
            continue
        size, group = row.entry.billions if row.entry else None, family(names[row.name])
        if size:
            points.append(Point(names[row.name], size, cell.value, y_error=cell.error, group=group))
        else:
            unknown.append(names[row.name])
    found = []
    if len(points) > 1:
        best = [one.label for one in points if not any(two.x <= one.x and two.y > one.y for two in points)]
        note = f"Named are models that no smaller one beats. {without_size(unknown)}".strip()
        axes = ("parameters", "QIMMA's average, percent")
        found.append(scatter("qimma_size", "Average and size", axes, points, sizes=True, named=best, note=note))
    domains = list(dict.fromkeys(tasks[0].domain for tasks in benchmark_tasks().values()))
    values: dict[str, dict[str, Interval]] = {}
    for row in table.ranked:
        cells = {name: row.cells.get((name, SCORE)) for name in domains}
        known = {
            name: (cell.value, cell.low, cell.high) for name, cell in cells.items() if cell and cell.value is not None
        }
        if known:
            values[names[row.name]] = known
    return [*found, *([dots("qimma_domains", "Domains, percent", values)] if len(values) > 1 else [])]
