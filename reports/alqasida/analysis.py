"""Which features of requests explain AL-QASIDA's scores: tables and figures."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.metrics.alqasida.feature_analysis import one_way, regression_tree, spearman
from cultureval.metrics.alqasida.names import ADI2, ADI2_MACRO, ALDI, ARABIC_RATE, NADI, PROMPT_ALDI
from cultureval.reports.alqasida.figures import Means, charts_of
from cultureval.reports.charts import FORMATS, chart_files
from cultureval.reports.item_fields import fields_of_items
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.loading import Run, load
from cultureval.runs.scores import task_scores
from cultureval.runtime.csv_files import write_csv
from cultureval.runtime.errors import CulturevalError, counted
from cultureval.tasks.alqasida.benchmarks import direction_of

if TYPE_CHECKING:
    import pandas

Row = dict[str, Any]
KINDS = {"mono": "monolingual", "cross": "cross-lingual"}  # that are analysed
# In the authors' program: score, macro_score, prob, dialectness, acc.
SCORES = (ADI2, ADI2_MACRO, NADI, ALDI, ARABIC_RATE)
TASK = re.compile(r"alqasida(_dev)?_(?P<kind>mono|cross|mt):(?P<genre>[a-z]+)_(?P<languages>[a-z_]+)\|(?P<shots>\d+)")
FEATURES = ("template", "location", "phrasing", "prompt_length")  # of `doc.specific`
NUMERIC = ("prompt_length", "n_shots", PROMPT_ALDI)
CATEGORICAL = ("dialect", "genre", "model", "location", "template", "phrasing")
TREE_DEPTH, SPBLEU = 3, "spbleu"


def write_analysis(results: Sequence[Path], folder: Path) -> str:
    """Writes the tables and figures of saved runs.

    Args:
        results: Output folders or results files.

    Returns:
        Features by strength, and regression trees, as text.

    Raises:
        CulturevalError: Results have no details of AL-QASIDA's tasks, or a file cannot be read.
    """
    runs = load(*results).runs
    samples = samples_of(runs)
    write_csv(folder / "samples.csv", samples.to_dict("records"))
    write_csv(folder / "means.csv", mean_rows(samples))
    for chart in charts_of(samples, translation_means(runs)):
        chart_files(chart, folder, FORMATS)
    return "\n\n".join(_write_features(samples, kind, folder) for kind in KINDS if kind in set(samples["kind"]))


def samples_of(runs: Sequence[Run]) -> "pandas.DataFrame":
    """The items of AL-QASIDA's tasks with their features.

    Returns:
        A row for each item of a run: `model` (the run's name), `task`, `item`, `kind` (mono, cross, mt), `genre`,
        `dialect`, `source`, `target`, `n_shots`, `cluster`, `FEATURES`, `SCORES` and `prompt_aldi`. Scores that were
        not measured are nan, as are those of translations into English or Standard Arabic.

    Raises:
        CulturevalError: The runs have no details of AL-QASIDA.
    """
    import pandas

    found = [_samples(run, task) for run in runs for task in run.details if TASK.fullmatch(task)]
    if found:
        return pandas.concat(found, ignore_index=True)
    names = ", ".join(run.name for run in runs)
    raise CulturevalError(f"No details of AL-QASIDA's tasks (alqasida_...) in the runs {names}: name other results.")


def _samples(run: Run, task: str) -> "pandas.DataFrame":
    measured = (*SCORES, PROMPT_ALDI)
    items = run.items[((run.items["task"] == task) & run.items["metric"].isin(measured)).to_numpy()]
    items = items.assign(num=items["num"].where(items["den"] > 0), metric=items["metric"].astype(str))
    clusters = items.drop_duplicates("item").set_index("item")["cluster"].astype(str)
    scores = items.pivot(index="item", columns="metric", values="num").reindex(columns=measured)
    features = fields_of_items(run.details[task], FEATURES)
    joined = features.join(clusters).join(scores).rename_axis("item").reset_index()
    return joined.assign(model=run.name, task=task, **about_task(task))


def about_task(task: str) -> Row:
    """Kind, genre, dialect, source, target and n_shots from the name of a task of AL-QASIDA (with `|k`)."""
    found = TASK.fullmatch(task)
    assert found
    source, _, target = found["languages"].partition("_to_")
    dialect = next((code for code in (source, target) if code not in ("", "eng", "msa")), source)
    languages = {"dialect": dialect, "source": source, "target": target or source}
    return {"kind": found["kind"], "genre": found["genre"], **languages, "n_shots": int(found["shots"])}


def _write_features(samples: "pandas.DataFrame", kind: str, folder: Path) -> str:
    """Writes correlations, variances and trees of one kind; returns those of ADI2 as a table and a tree."""
    members = samples[samples["kind"] == kind]
    correlations, variances, nodes = correlation_rows(members), variance_rows(members), tree_rows(members)
    write_csv(folder / f"{kind}_spearman.csv", correlations)
    write_csv(folder / f"{kind}_anova.csv", variances)
    write_csv(folder / f"{kind}_tree_depth_{TREE_DEPTH}.csv", nodes)
    rows = [
        [row["feature"], "Spearman's rho", f"{row['rho']:+.3f}", "", f"{row['p']:.2g}"]
        for row in correlations
        if row["score"] == ADI2 and row["feature"] in NUMERIC and not math.isnan(row["rho"])
    ]
    defined = [row for row in variances if row["score"] == ADI2 and not math.isnan(row["eta_squared"])]
    rows += [
        [row["feature"], "eta squared", f"{row['eta_squared']:.3f}", f"{row['f']:.2f}", f"{row['p']:.2g}"]
        for row in sorted(defined, key=lambda row: -row["eta_squared"])
    ]
    title = f"{KINDS[kind]} ({counted(len(members), 'sample')})"
    if not rows:
        return f"{title}: no feature varies, so none explains ADI2."
    tree = [
        ["| " * node["depth"] + (node["rule"] or "all samples"), f"{node['value']:.3f}", str(node["count"])]
        for node in nodes
        if node["score"] == ADI2
    ]
    table = terminal_table(["feature", "statistic", "value", "F", "p"], rows, "llr", f"{title}, ADI2 by feature:")
    return f"{table}\n\n{terminal_table(['', 'mean ADI2', 'samples'], tree, 'lr', f'{title}, regression tree:')}"


def correlation_rows(samples: "pandas.DataFrame") -> list[Row]:
    """Spearman's rho of each numeric feature with each score, and between the scores."""
    pairs = [(feature, score) for feature in NUMERIC for score in SCORES]
    pairs += [(first, second) for place, first in enumerate(SCORES) for second in SCORES[place + 1 :]]
    return [
        {"feature": feature, "score": score, **spearman(samples[feature], samples[score])} for feature, score in pairs
    ]


def variance_rows(samples: "pandas.DataFrame") -> list[Row]:
    """One-way analysis of variance of each score over each categorical feature, and the number of shots."""
    labels = {name: samples[name].fillna("") for name in (*CATEGORICAL, "n_shots")}
    return [
        {"feature": feature, "score": score, **one_way(samples[score], column)}
        for feature, column in labels.items()
        if column.nunique() > 1
        for score in SCORES
    ]


def tree_rows(samples: "pandas.DataFrame") -> list[Row]:
    """The nodes of a regression tree of depth 3 for each score."""
    # Only Arabic requests have an ALDi. A column with nan would exclude samples.
    numeric = [name for name in NUMERIC if samples[name].notna().all()]
    features = samples[[*numeric, *CATEGORICAL]].astype(dict.fromkeys(numeric, float))
    features = features.assign(**{name: samples[name].fillna("").astype(str) for name in CATEGORICAL})
    return [
        {"score": score, **node} for score in SCORES for node in regression_tree(features, samples[score], TREE_DEPTH)
    ]


def mean_rows(samples: "pandas.DataFrame") -> list[Row]:
    """Means of the scores by kind, model and shots: of all items, by dialect, by genre, and by both.

    All samples of one request or sentence are one cluster.
    """
    rows = []
    for dims in ((), ("dialect",), ("genre",), ("dialect", "genre")):
        by = ["kind", "model", "n_shots", *dims]
        groups = samples.groupby(by, sort=False)
        items = samples[["cluster", *SCORES]].assign(run=groups.ngroup().astype(str))
        items = items.melt(["run", "cluster"], var_name="metric", value_name="num").assign(task="", den=1.0, sums=None)
        scores = task_scores(items)
        for number, (key, members) in enumerate(groups):
            found = {"dialect": "all", "genre": "all"} | dict(zip(by, key, strict=True))
            row: Row = {name: found[name] for name in ("kind", "model", "n_shots", "dialect", "genre")}
            row["samples"] = int(members[ADI2].notna().sum())
            for name in SCORES:
                score = scores.get((str(number), "", name))
                row |= {name: score and score.value, f"{name}_stderr": score and score.error}
            rows.append(row)
    return rows


def translation_means(runs: Sequence[Run]) -> Means:
    """(corpus and direction, run, mean spBLEU of the dialects); without runs that miss a dialect."""
    groups: dict[str, dict[str, None]] = {}
    for task in dict.fromkeys(task for run in runs for task in run.details if TASK.fullmatch(task)):
        about = about_task(task)
        if about["kind"] == "mt":
            direction = direction_of(about["source"], about["target"]).replace("_", " ")
            groups.setdefault(f"{direction}, {about['genre']}", {})[task] = None
    means = {
        (name, run.name): run.mean({(task, SPBLEU): 1 / len(tasks) for task in tasks})
        for name, tasks in groups.items()
        for run in runs
    }
    return [(*key, score) for key, score in means.items() if score]
