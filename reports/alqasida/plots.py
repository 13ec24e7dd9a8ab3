"""Plots of AL-QASIDA: means by group, distribution of dialectness, input against output, radar, regression tree.

Every plot stays readable with twenty models: each model is a row, or has a panel of its own.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cultureval.reports.drawing import (
    Styles,
    figure_style,
    label_axes,
    legend_below,
    panels,
    save_figure,
    short_names,
)
from cultureval.runtime.errors import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW = 0.16  # height of a model's row, in inches
HEXAGONS = 24  # across a panel
PANEL_NAME = 26  # letters of a series' name above its panel


class Point(NamedTuple):
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


@figure_style()
def draw_means(
    points: Mapping[str, Mapping[str, Point]],
    styles: Styles,
    title: str,
    label: str,
    stem: Path,
    formats: Sequence[str],
) -> list[Path]:
    """A panel for each group and in it a row for each series: its mean with one standard error on either side.

    The series with the highest mean over the groups is at the top.

    Args:
        points: Group -> series -> mean.
        styles: Of the series, from `series_styles`.
        title: Title of the plot.
        label: Label of the value axis.
        stem: Path without suffix.
        formats: Of the files.
    """
    names = sorted({name for members in points.values() for name in members})
    short = short_names(names)
    order = sorted(names, key=lambda name: _mean_over(points, name))
    most = 4 if len(points) != 5 else 5
    figure, places = panels(len(points), 2.3, ROW * len(names) + 0.65, most, sharex=True, sharey=True)
    for axes, (group, members) in zip(places, points.items(), strict=True):
        for row, name in enumerate(order):
            if name in members:
                _draw_point(axes, row, members[name], styles[name])
        axes.set_title(group)
    places[0].set_yticks(range(len(order)), [short[name] for name in order])
    places[0].set_ylim(-0.6, len(order) - 0.4)
    places[0].set_xlim(left=0)
    label_axes(places, label)
    figure.suptitle(title, fontsize=9)
    legend_below(figure, _marks_of(points))
    return save_figure(figure, stem, formats)


@figure_style()
def draw_distribution(
    values: Mapping[str, Sequence[float]], styles: Styles, title: str, label: str, stem: Path, formats: Sequence[str]
) -> list[Path]:
    """The distribution of a score between 0 and 1 as shares of samples in 20 bins, a panel for each series.

    The grey outline is the mean of all series, the vertical line the series' mean. Arguments as in `draw_means`, but
    `values` are those of each series.
    """
    import numpy as np

    short = short_names(list(values), PANEL_NAME)
    edges = np.linspace(0, 1, 21)
    shares = {name: np.histogram(scores, edges)[0] / len(scores) for name, scores in values.items()}
    figure, places = panels(len(values), 1.8, 1.4, sharex=True, sharey=True)
    for axes, (name, scores) in zip(places, values.items(), strict=True):
        axes.stairs(shares[name], edges, fill=True, color=styles[name]["color"], alpha=0.8)
        if len(values) > 1:
            axes.stairs(np.mean(list(shares.values()), axis=0), edges, color="0.35", linewidth=0.7)
        axes.axvline(float(np.mean(scores)), color="0.1", linewidth=0.9, linestyle="--")
        axes.set_title(short[name], fontsize=7)
    places[0].set(xlim=(0, 1), xticks=(0, 0.5, 1))
    label_axes(places, label, "share of samples")
    figure.suptitle(title, fontsize=9)
    marks = {"mean of the model": {"color": "0.1", "linestyle": "--"}}
    marks |= {"mean of all models' shares": {"color": "0.35", "linestyle": "-"}} if len(values) > 1 else {}
    legend_below(figure, marks)
    return save_figure(figure, stem, formats)


@figure_style()
def draw_density(
    points: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    title: str,
    labels: tuple[str, str],
    stem: Path,
    formats: Sequence[str],
) -> list[Path]:
    """Pairs of values between 0 and 1 as counts in hexagons, a panel for each series, with the diagonal.

    Args:
        points: Series -> values on the horizontal and on the vertical axis.
        title: Title of the plot.
        labels: Of the horizontal and the vertical axis.
        stem: Path without suffix.
        formats: Of the files.
    """
    from matplotlib.colors import LogNorm

    short = short_names(list(points), PANEL_NAME)
    figure, places = panels(len(points), 1.8, 1.85, sharex=True, sharey=True)
    drawn = []
    for axes, (name, (given, written)) in zip(places, points.items(), strict=True):
        axes.grid(False)
        axes.plot((0, 1), (0, 1), color="0.5", linewidth=0.8, linestyle="--")
        size = {"gridsize": HEXAGONS, "extent": (0, 1, 0, 1), "mincnt": 1}
        drawn.append(axes.hexbin(given, written, **size, cmap="viridis_r", linewidths=0.1))
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
        axes.set_title(short[name], fontsize=7)
    scale = LogNorm(1, max(2, *(hexagons.get_array().max() for hexagons in drawn)))
    for hexagons in drawn:
        hexagons.set_norm(scale)
    figure.colorbar(drawn[0], ax=places, label="samples", shrink=0.7, aspect=30, format="%d")
    label_axes(places, *labels)
    figure.suptitle(title, fontsize=9)
    return save_figure(figure, stem, formats)


@figure_style()
def draw_radar(
    axes_of: Mapping[str, Mapping[str, float]], styles: Styles, title: str, stem: Path, formats: Sequence[str]
) -> list[Path]:
    """A panel with a polygon over competencies for each series; the grey polygon is the mean of all series.

    Args:
        axes_of: Competency -> series -> score between 0 and 1.
        styles: Of the series, from `series_styles`.
        title: Title of the plot.
        stem: Path without suffix.
        formats: Of the files.

    Returns:
        The files; [] if no series has three competencies, which a polygon needs.
    """
    from matplotlib.ticker import MaxNLocator

    everyone = sorted({name for scores in axes_of.values() for name in scores})
    names = [name for name in everyone if sum(name in scores for scores in axes_of.values()) > 2]
    if not names:
        return []
    short = short_names(names, PANEL_NAME)
    angles = [2 * math.pi * number / len(axes_of) for number in range(len(axes_of))]
    means = [sum(scores.values()) / len(scores) for scores in axes_of.values()]
    highest = max(value for scores in axes_of.values() for value in scores.values())
    figure, places = panels(len(names), 2.1, 2.2, subplot_kw={"projection": "polar"})
    for axes, name in zip(places, names, strict=True):
        if len(names) > 1:
            axes.plot([*angles, angles[0]], [*means, means[0]], color="0.45", linewidth=0.7)
        _draw_polygon(axes, angles, [scores.get(name, math.nan) for scores in axes_of.values()], styles[name]["color"])
        axes.set_xticks(angles, list(axes_of), fontsize=5.5)
        axes.tick_params(axis="x", pad=4)
        axes.tick_params(axis="y", labelsize=5)
        axes.set_yticks(MaxNLocator(3).tick_values(0, highest)[1:])
        axes.set(ylim=(0, min(1.0, highest * 1.1) or 1.0), theta_zero_location="N", theta_direction=-1)
        axes.set_title(short[name], fontsize=7, pad=8)
    figure.suptitle(title, fontsize=9)
    if len(names) > 1:
        legend_below(figure, {"mean of all models": {"color": "0.45", "linestyle": "-"}})
    return save_figure(figure, stem, formats)


@figure_style({"axes.grid": False})
def draw_tree(nodes: Sequence[Mapping[str, Any]], title: str, stem: Path, formats: Sequence[str]) -> list[Path]:
    """A regression tree: each node with the rule that leads to it, its mean and its number of samples.

    Args:
        nodes: As `metrics.alqasida.feature_analysis.TreeNode`, a parent before its children, the left child first.
        title: Title of the plot.
        stem: Path without suffix.
        formats: Of the files.
    """
    from matplotlib import colormaps
    from matplotlib.colors import Normalize

    places = _tree_places(nodes)
    leaves, deepest = sum(node["is_leaf"] for node in nodes), max(node["depth"] for node in nodes)
    figure, (axes,) = panels(1, max(3.2, 1.35 * leaves), 0.85 * (deepest + 1) + 0.3)
    scale = Normalize(min(node["value"] for node in nodes), max(node["value"] for node in nodes))
    for node in nodes:
        place = places[node["number"]]
        if node["parent"] is not None:
            width = 0.5 + 2.5 * node["count"] / nodes[0]["count"]
            axes.plot(*zip(places[node["parent"]], place, strict=True), color="0.6", linewidth=width, zorder=1)
        text = "\n".join([*_rule_lines(node["rule"]), f"mean {node['value']:.3f}", counted(node["count"], "sample")])
        fill = colormaps["Blues"](0.05 + 0.5 * float(scale(node["value"])))
        box = {"boxstyle": "round,pad=0.35", "facecolor": fill, "edgecolor": "0.4", "linewidth": 0.6}
        axes.text(*place, text, ha="center", va="center", fontsize=7, bbox=box, zorder=2)
    axes.set(xlim=(-0.6, leaves - 0.4), ylim=(-deepest - 0.4, 0.4), title=title)
    axes.set_axis_off()
    return save_figure(figure, stem, formats)


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
        return [f"{name} {'is' if name == feature else 'is not'}", short_names([category], 20)[category] or "(none)"]
    feature, sign, threshold = rule.rsplit(" ", 2)
    return [f"{feature} {'≤' if sign == '<=' else '>'} {float(threshold):.3g}"]


def _marks_of(points: Mapping[str, Mapping[str, Point]]) -> dict[str, dict[str, Any]]:
    """The entries of the legend of `draw_means`."""
    every = [point for members in points.values() for point in members.values()]
    marks: dict[str, dict[str, Any]] = {"one standard error on either side": {"color": "0.3", "linestyle": "-"}}
    if any(not math.isnan(point.baseline) for point in every):
        marks["untranslated source"] = {"color": "0.3", "marker": "|", "markersize": 9}
    if not all(point.complete for point in every):
        marks["mean of fewer dialects than others have"] = {"color": "0.3", "marker": "o", "fillstyle": "none"}
    return marks


def _draw_polygon(axes: "Axes", angles: Sequence[float], heights: Sequence[float], colour: Any) -> None:
    axes.plot([*angles, angles[0]], [*heights, heights[0]], color=colour, linewidth=1.4, marker="o", markersize=2.5)
    axes.fill(angles, [0 if math.isnan(height) else height for height in heights], color=colour, alpha=0.15)


def _draw_point(axes: "Axes", row: int, point: Point, style: Mapping[str, Any]) -> None:
    spread = None if math.isnan(point.stderr) else point.stderr
    fill = {} if point.complete else {"fillstyle": "none", "markeredgecolor": style["color"], "markeredgewidth": 1}
    axes.errorbar(
        point.value,
        row,
        xerr=spread,
        linestyle="",
        ecolor="0.3",
        elinewidth=0.8,
        capsize=1.5,
        markersize=4.5,
        **style | fill,
    )
    if not math.isnan(point.baseline):
        axes.plot(point.baseline, row, marker="|", color="0.3", markersize=9, linestyle="")


def _mean_over(points: Mapping[str, Mapping[str, Point]], name: str) -> float:
    values = [members[name].value for members in points.values() if name in members]
    values = [value for value in values if not math.isnan(value)]
    return sum(values) / len(values) if values else -math.inf
