"""What a leaderboard says of models besides their scores: family, size, licence."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cultureval.reports.leaderboard.entries import Entry
from cultureval.reports.model_sizes import billions_of
from cultureval.reports.paper_numbers import published_model, published_rows
from cultureval.runtime.errors import CulturevalError, shorten

COLUMNS = ("model", "family", "billions", "licence")
UNKNOWN = "unknown"
LARGEST = 1e6  # billions of parameters
_FAMILY = re.compile(r"[A-Za-z]+(?:-[A-Za-z]+)?|[^\W\d_]+")


@dataclass(frozen=True)
class ModelFacts:
    """What filters of models look at.

    Attributes:
        family: As given, else the letters that its name begins with.
        billions: Parameters in billions: as given, else counted as the model was loaded, else from its name.
        licence: As given; "unknown".
    """

    family: str
    billions: float | None
    licence: str


def facts_of(entries: Iterable[Entry], given: Mapping[str, Mapping[str, str]]) -> dict[str, ModelFacts]:
    """The facts of models, by the entries' labels.

    Args:
        entries: Of all suites.
        given: From `read_models`.
    """
    found: dict[str, ModelFacts] = {}
    for entry in entries:
        row = given.get(published_model(entry.model, given) or "", {})
        counted = entry.run.record.model.parameters
        billions = (
            float(row["billions"]) if row.get("billions") else counted / 1e9 if counted else billions_of(entry.model)
        )
        known = found.get(entry.label)
        found[entry.label] = ModelFacts(
            row.get("family") or family_of(entry.model),
            billions if known is None or known.billions is None else known.billions,
            row.get("licence") or UNKNOWN,
        )
    return found


def family_of(model: str) -> str:
    """The letters that a model's name begins with: `Qwen` of `Qwen/Qwen2.5-7B-Instruct`."""
    name = re.split(r"[/\\]", model.rstrip("/\\"))[-1].removeprefix("Meta-")
    found = _FAMILY.match(name)
    return found[0].partition("-")[0][:24] if found else UNKNOWN


def read_models(file: Path | None) -> dict[str, dict[str, str]]:
    """What a table says of models.

    Args:
        file: A CSV with the column `model` and some of `family`, `billions`, `licence`; None: there is none.

    Returns:
        By the names in the table, which fit a run as the papers' do (without organisation, case and punctuation).

    Raises:
        CulturevalError: The table cannot be read.
    """
    if file is None:
        return {}
    try:
        rows = published_rows(file)
    except (OSError, UnicodeDecodeError) as error:
        raise CulturevalError(f"--models {file} cannot be read: {error}") from error
    for number, row in enumerate(rows, start=1):
        if not row.get("model") or set(row) - set(COLUMNS):
            raise CulturevalError(
                f"--models {file}: its columns are {', '.join(COLUMNS)}; `model` is needed in each row."
            )
        size = row.get("billions") or ""
        if size and not (re.fullmatch(r"\d+(\.\d+)?", size) and 0 < float(size) < LARGEST):
            raise CulturevalError(
                f"--models {file}, row {number}: billions is {shorten(size)}, not a number such as 7.6."
            )
    return {row["model"]: row for row in rows}
