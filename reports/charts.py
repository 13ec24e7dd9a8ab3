"""Charts as specifications of Vega-Lite, made by altair: interactive on a page, SVG, PDF and PNG for papers.

vl-convert joins Arabic letters and orders them; a name that begins with them needs isolates around it (`isolated`).
"""

import json
import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.reports.model_sizes import SIZE_LABEL, size_text, size_ticks
from cultureval.runs.means import Estimate
from cultureval.runs.record import Run
from cultureval.runs.table import Cell
from cultureval.runtime.errors import CulturevalError, shown_names
from cultureval.runtime.extras import MissingExtra, missing_packages

if TYPE_CHECKING:
    import altair

FORMATS = ("pdf", "svg", "png")
WIDTH, HEIGHT = 560, 340
PANEL = 190  # pixels
COLOURS = ("#3b6fb6", "#d1731f", "#3a8f5c", "#b23a48", "#7a5aa6", "#8c6d46", "#c45d9b", "#6b7280", "#a39b1f", "#2a94a8")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
MOST_PANELS, DOTS_WIDTH = 8, 104  # of dot plots: panels side by side, pixels of each
LONGEST_NAME = 36  # letters of a series' name
FONTS = (  # of files: the first has Arabic, the others Chinese, where they are installed
    "DejaVu Sans, Noto Sans CJK SC, Noto Sans SC, Source Han Sans SC, PingFang SC, Microsoft YaHei, "
    "WenQuanYi Micro Hei, WenQuanYi Zen Hei, SimHei, Droid Sans Fallback, Arial Unicode MS, sans-serif"
)
SCALE = 2.5  # pixels of a PNG for one of the page
LETTER = 5.8  # pixels of a letter of a point's name, at most
SIDES = (("left", 8, 0), ("right", -8, 0), ("center", 0, -12), ("center", 0, 12))  # of a point, where its name may be
Row = dict[str, Any]  # of a chart's data
Ends = tuple[float, float]
Interval = tuple[float, float | None, float | None]  # a value and the ends of its interval, None where unknown


@dataclass(frozen=True)
class Charted:
    """A model in a chart: its name as shown, its scores, its billions of parameters and its family where known."""

    label: str
    run: Run
    billions: float | None = None
    family: str = ""


