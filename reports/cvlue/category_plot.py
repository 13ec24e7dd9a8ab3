"""Bars of a score by semantic field and by category, with Chinese labels.

No font is included. An SVG has text with a list of font families, which the viewer draws; a PNG is written only if
this machine has a Chinese font.
"""

import logging
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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


def draw_categories(rows: Sequence[Mapping[str, Any]], metric: str, title: str, stem: Path) -> list[Path]:
    """Draws one panel of fields and one of categories.

    Args:
        rows: With `level` ("field" or "category"), `name`, `items` and the metric, 0 to 1; None is left out.
        metric: The column to draw.
        title: Title of the plot.
        stem: Path without suffix.

    Returns:
        The files written: an SVG and, where a Chinese font is installed, a PNG.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)  # it warns of every missing family
    font = chinese_font()
    families = [*([font] if font else []), *(name for name in CHINESE_FONTS if name != font), "DejaVu Sans"]
    shown = {level: [row for row in rows if row["level"] == level and row[metric] is not None] for level in LEVELS}
    longest = max(1, *map(len, shown.values()))
    style = {"svg.fonttype": "none", "font.family": families, "font.size": 8, "axes.unicode_minus": False}
    with plt.rc_context(style):
        figure, panels = plt.subplots(1, 2, figsize=(11, max(3.0, 0.19 * longest + 1.2)), layout="constrained")
        for panel, level in zip(panels, LEVELS, strict=True):
            _bars(panel, shown[level], metric, LEVELS[level], longest)
        figure.suptitle(title)
        files = [stem.with_suffix(".svg"), *([stem.with_suffix(".png")] if font else [])]
        with warnings.catch_warnings():
            # The viewer draws an SVG's text, so missing glyphs do not matter here.
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            for file in files:
                figure.savefig(file, dpi=150)
        plt.close(figure)
    return files


def chinese_font() -> str | None:
    """The first of the known Chinese fonts that matplotlib finds on this machine."""
    from matplotlib import font_manager

    installed = {entry.name for entry in font_manager.fontManager.ttflist}
    return next((name for name in CHINESE_FONTS if name in installed), None)


LEVELS = {"field": "by field", "category": "by category"}


def _bars(panel: Any, rows: Sequence[Mapping[str, Any]], metric: str, title: str, longest: int) -> None:
    labels = [f"{row['name']} ({row['items']})" for row in rows]
    values = [row[metric] for row in rows]
    places = range(len(rows))
    panel.barh(places, values, color="#3465a4", height=0.75)
    panel.set_yticks(places, labels)
    panel.set_ylim(longest - 0.4, -0.6)  # bars of one height in both panels
    panel.set_xlim(0, 1.08)
    panel.set_title(title)
    panel.grid(axis="x", alpha=0.3)
    panel.set_axisbelow(True)
    for place, value in zip(places, values, strict=True):
        panel.text(value + 0.01, place, f"{value:.2f}", va="center", fontsize=7)
