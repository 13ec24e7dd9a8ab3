"""M2CQA's charts: accuracy on Q+ and CFHR with the four regimes (the paper's Figure 3), and CFHR against model size.

The leaderboard has a chart a prompt. `cultureval compare m2cqa` has a row of panels for each variety, a column for each
prompt; a model or a family has its own colour and mark.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cultureval.metrics.m2cqa.names import CFHR, Q_PLUS_ACC
from cultureval.reports.charts import Chart, Charted, Point, chart_names, scatter, without_size
from cultureval.reports.m2cqa.comparison_rows import Borders
from cultureval.reports.m2cqa.table import VARIETIES
from cultureval.reports.model_sizes import family
from cultureval.tasks.m2cqa.benchmarks import PROMPTS

Row = Mapping[str, Any]
SUITE = "m2cqa"
BORDERS = (0.5, 0.5)  # of the leaderboard, between the regimes, which the paper only names
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
REGIME_NAMES = [(x, y, regime, side) for regime, (x, y, side) in REGIMES.items()]  # where no point can be
LIMITS = (-0.15, 1.15)
LOW_IS_BETTER = "CFHR (lower is better)"


def charts(models: Sequence[Charted]) -> list[Chart]:
    """A chart a prompt, in it a panel a variety with a point a model.

    Args:
        models: Comparable ones.
    """
    found = []
    for prompt, name in PROMPTS.items():
        points = [
            Point(
                model.label,
                accuracy,
                rate,
                model.run.stderr(task.task, Q_PLUS_ACC),
                model.run.stderr(task.task, CFHR),
                group=model.label,
                panel=(VARIETIES[task.subset], ""),
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
            note = "The regimes' borders at 0.5 are ours."
            settings: dict[str, Any] = {"borders": BORDERS, "names": REGIME_NAMES, "limits": LIMITS, "note": note}
            found.append(scatter(f"m2cqa_regimes_{prompt}", title, axes, points, **settings))
    return found


def regimes(rows: Sequence[Row], borders: Borders) -> list[Chart]:
    """Each model as a point of Q+ accuracy (x) and CFHR (y) with standard errors, and the thresholds.

    Rows (`cell_rows`) without a CFHR and means of dialects are not drawn; [] if nothing is left.
    """
    shown = [row for row in rows if row[CFHR] is not None and row["variety"] != "dialect"]
    points = _points(shown, lambda row: row["model"], lambda row: (row[Q_PLUS_ACC], row[f"{Q_PLUS_ACC}_stderr"]))
    axes, lines = ("accuracy on Q+", LOW_IS_BETTER), (borders.q_plus_acc, borders.cfhr)
    settings: dict[str, Any] = {"borders": lines, "names": REGIME_NAMES, "limits": LIMITS}
    return [scatter("regimes", "Q+ accuracy and CFHR", axes, points, **settings)] if points else []


def sizes(rows: Sequence[Row]) -> list[Chart]:
    """CFHR with standard errors against parameters, a line for each model family.

    A family is a model name without the size. Rows as for `regimes`; those without a size are named in the note; of
    the dialects the mean is drawn (paper, Figure 5).
    """
    rated = [row for row in rows if row[CFHR] is not None and row["variety"] in OF_SIZES]
    shown = [row for row in rated if row["size_b"]]
    unknown = list(dict.fromkeys(row["model"] for row in rated if not row["size_b"]))
    points = _points(shown, lambda row: family(row["model"]), lambda row: (row["size_b"], None))
    axes = ("parameters", LOW_IS_BETTER)
    settings: dict[str, Any] = {"sizes": True, "lines": True, "limits": (-0.04, 1.04), "note": without_size(unknown)}
    return [scatter("cfhr_by_size", "CFHR and model size", axes, points, **settings)] if points else []


def _points(
    rows: Sequence[Row], series: Callable[[Row], str], across: Callable[[Row], tuple[float, float | None]]
) -> list[Point]:
    """Points of CFHR in panels of varieties and prompts; `across` is a row's value, with error, on the other axis."""
    short = chart_names(list(dict.fromkeys(map(series, rows))))
    varieties, prompts = list(VARIETY_LABELS), list(PROMPTS)
    ordered = sorted(rows, key=lambda row: (varieties.index(row["variety"]), prompts.index(row["prompt"])))
    return [
        Point(
            row["model"],
            *(across(row)[0], row[CFHR], across(row)[1], row[f"{CFHR}_stderr"]),
            group=short[series(row)],
            panel=(PROMPTS[row["prompt"]], VARIETY_LABELS[row["variety"]]),
        )
        for row in ordered
    ]
