"""Bars of a score by semantic field and by category, with Chinese labels.

No font is included. An SVG has text with a list of font families, which the viewer draws; a PDF and a PNG are written
only if this machine has a Chinese font.
"""

import logging
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cultureval.reports.drawing import FORMATS, figure_style, panels, save_figure

CHINESE_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "PingFang SC",
    "Microsoft YaHei",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "SimHei",
    "Droid Sans Fallback",
    "Arial Unicode MS",
)
ROWS = 24  # more categories than these are drawn in two panels


def draw_categories(rows: Sequence[Mapping[str, Any]], metric: str, title: str, stem: Path) -> list[Path]:
    """Draws a panel of fields, and one or two of categories, with one standard error on either side.

    Args:
        rows: With `level` ("field" or "category"), `name`, `items`, the metric, 0 to 1, and `<metric>_stderr`, None
            where unknown; rows whose metric is None are left out.
        metric: The column to draw.
        title: Title of the plot.
        stem: Path without suffix.

    Returns:
        The files written: an SVG and, where a Chinese font is installed, a PDF and a PNG.
    """
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)  # it warns of every missing family
    font = chinese_font()
    families = [*([font] if font else []), *(name for name in CHINESE_FONTS if name != font), "DejaVu Sans"]
    shown = _columns([row for row in rows if row[metric] is not None])
    longest = max(1, *map(len, shown.values()))
    style = {"svg.fonttype": "none", "font.family": families, "axes.unicode_minus": False}
    with figure_style(style), warnings.catch_warnings():
        # The viewer draws an SVG's text, so missing glyphs do not matter here.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure, places = panels(len(shown), 3.8, max(2.2, 0.17 * longest + 0.9))
        for panel, (heading, members) in zip(places, shown.items(), strict=True):
            _bars(panel, members, metric, heading, longest)
        figure.suptitle(f"{title}, one standard error on either side", fontsize=9)
        return save_figure(figure, stem, FORMATS if font else ("svg",))


def chinese_font() -> str | None:
    """The first of the known Chinese fonts that matplotlib finds on this machine."""
    from matplotlib import font_manager

    installed = {entry.name for entry in font_manager.fontManager.ttflist}
    return next((name for name in CHINESE_FONTS if name in installed), None)


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, Sequence[Mapping[str, Any]]]:
    """The rows of each panel by its heading."""
    fields, members = ([row for row in rows if row["level"] == level] for level in ("field", "category"))
    if len(members) <= ROWS:
        return {"by field": fields, "by category": members}
    half = -(-len(members) // 2)
    return {"by field": fields, "by category": members[:half], "by category, continued": members[half:]}


def _bars(panel: Any, rows: Sequence[Mapping[str, Any]], metric: str, title: str, longest: int) -> None:
    labels = [f"{row['name']} ({row['items']})" for row in rows]
    values = [row[metric] for row in rows]
    spread = [row.get(f"{metric}_stderr") or 0.0 for row in rows]
    places = range(len(rows))
    error_bars = {"ecolor": "0.3", "elinewidth": 0.8, "capsize": 1.5}
    panel.barh(places, values, xerr=spread, color="C0", alpha=0.75, height=0.75, error_kw=error_bars)
    panel.set_yticks(places, labels)
    panel.set_ylim(longest - 0.4, -0.6)  # bars of one height in both panels
    panel.set_xlim(0, 1.05)
    panel.set_title(title)
    panel.grid(False, axis="y")
    for place, value in zip(places, values, strict=True):
        panel.text(1.0, place, f"{value:.2f}", va="center", fontsize=7, transform=panel.get_yaxis_transform())
