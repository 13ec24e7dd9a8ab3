"""Files of human ratings: our own format for JEEM (the paper's file is not public), and AL-QASIDA's humevals."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cultureval.runtime.data.row_files import read_rows
from cultureval.runtime.errors import CulturevalError

# Highest score of each criterion; the lowest is 1 (JEEM Appendix B.4; the files of AL-QASIDA's humevals).
JEEM_CRITERIA = {"Consistency": 5, "Relevance": 5, "Fluency": 5, "Dialect Authenticity": 5}
ALQASIDA_CRITERIA = {"Adherence": 3, "Adequacy": 5, "Fluency": 5, "Dialectal Accuracy": 5}
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


def read_jeem_ratings(path: Path) -> tuple[list[Rating], int]:
    """Ratings of captions: columns country, image_id, the criteria, and, if there are several, model and annotator.

    Column names may be written as in tables (`Image ID`, `DA`); a column `caption` has the rated text.

    Returns:
        The ratings of models' captions, and the number of excluded ratings of the human reference.

    Raises:
        CulturevalError: The file cannot be read, lacks a column, or has an unknown country or a score out of range.
    """
    from cultureval.prompts.jeem.rows import country_of

    columns = {
        "country": ("country", "dialect", "variety"),
        "item": ("image_id", "image", "id"),
        "Consistency": ("consistency", "con"),
        "Relevance": ("relevance", "rel"),
        "Fluency": ("fluency", "flu"),
        "Dialect Authenticity": ("dialect_authenticity", "dialectal_authenticity", "da"),
    }
    optional = {"model": ("model", "system"), "annotator": ("annotator", "rater"), "text": ("caption", "text")}

    def rating(row: "HumanRow") -> Rating:
        country = country_of({"country": row.text("country")})
        if country is None:
            raise row.wrong("country", "names none of Jordan, Emirates, Egypt, Morocco")
        scores = row.scores(JEEM_CRITERIA)
        item = f"{country}/{row.text('item')}"
        return Rating(country, item, row.get("model"), row.get("annotator"), row.get("text") or None, scores)

    return _split(path, [rating(row) for row in _read(path, columns, optional)])


def read_alqasida_ratings(path: Path) -> tuple[list[Rating], int]:
    """AL-QASIDA's humevals/results/*_humeval.csv: one row per completion; TVD is the authors' ADI2.

    Raises:
        CulturevalError: As in `read_jeem_ratings`.
    """
    columns = {
        "item": ("prompt",),
        "text": ("completion",),
        "model": ("model",),
        "group": ("dialect",),
        "Fluency": ("fluency",),
        "Dialectal Accuracy": ("dialectal_accuracy",),
    }
    optional = {
        "Adherence": ("adherence",),
        "Adequacy": ("adequacy",),
        "annotator": ("annotator", "rater"),
        "TVD": ("tvd",),
    }

    def rating(row: "HumanRow") -> Rating:
        criteria = {name: top for name, top in ALQASIDA_CRITERIA.items() if name in row.names}
        metrics = {"TVD": row.number("TVD", 0, 1)} if row.get("TVD") else {}
        names = (row.text("group"), row.text("item"), row.text("model"), row.get("annotator"))
        return Rating(*names, row.get("text"), row.scores(criteria), metrics)

    return _split(path, [rating(row) for row in _read(path, columns, optional)])


def _split(path: Path, ratings: Sequence[Rating]) -> tuple[list[Rating], int]:
    """Ratings of models' texts, and the number of ratings of human references.

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
    """A row of a CSV file, with our names of its columns.

    Attributes:
        path: The file.
        line: The row's number, from 1, without the header.
        cells: The row.
        names: Our name -> the file's name of a column.
    """

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


def _read(path: Path, columns: Mapping[str, Sequence[str]], optional: Mapping[str, Sequence[str]]) -> list[HumanRow]:
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


READERS: dict[str, Callable[[Path], tuple[list[Rating], int]]] = {
    "jeem": read_jeem_ratings,
    "alqasida": read_alqasida_ratings,
}
