"""The settings of a run: the environment variables CULTUREVAL_*, which a command's options override.

Stock `lighteval` does not know our options, so there the environment is the only channel. Suites declare options of
their own (`Option`), which `--task-args` and environment variables set.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, PositiveInt, ValidationError

from cultureval.runtime.data_options import Form, data_folder, expanded
from cultureval.runtime.errors import CulturevalError, ProblemList, did_you_mean

T = TypeVar("T")

PREFIX = "CULTUREVAL_"
TEST_PREFIX = "CULTUREVAL_TEST_"  # read only by our own tests
OTHER_NAMES = {"data_root": "data", "judges": "judge"}  # of the variable and the option, where not the field's
SECRET = ("api_key", "model_settings", "judge_settings")  # whose values no message shows


def _names(value: Any) -> Any:
    if isinstance(value, str):
        return tuple(name.strip() for name in value.split(",") if name.strip())
    return tuple(map(str, value)) if isinstance(value, list | tuple) else value


def _folder(value: Any) -> Any:
    return expanded(value).absolute() if isinstance(value, str | Path) else value


def _file(value: Any) -> Any:
    path = _folder(value)
    if isinstance(path, Path) and not path.is_file():
        raise ValueError("is not a file")
    return path


def _json_object(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not JSON: {error}") from error


def _columns(value: Any) -> Any:
    """The mapping of `question=السؤال,answer=الإجابة`, or of a list of such pairs."""
    pairs = [pair.partition("=") for pair in _names(value)] if isinstance(value, str | list | tuple) else []
    if any(not ours.strip() or not theirs.strip() for ours, _, theirs in pairs):
        raise ValueError("is not NAME=THEIRS, as in question=Frage")
    return {ours.strip(): theirs.strip() for ours, _, theirs in pairs} if pairs else value


Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
Folder = Annotated[Path, BeforeValidator(_folder)]
File = Annotated[Path, BeforeValidator(_file)]
JsonObject = Annotated[dict[str, Any], BeforeValidator(_json_object)]


class Settings(BaseModel):
    """All settings of a run, checked together; docs/commands.md says what each does."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), hide_input_in_errors=True)

    data_root: Annotated[Path | None, BeforeValidator(data_folder)] = None
    on_refused: Literal["error", "unscored"] = "error"
    form: Form = "curated"
    columns: Annotated[dict[str, str], BeforeValidator(_columns)] = {}
    manifest: Annotated[tuple[File, ...], BeforeValidator(_names)] = ()
    custom_suites: Names = ()
    model_settings: JsonObject = {}
    api_key: str | None = None
    judges: Names = ()
    judge_settings: JsonObject = {}
    cache: Folder | None = None
    journal: Folder | None = None
    resume: bool = True
    fingerprint: Literal["sampled", "full"] = "sampled"
    bertscore_model: str | None = None
    caption_bertscore_model: str | None = None
    caption_bertscore_layer: PositiveInt | None = None
    nadi_model: str | None = None
    aldi_model: str | None = None
    lid_model: str | None = None
    flores200_model: str | None = None
    vllm: File | None = None
    code_packages: Names = ("numpy", "sympy", "mpmath")
    suite: dict[str, Any] = {}  # `--task-args`: suites' options by name, checked where they are read

    @classmethod
    def of_variables(cls, variables: Mapping[str, str]) -> Self:
        """The settings of environment variables, of which an empty one sets nothing; raises a CulturevalError."""
        values = {name: variables[variable_of(name)] for name in field_names() if variables.get(variable_of(name))}
        return cls._checked(values, lambda name: f"{variable_of(name)}=")

    @classmethod
    def _checked(cls, values: Mapping[str, Any], setter: Callable[[str], str]) -> Self:
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            found = ProblemList()
            for item in error.errors():
                name = str(item["loc"][0])
                shown = setter(name).rstrip("= ") if name in SECRET else f"{setter(name)}{item['input']}"
                reason = item["msg"].removeprefix("Value error,").replace("Input should", ": it should")
                found.add(CulturevalError(f"{shown}{'' if reason[0] in ' :' else ': '}{reason}."))
            found.raise_if_any()
            raise

    def with_(self, suite: Mapping[str, Any] | None = None, **changes: Any) -> Self:
        """These settings, overridden by a command's options and those of suites, of which None was not given.

        Raises a CulturevalError where a name is unknown or a value is not allowed.
        """
        check_names(changes, field_names())
        values = {name: value for name, value in changes.items() if value is not None}
        values = {name: str(value) if isinstance(value, Path) else value for name, value in values.items()}
        checked = self._checked(values, lambda name: f"{flag_of(name)} ")
        own = {name: value for name, value in (suite or {}).items() if value is not None}
        changed = {name: getattr(checked, name) for name in values}
        return self.model_copy(update=changed | {"suite": {**self.suite, **own}})


def field_names() -> list[str]:
    """The names of the settings, in order, without those of suites."""
    return [name for name in Settings.model_fields if name != "suite"]


def variable_of(name: str) -> str:
    """The environment variable of a setting."""
    check_names([name], field_names())
    return PREFIX + OTHER_NAMES.get(name, name).upper()


def flag_of(name: str) -> str:
    """The option that sets a setting, such as `--form`."""
    if name == "on_refused":
        return "--model-args on_refused"
    return f"--{OTHER_NAMES.get(name, name).replace('_', '-')}"


