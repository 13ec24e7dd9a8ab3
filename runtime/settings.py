"""The settings of a run: the only module that reads the environment variables CULTUREVAL_*; options override them.

A command puts its own options over the environment's (`use_settings(current_settings().with_(data_root="samples"))`);
stock `lighteval` does not know our options, so there the environment is the only channel. Each value is checked when
it is read: wrong settings of a judge do not stop a run without judges. pydantic-settings was tried (2.16): it checks
all settings together, names the field but neither the variable nor the option that set it, ends in a RecursionError at
deeply nested JSON, passes over unknown variables, reads no `a,b`, and takes four times as long to import.
"""

import difflib
import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, get_args, overload

from cultureval.runtime.data_options import BadRows, Form, data_root, expanded
from cultureval.runtime.documentation import documented
from cultureval.runtime.errors import CulturevalError, all_of, did_you_mean

T = TypeVar("T")

PREFIX = "CULTUREVAL_"
TEST_PREFIX = "CULTUREVAL_TEST_"  # read only by our own tests
TRUE, FALSE = ("1", "true", "t", "yes", "y", "on"), ("0", "false", "f", "no", "n", "off")


class UnknownSetting(CulturevalError, TypeError):
    """Code sets an option that does not exist."""


@dataclass(frozen=True)
class Option(Generic[T]):
    """One option and the environment variable that sets it; an attribute of `Settings`, or one of a suite's `OPTIONS`.

    Attributes:
        name: Its attribute name in code.
        variable: The environment variable, `CULTUREVAL_...`.
        default: Its value where it is not set; an empty text counts as not set.
        help: What it does, in Markdown: the variable's row in docs/settings.md or in the suite's page.
        values: The allowed texts; empty allows every text that `parse` accepts.
        parse: From the text to the value; its ValueError is a clause such as "is not a number".
        option: Its option on the command line, where that is not called as the attribute.
        secret: Whether errors and results files leave out the text, which may contain an API key.
        signed: Of a suite's option: whether signatures name a value that is not its default; False where prompts, rows
            or the metrics' names show it.
    """

    name: str
    variable: str
    default: T
    help: str
    values: tuple[str, ...] = ()
    parse: Callable[[str], T] | None = None
    option: str = ""
    secret: bool = False
    signed: bool = True

    @property
    def flag(self) -> str:
        """Its option on the command line, such as `--box-format`."""
        return self.option or f"--{self.name.replace('_', '-')}"

    def setter(self, settings: "Settings") -> str:
        """What set it, for messages: the command line's option, or the environment variable."""
        return self.flag if self.name in settings.overrides else self.variable

    def given(self, settings: "Settings") -> Any:
        """The value of the command or the environment, unchecked; "" where neither sets it."""
        return settings.overrides.get(self.name, settings.variables.get(self.variable, ""))

    def read(self, settings: "Settings") -> T:
        """The option's value, checked.

        Raises:
            CulturevalError: The text is not allowed; lists the allowed ones.
        """
        text: Any = self.given(settings)
        if not isinstance(text, str):
            return self._checked(text)
        if not text:
            return self.default
        try:
            if self.values and text not in self.values:
                raise ValueError(f"is not one of {', '.join(self.values)}")
            return self.parse(text) if self.parse else text  # type: ignore[return-value]
        except ValueError as error:
            link = " " if self.name in settings.overrides else "="  # as each is written
            shown = "" if self.secret else f"{link}{text!r}"
            nearest = did_you_mean(text, self.values)
            raise CulturevalError(f"{self.setter(settings)}{shown} {error}.{nearest}") from error

    def _checked(self, value: Any) -> T:
        """A value that a command gave parsed; the message does not show it, it may contain an API key."""
        unknown_kind = self.parse is not None and self.default is None
        kind: type = object if unknown_kind else str if self.parse is None else type(self.default)
        if not isinstance(value, kind) or (self.values and value not in self.values):
            allowed = f"one of {', '.join(self.values)}" if self.values else f"of type {kind.__name__}"
            raise CulturevalError(f"{self.name} has a value of type {type(value).__name__}; it must be {allowed}.")
        return value  # type: ignore[return-value]

    @overload
    def __get__(self, settings: None, owner: type) -> "Option[T]": ...
    @overload
    def __get__(self, settings: "Settings", owner: type) -> T: ...
    def __get__(self, settings: "Settings | None", owner: type) -> "Option[T] | T":
        return self if settings is None else self.read(settings)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _folder(text: str) -> Path:
    return expanded(text).absolute()


def _file(text: str) -> Path:
    path = _folder(text)
    if not path.is_file():
        raise ValueError("is not a file")
    return path


def _files(text: str) -> tuple[Path, ...]:
    return tuple(_file(name) for name in _names(text))


def _switch(text: str) -> bool:
    if text.lower() not in TRUE + FALSE:
        raise ValueError("is neither 1 (reuse earlier answers) nor 0 (start over)")
    return text.lower() in TRUE


