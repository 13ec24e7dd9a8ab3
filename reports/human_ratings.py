"""Human ratings of models' texts: a CSV file, joined with the texts and scores of saved runs by model and item."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.metrics.judges.items import metric_part
from cultureval.runs.loading import Run
from cultureval.runs.rows import names_of, rows_of, saved_reply
from cultureval.runtime.data.row_files import read_rows
from cultureval.runtime.errors import CulturevalError, shorten

if TYPE_CHECKING:
    import pandas

MEAN = "mean"  # of the criteria
NOT_MODELS = ("human", "reference")
TEXTS = ("group", "item", "model", "annotator", "text")
KEY = ["model", "item"]


@dataclass(frozen=True)
class HumanRatings:
    """The human ratings of a suite's texts (`Suite.ratings`).

    Columns are named in lower case with `_` between words; a criterion has the column of its name.

    Attributes:
        criteria: Criterion -> highest score of people's scale; the lowest is 1.
        columns: Column of the file -> `group` (dialect), `item`, `model`, `annotator` or `text` (the rated one).
        needed: Columns that a file must have.
        tasks: Beginnings of the names of the tasks whose texts people rate.
        item_of: The item of a saved Doc.
        item: The item of a row of the file, of its `{group}` and `{item}`, spelled as by `item_of`.
        group_of: From a cell to the group; None where it names none.
        headline: The human score of the table by dialect: a criterion, or `MEAN` where all have one scale.
        metrics: Columns with automatic scores from 0 to 1.
        judges_names: Criterion of people -> of judges on the same scale, where the names differ.
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
        """Judge and template -> its metric, of some, that scores a criterion of people."""
        ending = "_" + metric_part(self.judges_names.get(criterion, criterion))
        return {
            name.removesuffix(ending): name for name in names if name.startswith("judge_") and name.endswith(ending)
        }

    def read(self, path: Path) -> "pandas.DataFrame":
        """The ratings of a file, one a row: columns `TEXTS` ("" where unknown), criteria and metrics (nan).

        Raises:
            CulturevalError: The file cannot be read, lacks a column, has a wrong cell, or rates a text twice.
        """
        import pandas

        frame = pandas.DataFrame(read_rows(path)).fillna("").astype(str).map(str.strip)
        given = {re.sub(r"[\W_]+", "_", str(name).lower()).strip("_"): str(name) for name in frame.columns}
        if missing := [name for name in self.needed if name not in given]:
            raise CulturevalError(f"{path} has no column {missing[0]!r}; columns found: {', '.join(given.values())}.")
        frame.columns = list(given)
        found = pandas.DataFrame({name: "" for name in TEXTS}, index=frame.index)
        for name, ours in self.columns.items():
            if name in given:
                found[ours] = frame[name]
        tops = dict.fromkeys(self.metrics, (0, 1)) | {name: (1, top) for name, top in self.criteria.items()}
        for name, (low, high) in tops.items():
            column = re.sub(r"\W+", "_", name.lower())
            if column in given:
                found[name] = pandas.to_numeric(frame[column], errors="coerce")
                wrong = (frame[column] != "") & ~found[name].between(low, high)
                _refuse(path, frame[column], wrong, given[column], f"is not a number from {low} to {high}")
        for name, ours in self.columns.items():
            if name in self.needed:
                _refuse(path, frame[name], frame[name] == "", given[name], "is empty")
            if ours == "group":
                found["group"] = found["group"].map(self.group_of)
                _refuse(path, frame[name], found["group"].isna(), given[name], "names no dialect of the suite")
        found["item"] = [self.item.format(**row) for row in found[["group", "item"]].to_dict("records")]
        twice = found.duplicated([*KEY, "annotator"]) & (found["annotator"] != "")
        _refuse(path, found["annotator"], twice, "annotator", "has rated the same text before")
        return found


def _refuse(path: Path, cells: "pandas.Series", wrong: "pandas.Series", column: str, reason: str) -> None:
    if wrong.any():
        place = int(wrong.to_numpy().argmax())
        told = f"column {column!r} {reason} (value {shorten(cells.iloc[place], 80)})"
        raise CulturevalError(f"{path}, row {place + 1}: {told}.")


def saved_texts(runs: Sequence[Run], rated: HumanRatings) -> "pandas.DataFrame":
    """The saved texts that people may have rated, one a row: model, item, reply, and the metrics of runs.

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
        raise CulturevalError(f"The results have no texts that people rate (tasks {', '.join(rated.tasks)}).")
    return pandas.concat(parts).groupby(KEY, sort=False, as_index=False).first()


def join_ratings(
    ratings: "pandas.DataFrame", saved: "pandas.DataFrame", renamed: Mapping[str, str]
) -> "tuple[pandas.DataFrame, list[str]]":
    """The ratings of saved texts with the metrics of these, and sentences on the others.

    Args:
        ratings: As of `HumanRatings.read`.
        saved: As of `saved_texts`.
        renamed: Model in the ratings -> in the results, where the names differ.

    Raises:
        CulturevalError: A model's name fits several of the results, or no rating is left.
    """
    known = list(dict.fromkeys(saved["model"]))
    models = {name: model_of(renamed.get(name, name), known) for name in ratings["model"].unique()}
    rows = ratings.assign(model=ratings["model"].map(models)).merge(saved, "left", on=KEY)
    reasons = {
        "are of a model that has no results": rows["model"].isna(),
        "have no text in the results": rows["model"].notna() & rows["reply"].isna(),
        "differ from the text in the results": rows["reply"].notna()
        & (rows["text"] != "")
        & (rows["text"] != rows["reply"].fillna("").str.strip()),
    }
    notes = [f"{found.sum()} ratings excluded: they {reason}." for reason, found in reasons.items() if found.any()]
    kept = rows[~sum(reasons.values()).astype(bool)]
    if kept.empty:
        named = f"Models of the ratings: {', '.join(models)}; of the results: {', '.join(known)} (see --model)."
        raise CulturevalError(f"No rating is left. {' '.join(notes)} {named}")
    return kept, notes


def model_of(name: str, known: Sequence[str]) -> str | None:
    """The model of the results with this name, with organisation or without; the only one for "".

    Raises:
        CulturevalError: Several fit.
    """
    bare = {one: one.lower().partition(" (")[0] for one in known}
    names = {one: ("", one.lower(), whole, whole.rpartition("/")[2]) for one, whole in bare.items()}
    fitting = [one for one in known if name.lower() in names[one]]
    if len(fitting) > 1:
        raise CulturevalError(f"The model {name!r} of the ratings may be {' or '.join(fitting)}: use --model.")
    return fitting[0] if fitting else None
