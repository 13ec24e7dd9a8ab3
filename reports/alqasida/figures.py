"""The figures of AL-QASIDA's samples, drawn by `plots`."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cultureval.metrics.alqasida.names import ADI2, ALDI, PROMPT_ALDI, ZERO
from cultureval.reports.alqasida import plots
from cultureval.reports.alqasida.plots import PlottedPoint
from cultureval.reports.alqasida.samples import (
    ANALYSED,
    KINDS,
    Sample,
    by_series,
    grouped,
    mean_and_error,
    series_name,
)
from cultureval.reports.alqasida.table import DIRECTIONS
from cultureval.reports.charts import Chart, chart_files
from cultureval.runs.means import Estimate, mean_of
from cultureval.tasks.alqasida.benchmarks import direction_of

SPBLEU = "spbleu"


def draw_figures(
    samples: Sequence[Sample], translations: Sequence[Sample], folder: Path, formats: Sequence[str]
) -> list[Path]:
    """Draws means by dialect and genre, distributions of dialectness, input against output, radars, spBLEU.

    `samples` and `translations` (its tasks of the kind `mt`) are from `samples_of`; returns the files.
    """
    charts = _charts(samples, translations) if formats else ()
    return [file for chart in charts for file in chart_files(chart, folder, formats)]


def _charts(samples: Sequence[Sample], translations: Sequence[Sample]) -> Iterator[Chart]:
    everyone = sorted({series_name(sample) for sample in samples})
    for kind in KINDS:
        yield from _of_kind(kind, samples, everyone)
    asked = [sample for sample in samples if sample["kind"] == "mono" and not math.isnan(sample[PROMPT_ALDI])]
    if asked:
        points = {
            model: ([s[PROMPT_ALDI] for s in members], [s[ALDI] for s in members])
            for model, members in by_series(asked).items()
        }
        labels = ("ALDi of the prompt", "ALDi of the output")
        yield plots.density("mono_prompt_and_output_dialectness", "Dialectness given and written", labels, points)
    if directions := translation_means(translations):
        title = "Translation: spBLEU by corpus and direction, mean of the dialects"
        yield plots.means("translation_spbleu", title, "spBLEU", directions, everyone)
    for dialect in sorted({sample["dialect"] for sample in samples}):
        axes = competencies(samples, translations, dialect)
        if len(axes) > 2 and (radar := plots.radars(f"radar_{dialect}", f"Competencies: {dialect}", axes, everyone)):
            yield radar


def _of_kind(kind: str, samples: Sequence[Sample], everyone: Sequence[str]) -> Iterator[Chart]:
    """ADI2 by dialect and by genre, and the distribution of ALDi; translations into dialects only."""
    members = [sample for sample in samples if sample["kind"] == kind and sample["target"] not in ("eng", "msa")]
    if not members:
        return
    name = KINDS[kind].capitalize()
    for feature in ("dialect", "genre"):
        points: dict[str, dict[str, PlottedPoint]] = defaultdict(dict)
        for (group, series), rows in sorted(grouped(members, (feature, series_name)).items()):
            points[group][series] = PlottedPoint(*mean_and_error(rows, ADI2))
        yield plots.means(f"{kind}_by_{feature}", f"{name}: ADI2 by {feature}", "ADI2", points, everyone)
    known = [sample for sample in members if not math.isnan(sample[ALDI])]
    levels = {model: [s[ALDI] for s in rows] for model, rows in by_series(known).items()}
    if levels:
        title = f"{name}: dialectness of the outputs"
        yield plots.distribution(f"{kind}_dialectness", title, "ALDi of the output", levels, everyone)


def translation_means(translations: Sequence[Sample]) -> dict[str, dict[str, PlottedPoint]]:
    """Corpus and direction -> series -> spBLEU and that of the untranslated source, means of the dialects.

    The standard error is the mean of the dialects' errors, an upper bound, since their sentences are the same.
    """
    groups: dict[tuple[str, str], dict[str, dict[str, Mapping[str, Any]]]] = defaultdict(lambda: defaultdict(dict))
    for task in translations:
        if task["metrics"].get(SPBLEU) is not None:
            groups[_direction(task), task["genre"]][series_name(task)][task["dialect"]] = task["metrics"]
    order = {direction: place for place, direction in enumerate(DIRECTIONS)}
    points: dict[str, dict[str, PlottedPoint]] = {}
    for (direction, corpus), series in sorted(groups.items(), key=lambda item: (item[0][1], order[item[0][0]])):
        most = max(map(len, series.values()))
        points[f"{DIRECTIONS[direction]}, {corpus}"] = {
            name: _translation_point(list(dialects.values()), len(dialects) == most)
            for name, dialects in series.items()
        }
    return points


def _translation_point(dialects: Sequence[Mapping[str, Any]], complete: bool) -> PlottedPoint:
    found = mean_of(
        [Estimate(metrics[SPBLEU], metrics.get(f"{SPBLEU}_stderr")) for metrics in dialects], same_items=True
    )
    sources = [metrics.get(SPBLEU + ZERO) for metrics in dialects]
    baseline = math.nan if None in sources else math.fsum(sources) / len(sources)
    return PlottedPoint(found.value, math.nan if found.stderr is None else found.stderr, baseline, complete)


def _direction(task: Mapping[str, Any]) -> str:
    """A key of `DIRECTIONS`."""
    return direction_of(task["source"], task["target"])


def competencies(
    samples: Sequence[Sample], translations: Sequence[Sample], dialect: str
) -> dict[str, dict[str, float]]:
    """Competency -> model -> score between 0 and 1 of one dialect: ADI2 of requests, spBLEU / 100 of translations."""
    axes: dict[str, dict[str, float]] = {}
    for kind in ANALYSED:
        of_kind = [sample for sample in samples if sample["kind"] == kind and sample["dialect"] == dialect]
        if of_kind:
            axes[f"{KINDS[kind]}\nADI2"] = {
                name: mean_and_error(rows, ADI2)[0] for name, rows in by_series(of_kind).items()
            }
    for direction, label in DIRECTIONS.items():
        values = defaultdict(list)
        for task in translations:
            if (task["dialect"], _direction(task)) == (dialect, direction) and SPBLEU in task["metrics"]:
                values[series_name(task)].append(task["metrics"][SPBLEU] / 100)
        if values:
            words = label.replace(" to ", "\nto ")
            axes[f"{words}\nspBLEU"] = {name: sum(scores) / len(scores) for name, scores in values.items()}
    return axes
