"""AL-QASIDA's charts of a leaderboard: ADI2 by dialect and model, and ADI2 against spBLEU (fidelity and quality)."""

from collections.abc import Sequence
from statistics import fmean

from cultureval.reports.charts import Chart, Charted, Point, heat_map, scatter

SUITE = "alqasida"
KINDS = {"mono": "monolingual", "cross": "cross-lingual"}


def charts(models: Sequence[Charted]) -> list[Chart]:
    """A heat map a kind of requests, then translations into dialects by both scores.

    Args:
        models: Comparable ones.
    """
    found = []
    for kind, name in KINDS.items():
        cells = {model.label: row for model in models if (row := _by_dialect(model, kind))}
        if cells:
            title = f"ADI2 of {name} requests by dialect, percent"
            found.append(
                heat_map(f"alqasida_{kind}", title, cells, value="ADI2", note="Means over the sets that were run.")
            )
    points = [point for model in models if (point := _translation(model))]
    if points:
        axes = ("spBLEU, English to dialect", "ADI2 of the translations, percent")
        note = "Means over the corpora and dialects that were run; high on both axes: right, and in the dialect."
        found.append(scatter("alqasida_translation", "Quality and fidelity of translations", axes, points, note=note))
    return found


def _by_dialect(model: Charted, kind: str) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for task in model.run.tasks_of(SUITE):
        value = model.run.value(task.task, "adi2")
        if task.group == f"{SUITE}_{kind}" and value is not None:
            values.setdefault(task.subset.partition("_")[2], []).append(100 * value)
    return {dialect: fmean(values[dialect]) for dialect in sorted(values)}


def _translation(model: Charted) -> Point | None:
    pairs = [
        (quality, 100 * fidelity)
        for task in model.run.tasks_of(SUITE)
        if "_eng_to_" in task.task
        and (quality := model.run.value(task.task, "spbleu")) is not None
        and (fidelity := model.run.value(task.task, "adi2")) is not None
    ]
    return Point(model.label, fmean(x for x, _ in pairs), fmean(y for _, y in pairs)) if pairs else None