@dataclass(frozen=True)
class Chart:
    """A chart: its files' name without suffix, its title, its specification with the data, and a note below it."""

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
        y: Its second value, in a scatter plot.
        x_error: One standard error of x.
        y_error: One standard error of y.
        low: Lower end of an interval of x.
        high: Upper end.
        group: Points of one group have one colour.
        panel: The column and the row of panels where it stands; empty in a plot of one panel.
    """

    label: str
    x: float
    y: float = 0.0
    x_error: float | None = None
    y_error: float | None = None
    low: float | None = None
    high: float | None = None
    group: str = ""
    panel: tuple[str, str] = ("", "")


def scatter(
    name: str,
    title: str,
    axes: tuple[str, str],
    points: Sequence[Point],
    *,
    sizes: bool = False,
    borders: tuple[float, float] | None = None,
    names: Sequence[tuple[float, float, str, str]] = (),
    limits: tuple[float, float] | None = None,
    lines: bool = False,
    note: str = "",
) -> Chart:
    """Points with one standard error on either side: in one panel with the labels that fit, in several with a legend.

    Args:
        axes: Labels of x and y.
        points: At least one.
        sizes: Whether x is billions of parameters; its axis is logarithmic.
        borders: A vertical and a horizontal line.
        names: Texts in the chart: x, y, text, alignment.
        limits: The ends of both axes, of y alone where x is a size.
        lines: Whether lines join the points of a group.
        note: Below it, after what the bars are.
    """
    import altair as alt

    barred = any(point.x_error or point.y_error for point in points)
    note = f"{'One standard error on either side. ' if barred else ''}{note}".strip()
    panels = any(any(point.panel) for point in points)
    groups = _groups(points)
    domains = _domains(points, limits, sizes)
    x = alt.Scale(type="log" if sizes else "linear", domain=domains[0], nice=False)
    y = alt.Scale(domain=domains[1], nice=False)
    ticks: Row = {"values": size_ticks(*domains[0]), "labelExpr": SIZE_LABEL} if sizes else {"tickCount": 6}
    base = alt.Chart().encode(alt.X("x:Q").title(axes[0]).scale(x).axis(**ticks), alt.Y("y:Q").title(axes[1]).scale(y))
    colour = _colour(groups, panels)
    values = [alt.Tooltip(f"{axis}:Q", title=label, format=".4g") for axis, label in zip("xy", axes, strict=True)]
    if sizes:
        values[0] = alt.Tooltip("size:N", title=axes[0])
    marked = base.encode(color=colour, tooltip=[alt.Tooltip("model:N"), *values])
    marks = marked.mark_circle(size=70, opacity=0.9)
    if panels:
        shape = alt.Shape("group:N").title(None).scale(domain=groups, range=_repeated(SHAPES, groups))
        marks = marked.mark_point(size=50, filled=True, opacity=0.9).encode(shape=shape)
    layers: list[Any] = [
        *_borders(borders),
        *([base.mark_line(opacity=0.7).encode(color=colour)] if lines else []),
        base.mark_rule(opacity=0.5).encode(x="x1:Q", x2="x2:Q", y="y:Q", color=colour),
        base.mark_rule(opacity=0.5).encode(y="y1:Q", y2="y2:Q", x="x:Q", color=colour),
        marks,
        *([] if panels else _labels(points, domains, sizes)),
        *_texts(names, 7 if panels else 10),
    ]
    rows = [_with_errors(point) | ({"size": size_text(point.x)} if sizes else {}) for point in points]
    if panels:
        columns, below = (list(dict.fromkeys(point.panel[place] for point in points)) for place in (0, 1))
        facets = {"facet": facet("across", alt.Facet, columns), "columns": min(len(columns), MOST_PANELS)}
        if any(below):
            facets = {"column": facet("across", alt.Column, columns), "row": facet("down", alt.Row, below)}
        return in_panels(name, title, layers, rows, facets, note=note)
    chart = alt.layer(*layers, data=alt.Data(values=rows)).properties(width=WIDTH, height=HEIGHT)
    return Chart(name, title, specification(chart), note)


def _domains(points: Sequence[Point], limits: Ends | None, sizes: bool) -> tuple[Ends, Ends]:
    """The ends of both axes: the limits, else those of the points' bars with a margin around them."""
    rows = list(map(_with_errors, points))
    low, high = min(row["x1"] for row in rows), max(row["x2"] for row in rows)
    if sizes:
        margin = max(high / low, 2) ** 0.08
        x = low / margin, high * margin
    else:
        x = limits or _around(low, high)
    return x, limits or _around(min(row["y1"] for row in rows), max(row["y2"] for row in rows))


def _around(low: float, high: float) -> Ends:
    margin = 0.06 * (high - low) or 1.0
    return low - margin, high + margin


def _labels(points: Sequence[Point], domains: tuple[Ends, Ends], sizes: bool) -> list[Any]:
    """The names of points, the first ones first, on a side where they touch no point, bar or other name, if any."""
    import altair as alt

    place = math.log if sizes else float
    (left, right), (bottom, top) = map(place, domains[0]), domains[1]

    def across(x: float) -> float:
        return WIDTH * (place(x) - left) / (right - left)

    def down(y: float) -> float:
        return HEIGHT * (top - y) / (top - bottom)

    rows = list(map(_with_errors, points))
    taken = [(across(row["x"]) - 6, across(row["x"]) + 6, down(row["y"]) - 6, down(row["y"]) + 6) for row in rows]
    taken += [(across(row["x"]) - 1, across(row["x"]) + 1, down(row["y2"]), down(row["y1"])) for row in rows]
    taken += [(across(row["x1"]), across(row["x2"]), down(row["y"]) - 1, down(row["y"]) + 1) for row in rows]
    found: dict[tuple[str, int, int], list[Row]] = {}
    for row in rows:
        for side in SIDES:
            box = _box_of(row["model"], across(row["x"]), down(row["y"]), *side)
            inside = box[0] >= 0 and box[1] <= WIDTH and box[2] >= 0 and box[3] <= HEIGHT
            if inside and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                found.setdefault(side, []).append({"x": row["x"], "y": row["y"], "t": row["model"]})
                break
    return [
        alt.Chart(alt.Data(values=named))
        .mark_text(align=align, dx=dx, dy=dy, baseline="middle", fontSize=9)
        .encode(x="x:Q", y="y:Q", text="t:N")
        for (align, dx, dy), named in found.items()
    ]


