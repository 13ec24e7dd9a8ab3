"""Which features explain AL-QASIDA's scores: tables and figures of saved runs and of human judgements."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.metrics.alqasida.feature_analysis import one_way, regression_tree, spearman
from cultureval.metrics.alqasida.names import ADI2, CORPUS, GAIN, PROMPT_ALDI, ZERO
from cultureval.reports.alqasida.figures import draw_figures
from cultureval.reports.alqasida.plots import tree
from cultureval.reports.alqasida.ratings import CRITERIA, RATINGS
from cultureval.reports.alqasida.samples import ANALYSED, KINDS, SCORES, Sample, grouped, mean_and_error, samples_of
from cultureval.reports.charts import FORMATS, chart_files
from cultureval.reports.human_ratings import NOT_MODELS
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.csv_files import write_csv
from cultureval.runtime.errors import counted

if TYPE_CHECKING:
    import pandas

Row = dict[str, Any]
NUMERIC = ("prompt_length", "n_shots", PROMPT_ALDI)
CATEGORICAL = ("dialect", "genre", "model", "location", "template", "phrasing")
TREE_DEPTH = 3


def write_analysis(
    results: Sequence[Path], human: Sequence[Path], folder: Path, formats: Sequence[str] = FORMATS
) -> str:
    """Write the tables and figures of saved runs and of human judgements.

    Args:
        results: Output folders, results files or details files; [] for human judgements only.
        human: Files of human judgements in upstream's format.
        formats: Of the figures; () draws none.

    Returns:
        The strongest features and the human judgements as tables for printing.

    Raises:
        CulturevalError: Results have no details of AL-QASIDA's tasks, or a file cannot be read.
    """
    tables = write_samples(*samples_of(results), folder, formats) if results else []
    if human:
        tables.append(write_human_judgements(human, folder))
    return "\n\n".join(tables)


def write_samples(
    samples: Sequence[Sample], tasks: Sequence[Sample], folder: Path, formats: Sequence[str] = FORMATS
) -> list[str]:
    """Write every table and figure of saved runs; returns a table of the features that explain ADI2 for each kind."""
    write_csv(folder / "samples.csv", samples)
    write_csv(folder / "means.csv", mean_rows(samples))
    tables = []
    for kind in ANALYSED:
        of_kind = [sample for sample in samples if sample["kind"] == kind]
        if not of_kind:
            continue
        correlations, variances = correlation_rows(of_kind), variance_rows(of_kind)
        write_csv(folder / f"{kind}_spearman.csv", correlations)
        write_csv(folder / f"{kind}_anova.csv", variances)
        trees = tree_rows(of_kind)
        write_csv(folder / f"{kind}_tree_depth_{TREE_DEPTH}.csv", trees)
        if formats and (nodes := [row for row in trees if row["score"] == ADI2]):
            chart = tree(f"{kind}_tree", f"{KINDS[kind].capitalize()}: what ADI2 depends on", nodes)
            chart_files(chart, folder, formats)
        tables.append(_feature_table(f"{KINDS[kind]} ({counted(len(of_kind), 'sample')})", correlations, variances))
    translations = [task for task in tasks if task["kind"] == "mt"]
    if translations:
        write_csv(folder / "translation.csv", translation_rows(translations))
    draw_figures(samples, translations, folder, formats)
    return tables


def _feature_table(samples: str, correlations: Sequence[Row], variances: Sequence[Row]) -> str:
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
    if not rows:
        return f"{samples}: no feature varies, so none explains ADI2."
    return terminal_table(["feature", "statistic", "value", "F", "p"], rows, "llr", f"{samples}, ADI2 by feature:")


def write_human_judgements(files: Sequence[Path], folder: Path) -> str:
    """Write `human_judgements.csv`, one row per file, dialect and model; returns the same as a table for printing.

    Raises:
        CulturevalError: A file cannot be read.
    """
    rows = [{"file": file.name, **row} for file in files for row in human_rows(RATINGS.read(file))]
    write_csv(folder / "human_judgements.csv", rows)
    cells = [[_shown(value) for value in row.values()] for row in rows]
    return terminal_table(list(rows[0]) if rows else (), cells, "lllr", "Human judgements:")


def human_rows(ratings: "pandas.DataFrame") -> list[Row]:
    """By dialect and model: means of the criteria and of TVD, and Spearman's rho of fluency, and TVD, with fidelity."""
    rows = []
    ratings = ratings[~ratings["model"].str.lower().isin(NOT_MODELS)]
    for (dialect, model), members in ratings.groupby(["group", "model"], sort=False):
        columns = members.reindex(columns=[*CRITERIA, "TVD"])
        row: Row = {"dialect": dialect, "model": model, "texts": len(members)} | columns.mean().to_dict()
        for name in ("Fluency", "TVD"):
            found = spearman(list(columns[name]), list(columns["Dialectal Accuracy"]))
            row |= {f"{name}_Fidelity_SpearmanR": found.rho, f"{name}_Fidelity_p": found.p}
        rows.append(row)
    return rows


