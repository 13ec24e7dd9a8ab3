"""`cultureval judge --ratings`: compares human ratings of texts (a CSV file) with metrics and judges of runs.

It gives correlations of metrics and judges with human scores, and the agreement of raters.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.metrics.agreement import Coefficient, rater_agreement, tau_c_with_interval
from cultureval.metrics.judges.items import metric_part
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.loading import Run, load
from cultureval.runs.rows import names_of, rows_of, saved_reply
from cultureval.runtime.csv_files import write_csv
from cultureval.runtime.data.row_files import read_rows
from cultureval.runtime.errors import CulturevalError, shorten
from cultureval.runtime.rounding import printed_or_na
from cultureval.tasks.catalogue import all_suites

if TYPE_CHECKING:
    import pandas

MEAN = "mean"  # of the criteria
NOT_MODELS = ("human", "reference")
TEXTS = ("group", "item", "model", "annotator", "text")
KEY = ["model", "item"]
ALL = "all"
PEOPLE = "rounded mean of people"
BY_DIALECT = "Kendall's tau-c x 100 with people's {} score, by dialect [95% interval over items]:"
RATERS = (
    "Agreement of raters [95% interval over items]: raw, Gwet's AC1, Krippendorff's alpha (ordinal), kappa "
    "(quadratic weights), tau-c. Texts with a rating off the scale are excluded:"
)
Row = dict[str, Any]


@dataclass(frozen=True)
class HumanRatings:
    """The human ratings of a suite's texts (`Suite.ratings`).

    Columns are named in lower case with `_` between words; a criterion has the column of its name.

    Attributes:
        criteria: Criterion -> highest score of the human scale; the lowest is 1.
        columns: Column of the file -> `group` (dialect), `item`, `model`, `annotator` or `text` (the rated text).
        needed: Columns that a file must have.
        tasks: Prefixes of task names with rated texts.
        item_of: The item of a saved Doc.
        item: Template of a file row's item from its `{group}` and `{item}`, equal to `item_of`.
        group_of: Cell -> group; None if the cell has no known group.
        headline: The human score of the table by dialect: a criterion, or `MEAN` if all have one scale.
        metrics: Columns with automatic scores from 0 to 1.
        judges_names: Human criterion -> the judges' criterion on the same scale, if the names differ.
    """

    criteria: Mapping[str, int]
    columns: Mapping[str, str]
    needed: tuple[str, ...]
    tasks: tuple[str, ...]
    item_of: Callable[[Mapping[str, Any]], str]
    item: str = "{item}"
    group_of: Callable[[str], str | None] = str
    headline: str = MEAN
    metrics: tuple[str, ...] = ()
    judges_names: Mapping[str, str] = field(default_factory=dict)

    def judge_metrics(self, names: Sequence[str], criterion: str) -> dict[str, str]:
        """Judge and template -> its metric among `names` that scores a human criterion."""
        ending = "_" + metric_part(self.judges_names.get(criterion, criterion))
        return {
            name.removesuffix(ending): name for name in names if name.startswith("judge_") and name.endswith(ending)
        }

    def read(self, path: Path) -> "pandas.DataFrame":
        """The ratings of a file, one in each row: columns `TEXTS` ("" if unknown), criteria and metrics (or nan).

        Raises:
            CulturevalError: The file cannot be read, has a missing column or a wrong cell, or rates a text twice.
        """
        import pandas

        frame = pandas.DataFrame(read_rows(path)).fillna("").astype(str).map(str.strip)
        headers = {re.sub(r"[\W_]+", "_", str(name).lower()).strip("_"): str(name) for name in frame.columns}
        if missing := [name for name in self.needed if name not in headers]:
            raise CulturevalError(f"{path} has no column {missing[0]!r}; columns found: {', '.join(headers.values())}.")
        frame.columns = list(headers)
        found = pandas.DataFrame({name: "" for name in TEXTS}, index=frame.index)
        for name, part in self.columns.items():
            if name in headers:
                found[part] = frame[name]
        tops = dict.fromkeys(self.metrics, (0, 1)) | {name: (1, top) for name, top in self.criteria.items()}
        for name, (low, high) in tops.items():
            column = re.sub(r"\W+", "_", name.lower())
            if column in headers:
                found[name] = pandas.to_numeric(frame[column], errors="coerce")
                wrong = (frame[column] != "") & ~found[name].between(low, high)
                _refuse(path, frame[column], wrong, headers[column], f"is not a number from {low} to {high}")
        for name, part in self.columns.items():
            if name in self.needed:
                _refuse(path, frame[name], frame[name] == "", headers[name], "is empty")
            if part == "group":
                found["group"] = found["group"].map(self.group_of)
                _refuse(path, frame[name], found["group"].isna(), headers[name], "names no dialect of the suite")
        found["item"] = [self.item.format(**row) for row in found[["group", "item"]].to_dict("records")]
        twice = found.duplicated([*KEY, "annotator"]) & (found["annotator"] != "")
        _refuse(path, found["annotator"], twice, "annotator", "has rated the same text before")
        return found


def _refuse(path: Path, cells: "pandas.Series", wrong: "pandas.Series", column: str, reason: str) -> None:
    if wrong.any():
        row = int(wrong.to_numpy().argmax())
        problem = f"column {column!r} {reason} (value {shorten(cells.iloc[row], 80)})"
        raise CulturevalError(f"{path}, row {row + 1}: {problem}.")


def agreement_report(
    suite: str, human: Path, results: Sequence[Path], renamed: Mapping[str, str], output: Path | None
) -> str:
    """Correlations of metrics with human ratings and the agreement of raters, as text; optionally also as files.

    Args:
        suite: A suite that has `ratings`.
        human: A CSV file of ratings.
        results: Output folders or results files of the models; [] for the metrics of the human file only.
        renamed: Model's name in the ratings -> its name in the results.
        output: A CSV file for all correlations; the agreement of raters is written beside it.

    Raises:
        CulturevalError: A file cannot be read, the suite has no ratings, or ratings and results share no text.
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
    lines = [f"{len(texts)} rated texts, {len(ratings)} ratings.", *lines, "", *_tables(found, raters, rated.headline)]
    if output:
        beside = output.with_name(f"{output.stem}_raters{output.suffix}")
        for file, rows in ((output, found), (beside, raters)):
            write_csv(file, rows)
            lines.append(f"Written: {file}")
    return "\n".join(lines)


