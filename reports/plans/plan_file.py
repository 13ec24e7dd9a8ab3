"""The file of `cultureval run`: models with their settings, suites, and the runs that follow from them."""

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from cultureval.runtime.data_options import expanded
from cultureval.runtime.errors import CulturevalError, ProblemList, did_you_mean, shorten, wrong_settings
from cultureval.runtime.signatures import installed_versions
from cultureval.tasks.selection import select_tasks

LARGEST = 1_000_000  # bytes of a plan
MOST_RUNS = 10_000
NAME = "a name of at most 100 letters, digits, _, - and dots that begins with no dot"
LOCAL = ("/", "~", ".")  # how a path begins
Scalar = bool | int | float | str
Text = Annotated[str, StringConstraints(min_length=1, max_length=1000, pattern=r"^[^-\x00-\x1f\x7f][^\x00-\x1f\x7f]*$")]


def _made_of(pattern: str, words: str) -> AfterValidator:
    """A check of a whole text that says in words what it may be."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"{shorten(text, 60)} is not {words}")
        return text

    return AfterValidator(check)


def _digits(value: Any) -> Any:
    return str(value) if type(value) is int else value


# What sbatch may be told: no space, quote or line break, so that a value stays one word of its line.
Word = Annotated[
    str,
    BeforeValidator(_digits),
    _made_of(r"[A-Za-z0-9_.,:=/%@+-]{1,200}", "a single word of at most 200 letters, digits and _.,:=/%@+-"),
]


def _slurm_option(name: str) -> str:
    if name in ("array", "wrap"):
        raise ValueError("the jobs of the array are the plan's runs")
    return name


# The name of an option of sbatch, without dashes.
SlurmOption = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,60}$"), AfterValidator(_slurm_option)]


def _expandable(path: str) -> str:
    try:
        expanded(path)
    except ValueError as error:
        raise ValueError(f"{shorten(path, 60)} {error}") from error
    return path


Place = Annotated[Text, AfterValidator(_expandable)]


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Names = Annotated[list[Text], BeforeValidator(_listed), Field(min_length=1)]


class _PlanPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PlannedModel(_PlanPart):
    """A model of a plan.

    Attributes:
        model: Hub id, folder, or YAML file with settings.
        name: Of its folder and in tables; default: made from the model.
        settings: Settings of the model, as in such a file.
        suites: Instead of the plan's.
        options: Of `cultureval eval`, over the plan's.
    """

    model: Place
    name: Annotated[str, _made_of(r"[\w-][\w.-]{0,99}", NAME)] | None = None
    settings: dict[str, Any] = {}
    suites: Names | None = None
    options: dict[str, Scalar] = {}

    @property
    def label(self) -> str:
        """The name of its folder."""
        model = Path(self.model).name if self.model.startswith(LOCAL) else self.model
        return self.name or re.sub(r"[^\w.-]+", "_", model).strip("._-")[-100:] or "model"


class PlanFile(_PlanPart):
    """The content of a plan.

    Attributes:
        models: Each a text (the model alone) or a `PlannedModel`.
        suites: Each is a run of every model: suites, groups or tasks.
        output_dir: Output folder of all runs, each model in its own sub-folder.
        options: Of `cultureval eval`, for all runs.
        slurm: Options of sbatch, without dashes.
        at_once: At most so many runs of the array job at a time.
    """

    models: Annotated[list[PlannedModel], Field(min_length=1)]
    suites: Names | None = None
    output_dir: Place = "results"
    options: dict[str, Scalar] = {}
    slurm: dict[SlurmOption, Word] = {}
    at_once: Annotated[int, Field(ge=1)] | None = None


@dataclass(frozen=True)
class PlannedRun:
    """One run: a model on a suite.

    Attributes:
        number: From 0, in the order of the file.
        label: Name of the model in the plan.
        model: As `cultureval eval` takes it.
        suite: What it runs.
        settings: Settings of the model.
        arguments: Options of `cultureval eval`.
        folder: Its output folder.
    """

    number: int
    label: str
    model: str
    suite: str
    settings: Mapping[str, Any]
    arguments: tuple[str, ...]
    folder: Path

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.label} on {self.suite}"

    def signature(self) -> str:
        """A hash of all that its scores depend on and that is known before it runs.

        That is the model (of a folder or a file also sizes and times of its files), settings, options, suite, and the
        versions of the packages that a score's signature names.
        """
        files = [files_of(self.model), files_of(self.suite) if Path(self.suite).is_file() else []]
        facts = [self.model, self.suite, dict(self.settings), self.arguments, files, installed_versions()]
        return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:16]


def files_of(model: str) -> list[tuple[str, int, int]]:
    """Name, size and time of change of the files of a local model; [] for one on the hub."""
    path = Path(model).expanduser()
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    return [(str(file.relative_to(path.parent)), *_stamp(file)) for file in files]


def read_plan(file: Path, flags: Mapping[str, bool]) -> tuple[PlanFile, list[PlannedRun]]:
    """A plan and its runs, in the order of models and suites.

    Args:
        file: YAML.
        flags: The options of `cultureval eval` without dashes in front -> whether it is a switch.

    Raises:
        CulturevalError: The file cannot be read, or something in it is wrong; the message names it.
    """
    import yaml

    try:
        if file.stat().st_size > LARGEST:
            raise CulturevalError(f"{file} is larger than {LARGEST:,} bytes, and is no plan.")
        content = _loaded(file.read_text(encoding="utf-8"))
        if isinstance(content, dict) and isinstance(content.get("models"), list):
            content["models"] = [{"model": one} if isinstance(one, str) else one for one in content["models"]]
        plan = PlanFile.model_validate(content)
        _require_short([model.settings for model in plan.models], file)
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise CulturevalError(f"{file} cannot be read as a plan: {shorten(reason, 300)}") from error
    except ValidationError as error:
        raise CulturevalError(f"{file}: {shorten(wrong_settings(error), 600)}.") from error
    except ValueError as error:  # settings that hold themselves
        raise CulturevalError(f"{file}: settings hold texts, numbers, lists and mappings alone ({error}).") from error
    return plan, _runs(plan, file, flags)


def _loaded(text: str) -> Any:
    """YAML in which times, dates and 0123 are texts: 12:00:00 not 43200, which sbatch takes for minutes, nor 83."""
    import yaml

    class PlanLoader(yaml.SafeLoader):
        pass

    def number(loader: PlanLoader, node: yaml.ScalarNode) -> Any:
        return node.value if ":" in node.value or re.match("[-+]?0.", node.value) else loader.construct_yaml_int(node)

    PlanLoader.add_constructor("tag:yaml.org,2002:int", number)
    PlanLoader.add_constructor("tag:yaml.org,2002:timestamp", PlanLoader.construct_yaml_str)
    return yaml.load(text, PlanLoader)


def require_suites(runs: Sequence[PlannedRun], file: Path) -> None:
    """Checks that all suites of a plan are known; CulturevalError names all that are not, with the nearest names."""
    problems = ProblemList()
    for suite in dict.fromkeys(run.suite for run in runs):
        try:
            select_tasks([suite])
        except CulturevalError as error:
            problems.add(CulturevalError(f"{file}: {error}"))
    problems.raise_if_any()


def _runs(plan: PlanFile, file: Path, flags: Mapping[str, bool]) -> list[PlannedRun]:
    labels = [model.label for model in plan.models]
    if twice := sorted({label for label in labels if labels.count(label) > 1}):
        raise CulturevalError(f"{file}: two models are called {twice[0]}: give each a `name`.")
    runs: list[PlannedRun] = []
    for model in plan.models:
        suites = model.suites or plan.suites
        if not suites:
            raise CulturevalError(f"{file}: {model.label} has no `suites`, and the plan has none.")
        arguments = arguments_of({**plan.options, **model.options}, flags, file)
        folder = Path(plan.output_dir).expanduser() / model.label
        for suite in dict.fromkeys(suites):
            runs.append(
                PlannedRun(len(runs), model.label, _place(model.model), suite, model.settings, arguments, folder)
            )
    if len(runs) > MOST_RUNS:
        raise CulturevalError(f"{file} has {len(runs)} runs; {MOST_RUNS} are the most.")
    return runs


def arguments_of(options: Mapping[str, Scalar], flags: Mapping[str, bool], file: Path) -> tuple[str, ...]:
    """Options as arguments of a command, each one word: `--limit=5`.

    Args:
        options: By name, with - or _.
        flags: As of `read_plan`.
        file: The plan, for messages.

    Raises:
        CulturevalError: There is no such option, or a switch has a value.
    """
    found = []
    for given, value in options.items():
        name = given.replace("_", "-")
        if name not in flags:
            raise CulturevalError(
                f"{file}: cultureval eval has no option {given!r} for plans.{did_you_mean(name, flags)}"
            )
        if flags[name] != isinstance(value, bool):
            wanted = "true or false" if flags[name] else "a value"
            raise CulturevalError(f"{file}: option {given!r} takes {wanted}, not {shorten(value, 60)}.")
        if "\x00" in str(value):
            raise CulturevalError(f"{file}: option {given!r} holds a character with the code 0.")
        if not isinstance(value, bool):
            found.append(f"--{name}={value}")
        elif value or f"no-{name}" in flags:
            found.append(f"--{name}" if value else f"--no-{name}")
    return tuple(found)


def _require_short(settings: list[dict[str, Any]], file: Path) -> None:
    """Refuses settings that a few aliases of YAML make endless."""
    length = 0
    for part in json.JSONEncoder().iterencode(settings):
        length += len(part)
        if length > LARGEST:
            raise CulturevalError(f"{file}: the settings of its models are longer than {LARGEST:,} letters.")


def _place(model: str) -> str:
    """A local path without `..`, with which LightEval would leave the output folder; other names as they are."""
    return os.path.abspath(model) if ".." in Path(model).parts and os.path.exists(model) else model


def _stamp(file: Path) -> tuple[int, int]:
    facts = file.stat()
    return facts.st_size, facts.st_mtime_ns
