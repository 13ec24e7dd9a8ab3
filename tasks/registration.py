"""All registered suites: ours, those of other packages, and those that a user names.

Ours are the sub-packages of `cultureval.tasks` that have a `SUITE`. Another package registers one by an entry point:

    [project.entry-points."cultureval.suites"]
    persian = "persian_suite:SUITE"

A suite that is not installed is named by `--custom-suites` or the environment variable CULTUREVAL_CUSTOM_SUITES.
"""

import logging
import pkgutil
import shlex
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from cultureval.runtime.errors import CulturevalError, described, escaped
from cultureval.runtime.settings import Settings, current_settings, field_names, variable_of
from cultureval.tasks.suite import Suite, Task
from cultureval.tasks.suite_checks import check_suite

logger = logging.getLogger(__name__)

GROUP = "cultureval.suites"
SLOW_S = 5.0  # seconds of loading after which it is said which suite is being loaded


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
        custom: Names of the suites that are not installed.
        failures: Name of an entry point or of an installed suite -> why it cannot be used.
    """

    suites: dict[str, Suite] = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)
    installed: set[str] = field(default_factory=set)
    custom: set[str] = field(default_factory=set)
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
        custom: Suites that are not installed: names of modules, paths of .py files, or of folders of packages or
            projects.

    Raises:
        CulturevalError: A custom suite cannot be used, or shares its name, a task, a group or an option's name or
            variable with another suite.
    """
    found: dict[str, FoundSuite] = {}
    failures: dict[str, str] = {}
    installed, named = set[str](), set[str]()
    for one in _ours():
        _add(one, found)
    for one in _installed(failures):
        try:
            _add(one, found)
            installed.add(one.suite.name)
        except CulturevalError as error:
            _leave_out(f"{one.suite.name} {one.place}", f"The suite {one.suite.name!r} is left out: {error}", failures)
    for place in custom:
        for one in _custom(f"--custom-suites {escaped(place)}", place):
            named |= {one.suite.name} - set(found)
            _add(one, found)
    ordered = sorted(found.values(), key=lambda one: (one.suite.order, one.suite.name))
    return Registered(
        suites={one.suite.name: one.suite for one in ordered},
        tasks={task.task: task for one in ordered for task in one.tasks},
        installed=installed,
        custom=named,
        failures=failures,
    )


def _add(one: FoundSuite, found: dict[str, FoundSuite]) -> None:
    """Adds a suite to those found, if it shares no name with them; the same suite again changes nothing."""
    other = found.get(one.suite.name)
    if other and other.suite is one.suite:
        return
    if other:
        raise CulturevalError(
            f"Two suites are named {one.suite.name!r}: that of {other.place} and that of {one.place}. "
            "Rename one of them, or leave it out."
        )
    _refuse_shared_names(one, found.values())
    _refuse_shared_options(one, found.values())
    found[one.suite.name] = one


def _refuse_shared_names(one: FoundSuite, others: Iterable[FoundSuite]) -> None:
    """LightEval identifies tasks by name only, and averages groups across suites."""
    tasks = [task.task for task in one.tasks]
    duplicate = next((name for name in tasks if tasks.count(name) > 1), None)
    if duplicate:
        raise CulturevalError(f"The suite {one.suite.name!r} of {one.place} has two tasks named {duplicate!r}.")
    names = _task_names(one)
    for other in others:
        theirs = _task_names(other)
        shared = [name for name in names if name in theirs or name == other.suite.name]
        shared += [one.suite.name] if one.suite.name in theirs else []
        if shared:
            raise CulturevalError(
                f"Two suites have a task or group {shared[0]!r}: {other.suite.name!r} of {other.place} and "
                f"{one.suite.name!r} of {one.place}. Rename one of them, or leave one suite out."
            )


def _task_names(one: FoundSuite) -> dict[str, None]:
    return dict.fromkeys([*(task.group for task in one.tasks), *(task.task for task in one.tasks)])


def _refuse_shared_options(one: FoundSuite, others: Iterable[FoundSuite]) -> None:
    """Suites may share an option, but not its name or variable alone."""
    ours = {"name": field_names(), "variable": list(map(variable_of, field_names()))}
    known = [option for other in others for option in other.suite.part("options")]
    for option in one.suite.part("options"):
        for part in ("name", "variable"):
            value = getattr(option, part)
            if value in ours[part] or any(value == getattr(other, part) and option != other for other in known):
                raise CulturevalError(
                    f"Two options have the {part} {value!r}: one is that of the suite {one.suite.name!r} of "
                    f"{one.place}. Give one of them another {part}."
                )
        known.append(option)


