"""Forest plots of a comparison: a line a difference with its interval, beside a line at 0."""

from collections.abc import Sequence

from cultureval.reports.charts import Chart, Point, intervals
from cultureval.reports.comparison.paired_runs import TestedDifference
from cultureval.runtime.errors import escaped


def forest_plots(number: int, first: str, second: str, rows: Sequence[TestedDifference]) -> list[Chart]:
    """The differences of a pair with known intervals; shares between 0 and 1 and other scores are two plots.

    Args:
        number: Of the pair, in the plots' names.
        first: Name of the first side.
        second: Name of the second.
        rows: Of all pairs.
    """
    shares: list[Point] = []
    others: list[Point] = []
    for row in rows:
        found = row.result
        if (row.first, row.second) != (first, second) or found.low is None or found.high is None:
            continue
        share = max(abs(found.first), abs(found.second)) <= 1
        scale, label = 100 if share else 1, escaped(f"{row.name} {row.metric}")
        if row.could_turn:
            label = f"{label} (items left out could turn it)"
        point = Point(label, scale * found.difference, low=scale * found.low, high=scale * found.high)
        (shares if share else others).append(point)
    title, note = escaped(f"{first} minus {second}"), "95 % intervals, each for itself."
    found_plots = [(f"differences_{number}", "percentage points", shares), (f"differences_{number}_points", "", others)]
    return [
        intervals(name, title, unit or "on the scale of each metric", points, bars=False, note=note)
        for name, unit, points in found_plots
        if points
    ]
