"""Settings of judges, from YAML files and the environment, checked before any call.

A judge's YAML file, all but `model` optional (several judges: a list of these under `judges`):

    name: gpt-4o                             # used in metric names; default: the last part of the model's id
    model: gpt-4o-2024-08-06
    base_url: https://api.openai.com/v1      # or a list; default: OPENAI_BASE_URL, else this
    api_key_env: OPENAI_API_KEY              # name of the variable with the key; default: this, without a base_url
    input_token_price: 0.0000025             # per token, in the currency of the budget
    output_token_price: 0.00001
    budget: 20                               # maximal cost of a run's verdicts, including reused ones
    extra_body: {structured_outputs: ...}    # further fields of each request (here: vLLM's)

CULTUREVAL_JUDGE names the judges of a run: YAML files or model ids, separated by commas. CULTUREVAL_JUDGE_SETTINGS, a
JSON object, overrides settings of all of them. Keys are read from the environment only.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from cultureval.runtime.errors import CulturevalError, wrong_settings
from cultureval.runtime.model_settings import refuse_unknown
from cultureval.runtime.servers.settings import ServedModel, openai_base_url
from cultureval.runtime.settings import current_settings


class JudgeSettings(ServedModel):
    """One judge; its settings beside those of `ServedModel`.

    Attributes:
        name: Used in the names of its metrics.
        temperature: None sends none, for models that reject it.
        max_tokens: Limit of a reply.
        re_asks: New calls after a reply that is malformed or more than its scores, before the item counts as unscored.
        images: Whether the model takes images; if not, templates with images are not used.
        delimit: "always" puts the marks of `judge_prompts/slots.py` around the texts of all items; "never" leaves
            all prompts as the papers have them.
        hold_to_form: Whether vLLM and SGLang (told by `/v1/models`) are asked to hold a reply to the requested lines.
            Not if `extra_body` asks for a form. False for a model that shall reason in the reply itself.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    timeout_s: float = Field(120.0, gt=0)
    max_retries: int = Field(5, ge=0)
    temperature: float | None = Field(0.0, ge=0)
    max_tokens: int = Field(256, ge=1)
    re_asks: int = Field(2, ge=0, le=2)
    images: bool = True
    delimit: Literal["always", "never"] = "always"
    hold_to_form: bool = True

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, values: dict[str, Any]) -> dict[str, Any]:
        given = dict(values)
        if not given.get("base_url"):
            given["base_url"] = openai_base_url()
            given.setdefault("api_key_env", "OPENAI_API_KEY")
        given.setdefault("name", re.sub(r"[^\w.-]+", "-", str(given.get("model", "")).rsplit("/", 1)[-1]))
        return given

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
        given = {name: value for name, value in changes.items() if value is not None}
        return _checked(self.model_dump() | given, f"the judge {self.name}") if given else self

    def with_reply_length(self, tokens: int) -> "JudgeSettings":
        """The same judge with replies of up to so many tokens, unless its own settings say `max_tokens`."""
        return self if "max_tokens" in self.model_fields_set else self.with_(max_tokens=tokens)


def configured_judges() -> list[JudgeSettings]:
    """The judges that CULTUREVAL_JUDGE names; [] if it is not set."""
    return find_judges(current_settings().judges)


def find_judges(names: Iterable[str]) -> list[JudgeSettings]:
    """The judges of YAML files and model ids.

    Args:
        names: YAML files, names of judges in CULTUREVAL_JUDGE's files, or model ids.

    Raises:
        CulturevalError: A file cannot be read, a setting is wrong, or two judges have one name.
    """
    wanted = [name.strip() for name in names if name.strip()]
    known: dict[str, JudgeSettings] = {}
    if any(not _is_file(name) for name in wanted):
        files = [name for name in current_settings().judges if _is_file(name)]
        known = {judge.name: judge for file in files for judge in _read(file)}
    judges: list[JudgeSettings] = []
    for name in wanted:
        if _is_file(name):
            judges += _read(name)
        else:
            of_all = current_settings().judge_settings
            judges.append(known.get(name) or _checked({"model": name} | of_all, f"the judge {name}"))
    names_of = [judge.name for judge in judges]
    for name in names_of:
        if names_of.count(name) > 1:
            raise CulturevalError(f"Two judges are called {name!r}: give each a different `name`.")
    return judges


def find_one_judge(option: str, name: str) -> JudgeSettings:
    """The settings of one model, as of `find_judges`, for options that name only one."""
    found = find_judges(name.split(","))
    if len(found) != 1:
        raise CulturevalError(f"{option} {name}: name one model, not {len(found)}.")
    return found[0]


def _is_file(name: str) -> bool:
    return name.endswith((".yaml", ".yml"))


def _read(path: str) -> list[JudgeSettings]:
    import yaml

    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CulturevalError(f"{path}: no such file (settings of a judge or a model that writes).") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CulturevalError(f"The judge's settings {path!r} cannot be read: {error}") from error
    several = isinstance(content, dict) and set(content) == {"judges"}
    entries = content["judges"] if several else [content]
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise CulturevalError(
            f"The judge's settings {path!r} must be `name: value` lines, or a list of them (judges:)."
        )
    return [_checked(entry | current_settings().judge_settings, path) for entry in entries]


def _checked(values: dict[str, Any], where: str) -> JudgeSettings:
    refuse_unknown(values, JudgeSettings.model_fields, f"A judge ({where})")
    try:
        return JudgeSettings(**values)
    except ValidationError as error:
        raise CulturevalError(f"Wrong settings of a judge ({where}): {wrong_settings(error)}.") from None
