"""`cultureval agreement`: correlations of metrics and judges with people's scores, and the agreement of raters."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.metrics.agreement import Coefficient, rater_agreement, tau_c_with_interval
from cultureval.reports.human_ratings import KEY, MEAN, NOT_MODELS, TEXTS, HumanRatings, join_ratings, saved_texts
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.loading import load
from cultureval.runtime.csv_files import write_csv
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import all_suites

if TYPE_CHECKING:
    import pandas

ALL = "all"
PEOPLE = "rounded mean of people"
Row = dict[str, Any]


def agreement_report(
    suite: str, human: Path, results: Sequence[Path], renamed: Mapping[str, str], output: Path | None
) -> str:
    """Correlations of metrics with human ratings and the agreement of raters, as text; optionally also as files.

    Args:
        suite: A suite that has `ratings`.
        human: A CSV file of ratings.
        results: Output folders or results files of the models; [] for the metrics of the human file only.
        renamed: Model in the ratings -> in the results, where the names differ.
        output: A CSV file for every correlation; the agreement of raters is written beside it.

    Raises:
        CulturevalError: A file cannot be read, the suite describes no ratings, or the ratings and the results have no
            text in common.
    """
    rated = all_suites()[suite].part("ratings") if suite in all_suites() else None
    if not isinstance(rated, HumanRatings):
        raise CulturevalError(f"The suite {suite!r} has no `ratings` of the type reports.human_ratings.HumanRatings.")
    ratings, lines = rated.read(human), []
    if (references := ratings["model"].str.lower().isin(NOT_MODELS)).any():
        ratings = ratings[~references]
        lines.append(f"{references.sum()} ratings of human references excluded.")
    if results:
        ratings, notes = join_ratings(ratings, saved_texts(load(*results).runs, rated), renamed)
        lines += notes
    texts = texts_of(ratings, rated)
    found, raters = list(correlations(texts, rated)), list(compared_raters(ratings, texts, rated))
    lines = [f"{len(texts)} rated texts, {len(ratings)} ratings.", *lines, *_tables(found, raters, rated.headline)]
    if output:
        beside = output.with_name(f"{output.stem}_raters{output.suffix}")
        for file, rows in ((output, found), (beside, raters)):
            write_csv(file, rows)
            lines.append(f"Written: {file}")
    return "\n".join(lines)


def texts_of(ratings: "pandas.DataFrame", rated: HumanRatings) -> "pandas.DataFrame":
    """One row a text: model, item, group, the means of its ratings, and its metrics.

    Where all criteria have one scale, `MEAN` is of people's criteria, and of each judge's, if all are scored.
    """
    numbers = list(ratings.select_dtypes("number").columns)
    texts = ratings.groupby(KEY, sort=False).agg({"group": "first"} | dict.fromkeys(numbers, "mean")).reset_index()
    if rated.headline != MEAN:
        return texts
    judges = [rated.judge_metrics(numbers, criterion) for criterion in rated.criteria]
    for judge in judges[0]:
        if all(judge in metrics for metrics in judges):
            texts[f"{judge}_{MEAN}"] = texts[[metrics[judge] for metrics in judges]].mean(axis=1, skipna=False)
    texts[MEAN] = texts[list(rated.criteria)].mean(axis=1, skipna=False)
    return texts


def correlations(texts: "pandas.DataFrame", rated: HumanRatings) -> Iterator[Row]:
    """Kendall's tau-c of every metric with every criterion, in all dialects and in each."""
    criteria = [name for name in (MEAN, *rated.criteria) if name in texts]
    groups = texts["group"].unique()
    for metric in (name for name in texts.columns if name not in (*TEXTS, MEAN, *rated.criteria)):
        for criterion in criteria:
            for dialect in (ALL, *(groups if len(groups) > 1 else ())):
                chosen = texts if dialect == ALL else texts[texts["group"] == dialect]
                pairs = chosen[["item", metric, criterion]].dropna()
                if len(pairs):
                    tau = tau_c_with_interval(list(pairs[metric]), list(pairs[criterion]), list(pairs["item"]))
                    names = {"metric": metric, "criterion": criterion, "dialect": dialect, "tau_c": tau.value}
                    yield names | {"low": tau.low, "high": tau.high, "pairs": len(pairs), "items": tau.items}


