"""AL-QASIDA's figures: means by dialect, genre and direction, and dialectness. Each model has a row or a panel."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from cultureval.metrics.alqasida.names import ADI2, ALDI, PROMPT_ALDI
from cultureval.reports.charts import PANEL, Chart, chart_names, specification
from cultureval.runs.scores import Score, task_scores

if TYPE_CHECKING:
    import pandas

COLUMNS, STEP = 4, 0.05  # panels in a row, width of a bin of dialectness
Means = Sequence[tuple[str, str, Score]]  # panel, run, mean


def charts_of(samples: "pandas.DataFrame", translation_means: Means) -> Iterator[Chart]:
    """Means by dialect and genre, distributions of dialectness, input against output, spBLEU.

    Args:
        samples: Of `analysis.samples_of`.
        translation_means: Of `analysis.translation_means`.
    """
    shots = samples["n_shots"].map(lambda count: f", {count}-shot" if count else "")
    samples = samples.assign(series=samples["model"] + shots)
    samples = samples[~samples["target"].isin(["eng", "msa"])]
    for kind, members in samples.groupby("kind"):
        for feature in ("dialect", "genre"):
            yield _means(f"{kind}_by_{feature}", f"{kind}: ADI2 by {feature}", _of_feature(members, feature))
        yield from _binned(f"{kind}_dialectness", f"{kind}: dialectness of the outputs", members, [ALDI])
    monolingual = samples[samples["kind"] == "mono"]
    yield from _binned("mono_prompt_and_output_dialectness", "Dialectness of prompts", monolingual, [PROMPT_ALDI, ALDI])
    if translation_means:
        yield _means("translation_spbleu", "Translation: spBLEU by corpus and direction", translation_means)


def _of_feature(samples: "pandas.DataFrame", feature: str) -> Means:
    """Means of ADI2 of each series and value of a feature; samples of one request are one cluster."""
    items = samples[["cluster"]].assign(
        run=samples["series"], task=samples[feature], metric=ADI2, num=samples[ADI2], den=1.0, sums=None
    )
    return [(value, series, score) for (series, value, _), score in task_scores(items).items()]


def _means(name: str, title: str, means: Means) -> Chart:
    """A panel for each group with a row for each model: mean and interval. The best model of all panels comes first."""
    import altair as alt

    values: dict[str, list[float]] = {}
    for _, series, score in means:
        values.setdefault(series, []).append(score.value)
    order = sorted(values, key=lambda series: -sum(values[series]) / len(values[series]))
    short = chart_names(order)
    rows = [
        {"model": short[series], "panel": panel, "value": score.value, "low": score.low, "high": score.high}
        for panel, series, score in means
    ]
    y = alt.Y("model:N", title=None, sort=[short[series] for series in order], axis=alt.Axis(labelLimit=0, grid=True))
    base = alt.Chart().encode(y)
    lines = base.mark_rule().encode(alt.X("low:Q"), x2="high:Q")
    dots = base.mark_circle(size=45, opacity=1).encode(alt.X("value:Q", title=None, scale=alt.Scale(zero=False)))
    panels = alt.layer(lines, dots, width=PANEL, height=max(40, 16 * len(order))).facet(
        data=alt.Data(values=rows), facet=alt.Facet("panel:N", title=None), columns=COLUMNS
    )
    return Chart(name, title, specification(panels), "Lines are 95 % intervals.")


def _binned(name: str, title: str, samples: "pandas.DataFrame", fields: Sequence[str]) -> Iterator[Chart]:
    """Numbers of samples by ALDi of the output, or of prompt and output; a panel for each series."""
    import altair as alt

    measured = samples.dropna(subset=list(fields))
    if measured.empty:
        return
    measured = measured.assign(series=measured["series"].map(chart_names(sorted(measured["series"].unique()))))
    bins = alt.Bin(step=STEP, extent=(0, 1))
    titles = {ALDI: "ALDi of the output", PROMPT_ALDI: "ALDi of the prompt"}
    x, *y = (
        axis(f"{field}:Q", bin=bins, title=titles[field]) for axis, field in zip((alt.X, alt.Y), fields, strict=False)
    )
    data: Any = alt.Data(values=measured[["series", *fields]].to_dict("records"))
    if y:
        colour = alt.Color("count()", title="samples", scale=alt.Scale(type="log", scheme="viridis", reverse=True))
        chart = alt.Chart(data).mark_rect().encode(x, *y, color=colour)
    else:
        chart = alt.Chart(data).mark_bar().encode(x, alt.Y("count()", title="samples"))
    panels = chart.properties(width=PANEL, height=PANEL if y else PANEL // 2).facet(
        facet=alt.Facet("series:N", title=None, header=alt.Header(labelLimit=PANEL + 20)), columns=COLUMNS
    )
    yield Chart(name, title, specification(panels))
