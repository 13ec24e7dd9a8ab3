"""What a leaderboard says of models besides their scores: family, size, licence."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from yaml import YAMLError

from cultureval.reports.leaderboard.entries import Entry
from cultureval.reports.model_sizes import billions_of
from cultureval.runs.paper_numbers import published_model, published_rows
from cultureval.runtime import smollm2
from cultureval.runtime.errors import CulturevalError, shorten

COLUMNS = ("model", "family", "billions", "licence")
UNKNOWN = "unknown"
LARGEST = 1e6  # billions of parameters
CARD, LARGEST_CARD = "README.md", 1 << 20  # a model's card, and its bytes at most
_LICENCES = {smollm2.NAME: smollm2.LICENCE}  # without a card on this machine
_FAMILY = re.compile(r"[A-Za-z]+(?:-[A-Za-z]+)?|[^\W\d_](?:[^\W\d_]|[\u064b-\u0652\u0670])*")  # with vowel signs


@dataclass(frozen=True)
class ModelFacts:
    """What filters of models look at.

    Attributes:
        family: As given, else the letters that its name begins with.
        billions: Parameters in billions: as given, else counted as the model was loaded, else from its name.
        licence: As given, else as the model's card on this machine says; "unknown".
        counted: Whether the size is given or counted, and not of its name.
    """

    family: str
    billions: float | None
    licence: str
    counted: bool = False

    def told(self) -> dict[str, str | float | None]:
        """What filters and `leaderboard.json` have of them."""
        return {"family": self.family, "billions": self.billions, "licence": self.licence}


def facts_of(entries: Iterable[Entry], given: Mapping[str, Mapping[str, str]]) -> dict[str, ModelFacts]:
    """The facts of models, by the entries' labels."""
    found: dict[str, ModelFacts] = {}
    for entry in entries:
        row = given.get(published_model(entry.model, given) or "", {})
        record = entry.run.record.model
        size = float(row["billions"]) if row.get("billions") else (record.parameters or 0) / 1e9
        known = found.get(entry.label)
        if known and known.counted:
            size = known.billions or size
        found[entry.label] = ModelFacts(
            row.get("family") or family_of(entry.model),
            size or billions_of(entry.model),
            row.get("licence") or licence_of_card(entry.model, record.version) or _LICENCES.get(entry.model, UNKNOWN),
            bool(size),
        )
    return found


@cache
def licence_of_card(model: str, version: str | None = None) -> str:
    """The licence that the model's card says, of its folder or in the hub's cache on this machine; "" where none does.

    Args:
        model: A folder, or a model of the hub.
        version: Its commit.
    """
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.repocard import metadata_load

    try:
        card = Path(model) / CARD
        if not Path(model).is_dir():
            cached = try_to_load_from_cache(model, CARD, revision=version)
            card = Path(cached) if isinstance(cached, str) else card
        if not card.is_file() or card.stat().st_size > LARGEST_CARD:
            return ""
        told = metadata_load(card) or {}
    except (OSError, ValueError, RecursionError, YAMLError, HFValidationError):  # names and cards of others
        return ""
    licence = told.get("license_name") if told.get("license") == "other" else told.get("license")
    return licence if isinstance(licence, str) else ""


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