def check_names(names: Iterable[str], known: Iterable[str], subject: str = "The settings have") -> None:
    """Raises a CulturevalError of the first name that is not known, with the nearest ones."""
    known = sorted({*known})
    if unknown := sorted({*names} - {*known}):
        nearest = did_you_mean(unknown[0], known) or f" The names are {', '.join(known)}."
        raise CulturevalError(f"{subject} no {unknown[0]!r}.{nearest}")


def arguments_of(text: str | Mapping[str, Any] | None, option: str) -> dict[str, Any]:
    """The names and values of `name=value,...`, as of `--model-args`; values are texts, or JSON.

    A value with a comma is JSON (an object, a list, a quoted text) or stands in single quotes. Raises a
    CulturevalError, which names `option` and shows no value.
    """
    if not isinstance(text, str):
        if text is None or isinstance(text, Mapping):
            return dict(text or {})
        raise CulturevalError(f"{option} is of type {type(text).__name__}: give name=value,... or a dictionary.")
    found: dict[str, Any] = {}
    place = 0
    while place < len(text):
        name, sign, _ = text[place:].partition("=")
        if not sign or not name.strip().isidentifier():
            before = f"after {list(found)[-1]}" if found else "at the start"
            raise CulturevalError(
                f"{option}: {before} comes no name=value. A value with a comma stands in single quotes or is JSON."
            )
        if name.strip() in found:
            raise CulturevalError(f"{option} has {name.strip()} twice: give it once.")
        found[name.strip()], place = _value(text, place + len(name) + 1, f"{option} {name.strip()}")
    return found


def _value(text: str, place: int, what: str) -> tuple[Any, int]:
    """The value that begins at this place, and where the next name begins."""
    first, end = text[place : place + 1], text.find(",", place)
    value: Any = (text[place:] if end < 0 else text[place:end]).strip()
    end = len(text) if end < 0 else end
    if first and first in "[{\"'":
        try:
            if first == "'":
                end = text.index("'", place + 1) + 1
                value = text[place + 1 : end - 1]
            else:
                value, end = json.JSONDecoder().raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise CulturevalError(f"{what}: the value is not JSON. Write [...], {{...}} or a quoted text.") from error
        if text[end : end + 1] not in ("", ","):
            raise CulturevalError(f"{what}: a comma or the end must follow the value.")
    return value, end + 1


@dataclass(frozen=True)
class Option(Generic[T]):
    """An option of a suite, set by `--task-args` or in the environment; one of a suite's `OPTIONS`."""

    name: str  # in `--task-args` and in code
    variable: str  # of the environment, `CULTUREVAL_...`; an empty text sets nothing
    default: T
    help: str  # the variable's row in the suite's page, in Markdown
    values: tuple[str, ...] = ()  # the allowed texts; empty allows every text that `parse` accepts
    parse: Callable[[str], T] | None = None  # from the text; its ValueError is a clause such as "is not a number"
    signed: bool = True  # whether signatures name a value that is not its default; prompts or names may show it

    def given(self, settings: Settings) -> Any:
        """The value of the command or the environment, unchecked; "" where neither sets it."""
        return settings.suite.get(self.name, os.environ.get(self.variable, ""))

    def read(self, settings: Settings) -> T:
        """The option's value; raises a CulturevalError, which lists the allowed ones, where it is not allowed."""
        value = self.given(settings)
        if value == "":
            return self.default
        setter = f"--task-args {self.name}" if self.name in settings.suite else self.variable
        shown = f"{setter}={value!r}"
        if self.values and value not in self.values:
            nearest = did_you_mean(str(value), self.values)
            raise CulturevalError(f"{shown} is not one of {', '.join(self.values)}.{nearest}")
        try:
            return self.parse(value) if self.parse and isinstance(value, str) else value
        except ValueError as error:
            raise CulturevalError(f"{shown} {error}.") from error


# A module variable, not a contextvar: threads that call judges or drive sandboxes must see it too.
_used: Settings | None = None
_warned: set[str] = set()


def current_settings() -> Settings:
    """The settings of the running command; without one (stock `lighteval`), those of the environment."""
    return _used if _used is not None else _of_environment(frozenset(_variables().items()))


@cache
def _of_environment(variables: frozenset[tuple[str, str]]) -> Settings:
    return Settings.of_variables(dict(variables))


def _variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}


@contextmanager
def use_settings(settings: Settings) -> Iterator[Settings]:
    """A context in which these are the current settings of all threads."""
    global _used
    before, _used = _used, settings
    try:
        yield settings
    finally:
        _used = before


def warn_of_unknown_variables(suite_options: Iterable[Option[Any]]) -> None:
    """Says on standard error, once a process, which variables CULTUREVAL_* set nothing, with the nearest name."""
    known = {variable_of(name) for name in field_names()} | {option.variable for option in suite_options}
    for name in sorted({*_variables()} - known - _warned):
        if name.startswith(TEST_PREFIX) or os.environ.get("RANK", "0") != "0":
            continue  # only the first of several processes warns
        _warned.add(name)
        hint = did_you_mean(name, known, 0.8) or " docs/commands.md and the suites' pages list them."
        print(f"cultureval: the environment variable {name} sets nothing.{hint}", file=sys.stderr)
