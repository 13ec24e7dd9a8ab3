"""Charts as specifications of Vega-Lite, made by altair: SVG within a page, and SVG, PDF and PNG for papers.

vl-convert joins and orders Arabic letters. A name that begins with them needs isolates around it (`isolated`).
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.reports.model_sizes import SIZE_LABEL, size_ticks
from cultureval.runtime.errors import CulturevalError, escaped, shown_names
from cultureval.runtime.extras import MissingExtra, missing_packages
from cultureval.runtime.printing import isolated

if TYPE_CHECKING:
    import altair

FORMATS = ("pdf", "svg", "png")
WIDTH, HEIGHT, PANEL = 560, 340, 190  # pixels
COLOURS = ["#3b6fb6", "#d1731f", "#3a8f5c", "#b23a48", "#7a5aa6", "#8c6d46", "#c45d9b", "#6b7280", "#a39b1f", "#2a94a8"]
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right"]
FONTS = (  # of files: the first has Arabic letters, the others Chinese
    "DejaVu Sans, Noto Sans CJK SC, Noto Sans SC, Source Han Sans SC, PingFang SC, Microsoft YaHei, "
    "WenQuanYi Micro Hei, WenQuanYi Zen Hei, SimHei, Droid Sans Fallback, Arial Unicode MS, sans-serif"
)
SCALE = 2.5  # pixels of a PNG for each pixel of the page
INK = "currentColor"  # charts within a page have the colour of the text around them


@dataclass(frozen=True)
class Chart:
    """A chart: its file name without suffix, its title, its specification with the data, and a note below it."""

    name: str
    title: str
    spec: Mapping[str, Any]
    note: str = ""


@dataclass(frozen=True)
class Point:
    """A mark of a scatter plot with one standard error of x and y, or a row of a plot of intervals of x.

    Points of one group have one colour. `panel` is its column and row of panels. A `named` point shows its label.
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
    named: bool = False


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
    note: str = "",
) -> Chart:
    """Points, at least one, with one standard error on either side, in one panel or in several.

    Args:
        axes: Labels of x and y.
        sizes: Whether x is billions of parameters.
        borders: A vertical and a horizontal line.
        names: Texts in the chart: x, y, text, alignment.
        limits: The ends of both axes, of y alone where x is a size.
        note: Text below the chart, after the meaning of error bars.
    """
    import altair as alt

    scale = alt.Scale(domain=limits, nice=False) if limits else alt.Scale(zero=False)
    x = _sizes(axes[0], points) if sizes else alt.X("x:Q", title=axes[0], scale=scale, axis=alt.Axis(tickCount=6))
    base = alt.Chart().encode(x, alt.Y("y:Q", title=axes[1], scale=scale))
    layers = [*_borders(borders), *_marks(base, points), *(_text(*entry) for entry in names)]
    barred = any(point.x_error or point.y_error for point in points)
    note = f"{'One standard error on either side. ' if barred else ''}{note}".strip()
    chart = alt.layer(*layers, data=alt.Data(values=[_with_errors(point) for point in points]))
    return Chart(name, title, specification(_in_panels(chart, points)), note)


def _marks(base: Any, points: Sequence[Point]) -> list[Any]:
    colour, shape = _series(points)
    marked = base.encode(color=colour)
    return [
        marked.mark_rule(opacity=0.5).encode(x="x1:Q", x2="x2:Q"),
        marked.mark_rule(opacity=0.5).encode(y="y1:Q", y2="y2:Q"),
        marked.mark_point(size=50, filled=True, opacity=0.9).encode(shape=shape),
        base.mark_text(dy=-10, fontSize=9).encode(text="name:N"),
    ]


def _sizes(title: str, points: Sequence[Point]) -> Any:
    """A logarithmic axis of billions of parameters."""
    import altair as alt

    ends = min(point.x for point in points) / 1.3, max(point.x for point in points) * 1.3
    axis = alt.Axis(values=size_ticks(*ends), labelExpr=SIZE_LABEL)
    return alt.X("x:Q", title=title, scale=alt.Scale(type="log", domain=ends, nice=False), axis=axis)


def _in_panels(chart: Any, points: Sequence[Point]) -> Any:
    """A chart once for each panel of its points."""
    import altair as alt

    across, down = (list(dict.fromkeys(point.panel[side] for point in points)) for side in (0, 1))
    if not any([*across, *down]):
        return chart.properties(width=WIDTH, height=HEIGHT)
    places: dict[str, Any] = {"title": None, "header": alt.Header(labelLimit=PANEL + 20)}
    column, row = alt.Column("across:N", sort=across, **places), alt.Row("down:N", sort=down, **places)
    return chart.properties(width=PANEL, height=PANEL).facet(column=column, row=row)


def _with_errors(point: Point) -> dict[str, Any]:
    """A point of a scatter plot, and the ends of its error bars."""
    across, up = point.x_error or 0, point.y_error or 0
    ends = {"x1": point.x - across, "x2": point.x + across, "y1": point.y - up, "y2": point.y + up}
    place = {"x": point.x, "y": point.y, "group": point.group, "across": point.panel[0], "down": point.panel[1]}
    return place | ends | {"name": point.label if point.named else ""}


def _text(x: float, y: float, text: str, align: Any) -> Any:
    import altair as alt

    marks = alt.Chart(alt.Data(values=[{"x": x, "y": y, "t": text}]))
    return marks.mark_text(align=align, fontStyle="italic", fontSize=8, opacity=0.7).encode(
        x="x:Q", y="y:Q", text="t:N"
    )