def _box_of(name: str, x: float, y: float, align: str, dx: int, dy: int) -> tuple[float, ...]:
    """Left, right, top and bottom of a name beside a point, in pixels."""
    length = LETTER * len(name)
    start = x + dx - {"left": 0, "center": length / 2, "right": length}[align]
    return start, start + length, y + dy - 6, y + dy + 6


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]


def interval_of_cell(cell: object) -> Interval | None:
    """A percentage of a table with its 95 % interval; None where there is no number."""
    if not isinstance(cell, Cell) or cell.value is None:
        return None
    return (cell.value, *(Estimate(cell.value, cell.stderr).interval((0, 100)) or (None, None)))


def _texts(names: Sequence[tuple[float, float, str, str]], size: int) -> list[Any]:
    """Texts in a chart: x, y, text, alignment."""
    import altair as alt

    sides = {align: [{"x": x, "y": y, "t": text} for x, y, text, side in names if side == align] for *_, align in names}
    return [
        alt.Chart(alt.Data(values=rows))
        .mark_text(align=align, fontStyle="italic", fontSize=size, opacity=0.7)
        .encode(x="x:Q", y="y:Q", text="t:N")
        for align, rows in sides.items()
    ]


def _with_errors(point: Point) -> Row:
    """A point of a scatter plot, and the ends of its bars."""
    across, up = point.x_error or 0, point.y_error or 0
    ends = {"x1": point.x - across, "x2": point.x + across, "y1": point.y - up, "y2": point.y + up}
    named = {"model": point.label, "group": point.group, "across": point.panel[0], "down": point.panel[1]}
    return {"x": point.x, "y": point.y, **named, **ends}


def group_colour(groups: Sequence[str], legend: bool = True) -> Any:
    """The colour of the field `group`, with a legend below; the groups' order says which has which."""
    import altair as alt

    below = alt.Legend(orient="bottom", columns=4, labelLimit=240, symbolLimit=0, symbolOpacity=1) if legend else None
    scale = alt.Scale(domain=list(groups), range=_repeated(COLOURS, groups))
    return alt.Color("group:N").title(None).scale(scale).legend(below)


def _repeated(kinds: Sequence[str], groups: Sequence[str]) -> list[str]:
    return list(islice(cycle(kinds), len(groups)))


def facet(field: str, kind: Any, order: Sequence[str]) -> Any:
    """The panels of a field of the rows, in an order; `kind` is `altair.Facet`, `altair.Column` or `altair.Row`."""
    return kind(f"{field}:N").title(None).sort(list(order)).header(labelLimit=PANEL + 20)


def in_panels(
    name: str,
    title: str,
    layers: Sequence[Any],
    rows: Sequence[Row],
    facets: Mapping[str, Any],
    *,
    size: tuple[int, int] = (PANEL, PANEL),
    note: str = "",
) -> Chart:
    """Layers once for each panel.

    Args:
        layers: Charts without data of their own, or with data that are in every panel.
        rows: The data, of which each panel has its part.
        facets: Arguments of `altair.LayerChart.facet`.
        size: Width and height of a panel in pixels.
        note: Below all.
    """
    import altair as alt

    layered = alt.layer(*layers, data=alt.Data(values=list(rows)))
    chart = layered.properties(width=size[0], height=size[1]).facet(**facets)
    if "columns" in facets:  # an axis that panels share stands below the last row's gaps too
        chart = chart.resolve_axis(x="independent")
    return Chart(name, title, specification(chart), note)