def saved_texts(runs: Sequence[Run], rated: HumanRatings) -> "pandas.DataFrame":
    """The saved texts of rated tasks, one in each row: model, item, reply, and the metrics of runs.

    Raises:
        CulturevalError: The runs have no such text.
    """
    import pandas

    parts = []
    for run in runs:
        for task in (task for task in run.details if task.startswith(rated.tasks)):
            rows = rows_of(run.details[task])
            texts = pandas.DataFrame({"model": run.name}, index=names_of(rows))
            texts["item"] = [rated.item_of(row["doc"]) for row in rows]
            texts["reply"] = [saved_reply(row["model_response"]) for row in rows]
            scores = run.items[(run.items["task"] == task) & (run.items["den"] > 0)]
            scores = scores.assign(score=scores["num"] / scores["den"]).astype({"item": str, "metric": str})
            parts.append(texts.join(scores.pivot(index="item", columns="metric", values="score")))
    if not parts:
        raise CulturevalError(f"The results have no details of rated tasks ({', '.join(rated.tasks)}).")
    return pandas.concat(parts).groupby(KEY, sort=False, as_index=False).first()


def join_ratings(
    ratings: "pandas.DataFrame", saved: "pandas.DataFrame", renamed: Mapping[str, str]
) -> "tuple[pandas.DataFrame, list[str]]":
    """The ratings of saved texts joined with their metrics, and sentences on excluded ratings.

    Args:
        ratings: As of `HumanRatings.read`.
        saved: As of `saved_texts`.
        renamed: Model's name in the ratings -> its name in the results.

    Raises:
        CulturevalError: A model's name fits several models of the results, or no rating is left.
    """
    models = list(dict.fromkeys(saved["model"]))
    names = {name: model_of(renamed.get(name, name), models) for name in ratings["model"].unique()}
    rows = ratings.assign(model=ratings["model"].map(names)).merge(saved, "left", on=KEY)
    reasons = {
        "are of a model that has no results": rows["model"].isna(),
        "have no text in the results": rows["model"].notna() & rows["reply"].isna(),
        "differ from the text in the results": rows["reply"].notna()
        & (rows["text"] != "")
        & (rows["text"] != rows["reply"].fillna("").str.strip()),
    }
    notes = [f"{found.sum()} ratings excluded: they {reason}." for reason, found in reasons.items() if found.any()]
    joined = rows[~sum(reasons.values()).astype(bool)]
    if joined.empty:
        advice = f"Models of the ratings: {', '.join(names)}; of the results: {', '.join(models)} (see --model)."
        raise CulturevalError(f"No rating is left. {' '.join(notes)} {advice}")
    return joined, notes


