"""`cultureval analyze`: what explains the scores of saved runs, as tables and plots."""

import csv
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cultureval.runtime.errors import CulturevalError

if TYPE_CHECKING:
    from cultureval.reports.alqasida.samples import Sample
    from cultureval.reports.human_ratings import Rating

NUMERIC = ("prompt_length", "n_shots", "prompt_aldi")
CATEGORICAL = ("dialect", "genre", "model", "location", "template", "phrasing")
KINDS = {"mono": "monolingual", "cross": "cross-lingual", "mt": "translation"}
ANALYSED = ("mono", "cross")
TREE_DEPTH = 3
Row = dict[str, Any]


def analyze_alqasida(
    results: Annotated[
        list[Path] | None, typer.Argument(metavar="RESULTS...", help="Output folders, results or details files.")
    ] = None,
    human: Annotated[
        list[Path] | None, typer.Option(help="Human judgements in the upstream form (*_humeval.csv). Repeatable.")
    ] = None,
    output_dir: Annotated[Path, typer.Option(help="Where tables (CSV) and plots go.")] = Path("results/analysis"),
) -> None:
    """Correlations, variance, trees, plots; people's scores. Example: cultureval analyze alqasida results"""
    if not results and not human:
        raise CulturevalError("Name output folders of `cultureval eval`, or files of judgements with --human.")
    if results:
        from cultureval.reports.alqasida.samples import samples_of

        samples, tasks = samples_of([path.expanduser() for path in results])
        write_samples(samples, tasks, output_dir)
    if human:
        write_human([path.expanduser() for path in human], output_dir)
    print(f"Tables and plots: {output_dir.resolve()}")


# --- samples --------------------------------------------------------------------------------------------------------


def write_samples(samples: "Sequence[Sample]", tasks: "Sequence[Sample]", folder: Path) -> None:
    """Writes every table and plot of saved runs, and prints the strongest features."""
    write_csv(folder / "samples.csv", samples)
    write_csv(folder / "means.csv", mean_rows(samples))
    for kind in ANALYSED:
        of_kind = [sample for sample in samples if sample["kind"] == kind]
        if not of_kind:
            continue
        correlations, variances = correlation_rows(of_kind), variance_rows(of_kind)
        write_csv(folder / f"{kind}_spearman.csv", correlations)
        write_csv(folder / f"{kind}_anova.csv", variances)
        write_csv(folder / f"{kind}_tree_depth_{TREE_DEPTH}.csv", tree_rows(of_kind))
        print(f"\n{KINDS[kind]} ({len(of_kind)} samples), ADI2 by feature:")
        print("\n".join(_headline(correlations, variances)))
    translations = [task for task in tasks if task["kind"] == "mt"]
    if translations:
        write_csv(folder / "translation.csv", translation_rows(translations))
    draw(samples, translations, folder)


def correlation_rows(samples: "Sequence[Sample]") -> list[Row]:
    """Spearman's rho of each numeric feature with each score, and between the scores."""
    from cultureval.metrics.alqasida.feature_analysis import spearman
    from cultureval.reports.alqasida.samples import SCORES

    pairs = [(feature, score) for feature in NUMERIC for score in SCORES]
    pairs += [(first, second) for place, first in enumerate(SCORES) for second in SCORES[place + 1 :]]
    columns = {name: [_number(sample[name]) for sample in samples] for name in (*NUMERIC, *SCORES)}
    return [
        {"feature": feature, "score": score, **asdict(spearman(columns[feature], columns[score]))}
        for feature, score in pairs
    ]


def variance_rows(samples: "Sequence[Sample]") -> list[Row]:
    """One-way analysis of variance of each score over each categorical feature, and the number of shots."""
    from cultureval.metrics.alqasida.feature_analysis import one_way
    from cultureval.reports.alqasida.samples import SCORES

    rows = []
    for feature in (*CATEGORICAL, "n_shots"):
        labels = [sample[feature] or "" for sample in samples] if feature != "n_shots" else None
        labels = labels or [sample["n_shots"] for sample in samples]
        if len(set(labels)) > 1:
            for score in SCORES:
                found = one_way([_number(sample[score]) for sample in samples], labels)
                rows.append({"feature": feature, "score": score, **asdict(found)})
    return rows