def dots(name: str, title: str, values: Mapping[str, Mapping[str, Interval]], *, note: str = "") -> Chart:
    """A panel a column, in it a row a model with its value as a dot and its 95 % interval, if known, as a line.

    Args:
        title: Above it, with the unit.
        values: Model -> column -> value and its interval's ends; in order.
        note: Below it, before what the lines are.
    """
    import altair as alt

    known = [low is not None for row in values.values() for _, low, _ in row.values()]
    lines_are = "95 % intervals." if all(known) else "95 % intervals where they are known." if any(known) else ""
    note = f"{note} {lines_are}".strip()

    columns = list(dict.fromkeys(column for row in values.values() for column in row))
    rows = [
        {"model": model, "column": column, "value": value, "low": low, "high": high}
        for model, row in values.items()
        for column, (value, low, high) in row.items()
    ]
    near = alt.selection_point(fields=["model"], on="pointerover", clear="pointerout", name="near")
    told = [alt.Tooltip("model:N"), *(alt.Tooltip(f"{key}:Q", format=".2f") for key in ("value", "low", "high"))]
    base = alt.Chart().encode(
        alt.Y("model:N").title(None).sort(list(values)).axis(labelLimit=0, grid=True, ticks=False, domain=False),
        opacity=alt.condition(near, alt.value(1), alt.value(0.2)),
        tooltip=told,
    )
    x = alt.X("value:Q").title(None).scale(zero=False).axis(tickCount=4)
    lines = base.mark_rule(color=COLOURS[0], size=2).encode(alt.X("low:Q"), x2="high:Q")
    marks = base.mark_circle(size=45, color=COLOURS[0], opacity=1).encode(x).add_params(near)
    facets = {"facet": facet("column", alt.Facet, columns), "columns": min(len(columns), MOST_PANELS)}
    size = (DOTS_WIDTH, max(40, 16 * len(values)))
    return in_panels(name, title, [lines, marks], rows, facets, size=size, note=note)


def without_size(labels: Sequence[str]) -> str:
    """A sentence on the models that a chart of sizes lacks; "" where it has all."""
    return f"Not drawn: {shown_names(labels)} (size unknown)." if labels else ""


def radar_places(highest: float) -> tuple[Any, Any]:
    """The encodings of a radar's x and y, around which there is room for names."""
    import altair as alt

    hidden: dict[str, Any] = {"axis": None, "scale": alt.Scale(domain=[-1.3 * highest, 1.3 * highest], nice=False)}
    return alt.X("x:Q", **hidden), alt.Y("y:Q", **hidden)


def radar_grid(axes: Sequence[str], highest: float, size: int = 11) -> list[Any]:
    """The layers below a radar's polygons: four rings with their values, and the axes' names.

    Args:
        axes: Their names, the first at the top, clockwise; a line break begins another line.
        highest: The value of the outermost ring.
        size: The names' size.
    """
    import altair as alt

    levels = [highest * part for part in (0.25, 0.5, 0.75, 1)]
    grid = [row for level in levels for row in polygon(axes, dict.fromkeys(axes, level), ring=level)]
    names = [row | {"t": row["axis"].split("\n")} for row in polygon(axes, dict.fromkeys(axes, 1.16 * highest))[:-1]]
    numbers = [{"t": f"{level:g}", "x": 0, "y": level} for level in levels]
    x, y = radar_places(highest)
    rings = alt.Chart(alt.Data(values=grid)).mark_line(color="#999999", strokeWidth=0.5)
    texts = alt.Chart(alt.Data(values=numbers)).mark_text(fontSize=8, dx=4, align="left", opacity=0.7)
    lines = max(len(row["t"]) for row in names)
    around = alt.Chart(alt.Data(values=names)).mark_text(fontSize=size, baseline="middle", dy=-size * (lines - 1) * 0.6)
    return [
        rings.encode(x, y, detail="ring:N", order="step:O"),
        texts.encode(x, y, text="t:N"),
        around.encode(x, y, text="t:N"),
    ]