def _series(points: Sequence[Point]) -> tuple[Any, Any]:
    """A colour and a shape for each group, with a legend below; constants if there is one group."""
    import altair as alt

    groups = list(dict.fromkeys(point.group for point in points if point.group))
    if len(groups) < 2 and not any(map(any, (point.panel for point in points))):
        return alt.value(COLOURS[0]), alt.value("circle")
    below = alt.Legend(orient="bottom", columns=4, labelLimit=240, symbolLimit=0, symbolOpacity=1)
    colour = alt.Color("group:N", title=None, scale=alt.Scale(domain=groups, range=COLOURS), legend=below)
    few = len(groups) <= len(COLOURS)
    shape = alt.Shape("group:N", title=None, scale=alt.Scale(domain=groups, range=SHAPES))
    return colour, alt.value("circle") if few else shape


def without_size(labels: Sequence[str]) -> str:
    """A sentence on models that are missing in a chart of sizes; "" if there is none."""
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
    """A row for each point with its interval, `low` to `high` if known: bars from 0, or marks.

    Args:
        bars: Whether values are drawn as bars.
        zero: Whether a plot of marks has a line at 0, as a forest plot of differences.
        note: Text below the chart.
    """
    import altair as alt

    rows = []
    for point in points:
        low, high = (point.x if end is None else end for end in (point.low, point.high))
        rows.append({"label": point.label, "group": point.group, "x": point.x, "low": low, "high": high})
    y = alt.Y("label:N").title(None).sort([point.label for point in points]).axis(labelLimit=300)
    base = alt.Chart(alt.Data(values=rows)).encode(y)
    x = alt.X("x:Q").title(label).scale(zero=bars).axis(tickCount=8)
    marks = base.mark_bar(opacity=0.75, height={"band": 0.7}) if bars else base.mark_point(filled=True, size=50)
    marks = marks.encode(x, color=_series(points)[0])
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
    """The specification as JSON data."""
    return chart.to_dict(validate=True)


def inline_svg(chart: Chart) -> str:
    """The chart as SVG within a page, in the page's text colour; without scripts, styles and links."""
    import vl_convert

    _register_fonts()
    axis = {"labelColor": INK, "titleColor": INK, "domainColor": INK, "tickColor": INK, "gridColor": INK}
    colours = {"labelColor": INK, "titleColor": INK}
    config = {"axis": axis | {"gridOpacity": 0.15}, "legend": colours, "header": colours, "aria": False, "font": FONTS}
    config |= {"rule": {"color": INK}, "text": {"color": INK}, "view": {"stroke": INK, "strokeOpacity": 0.2}}
    svg = vl_convert.vegalite_to_svg(json.dumps({**chart.spec, "background": None, "config": config}))
    return re.sub(r' (style|role|aria-[a-z]+)="[^"]*"', "", svg)  # the page has its own styles and titles


def chart_files(chart: Chart, folder: Path, formats: Sequence[str]) -> list[Path]:
    """Writes a chart for papers, on white, with title and note; returns the files. SVG and PNG are reproducible."""
    import vl_convert

    if not formats:
        return []
    _register_fonts()
    folder.mkdir(parents=True, exist_ok=True)
    title = {"text": chart.title, "subtitle": chart.note, "anchor": "start", "fontSize": 12, "subtitleFontSize": 10}
    config = {"font": FONTS} | chart.spec.get("config", {})
    spec = {**chart.spec, "background": "white", "title": title, "config": config}
    picture = vl_convert.vegalite_to_svg(json.dumps(spec))
    made = {
        "svg": picture.encode,
        "pdf": lambda: vl_convert.svg_to_pdf(picture),
        "png": lambda: vl_convert.svg_to_png(picture, scale=SCALE),
    }
    files = [folder / f"{chart.name}.{suffix}" for suffix in formats]
    for file, suffix in zip(files, formats, strict=True):
        file.write_bytes(made[suffix]())
    return files


@cache
def _register_fonts() -> None:
    """Registers DejaVu Sans of matplotlib's wheel, which has Arabic letters, for machines without fonts."""
    import vl_convert

    if (found := find_spec("matplotlib")) and found.origin:
        vl_convert.register_font_directory(str(Path(found.origin).with_name("mpl-data") / "fonts" / "ttf"))


def chart_formats(text: str, option: str = "--charts") -> tuple[str, ...]:
    """The formats of an option's list such as "svg,pdf"; () for "none".

    Raises:
        CulturevalError: A format is unknown, or the extra `page` is not installed.
    """
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    if names == ["none"]:
        return ()
    if not names or any(name not in FORMATS for name in names):
        raise CulturevalError(f"{option} {text!r}: write a list of {', '.join(FORMATS)}, or none.")
    if missing_packages("page"):
        raise CulturevalError(f"{MissingExtra('page')} Or pass {option} none.")
    return tuple(dict.fromkeys(names))


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Names without folder or organisation, except where two names would become equal."""
    last = {name: name.rstrip("/").rpartition("/")[2] or name for name in names}
    taken = Counter(last.values())
    return {name: short if taken[short] == 1 else name for name, short in last.items()}


def chart_names(names: Sequence[str]) -> dict[str, str]:
    """`short_names` as charts draw them: without control characters, right-to-left names isolated."""
    return {name: isolated(escaped(short)) for name, short in short_names(names).items()}