def tree_rows(samples: "Sequence[Sample]") -> list[Row]:
    """The nodes of a regression tree of depth 3 for each score."""
    from cultureval.metrics.alqasida.feature_analysis import regression_tree
    from cultureval.reports.alqasida.samples import SCORES

    columns = {name: [_number(sample[name]) for sample in samples] for name in NUMERIC}
    # ALDi of the prompt is measured for requests in Arabic alone; a column of nan would leave no sample.
    numeric = {name: column for name, column in columns.items() if not any(map(math.isnan, column))}
    names = {name: [str(sample[name] or "") for sample in samples] for name in CATEGORICAL}
    rows = []
    for score in SCORES:
        nodes = regression_tree(numeric, names, [_number(sample[score]) for sample in samples], TREE_DEPTH)
        rows += [{"score": score, **asdict(node)} for node in nodes]
    return rows


def mean_rows(samples: "Sequence[Sample]") -> list[Row]:
    """Means of the scores by kind, model and shots: over all samples, by dialect, by genre, and by both."""
    from cultureval.reports.alqasida.samples import SCORES

    rows = []
    for dims in ((), ("dialect",), ("genre",), ("dialect", "genre")):
        for key, members in _grouped(samples, ("kind", "model", "n_shots", *dims)).items():
            row = dict(zip(("kind", "model", "n_shots", *dims), key, strict=True))
            row = {
                **row,
                "dialect": row.get("dialect", "all"),
                "genre": row.get("genre", "all"),
                "samples": len(members),
            }
            for score in SCORES:
                row[score], row[f"{score}_stderr"] = _mean(members, score)
            rows.append(row)
    return rows


def translation_rows(tasks: "Sequence[Sample]") -> list[Row]:
    """Each translation task's corpus scores beside those of the untranslated source."""
    names = [name + end for name in ("spbleu", "chrf_plus_plus", "chrf", "bleu") for end in ("", "_stderr", "_zero")]
    columns = ("model", "genre", "source", "target")
    return [{c: task[c] for c in columns} | {n: task["metrics"].get(n) for n in (*names, "adi2")} for task in tasks]


def draw(samples: "Sequence[Sample]", translations: "Sequence[Sample]", folder: Path) -> None:
    """Draws bars by dialect and genre, distributions of dialectness, input against output dialectness, and radars."""
    from cultureval.reports.alqasida import plots

    for kind, name in KINDS.items():
        of_kind = [sample for sample in samples if sample["kind"] == kind and sample["target"] not in ("eng", "msa")]
        if not of_kind:
            continue
        for feature in ("dialect", "genre"):
            means, errors = _by_model(of_kind, feature)
            plots.draw_bars(means, errors, f"{name}: ADI2 by {feature}", "ADI2", folder / f"{kind}_by_{feature}.png")
        levels = {model: [s["aldi"] for s in members] for model, members in _models(of_kind).items()}
        title = f"{name}: dialectness of the outputs"
        plots.draw_distribution(levels, title, "ALDi of the output", folder / f"{kind}_dialectness.png")
    asked = [sample for sample in samples if sample["kind"] == "mono" and not math.isnan(sample["prompt_aldi"])]
    if asked:
        points = {
            model: ([s["prompt_aldi"] for s in members], [s["aldi"] for s in members])
            for model, members in _models(asked).items()
        }
        plots.draw_scatter(points, "Dialectness given and written", folder / "mono_prompt_and_output_dialectness.png")
    for dialect in sorted({sample["dialect"] for sample in samples}):
        axes = competencies(samples, translations, dialect)
        if len(axes) > 2:
            plots.draw_radar(axes, f"Competencies: {dialect}", folder / f"radar_{dialect}.png")


def competencies(
    samples: "Sequence[Sample]", translations: "Sequence[Sample]", dialect: str
) -> dict[str, dict[str, float]]:
    """Competency -> model -> score between 0 and 1 of one dialect: ADI2 of requests, spBLEU / 100 of translations."""
    axes: dict[str, dict[str, float]] = {}
    for kind in ANALYSED:
        of_kind = [sample for sample in samples if sample["kind"] == kind and sample["dialect"] == dialect]
        if of_kind:
            axes[f"{KINDS[kind]}\nADI2"] = {name: _mean(rows, "adi2")[0] for name, rows in _models(of_kind).items()}
    directions = {
        "from dialect\nto English": (dialect, "eng"),
        "from English\nto dialect": ("eng", dialect),
        "from dialect\nto MSA": (dialect, "msa"),
        "from MSA\nto dialect": ("msa", dialect),
    }
    for label, pair in directions.items():
        values = defaultdict(list)
        for task in translations:
            if (task["source"], task["target"]) == pair and "spbleu" in task["metrics"]:
                values[_series(task)].append(task["metrics"]["spbleu"] / 100)
        if values:
            axes[f"{label}\nspBLEU"] = {name: sum(scores) / len(scores) for name, scores in values.items()}
    return axes


