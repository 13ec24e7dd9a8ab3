"""All registered suites: ours, those of other packages, and those that a user names.

A module offers `BENCHMARKS`, a list of benchmarks, or a `SUITE` (or several), which has options and tables too. A
package registers its benchmarks by an entry point, under the name of the suite:

    [project.entry-points."cultureval.suites"]
    proverbs = "proverbs:BENCHMARKS"

Those that are not installed are named by `--custom-suites FILE.py` or the variable CULTUREVAL_CUSTOM_SUITES.
"""

import logging
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from cultureval.runtime.errors import CulturevalError, described, escaped, wrong_settings
from cultureval.runtime.settings import Settings, current_settings, field_names, variable_of
from cultureval.tasks.suite import Benchmark, Suite, Task

logger = logging.getLogger(__name__)

GROUP = "cultureval.suites"
OURS = ("qimma", "jeem", "m2cqa", "cvlue", "alqasida")


@dataclass(frozen=True, eq=False)
class Registered:
    """All suites that were found.

    Attributes:
        suites: By name, in the order in which they are listed.
        tasks: By name, suite by suite.
        places: Where each suite was found, by name.
        custom: Names of the suites that are not installed.
        failures: Name of an entry point -> why its suite cannot be used.
    """

    suites: dict[str, Suite] = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    custom: set[str] = field(default_factory=set)
    failures: dict[str, str] = field(default_factory=dict)

    def from_others(self) -> set[str]:
        """Names of the suites that are not ours."""
        return {name for name, place in self.places.items() if place != "cultureval"}


def registered(settings: Settings | None = None) -> Registered:
    """The suites under these (or the current) settings; found once for each list of custom suites."""
    return _registered((settings or current_settings()).custom_suites)


@cache
def _registered(custom: tuple[str, ...]) -> Registered:
    return find_suites(custom)


def unknown_name_hint() -> str:
    """What to add to the error about an unknown task or suite: which suites could not be loaded, if any."""
    return "".join(f" {failure}." for failure in registered().failures.values())


def unknown_suite_hint() -> str:
    """As `unknown_name_hint`, where a suite is missing: how one that is not installed is named."""
    how = "A suite that is not installed is named by --custom-suites, or CULTUREVAL_CUSTOM_SUITES"
    return f" {how}.{unknown_name_hint()}"


def mirror_arguments(suite: str) -> str:
    """The arguments that name a suite to `cultureval mirror`, for messages."""
    places = current_settings().custom_suites if suite in registered().custom else ()
    return " ".join([suite, *(f"--custom-suites {shlex.quote(place)}" for place in places)])


def find_suites(custom: Sequence[str] = ()) -> Registered:
    """Finds all suites.

    An installed suite of another package that cannot be used is left out with a warning.

    Args:
        custom: Suites that are not installed: paths of .py files, or names of modules.

    Raises:
        CulturevalError: A custom suite cannot be used, or shares its name, a task, a group or an option's name or
            variable with another suite.
    """
    found = Registered()
    for name in OURS:
        for suite in _suites_of(import_module(f"cultureval.tasks.{name}.benchmarks").SUITE, name):
            _add(found, suite, "cultureval")
    for entry in entry_points(group=GROUP):
        try:
            for suite in _suites_of(_loaded(entry), entry.name):
                _add(found, suite, _package(entry))
        except CulturevalError as error:
            found.failures[entry.name] = f"The suite {entry.name!r} of {_package(entry)} is left out: {error}".rstrip(
                "."
            )
            logger.warning("%s.", found.failures[entry.name])
    for place in custom:
        option = f"--custom-suites {escaped(place)}"
        for suite in _custom(option, place):
            if suite.name not in found.suites:
                found.custom.add(suite.name)
            _add(found, suite, option)
    ordered = sorted(found.suites.values(), key=lambda suite: (suite.order, suite.name))
    tasks = {task.task: task for suite in ordered for task in suite.tasks()}
    return replace(found, suites={suite.name: suite for suite in ordered}, tasks=tasks)


