"""All registered suites: ours, those of other packages, and those that a user names.

Ours are the sub-packages of `cultureval.tasks` that have a `SUITE`. Another package registers one by an entry point:

    [project.entry-points."cultureval.suites"]
    persian = "persian_suite:SUITE"

A suite that is not installed is named by `--custom-suites` or the environment variable CULTUREVAL_CUSTOM_SUITES.
"""

import logging
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.settings import Settings, current_settings
from cultureval.tasks.suite import Suite, Task

logger = logging.getLogger(__name__)

GROUP = "cultureval.suites"


@dataclass(frozen=True)
class FoundSuite:
    """A suite, its tasks, and a description of where it was found."""

    suite: Suite
    tasks: list[Task]
    place: str


@dataclass(frozen=True, eq=False)
class Registered:
    """All suites that were found.

    Attributes:
        suites: By name, in the order in which they are listed.
        tasks: By name, suite by suite.
        installed: Names of the suites that other packages register.
        failures: Name of an entry point -> why that suite cannot be loaded.
    """

    suites: dict[str, Suite] = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)
    installed: set[str] = field(default_factory=set)
    failures: dict[str, str] = field(default_factory=dict)


def registered(settings: Settings | None = None) -> Registered:
    """The suites under these (or the current) settings; found once for each list of custom suites."""
    return _registered((settings or current_settings()).custom_suites)


@cache
def _registered(custom: tuple[str, ...]) -> Registered:
    return find_suites(custom)


def unknown_name_hint() -> str:
    """What to add to the error about an unknown task or suite: which suites could not be loaded, if any."""
    return "".join(f" {failure}." for failure in registered().failures.values())


def find_suites(custom: Sequence[str] = ()) -> Registered:
    """Finds all suites.

    An installed suite of another package that cannot be loaded is left out with a warning.

    Args:
        custom: Suites that are not installed: names of modules, paths of .py files, or of folders of packages or
            projects.

    Raises:
        CulturevalError: A custom suite cannot be loaded, two suites have one name, or two suites share a task or group.
    """
    failures: dict[str, str] = {}
    installed = list(_installed(failures))
    found = [*_ours(), *installed, *(one for place in custom for one in _custom(place))]
    places: dict[str, FoundSuite] = {}
    for one in found:
        other = places.setdefault(one.suite.name, one)
        if other.suite is not one.suite:
            raise CulturevalError(
                f"Two suites are named {one.suite.name!r}: that of {other.place} and that of {one.place}. "
                "Rename one of them, or leave it out."
            )
    ordered = sorted(places.values(), key=lambda one: (one.suite.order, one.suite.name))
    _refuse_shared_names(ordered)
    return Registered(
        suites={one.suite.name: one.suite for one in ordered},
        tasks={task.task: task for one in ordered for task in one.tasks},
        installed={one.suite.name for one in installed},
        failures=failures,
    )


def _refuse_shared_names(found: Sequence[FoundSuite]) -> None:
    """LightEval identifies tasks by name only, and averages groups across suites."""
    owners: dict[str, FoundSuite] = {}
    for one in found:
        tasks = [task.task for task in one.tasks]
        duplicate = next((name for name in tasks if tasks.count(name) > 1), None)
        if duplicate:
            raise CulturevalError(f"The suite {one.suite.name!r} of {one.place} has two tasks named {duplicate!r}.")
        for name in dict.fromkeys([*(task.group for task in one.tasks), *tasks]):
            other = owners.setdefault(name, one)
            if other is not one:
                raise CulturevalError(
                    f"Two suites have a task or group {name!r}: {other.suite.name!r} of {other.place} and "
                    f"{one.suite.name!r} of {one.place}. Rename one of them, or leave one suite out."
                )


def _ours() -> Iterator[FoundSuite]:
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if module.ispkg:
            suites = getattr(import_module(f"cultureval.tasks.{module.name}"), "SUITE", ())
            yield from _found(suites, "cultureval")


def _installed(failures: dict[str, str]) -> Iterator[FoundSuite]:
    """The suites that other packages register; errors of loading are added to `failures`."""
    for entry in entry_points(group=GROUP):
        try:
            yield from list(_found(entry.load(), _package(entry)))
        except Exception as error:  # an error in another package must not stop ours
            failures[entry.name] = (
                f"The suite {entry.name!r} of {_package(entry)} cannot be loaded: {type(error).__name__}: {error}"
            )
            logger.warning("%s", failures[entry.name])


def _package(entry: EntryPoint) -> str:
    package = f"the package {entry.dist.name}" if entry.dist else "an unknown package"
    return f"{package} ({entry.value})"


def _custom(place: str) -> list[FoundSuite]:
    """The suites of a module or path that a user names."""
    option = f"--custom-suites {place}"
    file = _file_of(place)
    try:
        module = _load_file(file) if file else import_module(place)
    except CulturevalError as error:
        raise CulturevalError(f"{option}: {error}") from error
    except Exception as error:
        hint = " (no such file or module)" if getattr(error, "name", None) == place else ""
        raise CulturevalError(f"{option}: it cannot be loaded: {type(error).__name__}: {error}{hint}") from error
    if not hasattr(module, "SUITE"):
        raise CulturevalError(f"{option}: the module has no SUITE.")
    try:
        return list(_found(module.SUITE, option))
    except CulturevalError as error:
        raise CulturevalError(f"{option}: {error}") from error


def _file_of(place: str) -> Path | None:
    """The Python file of a path; None where the text is the name of a module."""
    path = Path(place).expanduser()
    if path.suffix == ".py":
        return path
    name = path.resolve().name
    for package in (path, path / "src" / name, path / name):  # the package, or the project's folder
        if (package / "__init__.py").is_file():
            return package / "__init__.py"
    if not all(part.isidentifier() for part in place.split(".")):
        raise CulturevalError(
            f"--custom-suites {place}: give the name of a module, the path of a .py file, or that of a folder with an "
            "__init__.py (also in src/NAME or NAME below it)."
        )
    return None


def _load_file(file: Path) -> ModuleType:
    """The module of a file, under the name of the file or, for a package, of its folder; loaded once."""
    file = file.resolve()
    package = file.name == "__init__.py"
    name = file.parent.name if package else file.stem
    if not file.is_file():
        raise CulturevalError("there is no such file.")
    if not name.isidentifier():
        raise CulturevalError(f"{name!r} is not a name for a Python module; rename the file or folder.")
    there = sys.modules.get(name) or find_spec(name)
    at = getattr(there, "__file__", None) or getattr(there, "origin", None)
    if there and at and Path(at).resolve() != file:  # a folder without __init__.py has no file
        raise CulturevalError(f"there is another module named {name!r} ({at}); rename the file or folder.")
    if name in sys.modules and at:
        return sys.modules[name]
    spec = spec_from_file_location(name, file, submodule_search_locations=[str(file.parent)] if package else None)
    sys.modules[name] = module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _found(suites: Any, place: str) -> Iterator[FoundSuite]:
    """The suites of a module's `SUITE`, which is one or a tuple of several."""
    for suite in suites if isinstance(suites, tuple) else (suites,):
        if not isinstance(suite, Suite):
            raise CulturevalError(f"SUITE must be a cultureval.tasks.suite.Suite, not {type(suite).__name__}.")
        suite.part("options")  # report what cannot be loaded here, not in runs of other suites
        yield FoundSuite(suite, suite.tasks(), place)