def polygon(axes: Sequence[str], values: Mapping[str, float], **about: Any) -> list[Row]:
    """The rows of a closed polygon over a radar's axes; axes without a value are left out.

    Args:
        axes: All of the radar.
        values: Axis -> distance from the middle.
        **about: What every row says besides.
    """
    rows = []
    for place, axis in enumerate(axes):
        if axis in values:
            angle = math.pi / 2 - 2 * math.pi * place / len(axes)
            at = {"x": values[axis] * math.cos(angle), "y": values[axis] * math.sin(angle)}
            rows.append({**about, "axis": axis, "value": values[axis], "step": place, **at})
    return [*rows, rows[0] | {"step": len(axes)}] if rows else []


def intervals(
    name: str, title: str, label: str, points: Sequence[Point], *, bars: bool = True, note: str = ""
) -> Chart:
    """A row a point, with its interval: bars from 0, or marks beside a line at 0 (of differences: a forest plot).

    Args:
        points: In order; an interval is `low` to `high`, none where these are unknown.
        bars: Whether values are drawn as bars.
        note: Below it.
    """
    import altair as alt

    rows = []
    for point in points:
        low, high = (point.x if end is None else end for end in (point.low, point.high))
        rows.append({"label": point.label, "group": point.group, "x": point.x, "low": low, "high": high})
    order = [point.label for point in points]
    base = alt.Chart(alt.Data(values=rows)).encode(
        alt.Y("label:N").title(None).sort(order).axis(labelLimit=0),  # what is cut is measured again for every letter
        tooltip=[alt.Tooltip("label:N"), *(alt.Tooltip(f"{key}:Q", format=".2f") for key in ("x", "low", "high"))],
    )
    x = alt.X("x:Q").title(label).scale(zero=bars).axis(tickCount=8)
    marks = base.mark_bar(opacity=0.75, height={"band": 0.7}) if bars else base.mark_point(filled=True, size=50)
    ends = base.mark_rule().encode(alt.X("low:Q").title(label), x2="high:Q")
    layers = [*([] if bars else _borders((0.0, None))), marks.encode(x, color=_colour(_groups(points))), ends]
    chart = alt.layer(*layers).properties(width=WIDTH, height=max(60, 15 * len(rows)))
    return Chart(name, title, specification(chart), note)


def chart_files(chart: Chart, folder: Path, formats: Sequence[str]) -> list[Path]:
    """Writes a chart for papers; the same chart gives the same SVG and PNG."""
    import vl_convert

    if not formats:
        return []
    _register_fonts()
    folder.mkdir(parents=True, exist_ok=True)
    picture = vl_convert.vegalite_to_svg(json.dumps(printed(chart)))
    files = []
    for one in formats:
        file = folder / f"{chart.name}.{one}"
        if one == "svg":
            file.write_text(picture, encoding="utf-8")
        else:
            made = vl_convert.svg_to_pdf(picture) if one == "pdf" else vl_convert.svg_to_png(picture, scale=SCALE)
            file.write_bytes(made)
        files.append(file)
    return files


@cache
def _register_fonts() -> None:
    """Makes DejaVu Sans of matplotlib's wheel known, which has Arabic letters, for machines without any font."""
    import vl_convert

    if (found := find_spec("matplotlib")) and found.origin:
        vl_convert.register_font_directory(str(Path(found.origin).with_name("mpl-data") / "fonts" / "ttf"))


def draws(letters: str) -> bool:
    """Whether the fonts of this machine have some letters, of which all but one are drawn alike where they lack them.

    Args:
        letters: Two or more of one script.
    """
    import vl_convert

    _register_fonts()
    drawing = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 40"><text y="30" {}>{}</text></svg>'
    pictures = (drawing.format(f'font-family="{FONTS}"', letter) for letter in letters)
    return len({vl_convert.svg_to_png(picture) for picture in pictures}) == len(letters)


