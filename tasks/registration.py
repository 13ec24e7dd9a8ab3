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
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from cultureval.runtime.errors import CulturevalError, described, escaped, wrong_settings
from cultureval.runtime.settings import Settings, current_settings, field_names
from cultureval.tasks.suite import Benchmark, Suite, Task

logger = logging.getLogger(__name__)

GROUP = "cultureval.suites"
OURS = ("qimma", "jeem", "m2cqa", "cvlue", "alqasida")


@dataclass(frozen=True, eq=False)
class Registered:
    """All suites that were found.

    Attributes:
        suites: By name: ours, those of packages, those that a user names.
        tasks: By name, suite by suite.
        places: Where each suite that is not ours was found, by name.
        failures: Name of an entry point -> why its suite cannot be used.
    """

    suites: dict[str, Suite] = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def add(self, suite: Suite, place: str) -> None:
        """Adds a suite, none of whose names another one has: LightEval knows tasks and groups by their names alone."""
        if self.suites.get(suite.name) == suite:  # an installed one that is named, too
            return
        tasks = suite.tasks()
        new = {suite.name, *(name for task in tasks for name in (task.group, task.task))}
        known = {*self.suites, *(name for task in self.tasks.values() for name in (task.group, task.task))}
        if shared := sorted(new & known):
            raise CulturevalError(
                f"Two suites have the name {shared[0]!r}. Rename one of them, or leave the suite {suite.name!r} out."
            )
        if len({task.task for task in tasks}) < len(tasks):
            raise CulturevalError(f"The suite {suite.name!r} has two tasks of one name.")
        options = {option.name: option for other in self.suites.values() for option in other.options}
        for option in suite.options:
            if option.name in field_names() or options.get(option.name, option) != option:
                raise CulturevalError(f"The suite {suite.name!r}: there is another option named {option.name!r}.")
        self.suites[suite.name] = suite
        self.tasks.update({task.task: task for task in tasks})
        if place:
            self.places[suite.name] = place


def registered(settings: Settings | None = None) -> Registered:
    """The suites under these (or the current) settings; found once for each list of custom suites."""
    return find_suites((settings or current_settings()).custom_suites)


def unknown_name_hint() -> str:
    """What to add to the error about an unknown task or suite: how one is named, and which could not be loaded."""
    failures = "".join(f" {failure}." for failure in registered().failures.values())
    return f" A suite that is not installed is named by --custom-suites, or CULTUREVAL_CUSTOM_SUITES.{failures}"


def mirror_arguments(suite: str) -> str:
    """The arguments that name a suite to `cultureval fetch`, for messages."""
    custom = [place for place in current_settings().custom_suites if registered().places.get(suite) == place]
    return " ".join([suite, *(f"--custom-suites {shlex.quote(place)}" for place in custom)])


@cache
def find_suites(custom: tuple[str, ...] = ()) -> Registered:
    """Finds all suites; an installed one of another package that cannot be used is left out with a warning.

    Args:
        custom: Suites that are not installed: paths of .py files, or names of modules.

    Raises:
        CulturevalError: A custom suite cannot be used, or shares a name with another one.
    """
    found = Registered()
    for name in OURS:
        for suite in _suites_of(import_module(f"cultureval.tasks.{name}.benchmarks").SUITE, name):
            found.add(suite, "")
    for entry in entry_points(group=GROUP):
        try:
            for suite in _suites_of(_loaded(entry), entry.name):
                found.add(suite, escaped(entry.value))
        except CulturevalError as error:
            package = f"the package {entry.dist.name}" if entry.dist else escaped(entry.value)
            found.failures[entry.name] = f"The suite {entry.name!r} of {package} is left out: {error}".rstrip(".")
            logger.warning("%s.", found.failures[entry.name])
    for place in custom:
        try:
            for suite in _custom(place):
                found.add(suite, place)
        except CulturevalError as error:
            raise CulturevalError(f"--custom-suites {escaped(place)}: {error}") from error
    return found


def _suites_of(offered: Any, name: str) -> tuple[Suite, ...]:
    """The suites of what a module offers: some suites, or benchmarks, which become one suite of that name."""
    if isinstance(offered, list | tuple) and offered and all(isinstance(one, Benchmark) for one in offered):
        try:
            return (Suite(name, " and ".join(one.name for one in offered), tuple(offered)),)
        except ValidationError as error:
            raise CulturevalError(f"{wrong_settings(error)}.") from error
    suites = offered if isinstance(offered, tuple) else (offered,)
    if not suites or not all(isinstance(one, Suite) for one in suites):
        raise CulturevalError("it offers neither a list of cultureval.Benchmark nor a Suite.")
    return suites


def _loaded(entry: EntryPoint) -> Any:
    try:
        return entry.load()
    except (Exception, SystemExit) as error:  # an error in another package must not stop ours, nor its sys.exit
        raise CulturevalError(f"it cannot be loaded: {described(error)}") from error


def _custom(place: str) -> tuple[Suite, ...]:
    """The suites of a module or file that a user names."""
    try:
        file = Path(place).expanduser()
        module = _load_file(file.resolve()) if file.suffix == ".py" else import_module(place)
    except CulturevalError:
        raise
    except ValidationError as error:
        raise CulturevalError(f"{error.title}: {wrong_settings(error)}.") from error
    except (Exception, SystemExit) as error:
        raise CulturevalError(f"it cannot be loaded: {described(error)}") from error
    offered = getattr(module, "SUITE", None) or getattr(module, "BENCHMARKS", None)
    return _suites_of(offered, module.__name__.rpartition(".")[2])


def _load_file(file: Path) -> ModuleType:
    """The module of a file, under the file's name; loaded once."""
    name = file.stem
    if not file.is_file():
        raise CulturevalError("there is no such file.")
    if not name.isidentifier():
        raise CulturevalError(f"{name!r} is not a name for a Python module; rename the file.")
    there = sys.modules.get(name) or find_spec(name)
    at = getattr(there, "__file__", None) or getattr(there, "origin", None)
    if there and (not at or Path(at).resolve() != file):
        raise CulturevalError(f"there is another module named {name!r} ({at}); rename the file.")
    if name not in sys.modules:
        spec = spec_from_file_location(name, file)
        assert spec and spec.loader
        sys.modules[name] = module_from_spec(spec)
        try:
            spec.loader.exec_module(sys.modules[name])
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]
