"""Plots of AL-QASIDA: bars by dialect and genre, distribution of dialectness, input against output, radar."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

COLOURS = ("#3465a4", "#cc6633", "#4e9a06", "#75507b", "#c4a000", "#a40000", "#2e8b8b", "#555753")
Groups = Mapping[str, Mapping[str, float]]


def draw_bars(groups: Groups, errors: Groups, title: str, label: str, file: Path) -> None:
    """Groups of bars: one group per dialect or genre, one bar per model.

    Args:
        groups: Group -> model -> mean.
        errors: Group -> model -> standard error; nan is not drawn.
        title: Title of the plot.
        label: Label of the value axis.
        file: A .png or .svg.
    """
    plt = _pyplot()
    models = sorted({model for members in groups.values() for model in members})
    width = 0.8 / len(models)
    figure, axes = plt.subplots(figsize=(max(5.0, 1.1 * len(groups) + 1.5), 3.6), layout="constrained")
    for number, model in enumerate(models):
        places = [index + (number - (len(models) - 1) / 2) * width for index in range(len(groups))]
        heights = [members.get(model, math.nan) for members in groups.values()]
        spread = [errors[group].get(model, math.nan) for group in groups]
        spread = [0.0 if math.isnan(error) else error for error in spread]
        axes.bar(places, heights, width * 0.92, yerr=spread, label=model, color=_colour(number), capsize=2)
    axes.set_xticks(range(len(groups)), list(groups))
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.set_title(title)
    if len(models) > 1:
        figure.legend(loc="outside lower center", ncols=min(len(models), 4), frameon=False)
    _save(figure, file)


def draw_distribution(values: Mapping[str, Sequence[float]], title: str, label: str, file: Path) -> None:
    """The distribution of a score between 0 and 1, one outline per model, in 20 bins, as shares of its samples."""
    plt = _pyplot()
    figure, axes = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
    for number, (model, scores) in enumerate(values.items()):
        weights = [1 / len(scores)] * len(scores)
        style: dict[str, Any] = {"histtype": "stepfilled", "alpha": 0.35} if len(values) == 1 else {"histtype": "step"}
        axes.hist(scores, 20, (0, 1), weights=weights, label=model, color=_colour(number), linewidth=1.6, **style)
    axes.set(xlim=(0, 1), xlabel=label, ylabel="share of samples", title=title)
    axes.grid(alpha=0.3)
    if len(values) > 1:
        figure.legend(loc="outside lower center", ncols=min(len(values), 4), frameon=False)
    _save(figure, file)


def draw_scatter(points: Mapping[str, tuple[Sequence[float], Sequence[float]]], title: str, file: Path) -> None:
    """ALDi of the prompts against ALDi of the outputs, one colour per model, with the diagonal."""
    plt = _pyplot()
    figure, axes = plt.subplots(figsize=(4.6, 4.6), layout="constrained")
    axes.plot((0, 1), (0, 1), color="#888a85", linewidth=0.8, linestyle="--")
    for number, (model, (given, written)) in enumerate(points.items()):
        axes.scatter(given, written, s=9, alpha=0.5, label=model, color=_colour(number), linewidths=0)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="ALDi of the prompt", ylabel="ALDi of the output")
    axes.set_aspect("equal")
    axes.set_title(title)
    axes.grid(alpha=0.3)
    if len(points) > 1:
        figure.legend(loc="outside lower center", ncols=min(len(points), 3), frameon=False)
    _save(figure, file)


def draw_radar(axes_of: Mapping[str, Mapping[str, float]], title: str, file: Path) -> None:
    """One polygon per model over competencies; every axis is 0 to 1.

    Args:
        axes_of: Competency -> model -> score between 0 and 1.
        title: Title of the plot.
        file: A .png or .svg.
    """
    plt = _pyplot()
    everyone = {model for scores in axes_of.values() for model in scores}
    # A polygon needs at least three points.
    models = sorted(model for model in everyone if sum(model in scores for scores in axes_of.values()) > 2)
    angles = [2 * math.pi * number / len(axes_of) for number in range(len(axes_of))]
    figure, axes = plt.subplots(figsize=(6.2, 5.2), subplot_kw={"projection": "polar"}, layout="constrained")
    highest = max((value for scores in axes_of.values() for value in scores.values()), default=1.0)
    for number, model in enumerate(models):
        heights = [scores.get(model, math.nan) for scores in axes_of.values()]
        axes.plot([*angles, angles[0]], [*heights, heights[0]], label=model, color=_colour(number), linewidth=1.6)
        axes.fill(angles, [0 if math.isnan(height) else height for height in heights], color=_colour(number), alpha=0.1)
    axes.set_xticks(angles, list(axes_of))
    axes.tick_params(axis="x", pad=14)
    axes.set_ylim(0, min(1.0, highest * 1.15) or 1.0)
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    axes.set_title(title, pad=18)
    if len(models) > 1:
        figure.legend(loc="outside lower center", ncols=min(len(models), 4), frameon=False)
    _save(figure, file)


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    return plt


def _save(figure: Any, file: Path) -> None:
    import matplotlib.pyplot as plt

    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150)
    plt.close(figure)
