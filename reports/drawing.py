"""What all figures share: colours and marks of series, grids of panels, legends that fit, files in three formats.

matplotlib joins Arabic letters and orders them itself (since 3.11). Figures are drawn without pyplot, so that a
notebook's own settings stay as they are.
"""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.runtime.errors import CulturevalError

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("pdf", "svg", "png")
# 13 marks have no common divisor with 20 colours: 260 series differ in colour or mark.
MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", "h", ">", "*", "p", "d")
LONGEST_NAME = 36  # letters of a series' name in a figure
Styles = Mapping[str, Mapping[str, Any]]
STYLE: dict[str, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.3,
    "text.parse_math": False,  # a dollar sign in a model's name is one
    "pdf.fonttype": 42,  # TrueType, which publishers ask for
    "svg.fonttype": "path",
    "svg.hashsalt": "cultureval",
}


def figure_formats(text: str) -> tuple[str, ...]:
    """The formats that a list such as "pdf,png" names; "none": no figures.

    Raises:
        CulturevalError: One is not among `FORMATS`.
    """
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    if names == ["none"]:
        return ()
    unknown = [name for name in names if name not in FORMATS]
    if unknown or not names:
        what = ", ".join(unknown) or "no format"
        raise CulturevalError(f"--figures names {what}; choose among {', '.join(FORMATS)}, or none.")
    return tuple(dict.fromkeys(names))


@contextmanager
def figure_style(settings: Mapping[str, Any] | None = None) -> Iterator[None]:
    """A context, or a decorator, in which figures look alike.

    Args:
        settings: Further settings of matplotlib, which go before the shared ones.
    """
    import matplotlib

    with matplotlib.rc_context(STYLE | dict(settings or {})):
        yield


def series_styles(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The colour and the mark of each series, as arguments of `Axes.plot`; 20 colours, then the next round of marks.

    Args:
        names: The series in a fixed order, so that one looks the same in all figures.
    """
    from matplotlib import color_sequences

    colours = color_sequences["tab20"]
    colours = [*colours[::2], *colours[1::2]]  # the full colours before their pale ones
    return {
        name: {
            "color": colours[number % len(colours)],
            "marker": MARKS[number % len(MARKS)],
            "markeredgecolor": "0.25",
            "markeredgewidth": 0.4,
        }
        for number, name in enumerate(names)
    }


def short_names(names: Sequence[str], longest: int = LONGEST_NAME) -> dict[str, str]:
    """Names without the folder or organisation, and of at most so many letters, whose middle is left out.

    A name is whole where it would be another one's as well.
    """
    last = _while_unique({name: name.rstrip("/").rpartition("/")[2] or name for name in names})
    cut = _while_unique({name: _without_middle(short, longest) for name, short in last.items()})
    return {name: isolated(short) for name, short in cut.items()}


def isolated(text: str) -> str:
    """A text that may be written from right to left, set apart from the text around it (by U+2068 and U+2069)."""
    leftwards = any(unicodedata.bidirectional(character) in ("R", "AL") for character in text)
    return f"\u2068{text}\u2069" if leftwards else text


def _while_unique(short: Mapping[str, str]) -> dict[str, str]:
    taken = list(short.values())
    return {name: text if taken.count(text) == 1 else name for name, text in short.items()}


def _without_middle(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest // 2 - 1]}…{text[-(longest - longest // 2) :]}"


def panels(count: int, width: float, height: float, columns: int = 5, **axes: Any) -> tuple["Figure", list["Axes"]]:
    """A figure with so many panels, and its panels row by row.

    Args:
        count: Number of panels.
        width: Of a panel, in inches.
        height: Of a panel, in inches.
        columns: At most so many panels in a row.
        **axes: Arguments of `Figure.subplots`.
    """
    from matplotlib.figure import Figure

    rows = -(-count // columns)
    columns = -(-count // rows)
    figure = Figure(figsize=(max(3.2, columns * width), max(2.2, rows * height)), layout="constrained")
    places = list(figure.subplots(rows, columns, squeeze=False, **axes).flat)
    for place in places[count:]:
        place.remove()
    return figure, places[:count]


def label_axes(places: Sequence["Axes"], below: str, beside: str = "") -> None:
    """Labels and tick labels of a grid of panels that share their axes, at its left and lower edge only."""
    columns = places[0].get_subplotspec().get_gridspec().ncols
    for number, axes in enumerate(places):
        if lowest := number + columns >= len(places):
            axes.set_xlabel(below)
        axes.tick_params(labelbottom=lowest, bottom=lowest, left=number % columns == 0)
        if number % columns == 0:
            axes.set_ylabel(beside)


def legend_below(figure: "Figure", entries: Mapping[str, Mapping[str, Any]]) -> None:
    """A legend below the panels, in as many columns as the page is wide.

    Args:
        figure: The figure, which becomes higher by the legend.
        entries: Label -> arguments of `Line2D`.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.lines import Line2D

    handles: list[Artist] = [
        Line2D([], [], **{"linestyle": "", "label": name} | marks) for name, marks in entries.items()
    ]
    renderer = FigureCanvasAgg(figure).get_renderer()
    for columns in range(min(len(handles), 6), 0, -1):
        legend = figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=7)
        extent = legend.get_window_extent(renderer)
        if columns == 1 or extent.width <= figure.bbox.width:
            break
        legend.remove()
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + extent.height / figure.dpi)


def save_figure(figure: "Figure", stem: Path, formats: Sequence[str]) -> list[Path]:
    """Write a figure in each format; the same figure gives the same bytes.

    Args:
        figure: The figure.
        stem: Path without suffix; its folder is created if missing.
        formats: Of `FORMATS`.

    Returns:
        The files.
    """
    undated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": None}
    stem.parent.mkdir(parents=True, exist_ok=True)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # the places of the panels are found once, not once a format
    files = [stem.with_name(f"{stem.name}.{name}") for name in formats]
    for file, name in zip(files, formats, strict=True):
        figure.savefig(file, dpi=200, metadata=undated[name])
    return files