def _layer(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise ValueError("is not the number of a layer, counted from 1")
    return int(text)


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError("holds a number that is too long, or is nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError('must be a JSON object, such as {"seed": 1}')
    return value


@dataclass(frozen=True)
class Settings:
    """All settings of a run; each is parsed and checked when it is read.

    Attributes:
        variables: The environment variables CULTUREVAL_*, including those of suites and unknown ones.
        overrides: Values of a command's options, by name: texts as in a variable, or parsed values.
    """

    variables: Mapping[str, str]
    overrides: Mapping[str, Any] = field(default_factory=dict)

    data_root = Option[Path | None](
        "data_root",
        "CULTUREVAL_DATA",
        None,
        "data root (`DIR/<org>/<name>`), or `samples`; as `--data`",
        parse=data_root,
        option="--data",
    )
    bad_rows = Option[BadRows](
        "bad_rows",
        "CULTUREVAL_BAD_ROWS",
        "few",
        "`few` (default), `stop` or `skip`; as `--bad-rows`",
        values=get_args(BadRows),
    )
    on_refused = Option[Literal["error", "unscored"]](
        "on_refused",
        "CULTUREVAL_ON_REFUSED",
        "error",
        "`error` (default) or `unscored`; as `--on-refused`",
        values=("error", "unscored"),
    )
    form = Option[Form](
        "form",
        "CULTUREVAL_FORM",
        "auto",
        "`auto` (default), `curated` or `original`; as `--form`",
        values=get_args(Form),
    )
    sources = Option[Path | None](
        "sources",
        "CULTUREVAL_SOURCES",
        None,
        "YAML file with other repositories, revisions, splits, files or columns of data; as `--sources`",
        parse=_file,
    )
    manifest = Option[tuple[Path, ...]](
        "manifest",
        "CULTUREVAL_MANIFEST",
        (),
        "manifests of audits, separated by commas, whose discarded rows are left out; as `--manifest`",
        parse=_files,
    )
    custom_suites = Option[tuple[str, ...]](
        "custom_suites",
        "CULTUREVAL_CUSTOM_SUITES",
        (),
        "suites that are not installed: modules, .py files or folders, separated by commas; as `--custom-suites`",
        parse=_names,
    )
    model_settings = Option[dict[str, Any]](
        "model_settings",
        "CULTUREVAL_MODEL_SETTINGS",
        {},
        "settings of the model as a JSON object, over those of its YAML file",
        parse=_json_object,
        secret=True,
    )
    api_key = Option[str | None](
        "api_key",
        "CULTUREVAL_API_KEY",
        None,
        "key of a server that MODEL names by its address, `http://HOST/v1#NAME`",
        secret=True,
    )
    judges = Option[tuple[str, ...]](
        "judges",
        "CULTUREVAL_JUDGE",
        (),
        "judges of a run: YAML files or models' ids, separated by commas",
        parse=_names,
    )
    judge_settings = Option[dict[str, Any]](
        "judge_settings",
        "CULTUREVAL_JUDGE_SETTINGS",
        {},
        "settings of all judges as a JSON object, over those of their files",
        parse=_json_object,
        secret=True,
    )
    cache = Option[Path | None](
        "cache",
        "CULTUREVAL_CACHE",
        None,
        "prepared rows, images, answers, the demo's real model; default `~/.cache/cultureval`",
        parse=_folder,
    )
    journal = Option[Path | None](
        "journal", "CULTUREVAL_JOURNAL", None, "the journal's folder; default `journal` in the cache", parse=_folder
    )
    resume = Option[bool]("resume", "CULTUREVAL_RESUME", True, "`0` starts over, as `--no-resume`", parse=_switch)
    fingerprint = Option[Literal["sampled", "full"]](
        "fingerprint",
        "CULTUREVAL_FINGERPRINT",
        "sampled",
        "how files of weights over 64 MiB are told apart: `sampled` (default), blocks of every tensor, or `full`",
        values=("sampled", "full"),
    )
    bertscore_model = Option[str | None](
        "bertscore_model",
        "CULTUREVAL_BERTSCORE_MODEL",
        None,
        "BERTScore's model for QIMMA: hub id or folder; default AraBERT v02",
    )
    caption_bertscore_model = Option[str | None](
        "caption_bertscore_model",
        "CULTUREVAL_CAPTION_BERTSCORE_MODEL",
        None,
        "BERTScore's model for JEEM: hub id or folder; default CAMeLBERT-mix",
    )
    caption_bertscore_layer = Option[int | None](
        "caption_bertscore_layer",
        "CULTUREVAL_CAPTION_BERTSCORE_LAYER",
        None,
        "the layer of that model, counted from 1; default 9",
        parse=_layer,
    )
    nadi_model = Option[str | None](
        "nadi_model", "CULTUREVAL_NADI_MODEL", None, "AL-QASIDA's classifier of countries: hub id or folder"
    )
    aldi_model = Option[str | None](
        "aldi_model", "CULTUREVAL_ALDI_MODEL", None, "AL-QASIDA's model of dialectness: hub id or folder"
    )
    lid_model = Option[str | None](
        "lid_model", "CULTUREVAL_LID_MODEL", None, "AL-QASIDA's language identification: hub id, folder or file"
    )
    flores200_model = Option[str | None](
        "flores200_model",
        "CULTUREVAL_FLORES200_MODEL",
        None,
        "spBLEU's SentencePiece model: a file; default sacrebleu's cache",
    )
    unsafe_no_sandbox = Option[bool](
        "unsafe_no_sandbox",
        "CULTUREVAL_UNSAFE_NO_SANDBOX",
        False,
        "`1` judges `qimma_code` without a sandbox, and the results say so",
        parse=lambda text: text in ("1", "true", "yes"),  # any other text keeps the sandbox
    )
    vllm = Option[Path | None](
        "vllm",
        "CULTUREVAL_VLLM",
        None,
        "vLLM's program for `--backend vllm`, `ENV/bin/vllm`; default that of this environment or of the PATH",
        parse=_file,
    )
    code_packages = Option[tuple[str, ...]](
        "code_packages",
        "CULTUREVAL_CODE_PACKAGES",
        ("numpy", "sympy", "mpmath"),
        "installed packages that generated code may import, beside the standard library; default `numpy,sympy,mpmath`",
        parse=_names,
    )

    @classmethod
    def options(cls) -> list[Option[Any]]:
        """The settings that are declared here, in order, without those of suites."""
        return [value for value in vars(cls).values() if isinstance(value, Option)]

    def with_(self, suite: Mapping[str, Any] | None = None, **given: Any) -> "Settings":
        """These settings, overridden by a command's options.

        Args:
            **given: Settings by name; None is an option that was not given.

        Raises:
            UnknownSetting: There is no setting of that name; options of suites are checked when they are read.
        """
        check_names(given, self.options())
        given_values = {name: value for name, value in {**given, **(suite or {})}.items() if value is not None}
        return replace(self, overrides={**self.overrides, **given_values})


def check_names(names: Iterable[str], options: Iterable[Option[Any]]) -> None:
    """Checks that each name is that of an option; raises an `UnknownSetting` of those that are not."""
    if unknown := sorted({*names} - {option.name for option in options}):
        raise UnknownSetting(f"No setting is called {', '.join(unknown)}.")


# A module variable, not a contextvar: threads that call judges or drive sandboxes must see it too.
_lock = threading.RLock()
_used: Settings | None = None
_warned: set[str] = set()


def current_settings(*options: Option[Any]) -> Settings:
    """The settings of the running command; without one (stock `lighteval`), those of the environment.

    Where options are given, only these are read from the environment, which takes a tenth of the time.
    """
    if _used is not None:
        return _used
    names = [option.variable for option in options] or [name for name in os.environ if name.startswith(PREFIX)]
    return Settings({name: os.environ[name] for name in names if name in os.environ})


def same_command() -> str:
    """What goes on from what is kept, at the beginning of a sentence: with --no-resume the same command would not."""
    return "The same command" if current_settings().resume else "The same command without --no-resume"


def goes_on() -> str:
    """How a command that ends goes on, as a sentence."""
    return f"{same_command()} goes on from the answers that are kept."


@contextmanager
def use_settings(settings: Settings) -> Iterator[Settings]:
    """A context in which these are the current settings of all threads; another thread's context waits for its end."""
    global _used
    with _lock:
        before, _used = _used, settings
        try:
            yield settings
        finally:
            _used = before


def check_variables(suite_options: Callable[[], Iterable[Option[Any]]]) -> None:
    """Checks the variables CULTUREVAL_* that choose one of several values, whether or not the command reads them.

    Those that set nothing are warned of on standard error, once a process, with the nearest name.

    Args:
        suite_options: Returns the options of suites; called only where a variable is none of the settings here.

    Raises:
        CulturevalError: A variable holds none of its values; names the nearest.
    """
    settings, options = current_settings(), Settings.options()
    known = {option.variable for option in options} | _warned
    unknown = [name for name in settings.variables if name not in known and not name.startswith(TEST_PREFIX)]
    if unknown:
        options += suite_options()
        known |= {option.variable for option in options}
    if os.environ.get("RANK", "0") == "0":  # only the first of several processes warns
        _warn_of(set(unknown) - known, known)
    given = [option for option in options if option.values and option.variable in settings.variables]
    all_of(partial(option.read, settings) for option in given)


def _warn_of(unknown: Iterable[str], known: Iterable[str]) -> None:
    for name in sorted(unknown):
        _warned.add(name)
        own_names = {other.removeprefix(PREFIX) for other in {*known} - _warned}
        near = difflib.get_close_matches(name.removeprefix(PREFIX), own_names, n=1)
        hint = (
            f"did you mean {PREFIX}{near[0]}?"
            if near
            else f"{documented('docs/settings.md')} and the pages of the suites list those there are."
        )
        print(f"cultureval: the environment variable {name} sets nothing; {hint}", file=sys.stderr)
