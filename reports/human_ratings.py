"""Human ratings of models' texts in one file, and the saved texts that they are of with judges' scores."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cultureval.metrics.judges.items import JUDGED
from cultureval.metrics.judges.verdicts import metric_part
from cultureval.runs.files import SavedTask
from cultureval.runs.rows import rows_with_judgements, saved_reply
from cultureval.runtime.data.row_files import read_rows
from cultureval.runtime.errors import CulturevalError

MEAN = "mean"  # of a text's criteria, if it has all scores
NOT_MODELS = ("human", "reference")


@dataclass
class RatedText:
    """A rated text with the scores of people and of metrics.

    Attributes:
        group: The dialect.
        item: The input of all models.
        human: Criterion -> mean over annotators; `MEAN` if all criteria are scored.
        annotators: Annotator -> criterion -> score; "#1", "#2" in the order of rows where the file names nobody.
        metrics: Metric -> score.
    """

    group: str
    item: str
    human: dict[str, float]
    annotators: dict[str, dict[str, float]] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class SavedText:
    """A text of a saved run: the model's reply and its finite metrics."""

    reply: str
    metrics: dict[str, float]


Key = tuple[str, str]  # the model's name in the results, the item


@dataclass(frozen=True)
class Rating:
    """One person's scores of one text.

    Attributes:
        group: The dialect.
        item: The input of all models: country and image (`JO/image id`), or a prompt.
        model: The model whose text it is; "" if the file names none.
        annotator: The annotator; "" if the file names none.
        text: The rated text, if the file has it.
        scores: Criterion -> score; criteria without a score are missing.
        metrics: Automatic scores in the file.
    """

    group: str
    item: str
    model: str
    annotator: str
    text: str | None
    scores: dict[str, float]
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class HumanRatings:
    """The human ratings of a suite's texts (`Suite.ratings`).

    Attributes:
        criteria: Criterion -> highest score of people's scale; the lowest is 1.
        read: From a file to the ratings of models' texts, and the number of excluded ratings of human references.
        tasks: Beginnings of the names of the tasks whose texts people rate.
        item_of: The item of a saved Doc, spelled as in `Rating.item`.
        headline: The human score of the table by dialect: a criterion, or `MEAN` where all have one scale.
        judge_templates: The judge templates that score these criteria.
        judges_names: Criterion of people -> of the judge templates, where the names differ.
    """

    criteria: Mapping[str, int]
    read: Callable[[Path], tuple[list[Rating], int]]
    tasks: tuple[str, ...]
    item_of: Callable[[Mapping[str, Any]], str]
    headline: str = MEAN
    judge_templates: tuple[str, ...] = ()
    judges_names: Mapping[str, str] = field(default_factory=dict)

    def of_judges(self, criterion: str) -> str:
        """The judge templates' name of a criterion."""
        return self.judges_names.get(criterion, criterion)


def split_ratings(path: Path, ratings: Sequence[Rating]) -> tuple[list[Rating], int]:
    """Ratings of models' texts, and the number of ratings of human references.

    Args:
        path: The file, for messages.
        ratings: One of each row, in order.

    Raises:
        CulturevalError: An annotator has duplicated ratings of a text.
    """
    seen: dict[tuple[str, ...], int] = {}
    for line, rating in enumerate(ratings, 1):
        key = (rating.model, rating.group, rating.item, rating.annotator)
        if rating.annotator and key in seen:
            raise CulturevalError(
                f"{path}, row {line}: {rating.annotator!r} has rated the same text in row {seen[key]}."
            )
        seen[key] = line
    of_models = [rating for rating in ratings if rating.model.lower() not in NOT_MODELS]
    return of_models, len(ratings) - len(of_models)


@dataclass(frozen=True)
class HumanRow:
    """A row of a CSV file, its number from 1 without the header, and our name -> the file's name of each column."""

    path: Path
    line: int
    cells: Mapping[str, str | None]
    names: Mapping[str, str]

    def get(self, name: str) -> str:
        """A cell's stripped text, "" if the cell or its column is missing."""
        return (self.cells.get(self.names[name]) or "").strip() if name in self.names else ""

    def text(self, name: str) -> str:
        """As `get`, but an empty cell is an error."""
        if value := self.get(name):
            return value
        raise self.wrong(name, "is empty")

    def number(self, name: str, low: float, high: float) -> float:
        """A cell's number.

        Raises:
            CulturevalError: It is not a number, or outside the range.
        """
        try:
            value = float(self.get(name))
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise self.wrong(name, f"is not a number from {low:g} to {high:g}")
        return value

    def scores(self, criteria: Mapping[str, int]) -> dict[str, float]:
        """The scores of the criteria whose cells are filled."""
        return {name: self.number(name, 1, top) for name, top in criteria.items() if self.get(name)}

    def wrong(self, name: str, reason: str) -> CulturevalError:
        """The error of a cell."""
        return CulturevalError(
            f"{self.path}, row {self.line}: column {self.names[name]!r} {reason} (value {self.get(name)[:80]!r})."
        )


def rating_rows(
    path: Path, columns: Mapping[str, Sequence[str]], optional: Mapping[str, Sequence[str]]
) -> list[HumanRow]:
    """The rows of a CSV file of ratings.

    Args:
        columns: Our name -> the spellings of a column that the file must have (lower case, `_` between words).
        optional: The same of columns that it may have.

    Raises:
        CulturevalError: The file cannot be read, has no rows, or lacks a column.
    """
    rows = read_rows(path)
    if not rows:
        raise CulturevalError(f"The human ratings {path} have no rows.")
    spelled: dict[str, str] = {_plain(name): name for name in rows[0]}
    names = {
        name: spelled[known]
        for name, spellings in {**columns, **optional}.items()
        for known in [next((one for one in spellings if one in spelled), None)]
        if known
    }
    if missing := [name for name in columns if name not in names]:
        raise CulturevalError(
            f"The human ratings {path} have no column {columns[missing[0]][0]!r}; columns found: {', '.join(rows[0])}."
        )
    return [HumanRow(path, line, row, names) for line, row in enumerate(rows, 1)]