def _leave_out(key: str, why: str, failures: dict[str, str]) -> None:
    failures[key] = why.rstrip(".")
    logger.warning("%s", why)


def _ours() -> Iterator[FoundSuite]:
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if module.ispkg:
            suites = getattr(import_module(f"cultureval.tasks.{module.name}"), "SUITE", ())
            yield from (_checked(suite, "cultureval") for suite in _suites_of(suites))


def _installed(failures: dict[str, str]) -> Iterator[FoundSuite]:
    """The suites that other packages register; errors of loading are added to `failures`."""
    for entry in entry_points(group=GROUP):
        try:
            with _told_if_slow(f"the suite {entry.name!r} of {_package(entry)}"):
                suites = entry.load()
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # an error in another package must not stop ours, nor its sys.exit
            why = f"The suite {entry.name!r} of {_package(entry)} cannot be loaded: {described(error)}"
            _leave_out(entry.name, why, failures)
            continue
        for number, suite in enumerate(_suites_of(suites)):
            try:
                yield _checked(suite, _package(entry))
            except CulturevalError as error:
                why = f"The suite {entry.name!r} of {_package(entry)} is left out: {error}"
                _leave_out(f"{entry.name} {number}", why, failures)


@contextmanager
def _told_if_slow(what: str) -> Iterator[None]:
    """Says on standard error what is being loaded where that takes long, so that one that hangs has a name."""
    text = f"cultureval: still loading {what}; if it hangs, stop it with Ctrl-C and leave that suite out."
    timer = threading.Timer(SLOW_S, print, [text], {"file": sys.stderr, "flush": True})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _package(entry: EntryPoint) -> str:
    package = f"the package {entry.dist.name}" if entry.dist else "an unknown package"
    return f"{package} ({escaped(entry.value)})"


def _custom(option: str, place: str) -> list[FoundSuite]:
    """The suites of a module or path that a user names."""
    try:
        file = _file_of(place)
        with _told_if_slow(option):
            module = _load_file(file) if file else import_module(place)
        if not hasattr(module, "SUITE"):
            raise CulturevalError("the module has no SUITE.")
        return [_checked(suite, option) for suite in _suites_of(module.SUITE)]
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except CulturevalError as error:
        raise CulturevalError(f"{option}: {error}") from error
    except BaseException as error:  # the module may also call sys.exit
        hint = _hint(place) if getattr(error, "name", None) == place.partition(".")[0] else ""
        raise CulturevalError(f"{option}: it cannot be loaded: {described(error)}{hint}") from error


def _hint(place: str) -> str:
    file = Path(*place.split(".")).with_suffix(".py")
    return (
        f" (there is a file of that name: give its path, ./{file})" if file.is_file() else " (no such file or module)"
    )


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
            "give the name of a module, the path of a .py file, or that of a folder with an __init__.py (also in "
            "src/NAME or NAME below it)."
        )
    return None


def _load_file(file: Path) -> ModuleType:
    """The module of a file, under the name of the file or, for a package, of its folder; loaded once."""
    file = file.resolve() if file.resolve().suffix == ".py" else file.absolute()  # a link's target may end otherwise
    package = file.name == "__init__.py"
    name = file.parent.name if package else file.stem
    if not file.is_file():
        raise CulturevalError("there is no such file.")
    if not name.isidentifier():
        raise CulturevalError(f"{name!r} is not a name for a Python module; rename the file or folder.")
    there = sys.modules.get(name) or find_spec(name)
    at = getattr(there, "__file__", None) or getattr(there, "origin", None)
    if there and at and Path(at).resolve() != file.resolve():  # a folder without __init__.py has no file
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


def _suites_of(suites: Any) -> tuple[Any, ...]:
    """The suites of a module's `SUITE`, which is one or a tuple of several."""
    return suites if isinstance(suites, tuple) else (suites,)


def _checked(suite: Any, place: str) -> FoundSuite:
    try:
        check_suite(suite)
        return FoundSuite(suite, suite.tasks(), place)
    except (CulturevalError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # its tables are another package's objects
        raise CulturevalError(f"its tables cannot be read: {described(error)}.") from error
