"""AL-QASIDA's charts of a leaderboard: ADI2 by country with intervals, and ADI2 against spBLEU."""

from collections.abc import Sequence
from statistics import fmean

from cultureval.metrics.alqasida.countries import NAMES
from cultureval.reports.alqasida.table import KINDS, tables
from cultureval.reports.charts import Chart, Charted, Interval, Point, dots, interval_of_cell, scatter
from cultureval.runs.table import one_row

SUITE = "alqasida"


def charts(models: Sequence[Charted]) -> list[Chart]:
    """Dots a kind of requests, then translations into dialects by both scores.

    Args:
        models: Comparable ones.
    """
    found = []
    for kind, name in KINDS.items():
        values = {model.label: row for model in models if (row := _by_country(model, name))}
        if values:
            title = f"ADI2 of {name} requests by country, percent"
            note = "Means over the sets that were run."
            found.append(dots(f"alqasida_{kind}", title, values, note=note))
    points = [point for model in models if (point := _translation(model))]
    if points:
        axes = ("spBLEU, English to dialect", "ADI2 of the translations, percent")
        note = "Means over the corpora and dialects that were run; high on both axes: right, and in the dialect."
        found.append(scatter("alqasida_translation", "Quality and fidelity of translations", axes, points, note=note))
    return found


def _by_country(model: Charted, kind: str) -> dict[str, Interval]:
    cells = {column: cell for table in tables(model.run) for column, cell in one_row(table).cells.items()}
    found = {column.above: interval_of_cell(cell) for column, cell in cells.items() if column.name == kind}
    return {country: found[country] for country in NAMES.values() if found.get(country)}


def _translation(model: Charted) -> Point | None:
    pairs = [
        (quality, 100 * fidelity)
        for task in model.run.tasks_of(SUITE)
        if "_eng_to_" in task.task
        and (quality := model.run.value(task.task, "spbleu")) is not None
        and (fidelity := model.run.value(task.task, "adi2")) is not None
    ]
    return Point(model.label, fmean(x for x, _ in pairs), fmean(y for _, y in pairs)) if pairs else None