def printed(chart: Chart) -> dict[str, Any]:
    """A chart's specification for paper: on white, with its title and its note."""
    title = {"text": chart.title, "subtitle": chart.note, "anchor": "start", "fontSize": 12, "subtitleFontSize": 10}
    spec = _still(chart.spec)
    return {**spec, "background": "white", "title": title, "config": {"font": FONTS} | spec["config"]}


def _still(part: Any) -> Any:
    """A specification without what answers a pointer, which costs a file time and memory."""
    if isinstance(part, list):
        return list(map(_still, part))
    if not isinstance(part, Mapping):
        return part
    kept = {key: value for key, value in part.items() if key not in ("params", "tooltip")}
    return {
        key: _still(value)
        for key, value in kept.items()
        if not (key == "opacity" and isinstance(value, Mapping) and "condition" in value)
    }


def chart_formats(text: str, option: str = "--charts") -> tuple[str, ...]:
    """The formats that a list such as "svg,pdf" names; "none": no files.

    Args:
        option: Whose value it is, for the message.

    Raises:
        CulturevalError: One is not among `FORMATS`, or what draws them is not installed.
    """
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    if names == ["none"]:
        return ()
    if not names or any(name not in FORMATS for name in names):
        raise CulturevalError(f"{option} names {text!r}; choose among {', '.join(FORMATS)}, or none.")
    if missing_packages("page"):
        raise CulturevalError(f"{MissingExtra('page')} Or pass {option} none.")
    return tuple(dict.fromkeys(names))


def short_names(names: Sequence[str], longest: int = LONGEST_NAME) -> dict[str, str]:
    """Names without the folder or organisation, and of at most so many letters, whose middle is left out.

    A name is whole where it would be another one's as well.
    """
    last = _while_unique({name: name.rstrip("/").rpartition("/")[2] or name for name in names})
    return _while_unique({name: without_middle(short, longest) for name, short in last.items()})


def chart_names(names: Sequence[str], longest: int = LONGEST_NAME) -> dict[str, str]:
    """`short_names` as charts draw them, those from right to left isolated."""
    return {name: isolated(short) for name, short in short_names(names, longest).items()}


def isolated(text: str) -> str:
    """A text that may be written from right to left, set apart from the text around it (by U+2068 and U+2069)."""
    leftwards = any(unicodedata.bidirectional(character) in ("R", "AL") for character in text)
    return f"\u2068{text}\u2069" if leftwards else text


def _while_unique(short: Mapping[str, str]) -> dict[str, str]:
    taken = list(short.values())
    return {name: text if taken.count(text) == 1 else name for name, text in short.items()}


def without_middle(text: str, longest: int) -> str:
    """A text of at most so many letters."""
    return text if len(text) <= longest else f"{text[: longest // 2 - 1]}…{text[-(longest - longest // 2) :]}"


def _groups(points: Sequence[Point]) -> list[str]:
    return list(dict.fromkeys(point.group for point in points if point.group))


def _colour(groups: Sequence[str], told: bool = False) -> Any:
    """A colour for each group, with a legend; one colour without a legend where there is one group, unless `told`."""
    import altair as alt

    return group_colour(groups) if told or len(groups) > 1 else alt.value(COLOURS[0])


def _borders(borders: tuple[float | None, float | None] | None) -> list[Any]:
    """Dashed lines at a value of x and at one of y, without those that are None."""
    import altair as alt

    return [
        alt.Chart(alt.Data(values=[{axis: at}])).mark_rule(strokeDash=[4, 3], opacity=0.6).encode(**{axis: f"{axis}:Q"})
        for axis, at in zip("xy", borders or (), strict=False)
        if at is not None
    ]


def specification(chart: "altair.TopLevelMixin") -> dict[str, Any]:
    """The specification, in whose texts nothing is an address or a formula."""
    found = chart.to_dict(validate=True)
    found["usermeta"] = {"embedOptions": {"actions": False}}
    return found
