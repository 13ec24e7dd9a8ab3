"""What all figures share: series that can be told apart, legends inside the page, files in three formats."""

import pytest

from cultureval.reports.drawing import (
    FORMATS,
    figure_formats,
    figure_style,
    legend_below,
    panels,
    save_figure,
    series_styles,
    short_names,
)
from cultureval.runtime.errors import CulturevalError


@figure_style()
def draw(folder):
    """A figure of 24 series with long names, in every format; also its legends."""
    names = [f"organisation/a-model-with-a-rather-long-name-{number}B-Instruct" for number in range(24)]
    figure, (axes, _) = panels(2, 2.0, 1.5)
    styles = series_styles(names)
    for number, style in enumerate(styles.values()):
        axes.errorbar(number, 1.0, yerr=0.1, **style)
    legend_below(figure, dict(zip(short_names(names).values(), styles.values(), strict=True)))
    return figure, styles, save_figure(figure, folder / "sub" / "some.name", FORMATS)


def test_24_series_differ_and_their_legend_is_inside_the_page(tmp_path):
    figure, styles, files = draw(tmp_path / "first")
    assert len({(style["color"], style["marker"]) for style in styles.values()}) == 24
    assert len({style["color"] for style in list(styles.values())[:20]}) == 20
    (legend,) = figure.legends
    assert len(legend.get_texts()) == 24
    page, box = figure.bbox, legend.get_window_extent()
    assert page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0
    assert all(box.y1 <= axes.get_tightbbox().y0 for axes in figure.axes)
    assert [file.name for file in files] == ["some.name.pdf", "some.name.svg", "some.name.png"]
    again = draw(tmp_path / "again")[2]
    assert [file.read_bytes() for file in files] == [file.read_bytes() for file in again]
    assert [file.read_bytes()[:4] for file in files] == [b"%PDF", b"<?xm", b"\x89PNG"]


def test_names_are_short_where_they_still_differ():
    names = ["org/model-7B", "a/same", "b/same", "x" * 50, "org/فنار-9B"]
    short = short_names(names, 12)
    assert [short[name] for name in names[:3]] == ["model-7B", "a/same", "b/same"]
    assert short["x" * 50] == "xxxxx…xxxxxx"
    assert short["org/فنار-9B"] == "\u2068فنار-9B\u2069"  # set apart from text that is written from left to right


def test_formats_are_named_in_a_list():
    assert figure_formats("png, PDF,png") == ("png", "pdf")
    assert figure_formats("none") == ()
    for wrong in ("jpg", "pdf,none", ""):
        with pytest.raises(CulturevalError, match="pdf, svg, png, or none"):
            figure_formats(wrong)
