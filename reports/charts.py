"""Charts as specifications of Vega-Lite, made by altair: interactive on a page, SVG and PDF for papers."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.runs.record import Run
from cultureval.runtime.errors import CulturevalError

if TYPE_CHECKING:
    import altair

FORMATS = ("svg", "pdf")
WIDTH, HEIGHT = 560, 340
COLOURS = ("#3b6fb6", "#d1731f", "#3a8f5c", "#b23a48", "#7a5aa6", "#8c6d46", "#c45d9b", "#6b7280", "#a39b1f", "#2a94a8")
MOST_SERIES = 8  # of a radar
Row = dict[str, Any]  # of a chart's data


@dataclass(frozen=True)
class Charted:
    """A model in a chart.

    Attributes:
        label: Its name as shown.
        run: Its scores.
        billions: Its parameters, in billions; None where unknown.
        family: Its family; "" where unknown.
    """

    label: str
    run: Run
    billions: float | None = None
    family: str = ""


@dataclass(frozen=True)
class Chart:
    """A chart.

    Attributes:
        name: Of its files.
        title: Above it.
        spec: In Vega-Lite, with its data.
        note: Below it.
    """

    name: str
    title: str
    spec: Mapping[str, Any]
    note: str = ""


@dataclass(frozen=True)
class Point:
    """A mark of a scatter plot, a bar or a line of a forest plot.

    Attributes:
        label: What it is.
        x: Its value.
        y: Of a scatter plot.
        x_error: One standard error of x.
        y_error: Of y.
        low: Lower end of an interval of x.
        high: Upper end.
        group: Points of one group have one colour.
    """

    label: str
    x: float
    y: float = 0.0
    x_error: float | None = None
    y_error: float | None = None
    low: float | None = None
    high: float | None = None
    group: str = ""


def scatter(
    name: str,
    title: str,
    axes: tuple[str, str],
    points: Sequence[Point],
    *,
    log_x: bool = False,
    borders: tuple[float, float] | None = None,
    names: Sequence[tuple[float, float, str, str]] = (),
    limits: tuple[float, float] | None = None,
    note: str = "",
) -> Chart:
    """Points with one standard error on either side, and their labels.

    Args:
        name: Of its files.
        title: Above it.
        axes: Labels of x and y.
        points: At least one.
        log_x: Whether x is logarithmic.
        borders: A vertical and a horizontal line.
        names: Texts in the chart: x, y, text, alignment.
        limits: Of both axes.
        note: Below it.
    """
    import altair as alt

    x_scale = alt.Scale(type="log", nice=False, padding=24) if log_x else alt.Scale(zero=False, nice=not limits)
    y_scale = alt.Scale(zero=False, nice=not limits)
    if limits:
        x_scale, y_scale = alt.Scale(domain=limits, nice=False), alt.Scale(domain=limits, nice=False)
    base = alt.Chart(alt.Data(values=[_with_errors(point) for point in points])).encode(
        alt.X("x:Q").title(axes[0]).scale(x_scale), alt.Y("y:Q").title(axes[1]).scale(y_scale)
    )
    grouped = len({point.group for point in points} - {""}) > 1
    colour = alt.Color("group:N").title(None).scale(range=list(COLOURS)) if grouped else alt.value(COLOURS[0])
    tips = [alt.Tooltip("model:N"), alt.Tooltip("x:Q", title=axes[0], format=".4g")]
    tips.append(alt.Tooltip("y:Q", title=axes[1], format=".4g"))
    layers: list[Any] = _borders(borders)
    layers += [
        base.mark_rule(opacity=0.5).encode(x="x1:Q", x2="x2:Q", y="y:Q", color=colour),
        base.mark_rule(opacity=0.5).encode(y="y1:Q", y2="y2:Q", x="x:Q", color=colour),
        base.mark_circle(size=70, opacity=0.9).encode(color=colour, tooltip=tips),
        base.mark_text(align="left", dx=7, dy=-6, fontSize=9).encode(text="model:N"),
    ]
    layers += [
        alt.Chart(alt.Data(values=[{"x": x, "y": y, "t": text}]))
        .mark_text(align=align, fontStyle="italic", fontSize=10, opacity=0.7)
        .encode(x="x:Q", y="y:Q", text="t:N")
        for x, y, text, align in names
    ]
    return Chart(name, title, _spec(alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)), note)


def _with_errors(point: Point) -> Row:
    """A point of a scatter plot, and the ends of its bars."""
    across, up = point.x_error or 0, point.y_error or 0
    ends = {"x1": point.x - across, "x2": point.x + across, "y1": point.y - up, "y2": point.y + up}
    return {"model": point.label, "x": point.x, "y": point.y, "group": point.group, **ends}


def heat_map(
    name: str,
    title: str,
    cells: Mapping[str, Mapping[str, float]],
    *,
    value: str,
    digits: int = 1,
    note: str = "",
) -> Chart:
    """Models by columns, each cell with its number.

    Args:
        name: Of its files.
        title: Above it.
        cells: Model -> column -> value.
        value: What the values are.
        digits: Of the numbers.
        note: Below it.
    """
    import altair as alt

    models, columns = list(cells), list(dict.fromkeys(column for row in cells.values() for column in row))
    rows = [
        {"model": model, "column": column, "value": number}
        for model, row in cells.items()
        for column, number in row.items()
    ]
    values = [row["value"] for row in rows]
    middle = (min(values) + max(values)) / 2
    base = alt.Chart(alt.Data(values=rows)).encode(
        alt.X("column:N").title(None).sort(columns).axis(labelAngle=0, orient="top", labelLimit=90),
        alt.Y("model:N").title(None).sort(models).axis(labelLimit=260),
    )
    boxes = base.mark_rect().encode(
        alt.Color("value:Q").title(value).scale(scheme="blues", zero=False),
        tooltip=[
            alt.Tooltip("model:N"),
            alt.Tooltip("column:N"),
            alt.Tooltip("value:Q", title=value, format=f".{digits}f"),
        ],
    )
    numbers = base.mark_text(fontSize=10).encode(
        text=alt.Text("value:Q", format=f".{digits}f"),
        color=alt.condition(f"datum.value > {middle}", alt.value("white"), alt.value("#1a1a1a")),
    )
    size = {"width": max(160, 56 * len(columns)), "height": max(40, 24 * len(models))}
    return Chart(name, title, _spec(alt.layer(boxes, numbers).properties(**size)), note)


def radar(name: str, title: str, values: Mapping[str, Mapping[str, float]], note: str = "") -> Chart:
    """A polygon a model, an axis a name, from 0 to 100; at most `MOST_SERIES` models, the first ones.

    Args:
        name: Of its files.
        title: Above it.
        values: Model -> axis -> percent; every model has every axis.
        note: Below it.
    """
    import altair as alt

    grid, names, lines = _polygons(values)
    hidden: dict[str, Any] = {"axis": None, "scale": alt.Scale(domain=[-130, 130], nice=False)}
    x, y = alt.X("x:Q", **hidden), alt.Y("y:Q", **hidden)
    chosen = alt.selection_point(fields=["model"], bind="legend", name="chosen")
    colour = alt.Color("model:N").title(None).scale(range=list(COLOURS)).sort(list(values))
    layers = [
        alt.Chart(alt.Data(values=grid))
        .mark_line(color="#999999", strokeWidth=0.5)
        .encode(x, y, detail="ring:N", order="step:O"),
        alt.Chart(alt.Data(values=[{"t": level, "x": 0, "y": level} for level in (25, 50, 75, 100)]))
        .mark_text(fontSize=8, dx=4, align="left", opacity=0.7)
        .encode(x, y, text="t:N"),
        alt.Chart(alt.Data(values=names)).mark_text(fontSize=11).encode(x, y, text="t:N"),
        alt.Chart(alt.Data(values=lines))
        .mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=30))
        .encode(
            x,
            y,
            color=colour,
            order="step:O",
            opacity=alt.condition(chosen, alt.value(0.9), alt.value(0.08)),
            tooltip=[alt.Tooltip("model:N"), alt.Tooltip("axis:N"), alt.Tooltip("value:Q", format=".2f")],
        )
        .add_params(chosen),
    ]
    chart = alt.layer(*layers).properties(width=380, height=380, view=alt.ViewBackground(stroke=None))
    return Chart(name, title, _spec(chart), note)


def _polygons(values: Mapping[str, Mapping[str, float]]) -> tuple[list[Row], list[Row], list[Row]]:
    """The rows of a radar's grid, of its axes' names, and of its polygons, with the place of each point."""
    axes = list(next(iter(values.values())))
    angles = {axis: math.pi / 2 - 2 * math.pi * place / len(axes) for place, axis in enumerate(axes)}
    ring = [*axes, axes[0]]

    def place(axis: str, radius: float) -> Row:
        return {"x": radius * math.cos(angles[axis]), "y": radius * math.sin(angles[axis])}

    grid = [
        {"ring": level, "step": step, **place(axis, level)}
        for level in (25, 50, 75, 100)
        for step, axis in enumerate(ring)
    ]
    lines = [
        {"model": model, "axis": axis, "value": row[axis], "step": step, **place(axis, row[axis])}
        for model, row in list(values.items())[:MOST_SERIES]
        for step, axis in enumerate(ring)
    ]
    return grid, [{"t": axis, **place(axis, 116)} for axis in axes], lines


def intervals(
    name: str, title: str, label: str, points: Sequence[Point], *, bars: bool = True, zero: bool = True, note: str = ""
) -> Chart:
    """A row each: a bar or a mark with its interval; of differences, without bars, a forest plot.

    Args:
        name: Of its files.
        title: Above it.
        label: Of the values' axis.
        points: In order; an interval is `low` to `high`, none where these are unknown.
        bars: Whether values are drawn as bars from 0.
        zero: Whether a line marks 0.
        note: Below it.
    """
    import altair as alt

    rows = [
        {
            "label": point.label,
            "group": point.group,
            "x": point.x,
            "low": point.x if point.low is None else point.low,
            "high": point.x if point.high is None else point.high,
        }
        for point in points
    ]
    order = [point.label for point in points]
    base = alt.Chart(alt.Data(values=rows)).encode(
        alt.Y("label:N").title(None).sort(order).axis(labelLimit=260),
        tooltip=[alt.Tooltip("label:N"), *(alt.Tooltip(f"{key}:Q", format=".2f") for key in ("x", "low", "high"))],
    )
    grouped = len({point.group for point in points} - {""}) > 1
    colour = alt.Color("group:N").title(None).scale(range=list(COLOURS)) if grouped else alt.value(COLOURS[0])
    x = alt.X("x:Q").title(label).scale(zero=bars)
    marks = base.mark_bar(opacity=0.75, height={"band": 0.7}) if bars else base.mark_point(filled=True, size=50)
    layers = _borders((0.0, None)) if zero and not bars else []
    layers += [marks.encode(x, color=colour), base.mark_rule().encode(alt.X("low:Q").title(label), x2="high:Q")]
    return Chart(name, title, _spec(alt.layer(*layers).properties(width=WIDTH, height=max(60, 15 * len(rows)))), note)


def chart_files(chart: Chart, folder: Path, formats: Sequence[str]) -> list[Path]:
    """Writes a chart for papers; the same chart gives the same bytes.

    Args:
        chart: The chart.
        folder: An existing one.
        formats: Of `FORMATS`.
    """
    import vl_convert

    files = []
    picture = vl_convert.vegalite_to_svg(json.dumps(printed(chart.spec, chart.title))) if formats else ""
    for one in formats:
        file = folder / f"{chart.name}.{one}"
        file.write_bytes(vl_convert.svg_to_pdf(picture) if one == "pdf" else picture.encode("utf-8"))
        files.append(file)
    return files


def printed(spec: Mapping[str, Any], title: str) -> dict[str, Any]:
    """A specification for paper: on white, with its title."""
    return {**spec, "background": "white", "title": {"text": title, "anchor": "start", "fontSize": 12}}


def chart_formats(text: str) -> tuple[str, ...]:
    """The formats that a list such as "svg,pdf" names; "none": no files.

    Raises:
        CulturevalError: One is not among `FORMATS`.
    """
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    if names == ["none"]:
        return ()
    if not names or any(name not in FORMATS for name in names):
        raise CulturevalError(f"--charts names {text!r}; choose among {', '.join(FORMATS)}, or none.")
    return tuple(dict.fromkeys(names))


def _borders(borders: tuple[float | None, float | None] | None) -> list[Any]:
    import altair as alt

    if borders is None:
        return []
    x, y = borders
    lines: list[Any] = []
    if x is not None:
        lines.append(alt.Chart(alt.Data(values=[{"x": x}])).mark_rule(strokeDash=[4, 3], opacity=0.6).encode(x="x:Q"))
    if y is not None:
        lines.append(alt.Chart(alt.Data(values=[{"y": y}])).mark_rule(strokeDash=[4, 3], opacity=0.6).encode(y="y:Q"))
    return lines


def _spec(chart: "altair.TopLevelMixin") -> dict[str, Any]:
    """The specification, in whose texts nothing is an address or a formula."""
    found = chart.to_dict(validate=True)
    found["usermeta"] = {"embedOptions": {"actions": False}}
    return found