def model_of(name: str, names: Sequence[str]) -> str | None:
    """The model of the results with this name, with or without organisation; for "" the only model.

    Raises:
        CulturevalError: Several models fit.
    """
    fitting = [known for known in names if name.lower() in ("", known.lower(), known.lower().rpartition("/")[2])]
    if len(fitting) > 1:
        raise CulturevalError(f"The model {name!r} of the ratings may be {' or '.join(fitting)}: use --model.")
    return fitting[0] if fitting else None


def texts_of(ratings: "pandas.DataFrame", rated: HumanRatings) -> "pandas.DataFrame":
    """A row for each text: model, item, group, the means of its ratings, and its metrics.

    If all criteria have one scale, `MEAN` is the mean of the human criteria; judges with all criteria get one, too.
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
    """Kendall's tau-c of every metric with every criterion, over all dialects and in each."""
    criteria = [name for name in (MEAN, *rated.criteria) if name in texts]
    groups = texts["group"].unique()
    for metric in (name for name in texts.columns if name not in (*TEXTS, MEAN, *rated.criteria)):
        for criterion in criteria:
            for dialect in (ALL, *(groups if len(groups) > 1 else ())):
                chosen = texts if dialect == ALL else texts[texts["group"] == dialect]
                pairs = chosen[["item", metric, criterion]].dropna()
                if len(pairs):
                    tau = tau_c_with_interval(list(pairs[metric]), list(pairs[criterion]), list(pairs["item"]))
                    names = {"metric": metric, "criterion": criterion, "dialect": dialect, "coefficient": "tau_c"}
                    yield names | tau._asdict() | {"pairs": len(pairs)}


def compared_raters(ratings: "pandas.DataFrame", texts: "pandas.DataFrame", rated: HumanRatings) -> Iterator[Row]:
    """The agreement of people, of each judge with the rounded mean of people, and of each two judges.

    In a file without annotators, raters are numbered in the order of a text's rows.
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
        for raters in several + [[PEOPLE, judge] for judge in judges] + [*map(list, combinations(judges, 2))]:
            rows = table[raters][table[raters].notna().sum(axis=1) > 1]
            scale = [float(score) for score in range(1, highest + 1)]
            on_scale = rows[(rows.isin(scale) | rows.isna()).all(axis=1)]
            about = {"criterion": criterion, "raters": "annotators" if raters == names else " and ".join(raters)}
            for name, found in coefficients(on_scale, scale).items():
                numbers = {"value": found.value, "low": found.low, "high": found.high}
                counts = {"texts": len(on_scale), "excluded": len(rows) - len(on_scale)}
                yield about | {"coefficient": name} | numbers | counts


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
    of_headline = [row for row in found if row["criterion"] == headline]
    of_all = [row for row in found if row["dialect"] == ALL]
    if of_headline:
        yield _table(of_headline, ["metric"], "dialect", ["pairs"], BY_DIALECT.format(headline), 100)
        yield _table(of_all, ["metric"], "criterion", ["pairs"], "The same by criterion, all dialects:", 100)
    else:
        yield "No metric to compare with: add RESULTS to the command."
    nobody = "No agreement of raters: no text has two ratings on the categories of the scale."
    yield _table(raters, ["criterion", "raters"], "coefficient", ["texts", "excluded"], RATERS) if raters else nobody


def _table(rows: Sequence[Row], names: list[str], column: str, counts: list[str], title: str, percent: int = 1) -> str:
    """A table with a row for each of `names`, a column for each value of `column`, and the row's largest counts."""
    import pandas

    frame = pandas.DataFrame(rows).assign(shown=[_shown(row, percent) for row in rows])
    wide = frame.pivot(index=names, columns=column, values="shown").reindex(columns=frame[column].unique())
    wide = wide.fillna("n/a").join(frame.groupby(names)[counts].max().astype(str))
    wide = wide.loc[frame.set_index(names).index.unique()].reset_index()
    return terminal_table(list(wide), wide.to_numpy().tolist(), "l" * len(names) + "r", title) + "\n"


def _shown(row: Row, times: int) -> str:
    digits = 1 if times == 100 else 2
    value, low, high = (printed_or_na(times * row[name], digits) for name in ("value", "low", "high"))
    return value if value == "n/a" else f"{value} [n/a]" if low == "n/a" else f"{value} [{low}, {high}]"
