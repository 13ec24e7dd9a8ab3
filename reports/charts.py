"""Charts as specifications of Vega-Lite, made by altair: SVG within a page, and SVG, PDF and PNG for papers.

vl-convert joins Arabic letters and orders them; a name that begins with them needs isolates around it (`isolated`).
"""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.reports.model_sizes import SIZE_LABEL, size_ticks
from cultureval.runtime.errors import CulturevalError, shown_names
from cultureval.runtime.extras import MissingExtra, missing_packages

if TYPE_CHECKING:
    import altair

FORMATS = ("pdf", "svg", "png")
WIDTH, HEIGHT, PANEL = 560, 340, 190  # pixels
COLOURS = ["#3b6fb6", "#d1731f", "#3a8f5c", "#b23a48", "#7a5aa6", "#8c6d46", "#c45d9b", "#6b7280", "#a39b1f", "#2a94a8"]
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right"]
MOST_PANELS, DOTS_WIDTH = 8, 104  # of dot plots: panels side by side, pixels of each
LONGEST_NAME = 36  # letters of a series' name
FONTS = (  # of files: the first has Arabic, the others Chinese, where they are installed
    "DejaVu Sans, Noto Sans CJK SC, Noto Sans SC, Source Han Sans SC, PingFang SC, Microsoft YaHei, "
    "WenQuanYi Micro Hei, WenQuanYi Zen Hei, SimHei, Droid Sans Fallback, Arial Unicode MS, sans-serif"
)
SCALE = 2.5  # pixels of a PNG for one of the page
INK = "currentColor"  # of a chart within a page: that of the text around it, light or dark
Row = dict[str, Any]  # of a chart's data
Interval = tuple[float, float | None, float | None]  # a value and the ends of its interval, None where unknown


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
    named: Sequence[str] = (),
    note: str = "",
) -> Chart:
    """Points with one standard error on either side, in one panel or in several.

    Args:
        axes: Labels of x and y.
        points: At least one.
        sizes: Whether x is billions of parameters; its axis is logarithmic.
        borders: A vertical and a horizontal line.
        names: Texts in the chart: x, y, text, alignment.
        limits: The ends of both axes, of y alone where x is a size.
        lines: Whether lines join the points of a group.
        named: Labels of the points that have their names above them.
        note: Below it, after what the bars are.
    """
    import altair as alt

    y_scale = alt.Scale(domain=limits, nice=False) if limits else alt.Scale(zero=False)
    x = alt.X("x:Q", title=axes[0], scale=y_scale, axis=alt.Axis(tickCount=6))
    if sizes:
        ends = min(point.x for point in points) / 1.3, max(point.x for point in points) * 1.3
        axis = alt.Axis(values=size_ticks(*ends), labelExpr=SIZE_LABEL)
        x = alt.X("x:Q", title=axes[0], scale=alt.Scale(type="log", domain=ends, nice=False), axis=axis)
    base = alt.Chart().encode(x, alt.Y("y:Q", title=axes[1], scale=y_scale))
    marked = base.encode(color=_colour(points))
    layers = [
        *_borders(borders),
        *([marked.mark_line(opacity=0.7)] if lines else []),
        marked.mark_rule(opacity=0.5).encode(x="x1:Q", x2="x2:Q"),
        marked.mark_rule(opacity=0.5).encode(y="y1:Q", y2="y2:Q"),
        marked.mark_point(size=50, filled=True, opacity=0.9).encode(shape=_shape(points)),
        base.mark_text(dy=-10, fontSize=9).encode(text="name:N"),
        *_texts(names),
    ]
    rows = [_with_errors(point) | {"name": point.label if point.label in named else ""} for point in points]
    barred = any(point.x_error or point.y_error for point in points)
    note = f"{'One standard error on either side. ' if barred else ''}{note}".strip()
    return _in_panels(name, title, layers, rows, (WIDTH, HEIGHT), note)


def _texts(names: Sequence[tuple[float, float, str, str]]) -> list[Any]:
    """Texts in a chart: x, y, text, alignment."""
    import altair as alt

    sides: dict[Any, list[Row]] = {
        align: [{"x": x, "y": y, "t": text} for x, y, text, side in names if side == align] for *_, align in names
    }
    return [
        alt.Chart(alt.Data(values=rows))
        .mark_text(align=align, fontStyle="italic", fontSize=8, opacity=0.7)
        .encode(x="x:Q", y="y:Q", text="t:N")
        for align, rows in sides.items()
    ]


def _with_errors(point: Point) -> Row:
    """A point of a scatter plot, and the ends of its bars."""
    across, up = point.x_error or 0, point.y_error or 0
    ends = {"x1": point.x - across, "x2": point.x + across, "y1": point.y - up, "y2": point.y + up}
    return {"x": point.x, "y": point.y, "group": point.group, "across": point.panel[0], "down": point.panel[1]} | ends


def _colour(points: Sequence[Point]) -> Any:
    """A colour for each group, with a legend below; one colour where there is one group."""
    import altair as alt

    groups = list(dict.fromkeys(point.group for point in points if point.group))
    if len(groups) < 2 and not any(map(any, (point.panel for point in points))):
        return alt.value(COLOURS[0])
    below = alt.Legend(orient="bottom", columns=4, labelLimit=240, symbolLimit=0, symbolOpacity=1)
    return alt.Color("group:N", title=None, scale=alt.Scale(domain=groups, range=COLOURS), legend=below)


def _shape(points: Sequence[Point]) -> Any:
    """A shape for each group, so that more of them differ than there are colours."""
    import altair as alt

    groups = list(dict.fromkeys(point.group for point in points if point.group))
    if len(groups) <= len(COLOURS):
        return alt.value("circle")
    return alt.Shape("group:N", title=None, scale=alt.Scale(domain=groups, range=SHAPES))


