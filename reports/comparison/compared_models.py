"""The sides of a comparison: the models of the paths that were named, each with its newest details of every task."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import combinations
from pathlib import Path

from cultureval.runs.comparable import texts_that_differ
from cultureval.runs.files import SavedTask, find_saved_tasks, told_apart
from cultureval.runs.load_runs import read_run, with_older_of
from cultureval.runs.record import Run, TaskRecord
from cultureval.runs.reruns import merged, tracks_of
from cultureval.runs.same_model import ModelFacts, told_behind
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
        sources: Task with `|k` -> the run that what is told of it is from, as on the page.
    """

    name: str
    tasks: dict[str, ComparedTask] = field(hash=False)
    path: Path
    unread: tuple[str, ...] = ()
    sources: Mapping[str, Run] = field(default_factory=dict, hash=False)

    @cached_property
    def run(self) -> Run | None:
        """Its runs as one, as on the page: what is told of it; None where no results file is there."""
        own = {task.run.file for task in self.tasks.values() if task.run}
        sources = {name: run for name, run in self.sources.items() if run.file in own}
        return merged(sources) if sources else None


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
        paths: Output folders, results files, or folders in them; one with several models is a side for each. Runs of
            one name, in one output folder or several, are one model as `facts_of_models` judges, as on the page: the
            newest details of each task, without runs that the page does not take as one with the newest.
        broken: Gets a sentence for each results file that cannot be read, whose tasks are left out; None: it stops.

    Raises:
        CulturevalError: A path has no details.
    """
    found: list[tuple[Path, dict[str, ComparedTask], dict[str, Run]]] = []
    unread: dict[Path, list[str]] = {path: [] for path in paths}
    for path in paths:
        of_model: dict[tuple[str, ModelFacts], dict[str, ComparedTask]] = {}
        for saved in sorted(find_saved_tasks([path], unread[path].append), key=lambda task: task.age):
            before = of_model.get((saved.model, saved.facts), {}).get(saved.task)
            if before:
                saved = replace(saved, older=(*saved.older, *before.saved.newest_first))
            if task := _read_task(saved, broken):
                of_model.setdefault((saved.model, saved.facts), {})[saved.task] = task
        found += [(path, *_as_one_run(of_one)) for of_one in of_model.values()]
    first = [next(iter(tasks.values())).saved for _, tasks, _ in found]
    models = [task.name for task in first]
    folders, dates = [task.root.name for task in first], [task.date for task in first]
    places = [str(task.root) for task in first]
    dated = [[f"{one} {date}" for one, date in zip(each, dates, strict=True)] for each in (folders, places)]
    told = told_behind([(task.name, task.facts) for task in first])
    told = [one or folder for one, folder in zip(told, folders, strict=True)]
    names = told_apart(models, told, folders, dates, dated[0], places, dated[1])
    return [
        Side(name, tasks, path, tuple(unread[path]), sources)
        for name, (path, tasks, sources) in zip(names, found, strict=True)
    ]


def _as_one_run(tasks: Mapping[str, ComparedTask]) -> tuple[dict[str, ComparedTask], dict[str, Run]]:
    """The tasks of a model whose scores may stand beside those of its newest run of their suite, and their runs."""
    saved = [task.saved for task in tasks.values()]
    own = {task.run.file: task.run for task in tasks.values() if task.run}
    runs = with_older_of(own.values(), saved, _read)
    found = tracks_of(runs, dict.fromkeys((run.file for run in runs), saved[0].facts), texts_that_differ(runs))
    sources = {name: run for tracks in found.values() for name, run in tracks[0].sources.items()}
    kept = {name: one for name, task in tasks.items() if (one := _of_run(task, sources.get(name)))}
    return kept, sources


def _of_run(task: ComparedTask, run: Run | None) -> ComparedTask | None:
    """The task as a run has it; None without a run, or without its details."""
    if task.record is None or run and task.run and run.file == task.run.file:
        return task
    with suppress(CulturevalError):
        there = find_saved_tasks([run.file], task=task.saved.task) if run else ()
        for one in there:
            return ComparedTask(replace(one, name=task.saved.name, facts=task.saved.facts), run)
    return None


def _read_task(saved: SavedTask, broken: list[str] | None) -> ComparedTask | None:
    """A task with its results file, where there is one; None where that cannot be read."""
    try:
        return ComparedTask(saved, _read(saved.results_file) if saved.results_file.is_file() else None)
    except CulturevalError as error:
        if broken is None:
            raise
        broken.append(str(error))
        return None


@lru_cache(maxsize=64)
def _read(file: Path) -> Run:
    return read_run(file)
