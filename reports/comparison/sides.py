"""The sides of a comparison: the models of the paths that were named, each with its newest details of every task."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from pathlib import Path

from cultureval.reports.run_record import Run, SignatureRecord, TaskRecord
from cultureval.reports.saved_results import SavedTask, find_saved_tasks
from cultureval.reports.saved_runs import read_run
from cultureval.runtime.errors import CulturevalError, escaped


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

    @property
    def signature(self) -> SignatureRecord | None:
        """The signature of its group."""
        name, _, shots = self.saved.task.partition("|")
        group = f"{name.partition(':')[0]}|{shots}"
        signed = self.run.record.signatures if self.run else ()
        return next((one for one in signed if one.group == group), None)


@dataclass(frozen=True)
class Side:
    """A model with its tasks.

    Attributes:
        name: In tables; unique among the sides.
        tasks: By name with `|k`.
        path: The path that was named.
    """

    name: str
    tasks: dict[str, ComparedTask] = field(hash=False)
    path: Path


def read_sides(paths: Sequence[Path]) -> list[Side]:
    """The sides of a comparison, in the order of the paths.

    Args:
        paths: As of `sides_of`.

    Raises:
        CulturevalError: A path has no details, or there are fewer than two sides.
    """
    found = sides_of(paths)
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


def sides_of(paths: Sequence[Path]) -> list[Side]:
    """The models of some paths.

    Args:
        paths: Output folders, results files, or folders in them; one with several models is a side for each. Models of
            one name in several output folders are one where their versions do not differ, the newest of each task.

    Raises:
        CulturevalError: A path has no details.
    """
    found: list[tuple[str, Path, dict[str, ComparedTask]]] = []
    for path in paths:
        tasks = find_saved_tasks([path])
        keys = _keys(tasks)
        of_model: dict[tuple[str, str], dict[str, ComparedTask]] = {key: {} for key in keys.values()}
        for saved in sorted(tasks, key=lambda task: task.date):
            of_model[keys[saved.root, saved.model]][saved.task] = ComparedTask(saved, _run_of(saved))
        found += [(model, path, of_one) for (model, _), of_one in of_model.items()]
    return [Side(name, tasks, path) for name, (_, path, tasks) in zip(_names(found), found, strict=True)]


def _names(found: Sequence[tuple[str, Path, dict[str, ComparedTask]]]) -> list[str]:
    """The models' names, and what tells those of the same name apart: output folder, date, path, or else a number."""
    saved = [next(iter(tasks.values())).saved for _, _, tasks in found]
    tells = [
        [task.root.name for task in saved],
        [task.date for task in saved],
        [f"{task.root.name} {task.date}" for task in saved],
        [str(task.root) for task in saved],
        [f"{task.root} {task.date}" for task in saved],
        [str(number) for number in range(1, len(saved) + 1)],
    ]
    models = [model for model, _, _ in found]
    ways = [models, *([f"{model} ({one})" for model, one in zip(models, told, strict=True)] for told in tells)]
    return [escaped(next(way[place] for way in ways if way.count(way[place]) == 1)) for place in range(len(found))]


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