def compared_raters(ratings: "pandas.DataFrame", texts: "pandas.DataFrame", rated: HumanRatings) -> Iterator[Row]:
    """The agreement of people, of each judge with the rounded mean of people, and of each two judges.

    Raters of a file that names none are numbered in the order of a text's rows.
    """
    number = ratings.groupby(KEY).cumcount().astype(str)
    people = ratings.assign(annotator=ratings["annotator"].where(ratings["annotator"] != "", number))
    scores = texts.set_index(KEY)
    for criterion, highest in ((name, top) for name, top in rated.criteria.items() if name in ratings):
        table = people.pivot(index=KEY, columns="annotator", values=criterion).rename(columns=lambda name: f"#{name}")
        names, judges = list(table.columns), rated.judge_metrics(list(texts.columns), criterion)
        table = table.assign(**{PEOPLE: (scores[criterion] + 0.5).floordiv(1)})
        table = table.assign(**{judge: scores[metric] for judge, metric in judges.items()})
        several = [names] if len(names) > 1 else []
        for raters in several + [[PEOPLE, judge] for judge in judges] + [list(two) for two in combinations(judges, 2)]:
            rows = table[raters][table[raters].notna().sum(axis=1) > 1]
            scale = [float(score) for score in range(1, highest + 1)]
            kept = rows[(rows.isin(scale) | rows.isna()).all(axis=1)]
            about = {"criterion": criterion, "raters": "annotators" if raters == names else " and ".join(raters)}
            for name, found in coefficients(kept, scale).items():
                numbers = {"value": found.value, "low": found.low, "high": found.high}
                yield about | {"coefficient": name, **numbers, "texts": len(kept), "excluded": len(rows) - len(kept)}


def coefficients(rows: "pandas.DataFrame", scale: Sequence[float]) -> dict[str, Coefficient]:
    """The coefficients of raters (columns) on texts (rows, an index with `item`); tau-c of two raters only."""
    if not len(rows):
        return {}
    ratings, items = rows.astype(float).to_numpy().tolist(), list(rows.index.get_level_values("item"))
    found = rater_agreement(ratings, scale, items)
    if len(ratings[0]) == 2:
        first, second = zip(*ratings, strict=True)
        found["tau_c"] = tau_c_with_interval(first, second, items)
    return found


def _tables(found: Sequence[Row], raters: Sequence[Row], headline: str) -> Iterator[str]:
    yield ""
    for field, title in (
        ("dialect", f"Kendall's tau-c x 100 with people's {headline} score, by dialect [95% interval over items]:"),
        ("criterion", "The same by criterion, all dialects:"),
    ):
        other, value = ("criterion", headline) if field == "dialect" else ("dialect", ALL)
        cells = [row for row in found if row[other] == value]
        yield (
            _table(cells, ["metric"], field, ["pairs"], title) if cells else "No metric to compare with: name RESULTS."
        )
    title = (
        "Agreement of raters [95% interval over items]: raw, Gwet's AC1, Krippendorff's alpha (ordinal), kappa "
        "(quadratic weights), tau-c. Texts with a rating off the scale are excluded:"
    )
    cells = [row | {"tau_c": row["value"]} for row in raters]
    nobody = "No agreement of raters: no text has two ratings on the categories of the scale."
    yield _table(cells, ["criterion", "raters"], "coefficient", ["texts", "excluded"], title) if cells else nobody


def _table(rows: Sequence[Row], names: Sequence[str], column: str, counts: Sequence[str], title: str) -> str:
    """Rows by names, a column for each value of a field; counts are the largest of a row."""
    columns = list(dict.fromkeys(row[column] for row in rows))
    percent = 100 if "pairs" in counts else 1
    lines = {}
    for key in dict.fromkeys(tuple(row[name] for name in names) for row in rows):
        own = {row[column]: row for row in rows if tuple(row[name] for name in names) == key}
        shown = [_shown(own.get(name), percent) for name in columns]
        lines[key] = [*key, *shown, *(str(max(row[name] for row in own.values())) for name in counts)]
    return terminal_table([*names, *columns, *counts], list(lines.values()), "l" * len(names) + "r", title) + "\n"


def _shown(row: Row | None, times: int) -> str:
    if row is None or math.isnan(row["tau_c"]):
        return "n/a"
    digits = 1 if times == 100 else 2
    low, high = (f"{times * row[end]:.{digits}f}" for end in ("low", "high"))
    return f"{times * row['tau_c']:.{digits}f} [{'n/a' if math.isnan(row['low']) else f'{low}, {high}'}]"