def _in_panels(
    name: str, title: str, layers: Sequence[Any], rows: Sequence[Row], size: tuple[int, int], note: str
) -> Chart:
    """Layers once for each panel (`across`, `down`) of the rows; in one panel where these are empty.

    Args:
        layers: Charts without data of their own, or with data that are in every panel.
        size: Width and height in pixels, at most.
    """
    import altair as alt

    across, down = (list(dict.fromkeys(row[side] for row in rows)) for side in ("across", "down"))
    chart = alt.layer(*layers, data=alt.Data(values=list(rows)))
    if not any([*across, *down]):
        return Chart(name, title, specification(chart.properties(width=size[0], height=size[1])), note)
    chart = chart.properties(width=min(PANEL, size[0]), height=min(PANEL, size[1]) if any(down) else size[1])
    places: dict[str, Any] = {"title": None, "header": alt.Header(labelLimit=PANEL + 20)}
    if any(down):
        column, row = alt.Column("across:N", sort=across, **places), alt.Row("down:N", sort=down, **places)
        return Chart(name, title, specification(chart.facet(column=column, row=row)), note)
    wrapped = chart.facet(facet=alt.Facet("across:N", sort=across, **places), columns=min(len(across), MOST_PANELS))
    return Chart(name, title, specification(wrapped.resolve_axis(x="independent")), note)


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
    rows = [
        {"model": model, "across": column, "down": "", "value": value, "low": low, "high": high}
        for model, row in values.items()
        for column, (value, low, high) in row.items()
    ]
    y = alt.Y("model:N", title=None, sort=list(values), axis=alt.Axis(labelLimit=0, grid=True, ticks=False))
    base = alt.Chart().encode(y)
    lines = base.mark_rule(color=COLOURS[0], size=2).encode(alt.X("low:Q"), x2="high:Q")
    x = alt.X("value:Q", title=None, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=4))
    marks = base.mark_circle(size=45, color=COLOURS[0], opacity=1).encode(x)
    size = (DOTS_WIDTH, max(40, 16 * len(values)))
    return _in_panels(name, title, [lines, marks], rows, size, f"{note} {lines_are}".strip())


def without_size(labels: Sequence[str]) -> str:
    """A sentence on the models that a chart of sizes lacks; "" where it has all."""
    return f"Not drawn: {shown_names(labels)} (size unknown)." if labels else ""


def intervals(
    name: str,
    title: str,
    label: str,
    points: Sequence[Point],
    *,
    bars: bool = True,
    zero: bool = True,
    note: str = "",
) -> Chart:
    """A row a point, with its interval: bars from 0, or marks.

    Args:
        points: In order; an interval is `low` to `high`, none where these are unknown.
        bars: Whether values are drawn as bars.
        zero: Whether marks stand beside a line at 0, as in a forest plot of differences.
        note: Below it.
    """
    import altair as alt

    rows = []
    for point in points:
        low, high = (point.x if end is None else end for end in (point.low, point.high))
        row: Row = {"label": point.label, "group": point.group, "x": point.x, "low": low, "high": high}
        rows.append(row)
    y = alt.Y("label:N").title(None).sort([point.label for point in points]).axis(labelLimit=0)
    base = alt.Chart(alt.Data(values=rows)).encode(y)
    x = alt.X("x:Q").title(label).scale(zero=bars).axis(tickCount=8)
    marks = base.mark_bar(opacity=0.75, height={"band": 0.7}) if bars else base.mark_point(filled=True, size=50)
    marks = marks.encode(x, color=_colour(points))
    ends = base.mark_rule().encode(alt.X("low:Q").title(label), x2="high:Q")
    chart = alt.layer(*_borders((0.0, None) if zero and not bars else None), marks, ends)
    return Chart(name, title, specification(chart.properties(width=WIDTH, height=max(60, 15 * len(rows)))), note)


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
    return chart.to_dict(validate=True)


def inline_svg(chart: Chart) -> str:
    """The chart as SVG within a page, in the colours of the text around it; it has no scripts, styles or links."""
    import vl_convert

    _register_fonts()
    axis = {"labelColor": INK, "titleColor": INK, "domainColor": INK, "tickColor": INK, "gridColor": INK}
    named = {"labelColor": INK, "titleColor": INK}
    config = {"axis": axis | {"gridOpacity": 0.15}, "legend": named, "header": named, "aria": False, "font": FONTS}
    config |= {"rule": {"color": INK}, "text": {"color": INK}, "view": {"stroke": INK, "strokeOpacity": 0.2}}
    svg = vl_convert.vegalite_to_svg(json.dumps({**chart.spec, "background": None, "config": config}))
    return re.sub(r' (style|role|aria-[a-z]+)="[^"]*"', "", svg)  # the page has its own styles, and names the chart


def chart_files(chart: Chart, folder: Path, formats: Sequence[str]) -> list[Path]:
    """Writes a chart for papers, on white with its title and note; the same chart gives the same SVG and PNG."""
    import vl_convert

    if not formats:
        return []
    _register_fonts()
    folder.mkdir(parents=True, exist_ok=True)
    title = {"text": chart.title, "subtitle": chart.note, "anchor": "start", "fontSize": 12, "subtitleFontSize": 10}
    config = {"font": FONTS} | chart.spec.get("config", {})
    spec = {**chart.spec, "background": "white", "title": title, "config": config}
    picture = vl_convert.vegalite_to_svg(json.dumps(spec))
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
