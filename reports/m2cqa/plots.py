"""The figures of M2CQA: Q+ accuracy and CFHR with their four regimes, and CFHR against model size.

A row of panels for each variety, a column for each prompt; a model or a family has its own colour and mark.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.metrics.m2cqa.names import CFHR, Q_PLUS_ACC
from cultureval.reports.drawing import (
    figure_style,
    label_axes,
    legend_below,
    panels,
    save_figure,
    series_styles,
    short_names,
)
from cultureval.reports.m2cqa.comparison_rows import Borders
from cultureval.reports.model_sizes import family
from cultureval.tasks.m2cqa.benchmarks import PROMPTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = Mapping[str, Any]
VARIETY_LABELS = {
    "en": "English · الإنجليزية",
    "msa": "MSA · العربية الفصحى",
    "ajp": "Levantine · الشامية",
    "arz": "Egyptian · المصرية",
    "dialect": "Dialects, mean · متوسط اللهجتين",
}
OF_SIZES = ("en", "msa", "dialect")  # paper, Figure 5
REGIMES = {
    "strong grounding": (1.02, -0.08, "right"),
    "over-acceptance": (1.02, 1.08, "right"),
    "conservative rejection": (-0.02, -0.08, "left"),
    "frequent hallucination": (-0.02, 1.08, "left"),
}
LIMITS = (-0.04, 1.04)  # room for marks of 0 and 1
ERRORS = {"one standard error on either side": {"color": "0.4", "linestyle": "-"}}


@figure_style()
def draw_regimes(rows: Sequence[Row], borders: Borders, stem: Path, formats: Sequence[str]) -> list[Path]:
    """Each model as a point of Q+ accuracy (x) and CFHR (y) with standard errors, and the thresholds.

    Args:
        rows: From `cell_rows`; those without a CFHR and the means of dialects are not drawn.
        borders: Between the regimes.
        stem: Path without suffix.
        formats: Of the files.

    Returns:
        The files written; [] if there is nothing to draw.
    """
    shown = [row for row in rows if row[CFHR] is not None and row["variety"] != "dialect"]
    styles = series_styles(list(dict.fromkeys(row["model"] for row in rows)))

    def panel(axes: "Axes", members: Sequence[Row]) -> None:
        axes.vlines(borders.q_plus_acc, 0, 1, color="0.6", linewidth=0.8, linestyle="--")
        axes.hlines(borders.cfhr, 0, 1, color="0.6", linewidth=0.8, linestyle="--")
        for name, (x, y, side) in REGIMES.items():
            axes.text(x, y, name, ha=side, va="center", color="0.4", fontsize=6)
        for row in members:
            spread = {"xerr": row[f"{Q_PLUS_ACC}_stderr"], "yerr": row[f"{CFHR}_stderr"]}
            _draw_point(axes, row[Q_PLUS_ACC], row[CFHR], spread, styles[row["model"]])
        axes.set(xlim=LIMITS, ylim=(-0.13, 1.13))  # the regimes' names are where no point can be

    models = [name for name in styles if any(row["model"] == name for row in shown)]
    short = short_names(models)
    entries = {short[name]: styles[name] for name in models}
    labels = ("Q+ accuracy and CFHR", "accuracy on Q+", "CFHR (lower is better)")
    return _draw_grid(shown, panel, entries, labels, stem, formats)


@figure_style()
def draw_sizes(rows: Sequence[Row], stem: Path, formats: Sequence[str]) -> list[Path]:
    """CFHR with standard errors against billions of parameters, a line for each model family.

    A family is a model name without the size. Files and rows as for `draw_regimes`; rows without a size are not drawn;
    of the dialects the mean is drawn (paper, Figure 5).
    """
    shown = [row for row in rows if row[CFHR] is not None and row["size_b"] and row["variety"] in OF_SIZES]
    styles = series_styles(list(dict.fromkeys(family(row["model"]) for row in shown)))
    sizes = sorted({row["size_b"] for row in shown})

    def panel(axes: "Axes", members: Sequence[Row]) -> None:
        for name, style in styles.items():
            points = sorted((row for row in members if family(row["model"]) == name), key=lambda row: row["size_b"])
            axes.plot(
                [row["size_b"] for row in points], [row[CFHR] for row in points], color=style["color"], linewidth=1
            )
            for row in points:
                _draw_point(axes, row["size_b"], row[CFHR], {"yerr": row[f"{CFHR}_stderr"]}, style)
        axes.set(ylim=LIMITS, xscale="log", xlim=(min(sizes) / 1.4, max(sizes) * 1.4))
        ticks = _spread_out(sizes)
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()

    short = short_names(list(styles))
    entries = {short[name]: style | {"linestyle": "-"} for name, style in styles.items()}
    labels = ("CFHR and model size", "parameters, billions", "CFHR (lower is better)")
    return _draw_grid(shown, panel, entries, labels, stem, formats)


def _draw_grid(
    rows: Sequence[Row],
    panel: Callable[["Axes", Sequence[Row]], None],
    entries: Mapping[str, Mapping[str, Any]],
    labels: tuple[str, str, str],
    stem: Path,
    formats: Sequence[str],
) -> list[Path]:
    """A panel for each variety and prompt; `labels` are the title and those of the axes."""
    if not rows:
        return []
    prompts = [name for name in PROMPTS if any(row["prompt"] == name for row in rows)]
    varieties = [name for name in VARIETY_LABELS if any(row["variety"] == name for row in rows)]
    figure, places = panels(len(prompts) * len(varieties), 2.7, 2.3, len(prompts), sharex=True, sharey=True)
    for axes, (variety, prompt) in zip(places, ((v, p) for v in varieties for p in prompts), strict=True):
        panel(axes, [row for row in rows if (row["variety"], row["prompt"]) == (variety, prompt)])
        axes.set_title(f"{PROMPTS[prompt]}\n{VARIETY_LABELS[variety]}")
    title, below, beside = labels
    figure.suptitle(title, fontsize=9)
    label_axes(places, below, beside)
    legend_below(figure, {**entries, **ERRORS})
    return save_figure(figure, stem, formats)


def _spread_out(sizes: Sequence[float]) -> list[float]:
    """Those of ascending sizes whose labels do not overlap on a logarithmic axis of a panel."""
    least = max(1.1, (sizes[-1] / sizes[0]) ** (1 / 7))
    ticks = [sizes[0]]
    for size in sizes:
        if size >= ticks[-1] * least:
            ticks.append(size)
    return ticks


def _draw_point(axes: "Axes", x: float, y: float, spread: Mapping[str, float | None], style: Mapping[str, Any]) -> None:
    axes.errorbar(x, y, **spread, linestyle="", ecolor="0.4", elinewidth=0.7, markersize=4.2, alpha=0.9, **style)