def _suites_of(offered: Any, name: str) -> tuple[Suite, ...]:
    """The suites of what a module offers: some suites, or benchmarks, which become one suite of that name."""
    if isinstance(offered, list | tuple) and offered and all(isinstance(one, Benchmark) for one in offered):
        return (_suite_of(name, tuple(offered)),)
    suites = offered if isinstance(offered, tuple) else (offered,)
    if not suites or not all(isinstance(one, Suite) for one in suites):
        raise CulturevalError("it offers neither a list of cultureval.Benchmark nor a Suite.")
    return suites


def _suite_of(name: str, benchmarks: tuple[Benchmark, ...]) -> Suite:
    try:
        return Suite(name, " and ".join(one.name for one in benchmarks), benchmarks)
    except ValidationError as error:
        raise CulturevalError(f"{wrong_settings(error)}.") from error


def _add(found: Registered, suite: Suite, place: str) -> None:
    """Adds a suite to those found, if it shares no name with them; the same suite again changes nothing.

    LightEval identifies tasks by name only, and averages groups across suites.
    """
    if found.suites.get(suite.name) == suite:
        return
    names = [name for task in suite.tasks() for name in dict.fromkeys((task.group, task.task))]
    tasks = [task.task for task in suite.tasks()]
    twice = next((name for name in tasks if tasks.count(name) > 1), None)
    if twice:
        raise CulturevalError(f"The suite {suite.name!r} of {place} has two tasks named {twice!r}.")
    for other in found.suites.values():
        theirs = {name for task in other.tasks() for name in (task.group, task.task)} | {other.name}
        shared = next((name for name in (suite.name, *names) if name in theirs), None)
        if shared:
            raise CulturevalError(
                f"Two suites have the name {shared!r}: {other.name!r} of {found.places[other.name]} and "
                f"{suite.name!r} of {place}. Rename one of them, or leave one suite out."
            )
    _refuse_shared_options(suite, found.suites.values())
    found.suites[suite.name], found.places[suite.name] = suite, place


def _refuse_shared_options(suite: Suite, others: Iterable[Suite]) -> None:
    """Suites may share an option, but not its name or variable alone."""
    ours = {"name": field_names(), "variable": list(map(variable_of, field_names()))}
    known = [option for other in others for option in other.options]
    for option in suite.options:
        for part in ("name", "variable"):
            value = getattr(option, part)
            if value in ours[part] or any(value == getattr(other, part) and option != other for other in known):
                raise CulturevalError(f"The suite {suite.name!r} has an option with the {part} of another, {value!r}.")


def _loaded(entry: EntryPoint) -> Any:
    try:
        return entry.load()
    except (Exception, SystemExit) as error:  # an error in another package must not stop ours, nor its sys.exit
        raise CulturevalError(f"it cannot be loaded: {described(error)}") from error


def _package(entry: EntryPoint) -> str:
    package = f"the package {entry.dist.name}" if entry.dist else "an unknown package"
    return f"{package} ({escaped(entry.value)})"


def _custom(option: str, place: str) -> Iterator[Suite]:
    """The suites of a module or file that a user names."""
    try:
        file = Path(place).expanduser()
        module = _load_file(file) if file.suffix == ".py" else import_module(place)
        offered = getattr(module, "SUITE", None) or getattr(module, "BENCHMARKS", None)
        yield from _suites_of(offered, module.__name__.rpartition(".")[2])
    except ValidationError as error:
        raise CulturevalError(f"{option}: {error.title}: {wrong_settings(error)}.") from error
    except CulturevalError as error:
        raise CulturevalError(f"{option}: {error}") from error
    except (Exception, SystemExit) as error:
        raise CulturevalError(f"{option}: it cannot be loaded: {described(error)}") from error


def _load_file(file: Path) -> ModuleType:
    """The module of a file, under the file's name; loaded once."""
    file = file.resolve()
    name = file.stem
    if not file.is_file():
        raise CulturevalError("there is no such file.")
    if not name.isidentifier():
        raise CulturevalError(f"{name!r} is not a name for a Python module; rename the file.")
    there = sys.modules.get(name) or find_spec(name)
    at = getattr(there, "__file__", None) or getattr(there, "origin", None)
    if there and (not at or Path(at).resolve() != file):
        raise CulturevalError(f"there is another module named {name!r} ({at}); rename the file.")
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, file)
    sys.modules[name] = module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
