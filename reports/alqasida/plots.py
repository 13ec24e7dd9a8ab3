"""Plots of AL-QASIDA: means by group, distribution of dialectness, input against output, radar, regression tree.

Every plot stays readable with twenty models: each model is a row, or has a panel of its own.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cultureval.reports.charts import (
    PANEL,
    Chart,
    Row,
    chart_names,
    facet,
    group_colour,
    in_panels,
    polygon,
    radar_grid,
    radar_places,
    specification,
)
from cultureval.runtime.errors import counted

HEXAGONS = 24  # across a panel
PANEL_NAME = 26  # letters of a series' name above its panel
BINS = 20
COLUMNS = 5  # of panels
LEAF, LEVEL = 120, 90  # pixels of a tree


class PlottedPoint(NamedTuple):
    """A mean of a series in a panel.

    Attributes:
        value: The mean.
        stderr: Its standard error; nan where unknown, which is not drawn.
        baseline: A value to compare with, drawn as a line across the row; nan: none.
        complete: Whether the mean is over everything that others have; drawn hollow if not.
    """

    value: float
    stderr: float = math.nan
    baseline: float = math.nan
    complete: bool = True


def means(
    name: str, title: str, label: str, points: Mapping[str, Mapping[str, PlottedPoint]], everyone: Sequence[str]
) -> Chart:
    """A panel for each group and in it a row for each series: its mean with one standard error on either side.

    The series with the highest mean over the groups is at the top.

    Args:
        points: Group -> series -> mean.
        everyone: All series of all plots, in whose order they have their colours.
    """
    import altair as alt

    names = sorted({name for members in points.values() for name in members})
    short = chart_names(everyone)
    order = [short[name] for name in sorted(names, key=lambda name: -_mean_over(points, name))]
    rows = [_mean_row(group, short[name], point) for group, found in points.items() for name, point in found.items()]
    base = alt.Chart().encode(alt.Y("group:N").title(None).sort(order).axis(labelLimit=260))
    marks = base.encode(alt.X("value:Q").title(label), color=group_colour([*short.values()], legend=False))
    layers = [
        base.mark_tick(color="#555555").encode(x="baseline:Q").transform_filter("isValid(datum.baseline)"),
        base.mark_rule(color="#555555").encode(x="low:Q", x2="high:Q"),
        marks.mark_point(filled=True, size=40, opacity=1).transform_filter("datum.complete"),
        marks.mark_point(size=40, opacity=1).transform_filter("!datum.complete"),
    ]
    note = ["one standard error on either side"]
    note += ["tick: untranslated source"] if any(row["baseline"] is not None for row in rows) else []
    note += [] if all(row["complete"] for row in rows) else ["hollow: mean of fewer dialects than others have"]
    facets = {"facet": facet("panel", alt.Facet, list(points)), "columns": 4 if len(points) != COLUMNS else COLUMNS}
    return in_panels(name, title, layers, rows, facets, size=(PANEL, 14 * len(names)), note="; ".join(note))


def _mean_row(group: str, series: str, point: PlottedPoint) -> Row:
    spread = 0 if math.isnan(point.stderr) else point.stderr
    return {
        "panel": group,
        "group": series,
        "value": _known(point.value),
        "low": _known(point.value - spread),
        "high": _known(point.value + spread),
        "baseline": _known(point.baseline),
        "complete": point.complete,
    }


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def distribution(
    name: str, title: str, label: str, values: Mapping[str, Sequence[float]], everyone: Sequence[str]
) -> Chart:
    """The distribution of a score between 0 and 1 as shares of samples in 20 bins, a panel for each series.

    The grey outline is the mean of all series, the vertical line the series' mean. Arguments as in `means`, but
    `values` are those of each series.
    """
    import altair as alt
    import numpy as np

    short = chart_names(everyone, PANEL_NAME)
    edges = np.linspace(0, 1, BINS + 1).tolist()
    shares = {series: np.histogram(scores, edges)[0] / len(scores) for series, scores in values.items()}
    every = np.mean(list(shares.values()), axis=0)
    rows: list[Row] = []
    for series, scores in values.items():
        bins = zip(edges, edges[1:], shares[series].tolist(), every.tolist(), strict=False)
        found = [dict(zip(("low", "high", "share", "every"), one, strict=True)) for one in bins]
        found += [{"low": 1.0, "every": float(every[-1])}, {"mean": float(np.mean(scores))}]
        rows += [one | {"group": short[series]} for one in found]
    bars = alt.Chart().mark_bar(opacity=0.8).transform_filter("isValid(datum.high)")
    outline = alt.Chart().mark_line(interpolate="step-after", color="#555555", strokeWidth=0.7)
    x, y = alt.X("low:Q").title(label).scale(domain=[0, 1]), alt.Y("share:Q").title("share of samples")
    layers = [
        bars.encode(x, y, x2="high:Q", y2=alt.datum(0), color=group_colour([*short.values()], legend=False)),
        outline.transform_filter("isValid(datum.every)").encode(x="low:Q", y="every:Q"),
        alt.Chart().mark_rule(strokeDash=[4, 3]).transform_filter("isValid(datum.mean)").encode(x="mean:Q"),
    ]
    note = "dashed: mean of the model; outline: mean of all models' shares"
    facets = {"facet": facet("group", alt.Facet, [short[one] for one in values]), "columns": COLUMNS}
    return in_panels(name, title, layers, rows, facets, size=(140, 90), note=note)


def density(
    name: str, title: str, labels: tuple[str, str], points: Mapping[str, tuple[Sequence[float], Sequence[float]]]
) -> Chart:
    """Pairs of values between 0 and 1 as counts in hexagons, a panel for each series, with the diagonal.

    Args:
        labels: Of the horizontal and the vertical axis.
        points: Series -> values on the horizontal and on the vertical axis.
    """
    import altair as alt

    short, side = chart_names(list(points), PANEL_NAME), 150
    rows = [
        {"group": short[series], "x": x, "y": y, "samples": count}
        for series, pairs in points.items()
        for (x, y), count in _hexagons(*pairs).items()
    ]
    width = math.sqrt(3) / 2  # half of a hexagon's, of radius 1
    hexagon = f"M0,-1L{width},-0.5L{width},0.5L0,1L-{width},0.5L-{width},-0.5Z"
    size = (side / HEXAGONS / width) ** 2  # Vega draws a shape of radius 1 with half the root of its size
    scale = alt.Scale(domain=[-0.03, 1.03], nice=False)
    colour = alt.Color("samples:Q").scale(type="log", scheme="viridis", reverse=True).legend(format="d")
    drawn = alt.Chart().mark_point(filled=True, shape=hexagon, size=size, opacity=1, strokeWidth=0)
    diagonal = alt.Chart(alt.Data(values=[{"x": 0, "y": 0}, {"x": 1, "y": 1}]))
    layers = [
        diagonal.mark_line(color="#777777", strokeWidth=0.8, strokeDash=[4, 3]).encode(x="x:Q", y="y:Q"),
        drawn.encode(
            alt.X("x:Q").title(labels[0]).scale(scale), alt.Y("y:Q").title(labels[1]).scale(scale), color=colour
        ),
    ]
    facets = {"facet": facet("group", alt.Facet, [short[one] for one in points]), "columns": COLUMNS}
    return in_panels(name, title, layers, rows, facets, size=(side, side))


def _hexagons(xs: Sequence[float], ys: Sequence[float]) -> Counter[tuple[float, float]]:
    """The centre of the hexagon that each pair is in: the nearer one of two lattices of rectangles."""
    across, up = HEXAGONS, HEXAGONS / math.sqrt(3)
    found: Counter[tuple[float, float]] = Counter()
    for x, y in zip(xs, ys, strict=True):
        whole = round(x * across) / across, round(y * up) / up
        half = (math.floor(x * across) + 0.5) / across, (math.floor(y * up) + 0.5) / up
        found[min(whole, half, key=lambda place: math.dist(place, (x, y)))] += 1
    return found


def radars(name: str, title: str, axes_of: Mapping[str, Mapping[str, float]], everyone: Sequence[str]) -> Chart | None:
    """A panel with a polygon over competencies for each series; the grey polygon is the mean of all series.

    Args:
        axes_of: Competency -> series -> score between 0 and 1.
        everyone: All series of all plots, in whose order they have their colours.

    Returns:
        The chart; None if no series has three competencies, which a polygon needs.
    """
    import altair as alt

    scores = {
        series: {axis: found[series] for axis, found in axes_of.items() if series in found} for series in everyone
    }
    names = [series for series in everyone if len(scores[series]) > 2]
    if not names:
        return None
    short, axes = chart_names(everyone, PANEL_NAME), list(axes_of)
    average = {axis: sum(found.values()) / len(found) for axis, found in axes_of.items()}
    highest = max(value for found in axes_of.values() for value in found.values())
    top = max(0.1, math.ceil(10 * highest) / 10)
    kinds = {"mean": dict.fromkeys(names, average), "own": {series: scores[series] for series in names}}
    rows = [
        row
        for kind, found in kinds.items()
        for series, values in found.items()
        for row in polygon(axes, values, group=short[series], kind=kind)
    ]
    base = alt.Chart().encode(*radar_places(top), order="step:O")
    layers = [
        *radar_grid(axes, top, size=7),
        base.mark_line(color="#777777", strokeWidth=0.8).transform_filter("datum.kind == 'mean'"),
        base.mark_line(strokeWidth=1.6, point=alt.OverlayMarkDef(size=14))
        .transform_filter("datum.kind == 'own'")
        .encode(color=group_colour([*short.values()], legend=False)),
    ]
    facets = {"facet": facet("group", alt.Facet, [short[one] for one in names]), "columns": COLUMNS}
    return in_panels(name, title, layers, rows, facets, note="grey: mean of all models")


def tree(name: str, title: str, nodes: Sequence[Mapping[str, Any]]) -> Chart:
    """A regression tree: each node with the rule that leads to it, its mean and its number of samples.

    Args:
        nodes: As `metrics.alqasida.feature_analysis.TreeNode`, a parent before its children, the left child first.
    """
    import altair as alt

    places = _tree_places(nodes)
    rows = []
    for node in nodes:
        x, y = places[node["number"]]
        above = places[node["number"] if node["parent"] is None else node["parent"]]
        lines = [*_rule_lines(node["rule"]), f"mean {node['value']:.3f}", counted(node["count"], "sample")]
        box = {"left": x - 0.47, "right": x + 0.47, "low": y - 0.32, "high": y + 0.32}
        link = {"from_x": above[0], "from_y": above[1], "count": node["count"]}
        rows.append({"x": x, "y": y, "text": lines, "value": node["value"], **box, **link})
    links = alt.Chart().mark_rule(color="#999999")
    boxes = alt.Chart().mark_rect(stroke="#666666", strokeWidth=0.6, cornerRadius=4)
    texts = alt.Chart().mark_text(fontSize=9, baseline="middle", dy=-12)
    fill = alt.Color("value:Q").scale(range=["#eef5fb", "#7fb0dc"], zero=False).legend(None)
    width = alt.StrokeWidth("count:Q").scale(range=[0.5, 3]).legend(None)
    hidden: dict[str, Any] = {"axis": None, "scale": alt.Scale(nice=False, zero=False)}
    layers = [
        links.encode(alt.X("x:Q", **hidden), alt.Y("y:Q", **hidden), x2="from_x:Q", y2="from_y:Q", strokeWidth=width),
        boxes.encode(alt.X("left:Q", **hidden), alt.Y("low:Q", **hidden), x2="right:Q", y2="high:Q", color=fill),
        texts.encode(alt.X("x:Q", **hidden), alt.Y("y:Q", **hidden), text="text:N"),
    ]
    leaves, deepest = sum(node["is_leaf"] for node in nodes), max(node["depth"] for node in nodes)
    chart = alt.layer(*layers, data=alt.Data(values=rows))
    chart = chart.properties(width=LEAF * leaves, height=LEVEL * (deepest + 1), view=alt.ViewBackground(stroke=None))
    return Chart(name, title, specification(chart))


def _tree_places(nodes: Sequence[Mapping[str, Any]]) -> dict[int, tuple[float, float]]:
    """Where each node is drawn: leaves side by side, a parent above the middle of its children."""
    leaves = [node["number"] for node in nodes if node["is_leaf"]]
    across = {number: float(place) for place, number in enumerate(leaves)}
    for node in reversed(nodes):
        if not node["is_leaf"]:
            children = [across[child["number"]] for child in nodes if child["parent"] == node["number"]]
            across[node["number"]] = sum(children) / len(children)
    return {node["number"]: (across[node["number"]], -float(node["depth"])) for node in nodes}


def _rule_lines(rule: str) -> list[str]:
    """The rule of a branch in short lines: its category, or its threshold with three digits."""
    if not rule:
        return ["all samples"]
    feature, is_category, category = rule.partition(" = ")
    if is_category:
        name = feature.removeprefix("not ")
        return [f"{name} {'is' if name == feature else 'is not'}", chart_names([category], 20)[category] or "(none)"]
    feature, sign, threshold = rule.rsplit(" ", 2)
    return [f"{feature} {'≤' if sign == '<=' else '>'} {float(threshold):.3g}"]


def _mean_over(points: Mapping[str, Mapping[str, PlottedPoint]], name: str) -> float:
    values = [members[name].value for members in points.values() if name in members]
    values = [value for value in values if not math.isnan(value)]
    return sum(values) / len(values) if values else -math.inf
