"""Files of human ratings: what a suite says of its own, and the parts that readers of such files share."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cultureval.runtime.data.row_files import read_rows
from cultureval.runtime.errors import CulturevalError

MEAN = "mean"  # of a text's criteria, if it has all scores
NOT_MODELS = ("human", "reference")


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
        path: The file.
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
