"""M2CQA's charts of a leaderboard: accuracy on Q+ and CFHR with the four regimes (the paper's Figure 3)."""

from collections.abc import Sequence

from cultureval.metrics.m2cqa.names import CFHR, Q_PLUS_ACC
from cultureval.reports.charts import Chart, Charted, Point, scatter
from cultureval.reports.m2cqa.plots import LIMITS, REGIME_NAMES
from cultureval.reports.m2cqa.table import VARIETIES
from cultureval.tasks.m2cqa.benchmarks import PROMPTS

SUITE = "m2cqa"
BORDERS = (0.5, 0.5)  # between the regimes, which the paper only names; as of `cultureval compare m2cqa`


def charts(models: Sequence[Charted]) -> list[Chart]:
    """A chart a prompt; a point a model and variety.

    Args:
        models: Comparable ones.
    """
    found = []
    for prompt, name in PROMPTS.items():
        points = [
            Point(
                f"{model.label}, {VARIETIES[task.subset]}",
                accuracy,
                rate,
                model.run.stderr(task.task, Q_PLUS_ACC),
                model.run.stderr(task.task, CFHR),
                group=model.label,
            )
            for model in models
            for task in model.run.tasks_of(SUITE)
            if task.domain == name
            and task.subset in VARIETIES
            and (accuracy := model.run.value(task.task, Q_PLUS_ACC)) is not None
            and (rate := model.run.value(task.task, CFHR)) is not None
        ]
        if points:
            title, axes = f"Q+ and CFHR, {name}", ("accuracy on Q+", "CFHR, lower is better")
            note = "One standard error on either side; the regimes' borders at 0.5 are ours."
            found.append(
                scatter(
                    f"m2cqa_regimes_{prompt}",
                    title,
                    axes,
                    points,
                    borders=BORDERS,
                    names=REGIME_NAMES,
                    limits=LIMITS,
                    note=note,
                )
            )
    return found