def _plain(name: Any) -> str:
    return "_".join(str(name).strip().lower().replace("-", " ").replace("_", " ").split())


def saved_texts(tasks: Sequence[SavedTask], suite: str, rated: HumanRatings) -> dict[Key, SavedText]:
    """The texts of the saved tasks that people rate, with their metrics, including those of later judgements.

    Raises:
        CulturevalError: The results have no such text.
    """
    found: dict[Key, SavedText] = {}
    for task in tasks:
        if task.task.startswith(rated.tasks):
            found |= {(task.model_name, item): saved for item, saved in _texts_of_task(task, rated).items()}
    if not found:
        names = ", ".join(f"{name}..." for name in rated.tasks)
        raise CulturevalError(f"The results have no texts of {suite} that people rate (tasks {names}).")
    return found


def _texts_of_task(task: SavedTask, rated: HumanRatings) -> dict[str, SavedText]:
    texts: dict[str, SavedText] = {}
    for row in rows_with_judgements(task):
        item = rated.item_of(row["doc"])
        known = texts.get(item) or SavedText(saved_reply(row["model_response"]), {})
        texts[item] = SavedText(known.reply, known.metrics | _finite(row["metric"]))
    return {
        item: SavedText(text.reply, text.metrics | judge_means(text.metrics, rated)) for item, text in texts.items()
    }


def judge_metrics(names: Iterable[str], criterion: str, rated: HumanRatings) -> dict[str, str]:
    """Judge and template -> the metric, of some names of metrics, that is its score of a criterion of people."""
    ending = f"_{metric_part(rated.of_judges(criterion))}"
    return {name.removesuffix(ending): name for name in names if name.startswith(JUDGED) and name.endswith(ending)}


def judge_means(metrics: Mapping[str, float], rated: HumanRatings) -> dict[str, float]:
    """The mean of each judge's criteria under each template, if all are scored; not in the papers."""
    if rated.headline != MEAN:
        return {}
    found = [judge_metrics(metrics, criterion, rated) for criterion in rated.criteria]
    complete = [judge for judge in found[0] if all(judge in scores for scores in found)]
    return {f"{judge}_{MEAN}": sum(metrics[scores[judge]] for scores in found) / len(found) for judge in complete}


def join_ratings(
    ratings: Sequence[Rating], saved: Mapping[Key, SavedText], renamed: Mapping[str, str], saved_only: bool
) -> tuple[list[RatedText], list[str]]:
    """Join ratings with saved texts.

    Args:
        ratings: Human ratings; several of one text are averaged per criterion.
        renamed: Model name in the ratings -> in the results.
        saved_only: Whether to exclude ratings without a saved text.

    Returns:
        The rated texts, and notes on their number and on excluded ones.

    Raises:
        CulturevalError: A model name in the ratings matches several in the results, or no text is left.
    """
    known = sorted({model for model, _ in saved})
    folders = {name: folder_of(renamed.get(name, name), known) for name in {rating.model for rating in ratings}}
    groups: dict[Key, list[Rating]] = defaultdict(list)
    for rating in ratings:
        groups[rating.model, rating.item].append(rating)
    texts, left_out = [], Counter[str]()
    for (model, item), members in groups.items():
        found = saved.get((folders[model] or "", item))
        if saved_only and found is None:
            left_out[
                "have no text in the results" if folders[model] else f"are of {model!r}, which has no results"
            ] += 1
        elif found and any(member.text and member.text.strip() != found.reply.strip() for member in members):
            left_out["differ from the text in the results"] += 1
        else:
            metrics = members[0].metrics | (found.metrics if found else {})
            annotators = {one.annotator or f"#{place}": one.scores for place, one in enumerate(members, 1)}
            texts.append(RatedText(members[0].group, item, _mean_scores(members), annotators, metrics))
    notes = [f"{count} rated texts excluded: they {reason}." for reason, count in left_out.items()]
    if not texts:
        names = ", ".join(known) or "none"
        raise CulturevalError(f"No rated text is left. {' '.join(notes)} Models of the results: {names} (see --model).")
    return texts, [f"{len(texts)} rated texts of {len(ratings)} ratings.", *notes]


def folder_of(name: str, known: Sequence[str]) -> str | None:
    """The model of the results with this name or last name part, with or without what is told behind it in brackets;
    the only model for "".

    Raises:
        CulturevalError: Several models match.
    """
    plain = name.lower()
    fitting = [model for model in known if not plain or plain in _names(model.lower())]
    if len(fitting) > 1:
        raise CulturevalError(
            f"The ratings' model {name!r} may be {' or '.join(fitting)}: give the results of one model, or use --model."
        )
    return fitting[0] if fitting else None


def _names(model: str) -> set[str]:
    """How people may call a model: with organisation or without, with what is told in brackets or without."""
    whole = {model, model.rpartition(" (")[0] or model}
    return whole | {name.rsplit("/", 1)[-1] for name in whole}


def _mean_scores(members: Sequence[Rating]) -> dict[str, float]:
    means = {}
    for name in dict.fromkeys(name for member in members for name in member.scores):
        scores = [member.scores[name] for member in members if name in member.scores]
        means[name] = sum(scores) / len(scores)
    return means


def _finite(metrics: Mapping[str, Any]) -> dict[str, float]:
    numbers = {name: value for name, value in metrics.items() if isinstance(value, int | float)}
    return {name: float(value) for name, value in numbers.items() if math.isfinite(value)}
