"""AL-QASIDA's figures: means by dialect, genre and direction, dialectness, regression trees. A model a row or panel."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.metrics.alqasida.names import ADI2, ALDI, PROMPT_ALDI
from cultureval.reports.charts import Chart, chart_files, chart_names, specification
from cultureval.runs.scores import Score, task_scores
from cultureval.runtime.errors import counted

if TYPE_CHECKING:
    import pandas

Row = Mapping[str, Any]
PANEL, COLUMNS, STEP = 190, 4, 0.05  # pixels of a panel, panels in a row, width of a bin of dialectness
LEAF, LEVEL = 120, 90  # pixels of a tree's leaf and level


def draw_figures(
    samples: "pandas.DataFrame", translated: Sequence[tuple[str, str, Score]], folder: Path, formats: Sequence[str]
) -> None:
    """Draws means by dialect and genre, distributions of dialectness, input against output, spBLEU.

    Args:
        samples: Of `analysis.samples_of`.
        translated: Corpus and direction, run, and its mean spBLEU of the dialects.
    """
    for chart in _charts(samples, translated) if formats else ():
        chart_files(chart, folder, formats)


def _charts(samples: "pandas.DataFrame", translated: Sequence[tuple[str, str, Score]]) -> Iterator[Chart]:
    shots = samples["n_shots"].map(lambda count: f", {count}-shot" if count else "")
    samples = samples.assign(series=samples["model"] + shots)
    short = chart_names(sorted(samples["series"].unique()))
    samples = samples[~samples["target"].isin(["eng", "msa"])].assign(series=samples["series"].map(short))
    for kind, members in samples.groupby("kind"):
        for feature in ("dialect", "genre"):
            rows = _mean_rows(members, feature)
            yield means(f"{kind}_by_{feature}", f"{kind}: ADI2 by {feature}", "ADI2", rows)
        if members[ALDI].notna().any():
            yield distribution(f"{kind}_dialectness", f"{kind}: dialectness of the outputs", members)
    asked = samples[(samples["kind"] == "mono") & samples[PROMPT_ALDI].notna() & samples[ALDI].notna()]
    if len(asked):
        yield given_and_written(asked)
    if translated:
        names = chart_names([run for _, run, _ in translated])
        rows = [_mean_row(panel, names[run], score) for panel, run, score in translated]
        yield means("translation_spbleu", "Translation: spBLEU by corpus and direction", "spBLEU", rows)


def _mean_rows(samples: "pandas.DataFrame", feature: str) -> list[Row]:
    """Means of ADI2 of each series and value of a feature; samples of one request are one cluster."""
    items = samples[["cluster"]].assign(
        run=samples["series"], task=samples[feature], metric=ADI2, num=samples[ADI2], den=1.0, sums=None
    )
    return [_mean_row(value, series, score) for (series, value, _), score in task_scores(items).items()]


def _mean_row(panel: str, series: str, score: Score) -> Row:
    spread = score.error or 0.0
    ends = {"low": score.value - spread, "high": score.value + spread}
    return {"panel": panel, "series": series, "value": score.value, **ends}


def means(name: str, title: str, label: str, rows: Sequence[Row]) -> Chart:
    """A panel for each group and in it a row for each series: its mean with one standard error on either side."""
    import altair as alt

    order = alt.EncodingSortField("value", op="mean", order="descending")
    base = alt.Chart().encode(alt.Y("series:N").title(None).sort(order).axis(labelLimit=260))
    layers = [
        base.mark_rule(color="#555555").encode(x="low:Q", x2="high:Q"),
        base.mark_point(filled=True, size=40, opacity=1).encode(alt.X("value:Q").title(label)),
    ]
    return _in_panels(name, title, layers, rows, "panel", note="one standard error on either side")


def distribution(name: str, title: str, samples: "pandas.DataFrame") -> Chart:
    """The distribution of ALDi of the outputs as shares of samples, a panel for each series; dashed: its mean."""
    import altair as alt
    import numpy as np

    rows: list[Row] = []
    for series, values in samples.dropna(subset=[ALDI]).groupby("series")[ALDI]:
        counts, edges = np.histogram(values, np.arange(0, 1 + STEP / 2, STEP))
        bins = zip(edges, edges[1:], counts / len(values), strict=False)
        rows += [{"series": series, "low": low, "high": high, "share": share} for low, high, share in bins]
        rows.append({"series": series, "mean": float(values.mean())})
    bars = alt.Chart().mark_bar().transform_filter("isValid(datum.high)")
    x, y = alt.X("low:Q").title("ALDi of the output").scale(domain=[0, 1]), alt.Y("share:Q").title("share of samples")
    mean = alt.Chart().mark_rule(strokeDash=[4, 3]).transform_filter("isValid(datum.mean)").encode(x="mean:Q")
    return _in_panels(name, title, [bars.encode(x, y, x2="high:Q"), mean], rows, "series", note="dashed: mean")


def given_and_written(samples: "pandas.DataFrame") -> Chart:
    """ALDi of prompts against ALDi of outputs as counts in squares, a panel for each series, with the diagonal."""
    import altair as alt

    places = samples[[PROMPT_ALDI, ALDI]].clip(0, 1 - STEP / 2) // STEP * STEP
    counts = places.assign(series=samples["series"]).value_counts().reset_index(name="samples")
    rows = [
        {"series": one["series"], "x": one[PROMPT_ALDI], "y": one[ALDI], "samples": int(one["samples"])}
        | {"x2": one[PROMPT_ALDI] + STEP, "y2": one[ALDI] + STEP}
        for one in counts.to_dict("records")
    ]
    colour = alt.Color("samples:Q").scale(type="log", scheme="viridis", reverse=True).legend(format="d")
    x, y = alt.X("x:Q").title("ALDi of the prompt"), alt.Y("y:Q").title("ALDi of the output")
    squares = alt.Chart().mark_rect().encode(x, y, x2="x2:Q", y2="y2:Q", color=colour)
    diagonal = alt.Chart(alt.Data(values=[{"x": 0, "y": 0}, {"x": 1, "y": 1}]))
    layers = [squares, diagonal.mark_line(color="#777777", strokeDash=[4, 3]).encode(x="x:Q", y="y:Q")]
    name = "mono_prompt_and_output_dialectness"
    return _in_panels(name, "Dialectness given and written", layers, rows, "series", height=PANEL)


def _in_panels(
    name: str, title: str, layers: Sequence[Any], rows: Sequence[Row], field: str, *, height: int = 0, note: str = ""
) -> Chart:
    """Layers once for each value of a field of the rows."""
    import altair as alt

    size = {"width": PANEL, "height": height or (alt.Step(14) if field == "panel" else PANEL // 2)}
    facet = alt.Facet(f"{field}:N").title(None).header(labelLimit=PANEL + 20)
    chart = alt.layer(*layers, data=alt.Data(values=list(rows))).properties(**size).facet(facet, columns=COLUMNS)
    return Chart(name, title, specification(chart.resolve_axis(x="independent")), note)


def tree(name: str, title: str, nodes: Sequence[Row]) -> Chart:
    """A regression tree: each node with the rule that leads to it, its mean and its number of samples.

    Args:
        nodes: As `metrics.alqasida.feature_analysis.TreeNode`, a parent before its children, the left child first.
    """
    import altair as alt

    places = _tree_places(nodes)
    rows = []
    for node in nodes:
        x, y = places[node["number"]]
        above = places[node["number"] if node["parent"] is None else node["parent"]]
        lines = [node["rule"] or "all samples", f"mean {node['value']:.3f}", counted(node["count"], "sample")]
        box = {"left": x - 0.47, "right": x + 0.47, "low": y - 0.32, "high": y + 0.32}
        rows.append(
            {"x": x, "y": y, "text": lines, "value": node["value"], **box, "from_x": above[0], "from_y": above[1]}
        )
    hidden: dict[str, Any] = {"axis": None, "scale": alt.Scale(nice=False, zero=False)}
    fill = alt.Color("value:Q").scale(range=["#eef5fb", "#7fb0dc"], zero=False).legend(None)
    boxes = alt.Chart().mark_rect(stroke="#666666", strokeWidth=0.6, cornerRadius=4)
    texts = alt.Chart().mark_text(fontSize=9, baseline="middle", dy=-12, limit=LEAF - 6)
    at = alt.X("x:Q", **hidden), alt.Y("y:Q", **hidden)
    layers = [
        alt.Chart().mark_rule(color="#999999").encode(*at, x2="from_x:Q", y2="from_y:Q"),
        boxes.encode(alt.X("left:Q", **hidden), alt.Y("low:Q", **hidden), x2="right:Q", y2="high:Q", color=fill),
        texts.encode(*at, text="text:N"),
    ]
    leaves, deepest = sum(node["is_leaf"] for node in nodes), max(node["depth"] for node in nodes)
    chart = alt.layer(*layers, data=alt.Data(values=rows))
    chart = chart.properties(width=LEAF * leaves, height=LEVEL * (deepest + 1), view=alt.ViewBackground(stroke=None))
    return Chart(name, title, specification(chart))


def _tree_places(nodes: Sequence[Row]) -> dict[int, tuple[float, float]]:
    """Where each node is drawn: leaves side by side, a parent above the middle of its children."""
    leaves = [node["number"] for node in nodes if node["is_leaf"]]
    across = {number: float(place) for place, number in enumerate(leaves)}
    for node in reversed(nodes):
        if not node["is_leaf"]:
            children = [across[child["number"]] for child in nodes if child["parent"] == node["number"]]
            across[node["number"]] = sum(children) / len(children)
    return {node["number"]: (across[node["number"]], -float(node["depth"])) for node in nodes}
