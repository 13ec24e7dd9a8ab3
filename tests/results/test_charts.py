"""What all charts share: series that can be told apart, Arabic in its order, files in three formats, SVG for pages."""

import re

import pytest

from cultureval.reports.charts import (
    FORMATS,
    Point,
    chart_files,
    chart_formats,
    chart_names,
    inline_svg,
    intervals,
    scatter,
    short_names,
)
from cultureval.runtime.errors import CulturevalError


@pytest.mark.slow
def test_24_series_differ_and_all_are_in_the_legend_of_every_file(tmp_path):
    names = [f"organisation/a-model-with-a-rather-long-name-{number}B-Instruct" for number in range(24)]
    short = list(short_names(names).values())
    points = [Point(name, place, 1.0, 0.1, group=name, panel=("left", "")) for place, name in enumerate(short)]
    chart = scatter("some.name", "<b>$x", ("x", "y"), points)
    (marks,) = [one["encoding"] for one in chart.spec["spec"]["layer"] if "scale" in one["encoding"].get("shape", {})]
    series = [tuple(marks[channel]["scale"]["range"] for channel in ("color", "shape"))]
    colours, shapes = series[0]
    assert len({(colours[place % len(colours)], shapes[place % len(shapes)]) for place in range(24)}) == 24
    files = chart_files(chart, tmp_path / "sub", FORMATS)
    assert [file.read_bytes()[:4] for file in files] == [b"%PDF", b"<svg", b"\x89PNG"]
    svg = files[1].read_text(encoding="utf-8")
    assert all(name in svg for name in short) and "<b>" not in svg
    again = chart_files(chart, tmp_path / "again", ("svg", "png"))
    assert [file.read_bytes() for file in files[1:]] == [file.read_bytes() for file in again]


def test_a_chart_within_a_page_has_the_pages_colours_and_nothing_that_acts():
    points = [Point("<script>alert(1)</script>", 0.5, low=0.4, high=0.6), Point("b", 0.2, low=0.1, high=0.3)]
    svg = inline_svg(intervals("scores", "t", "x", points, bars=False))
    assert "currentColor" in svg and not re.search(r"<script|style=|href=|\bon\w+=|url\(", svg)


def test_names_are_short_where_they_still_differ():
    names = ["org/model-7B", "a/same", "b/same", "org/فنار\x1b-9B"]
    assert list(short_names(names).values())[:3] == ["model-7B", "a/same", "b/same"]
    assert chart_names(names)[names[3]] == "\u2068فنار\\x1b-9B\u2069"  # set apart from text from left to right


def test_formats_are_named_in_a_list():
    assert chart_formats("png, PDF,png") == ("png", "pdf") and chart_formats("none") == ()
    for wrong in ("jpg", "pdf,none", ""):
        with pytest.raises(CulturevalError, match="pdf, svg, png, or none"):
            chart_formats(wrong)
