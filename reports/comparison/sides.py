"""The sides of a comparison: the models of the paths that were named, each with its newest details of every task."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from pathlib import Path

from cultureval.runs.files import SavedTask, find_saved_tasks, told_apart
from cultureval.runs.load_runs import read_run
from cultureval.runs.record import Run, TaskRecord
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.printing import print_note


@dataclass(frozen=True)
class ComparedTask:
    """A task of a side.

    Attributes:
        saved: Its details.
        run: Its results file; None where that is missing.
    """

    saved: SavedTask
    run: Run | None

    @property
    def record(self) -> TaskRecord | None:
        """What is known of the task."""
        return self.run.record.tasks.get(self.saved.task) if self.run else None


@dataclass(frozen=True)
class Side:
    """A model with its tasks.

    Attributes:
        name: In tables; unique among the sides.
        tasks: By name with `|k`.
        path: The path that was named.
        unread: Sentences on details in that path that are not here.
    """

    name: str
    tasks: dict[str, ComparedTask] = field(hash=False)
    path: Path
    unread: tuple[str, ...] = ()


def read_sides(paths: Sequence[Path]) -> list[Side]:
    """The sides of a comparison, in the order of the paths.

    Args:
        paths: As of `sides_of`.

    Raises:
        CulturevalError: A path has no details, or there are fewer than two sides.
    """
    broken: list[str] = []
    found = sides_of(paths, broken)
    left_out = dict.fromkeys([*broken, *(sentence for side in found for sentence in side.unread)])
    if len(found) < 2 and left_out:
        raise CulturevalError("\n".join(left_out))
    for reason in dict.fromkeys(broken):
        print_note(f"left out: {reason}")
    if len(found) < 2:
        raise CulturevalError(
            f"{', '.join(map(str, paths))}: there is one model, and a comparison needs two; name two results files "
            "(results/<model>/results_<date>.json) where one model was run twice."
        )
    return found


def named_twice(sides: Sequence[Side]) -> list[str]:
    """A sentence for each two sides that are the same results."""
    files = [{task.saved.file.resolve() for task in side.tasks.values()} for side in sides]
    return [
        f"{sides[one].name} and {sides[other].name} are the same results, named twice."
        for one, other in combinations(range(len(sides)), 2)
        if files[one] & files[other]
    ]


def sides_of(paths: Sequence[Path], broken: list[str] | None = None) -> list[Side]:
    """The models of some paths.

    Args:
        paths: Output folders, results files, or folders in them; one with several models is a side for each. Models of
            one name in several output folders are one where their versions do not differ, the newest of each task.
        broken: Gets a sentence for each results file that cannot be read, whose tasks are left out; None: it stops.

    Raises:
        CulturevalError: A path has no details.
    """
    found: list[tuple[str, Path, dict[str, ComparedTask]]] = []
    unread: dict[Path, list[str]] = {path: [] for path in paths}
    for path in paths:
        tasks = [task for task in find_saved_tasks([path], unread[path].append) if _is_readable(task, broken)]
        keys = _keys(tasks)
        of_model: dict[tuple[str, str], dict[str, ComparedTask]] = {key: {} for key in keys.values()}
        for saved in sorted(tasks, key=lambda task: task.age):
            of_model[keys[saved.root, saved.model]][saved.task] = ComparedTask(saved, _run_of(saved))
        found += [(model, path, of_one) for (model, _), of_one in of_model.items()]
    first = [next(iter(tasks.values())).saved for _, _, tasks in found]
    folders, dates = [task.root.name for task in first], [task.date for task in first]
    places = [str(task.root) for task in first]
    dated = [[f"{one} {date}" for one, date in zip(told, dates, strict=True)] for told in (folders, places)]
    names = told_apart([task.model_name for task in first], folders, dates, dated[0], places, dated[1])
    return [Side(name, tasks, path, tuple(unread[path])) for name, (_, path, tasks) in zip(names, found, strict=True)]


def _is_readable(saved: SavedTask, broken: list[str] | None) -> bool:
    """Whether the results file of a task can be read, or is not there."""
    try:
        _run_of(saved)
    except CulturevalError as error:
        if broken is None:
            raise
        broken.append(str(error))
        return False
    return True


def _keys(tasks: Sequence[SavedTask]) -> dict[tuple[Path, str], tuple[str, str]]:
    """Output folder and model -> the model and the version of its weights, the first known where a run tells none."""
    versions: dict[tuple[Path, str], str] = {}
    for task in sorted(tasks, key=lambda task: task.date):
        place, run = (task.root, task.model), _run_of(task)
        versions[place] = (run.record.model.version if run else None) or versions.get(place, "")
    known: dict[str, str] = {}
    for (_, model), version in versions.items():
        known[model] = known.get(model) or version
    places = dict.fromkeys((task.root, task.model) for task in tasks)
    return {(root, model): (model, versions[root, model] or known[model]) for root, model in places}


def _run_of(saved: SavedTask) -> Run | None:
    return _read(saved.results_file) if saved.results_file.is_file() else None


@lru_cache(maxsize=64)
def _read(file: Path) -> Run:
    return read_run(file)
