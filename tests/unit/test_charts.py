"""What all charts share: series that can be told apart, Arabic in its order, files in three formats."""

import re

import pytest

from cultureval.reports.charts import (
    FORMATS,
    MOST_PANELS,
    Point,
    chart_files,
    chart_formats,
    chart_names,
    dots,
    draws,
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
    (marks,) = [layer["encoding"] for layer in chart.spec["spec"]["layer"] if "shape" in layer["encoding"]]
    scales = [marks[channel]["scale"] for channel in ("color", "shape")]
    assert all(scale["domain"] == short for scale in scales)
    assert len(set(zip(*(scale["range"] for scale in scales), strict=True))) == 24
    files = chart_files(chart, tmp_path / "sub", FORMATS)
    assert [file.name for file in files] == ["some.name.pdf", "some.name.svg", "some.name.png"]
    assert [file.read_bytes()[:4] for file in files] == [b"%PDF", b"<svg", b"\x89PNG"]
    svg = files[1].read_text(encoding="utf-8")
    assert all(name in svg for name in short) and "<b>" not in svg
    again = chart_files(chart, tmp_path / "again", ("svg", "png"))
    assert [file.read_bytes() for file in files[1:]] == [file.read_bytes() for file in again]


def test_fonts_that_lack_a_script_are_noticed():
    assert draws("ab") and draws("كتب"), "Latin and Arabic, of matplotlib's own fonts"
    assert not draws("\U0010fffc\U0010fffb"), "code points that no font has"


def test_names_are_short_where_they_still_differ():
    names = ["org/model-7B", "a/same", "b/same", "x" * 50, "org/فنار-9B"]
    short = short_names(names, 12)
    assert [short[name] for name in names[:3]] == ["model-7B", "a/same", "b/same"]
    assert short["x" * 50] == "xxxxx…xxxxxx"
    assert short["org/فنار-9B"] == "فنار-9B"
    assert chart_names(names)["org/فنار-9B"] == "\u2068فنار-9B\u2069"  # set apart from text from left to right


def test_sizes_are_written_as_people_do_in_ticks_and_tooltips(tmp_path):
    points = [
        Point("tiny", 0.000144, 1.0),
        Point("small", 0.135, 2.0),
        Point("nearly", 0.9999, 2.0),
        Point("huge", 1040),
    ]
    chart = scatter("sizes", "Sizes", ("parameters", "y"), points, sizes=True)
    rows = [row["size"] for row in chart.spec["data"]["values"]]
    assert rows == ["144 K", "135 M", "1 B", "1.04 T"]
    (svg,) = chart_files(chart, tmp_path, ("svg",))
    ticks = re.findall(r">(\S+ [KMB])<", svg.read_text(encoding="utf-8"))
    assert {"1 M", "1 B"} <= {*ticks}


def test_panels_in_several_rows_have_an_axis_each_and_none_is_below_a_gap(tmp_path):
    columns = [f"c{place}" for place in range(MOST_PANELS + 1)]
    points = [Point("model", 1.0, 1.0, group="model", panel=(column, "")) for column in columns]
    some = dots("dots", "Dots", {"model": dict.fromkeys(columns, (0.5, 0.4, 0.6))})
    for chart in (some, scatter("points", "Points", ("x", "y"), points)):
        (svg,) = chart_files(chart, tmp_path, ("svg",))
        assert svg.read_text(encoding="utf-8").count('aria-label="X-axis') == len(columns)


def test_formats_are_named_in_a_list():
    assert chart_formats("png, PDF,png") == ("png", "pdf")
    assert chart_formats("none") == ()
    for wrong in ("jpg", "pdf,none", ""):
        with pytest.raises(CulturevalError, match="pdf, svg, png, or none"):
            chart_formats(wrong)


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        ((None, None), "Means."),
        ((0.1, 0.4), "Means. 95 % intervals."),
        ((0.1, None), "Means. 95 % intervals where they are known."),
    ],
)
def test_a_note_tells_of_intervals_only_where_some_are_drawn(ends, told):
    values = {f"model {place}": {"a": (0.3, low, low and 0.9)} for place, low in enumerate(ends)}
    assert dots("dots", "Dots", values, note="Means.").note == told
    one = Point("a", 1, 2, y_error=ends[0])
    assert scatter("points", "Points", ("x", "y"), [one]).note.startswith("One standard error") == bool(ends[0])
