"""Bars of a score by semantic field and by category, with Chinese labels.

No font is included. An SVG has text with a list of font families, which the viewer draws; a PDF and a PNG are written
only if this machine has a Chinese font.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from cultureval.reports.charts import FORMATS, Chart, Point, chart_files, draws, intervals
from cultureval.runtime.extras import MissingExtra, missing_packages
from cultureval.runtime.printing import print_note

CHINESE = "动物"
ROWS = 24  # more categories than these are drawn in two panels


def draw_categories(rows: Sequence[Mapping[str, Any]], metric: str, title: str, stem: Path) -> list[Path]:
    """Draws a panel of fields, and one or two of categories, with one standard error on either side.

    Args:
        rows: With `level` ("field" or "category"), `name`, `items`, the metric, 0 to 1, and `<metric>_stderr`, None
            where unknown; rows whose metric is None are left out.
        metric: The column to draw.
        stem: Path without suffix.

    Returns:
        The files written: an SVG and, where a Chinese font is installed, a PDF and a PNG; none, which is told once,
        where what draws them is not installed.
    """
    if missing_packages("page"):
        _tell_left_out()
        return []
    shown = _columns([row for row in rows if row[metric] is not None])
    panels = [
        {**intervals(stem.name, heading, "", [_point(row, metric) for row in members]).spec, "title": heading}
        for heading, members in shown.items()
    ]
    spec = panels[0] | {"hconcat": panels, "resolve": {"scale": {"x": "shared"}}}
    spec = {name: spec[name] for name in ("$schema", "config", "hconcat", "resolve")}
    for panel in panels:
        for name in ("$schema", "config"):
            panel.pop(name)
    chart = Chart(stem.name, title, spec, "One standard error on either side.")
    return chart_files(chart, stem.parent, FORMATS if draws(CHINESE) else ("svg",))


@cache
def _tell_left_out() -> None:
    print_note(f"CVLUE's plots by category are left out. {MissingExtra('page')}")


def _point(row: Mapping[str, Any], metric: str) -> Point:
    value, error = row[metric], row.get(f"{metric}_stderr") or 0.0
    label = f"{row['name']} ({row['items']}) {value:.2f}"
    return Point(label, value, low=value - error, high=value + error)


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, Sequence[Mapping[str, Any]]]:
    """The rows of each panel by its heading."""
    fields, members = ([row for row in rows if row["level"] == level] for level in ("field", "category"))
    if len(members) <= ROWS:
        return {"by field": fields, "by category": members}
    half = -(-len(members) // 2)
    return {"by field": fields, "by category": members[:half], "by category, continued": members[half:]}