# --- people ---------------------------------------------------------------------------------------------------------


def write_human(files: Sequence[Path], folder: Path) -> None:
    """Writes and prints averages of human judgements, and how fluency and fidelity go together."""
    from cultureval.reports.human_ratings import read_alqasida_ratings

    rows = []
    for file in files:
        ratings, _ = read_alqasida_ratings(file)
        rows += [{"file": file.name, **row} for row in human_rows(ratings)]
    write_csv(folder / "human_judgements.csv", rows)
    print("\nHuman judgements:")
    for row in rows:
        shown = [f"{name} {value:.3g}" for name, value in row.items() if isinstance(value, float)]
        print(f"  {row['file']}, {row['model']} ({row['dialect']}, {row['texts']} texts): {', '.join(shown)}")


def human_rows(ratings: "Sequence[Rating]") -> list[Row]:
    """By dialect and model: means of the criteria and of TVD, and Spearman's rho of fluency, and TVD, with fidelity."""
    from cultureval.metrics.alqasida.feature_analysis import spearman
    from cultureval.reports.human_ratings import ALQASIDA_CRITERIA

    groups: dict[tuple[str, str], list[Rating]] = defaultdict(list)
    for rating in ratings:
        groups[rating.group, rating.model].append(rating)
    rows = []
    for (dialect, model), members in groups.items():
        columns = {name: [one.scores.get(name, math.nan) for one in members] for name in ALQASIDA_CRITERIA}
        columns["TVD"] = [one.metrics.get("TVD", math.nan) for one in members]
        row: Row = {"dialect": dialect, "model": model, "texts": len(members)}
        for name, column in columns.items():
            kept = [value for value in column if not math.isnan(value)]
            row[name] = sum(kept) / len(kept) if kept else None
        for name in ("Fluency", "TVD"):
            found = spearman(columns[name], columns["Dialectal Accuracy"])
            row |= {f"{name}_Fidelity_SpearmanR": found.rho, f"{name}_Fidelity_p": found.p}
        rows.append(row)
    return rows


# --- small parts ----------------------------------------------------------------------------------------------------


def write_csv(file: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes rows with the columns of the first; an unknown or undefined value is an empty cell."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)


def _cell(value: Any) -> Any:
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else value


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _series(row: Mapping[str, Any]) -> str:
    """A model's name, with the number of examples where it had some."""
    return f"{row['model']}, {row['n_shots']}-shot" if row["n_shots"] else row["model"]


def _models(samples: "Sequence[Sample]") -> "dict[str, list[Sample]]":
    return {key[0]: members for key, members in sorted(_grouped(samples, (_series,)).items())}


def _grouped(
    samples: "Sequence[Sample]", by: Sequence[str | Callable[[Mapping[str, Any]], str]]
) -> "dict[tuple[Any, ...], list[Sample]]":
    groups: dict[tuple[Any, ...], list[Sample]] = defaultdict(list)
    for sample in samples:
        groups[tuple(sample[name] if isinstance(name, str) else name(sample) for name in by)].append(sample)
    return groups


def _mean(samples: "Sequence[Sample]", score: str) -> tuple[float, float]:
    import numpy as np

    values = np.array([sample[score] for sample in samples], dtype=float)
    values = values[~np.isnan(values)]
    if not values.size:
        return math.nan, math.nan
    error = float(values.std(ddof=1) / math.sqrt(values.size)) if values.size > 1 else math.nan
    return float(values.mean()), error


def _by_model(
    samples: "Sequence[Sample]", feature: str
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    means: dict[str, dict[str, float]] = defaultdict(dict)
    errors: dict[str, dict[str, float]] = defaultdict(dict)
    for (group, series), members in _grouped(samples, (feature, _series)).items():
        means[group][series], errors[group][series] = _mean(members, "adi2")
    return means, errors


def _headline(correlations: Sequence[Row], variances: Sequence[Row]) -> list[str]:
    lines = [
        f"  {row['feature']}: rho {row['rho']:+.3f} (p {row['p']:.2g})"
        for row in correlations
        if row["score"] == "adi2" and row["feature"] in NUMERIC and not math.isnan(row["rho"])
    ]
    defined = [row for row in variances if row["score"] == "adi2" and not math.isnan(row["eta_squared"])]
    lines += [
        f"  {row['feature']}: eta squared {row['eta_squared']:.3f} (F {row['f']:.2f}, p {row['p']:.2g})"
        for row in sorted(defined, key=lambda row: -row["eta_squared"])
    ]
    return lines or ["  no feature varies"]
