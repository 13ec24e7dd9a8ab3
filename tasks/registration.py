"""All registered suites: ours, those of other packages, and custom suites.

A module has `BENCHMARKS`, a list of benchmarks, or `SUITE`, one or several suites with options and tables. A package
registers its benchmarks by an entry point with the suite's name:

    [project.entry-points."cultureval.suites"]
    proverbs = "proverbs:BENCHMARKS"

Custom suites are not installed: `--custom-suites FILE.py` or the variable CULTUREVAL_CUSTOM_SUITES names their files.
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
        suites: Name -> suite: ours, those of packages, custom ones.
        tasks: Name -> task, suite by suite.
        places: Name -> module, entry point or file of each suite that is not ours.
        failures: Entry point -> why its suite cannot be used.
    """

    suites: dict[str, Suite] = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def add(self, suite: Suite, place: str) -> None:
        """Adds a suite. Its names must be new, since LightEval finds tasks and groups by name alone."""
        if self.suites.get(suite.name) == suite:  # an installed suite that is also named as a custom suite
            return
        tasks = suite.tasks()
        new = {suite.name, *(name for task in tasks for name in (task.group, task.task))}
        taken = {*self.suites, *(name for task in self.tasks.values() for name in (task.group, task.task))}
        if shared := sorted(new & taken):
            raise CulturevalError(
                f"Two suites have the name {shared[0]!r}. Rename one of them, or leave the suite {suite.name!r} out."
            )
        if len({task.task for task in tasks}) < len(tasks):
            raise CulturevalError(f"The suite {suite.name!r} has two tasks with one name: rename one of them.")
        options = {option.name: option for other in self.suites.values() for option in other.options}
        for option in suite.options:
            if option.name in field_names() or options.get(option.name, option) != option:
                raise CulturevalError(
                    f"The suite {suite.name!r}: another option has the name {option.name!r}: rename it."
                )
        self.suites[suite.name] = suite
        self.tasks.update({task.task: task for task in tasks})
        if place:
            self.places[suite.name] = place


def registered(settings: Settings | None = None) -> Registered:
    """The suites under these (or the current) settings, cached for each list of custom suites."""
    return find_suites((settings or current_settings()).custom_suites)


def unknown_name_hint() -> str:
    """The end of an error about an unknown task or suite: how to name custom suites, and suites that failed to load."""
    failures = "".join(f" {failure}." for failure in registered().failures.values())
    return f" Name a suite that is not installed with --custom-suites or CULTUREVAL_CUSTOM_SUITES.{failures}"


def mirror_arguments(suite: str) -> str:
    """The arguments of `cultureval fetch` for a suite, for messages."""
    custom = [place for place in current_settings().custom_suites if registered().places.get(suite) == place]
    return " ".join([suite, *(f"--custom-suites {shlex.quote(place)}" for place in custom)])


@cache
def find_suites(custom: tuple[str, ...] = ()) -> Registered:
    """Finds all suites. A broken suite of another package is left out with a warning.

    Args:
        custom: Custom suites: paths of .py files, or names of modules.

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
    """The suites of a module's `SUITE` or `BENCHMARKS`; benchmarks become one suite with this name."""
    if isinstance(offered, list | tuple) and offered and all(isinstance(member, Benchmark) for member in offered):
        try:
            return (Suite(name, " and ".join(member.name for member in offered), tuple(offered)),)
        except ValidationError as error:
            raise CulturevalError(f"{wrong_settings(error)}.") from error
    suites = offered if isinstance(offered, tuple) else (offered,)
    if not suites or not all(isinstance(member, Suite) for member in suites):
        raise CulturevalError("it has neither BENCHMARKS, a list of cultureval.Benchmark, nor SUITE.")
    return suites


def _loaded(entry: EntryPoint) -> Any:
    try:
        return entry.load()
    except (Exception, SystemExit) as error:  # neither an error nor sys.exit of another package may stop ours
        raise CulturevalError(f"it cannot be loaded: {described(error)}") from error


def _custom(place: str) -> tuple[Suite, ...]:
    """The suites of a custom module or file."""
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
    """The module of a file, with the file's name; loaded once."""
    name = file.stem
    if not file.is_file():
        raise CulturevalError("there is no such file.")
    if not name.isidentifier():
        raise CulturevalError(f"{name!r} is not a name for a Python module; rename the file.")
    existing = sys.modules.get(name) or find_spec(name)
    path = getattr(existing, "__file__", None) or getattr(existing, "origin", None)
    if existing and (not path or Path(path).resolve() != file):
        raise CulturevalError(f"there is another module named {name!r} ({path}); rename the file.")
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
