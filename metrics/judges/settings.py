"""Judges of a run: settings from YAML files and the environment, and checks of their servers.

CULTUREVAL_JUDGE has YAML files (see docs/judges.md) or model ids, separated by commas. CULTUREVAL_JUDGE_SETTINGS, a
JSON object, overrides settings of all judges. Keys are read from the environment only.
"""

import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from cultureval.runtime.errors import CulturevalError, all_of, wrong_settings
from cultureval.runtime.model_settings import read_yaml, refuse_unknown
from cultureval.runtime.servers.settings import ServedModel, openai_base_url
from cultureval.runtime.settings import current_settings

if TYPE_CHECKING:
    from cultureval.runtime.servers.identity import ServerIdentity


class JudgeSettings(ServedModel):
    """The settings of a judge, or of another model (`audit`), besides those of `ServedModel`.

    Attributes:
        name: Used in the names of its metrics; default: the last part of the model's id.
        temperature: None sends none, for models that reject it.
        max_tokens: Limit of a reply.
        images: Whether the model takes images; if not, templates with images are skipped.
        delimit: Whether delimiters enclose the texts in prompts; if not, prompts are the papers' word for word.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    timeout_s: float = Field(120.0, gt=0)
    max_retries: int = Field(5, ge=0)
    temperature: float | None = Field(0.0, ge=0)
    max_tokens: int = Field(256, ge=1)
    images: bool = True
    delimit: bool = False

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, values: dict[str, Any]) -> dict[str, Any]:
        settings = dict(values)
        if not settings.get("base_url"):
            settings["base_url"] = openai_base_url()
            settings.setdefault("api_key_env", "OPENAI_API_KEY")
        settings.setdefault("name", re.sub(r"[^\w.-]+", "-", str(settings.get("model", "")).rsplit("/", 1)[-1]))
        return settings

    @field_validator("name")
    @classmethod
    def _valid_in_metric_names(cls, name: str) -> str:
        if not re.fullmatch(r"[\w.-]+", name):
            raise ValueError("letters, digits and . _ - only")
        return name

    @model_validator(mode="after")
    def _a_budget_needs_prices(self) -> "JudgeSettings":
        if self.budget is not None and not self.has_prices:
            raise ValueError("a budget needs input_token_price and output_token_price")
        return self

    def with_(self, **changes: Any) -> "JudgeSettings":
        """The same judge with other settings, which are checked; None changes nothing."""
        changed = {name: value for name, value in changes.items() if value is not None}
        return _checked(self.model_dump() | changed, f"the judge {self.name}") if changed else self

    def with_reply_length(self, tokens: int) -> "JudgeSettings":
        """The same judge with this `max_tokens`, unless its own settings have it."""
        return self if "max_tokens" in self.model_fields_set else self.with_(max_tokens=tokens)


def configured_judges() -> list[JudgeSettings]:
    """The judges that CULTUREVAL_JUDGE names; [] if it is not set."""
    return find_judges(current_settings().judges)


def find_judges(names: Iterable[str]) -> list[JudgeSettings]:
    """The judges of YAML files (`*.yaml`, `*.yml`) and model ids.

    Raises:
        CulturevalError: A file cannot be read, a setting is wrong, or two judges have one name.
    """
    judges: dict[str, JudgeSettings] = {}
    for name in filter(None, map(str.strip, names)):
        is_file = name.endswith((".yaml", ".yml"))
        values = read_yaml(Path(name), "The judge's settings") if is_file else {"model": name}
        judge = _checked(values | current_settings().judge_settings, name)
        if judges.setdefault(judge.name, judge) is not judge:
            raise CulturevalError(f"Two judges have the name {judge.name!r}: give each a different `name`.")
    return list(judges.values())


def find_one_judge(option: str, name: str) -> JudgeSettings:
    """The settings of one model, as of `find_judges`, for options that take one model."""
    found = find_judges(name.split(","))
    if len(found) != 1:
        raise CulturevalError(f"{option} {name}: name one model, not {len(found)}.")
    return found[0]


def judge_identity(settings: JudgeSettings) -> "ServerIdentity":
    """The model identity on a judge's servers; CulturevalError if none answers, or they list different models."""
    from cultureval.runtime.servers.identity import identify  # loads a client of servers

    return identify(f"The judge {settings.name}", settings)


def check_judges() -> None:
    """Checks the configured judges: settings, keys, servers, and their models."""
    all_of([partial(_check_judge, judge) for judge in configured_judges()])


def usable_judges() -> tuple[tuple[str, ...], dict[str, str]]:
    """(entries of CULTUREVAL_JUDGE with usable judges, name of each unusable judge -> reason)."""
    usable, reasons = [], {}
    for entry in current_settings().judges:
        name = Path(entry).stem
        try:
            (judge,) = find_judges([entry])
            name = judge.name
            _check_judge(judge)
            usable.append(entry)
        except CulturevalError as error:
            reasons[name] = str(error)
    return tuple(usable), reasons


def _check_judge(judge: JudgeSettings) -> None:
    try:
        judge_identity(judge)
    except CulturevalError as error:
        raise CulturevalError(f"{error} --skip-unscorable leaves the judge's scores out.") from None


def _checked(values: dict[str, Any], where: str) -> JudgeSettings:
    refuse_unknown(values, JudgeSettings.model_fields, f"A judge ({where})")
    try:
        return JudgeSettings(**values)
    except ValidationError as error:
        raise CulturevalError(f"Wrong settings of a judge ({where}): {wrong_settings(error)}.") from None