def _shown(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "n/a"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def correlation_rows(samples: Sequence[Sample]) -> list[Row]:
    """Spearman's rho of each numeric feature with each score, and between the scores."""
    pairs = [(feature, score) for feature in NUMERIC for score in SCORES]
    pairs += [(first, second) for place, first in enumerate(SCORES) for second in SCORES[place + 1 :]]
    columns = {name: [_number(sample[name]) for sample in samples] for name in (*NUMERIC, *SCORES)}
    return [
        {"feature": feature, "score": score, **asdict(spearman(columns[feature], columns[score]))}
        for feature, score in pairs
    ]


def variance_rows(samples: Sequence[Sample]) -> list[Row]:
    """One-way analysis of variance of each score over each categorical feature, and the number of shots."""
    rows = []
    for feature in (*CATEGORICAL, "n_shots"):
        labels = [sample[feature] or "" for sample in samples] if feature != "n_shots" else None
        labels = labels or [sample["n_shots"] for sample in samples]
        if len(set(labels)) > 1:
            for score in SCORES:
                found = one_way([_number(sample[score]) for sample in samples], labels)
                rows.append({"feature": feature, "score": score, **asdict(found)})
    return rows


def tree_rows(samples: Sequence[Sample]) -> list[Row]:
    """The nodes of a regression tree of depth 3 for each score."""
    columns = {name: [_number(sample[name]) for sample in samples] for name in NUMERIC}
    # ALDi of the prompt exists only for Arabic requests; a column of nan would exclude every sample.
    numeric = {name: column for name, column in columns.items() if not any(map(math.isnan, column))}
    names = {name: [str(sample[name] or "") for sample in samples] for name in CATEGORICAL}
    rows = []
    for score in SCORES:
        nodes = regression_tree(numeric, names, [_number(sample[score]) for sample in samples], TREE_DEPTH)
        rows += [{"score": score, **asdict(node)} for node in nodes]
    return rows


def mean_rows(samples: Sequence[Sample]) -> list[Row]:
    """Means of the scores by kind, model and shots: over all scored samples, by dialect, by genre, and by both."""
    rows = []
    for dims in ((), ("dialect",), ("genre",), ("dialect", "genre")):
        for key, members in grouped(samples, ("kind", "model", "n_shots", *dims)).items():
            row = dict(zip(("kind", "model", "n_shots", *dims), key, strict=True))
            row = {
                **row,
                "dialect": row.get("dialect", "all"),
                "genre": row.get("genre", "all"),
                "samples": sum(not math.isnan(member[ADI2]) for member in members),
            }
            for score in SCORES:
                row[score], row[f"{score}_stderr"] = mean_and_error(members, score)
            rows.append(row)
    return rows


def translation_rows(tasks: Sequence[Sample]) -> list[Row]:
    """Each translation task's corpus scores and those of the untranslated source."""
    ends = ("", "_stderr", ZERO)
    names = [*(name + end for name in CORPUS for end in ends), GAIN, f"{GAIN}_stderr", ADI2]
    columns = ("model", "genre", "source", "target")
    rows = [{c: task[c] for c in columns} | {n: task["metrics"].get(n) for n in names} for task in tasks]
    # Runs of earlier versions hold 0 where a translation into English or Standard Arabic has no fidelity.
    return [row | ({ADI2: None} if row["target"] in ("eng", "msa") else {}) for row in rows]


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)
