"""The files of finished runs: the only place that finds and opens results and details, ours and stock LightEval's.

A file that was derived from details (a judge's verdicts) adds scores to its run and never stands for it. What cannot be
read is left out by name, with the reason, and the rest goes on.
"""

import fnmatch
import glob
import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cultureval.runs.record import SECTION, Run
from cultureval.runs.same_model import ModelFacts, ModelOfRun, facts_of_models, facts_told, told_behind
from cultureval.runtime.errors import CulturevalError, counted, did_you_mean, escaped, shown_names
from cultureval.runtime.printing import print_note

if TYPE_CHECKING:
    import pyarrow

DERIVED = b"cultureval.derived_from"
UNVERIFIED = "unverified: no details of its own"  # what is said of a run's scores of a task


@dataclass(frozen=True)
class LeftOut:
    """A file that cannot be read.

    Attributes:
        file: The file.
        reason: Why, a sentence without its full stop.
    """

    file: Path
    reason: str

    @property
    def sentence(self) -> str:
        """What people are told."""
        return f"left out: {self.file}: {self.reason.removeprefix(f'{self.file} ').removeprefix(f'{self.file}: ')}"


@dataclass(frozen=True)
class SavedTask:
    """The details of one task of one run.

    Attributes:
        file: The parquet file `details_<task>_<date>.parquet`, absolute.
        root: The output folder of the run, with `results` and `details`.
        model: The model's folder in them.
        date: Date of the run.
        task: The task name with `|k`.
        name: The model's name as in results files; of its folder where no run in it tells one.
        facts: What tells its model from others of the name, as of `facts_of_models`.
        told: In which facts it differs from others of the name that were found with it; "" in none.
        label: As `model_name`, with its folder where that does not tell it apart.
        older: The results files of the model's earlier runs of the task, the newest first.
    """

    file: Path
    root: Path
    model: str
    date: str
    task: str
    name: str = ""
    facts: ModelFacts = ()
    told: str = ""
    label: str = ""
    older: tuple[Path, ...] = ()

    @property
    def model_name(self) -> str:
        """The model's name as on the page, with what tells it from others of the name behind it."""
        name = self.name or self.model
        return f"{name} ({self.told})" if self.told else name

    @property
    def run_name(self) -> str:
        """Model and date, as people name a run."""
        return f"{self.label or self.model_name}, {self.date}"

    @property
    def age(self) -> tuple[bool, str]:
        """What is larger of newer details: the run's date, before which those go whose results file is gone."""
        return self.results_file.is_file(), self.date

    @property
    def results_file(self) -> Path:
        """Where the run's results file is, if there is one."""
        return self.root / "results" / self.model / f"results_{self.date}.json"

    @property
    def newest_first(self) -> tuple[Path, ...]:
        """The results files of the model's runs of the task, this one first."""
        return (self.results_file, *self.older)


class _About(NamedTuple):
    """What a results file says of its run.

    Attributes:
        model: As of `model_of`; "" where the file cannot be read.
        facts: As of `facts_told`.
        tasks: That have scores, with `|k`.
        judged: As of `judged_of`.
    """

    model: str
    facts: ModelFacts
    tasks: frozenset[str]
    judged: tuple[str, ...]


@lru_cache(maxsize=256)
def _about(file: Path, changed: int) -> _About:
    """What a results file says of its run; nothing where it cannot be read, which is told where its scores are."""
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        content = {}
    results, section = (part_of(content, name) for name in ("results", SECTION))
    return _About(
        model_of(content, file) if content else "",
        facts_told(part_of(section, "model")),
        frozenset(map(str, results)),
        tuple(judged_of(content)),
    )


def model_of(content: Any, file: Path) -> str:
    """The model's name in a results file's content; where it says none that of the file's folder, or ""."""
    return escaped(str(part_of(content, "config_general").get("model_name") or model_folder(file) or ""))


def part_of(content: Any, name: str) -> Mapping[str, Any]:
    """A mapping within a results file's content; {} where it has none of that name."""
    part = content.get(name) if isinstance(content, Mapping) else None
    return part if isinstance(part, Mapping) else {}


def read_details(file: Path, paths: Sequence[str] | None = None) -> "pyarrow.Table":
    """Reads a details file: columns `doc`, `metric`, `model_response`.

    Args:
        paths: Only these columns, and columns within them (`doc.specific.cluster`), where there are such; None: all.

    Raises:
        CulturevalError: It cannot be read, or is not a details file of LightEval.
    """
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(file) as opened:
            # A few columns are read sooner than threads are started.
            table = opened.read(columns=None if paths is None else list(paths), use_threads=paths is None)
            names = opened.schema_arrow.names
    except (OSError, pyarrow.ArrowException) as error:
        raise CulturevalError(f"{file} cannot be read as details of LightEval: {error}") from error
    missing = {"doc", "metric", "model_response"} - set(names)
    if missing:
        raise CulturevalError(f"{file} is not a details file of LightEval: it lacks {', '.join(sorted(missing))}.")
    return table


def find_results(path: Path) -> list[Path]:
    """The results files of a path, which may be one, an output folder, or a folder in or above it.

    Raises:
        CulturevalError: There is no such path, or no results file in it.
    """
    if not path.exists():
        raise CulturevalError(f"{path} does not exist: name the --output-dir of a run, or a file in it.")
    files = [path] if path.is_file() else _below(path, "results_*.json")
    if not files:
        raise CulturevalError(
            f"{path} has no results file of LightEval (results/<model>/results_<date>.json): name the --output-dir of "
            "a run, or a file in it."
        )
    return files


def _below(folder: Path, pattern: str) -> list[Path]:
    """The files of a name in a folder, also behind links to folders, each folder once."""
    found: list[Path] = []
    seen: set[str] = set()
    for place, folders, names in os.walk(folder, followlinks=True):
        real = {name: os.path.realpath(f"{place}/{name}") for name in sorted(folders)}
        folders[:] = [name for name, target in real.items() if target not in seen]
        seen |= set(real.values())
        found += [Path(place, name) for name in fnmatch.filter(names, pattern)]
    return sorted(found)


def results_below(folder: Path) -> set[Path]:
    """All results files in a folder, which may not exist."""
    return set(_below(folder.absolute(), "results_*.json"))


def find_saved_tasks(
    paths: Sequence[Path], tell: Callable[[str], object] = print_note, task: str | None = None
) -> list[SavedTask]:
    """The details of each model and task in the paths: those of its newest run, if that has some of its own.

    Models of one folder or name are told apart as on the page (`facts_of_models`): other weights are another model.

    Args:
        paths: Output folders, results files, folders of details or details files. Files that were derived from details
            (such as judgements) are skipped; the results file of a judgement is that of its run.
        tell: Gets a sentence on each file that cannot be read, and on tasks whose newest run has no details of its own,
            which are left out: an older run's details do not belong to its scores.
        task: Only this task, or group of tasks; `|k` may follow.

    Raises:
        CulturevalError: A path does not exist, or has no details that can be read and are of the newest run.
    """
    saved = [one for path in paths for one in _saved_tasks(path, task, tell)]
    if not saved:
        raise CulturevalError(_without_details(paths, task or ""))
    abouts = {file: _about(file, file.stat().st_mtime_ns) for file in _results_near(paths, saved)}
    models = _models_of_files(saved, abouts)
    facts = facts_of_models(models.values())
    newest: dict[tuple[Path, str, str, ModelFacts], SavedTask] = {}
    for one in sorted(saved, key=lambda saved: saved.age):
        one = replace(one, name=models[one.results_file].name, facts=facts[one.results_file])
        place = (one.root, one.model, one.task, one.facts)
        newest[place] = replace(one, older=newest[place].newest_first if place in newest else ())
    found = labelled([*newest.values()])
    newer = _newer_runs(found, _named_files(paths), abouts, facts)
    unverified = _of_older_runs([one for one in found if one.file in newer], newer)
    if len(newer) == len(found):
        raise CulturevalError("\n".join(unverified))
    for sentence in unverified:
        tell(sentence)
    return [one for one in found if one.file not in newer]


def labelled(saved: Sequence[SavedTask]) -> list[SavedTask]:
    """Saved tasks with `told` and the labels of their models."""
    models = list(dict.fromkeys((one.root, one.model, one.name, one.facts) for one in saved))
    roots, folders, names, facts = zip(*models, strict=True)
    told = told_behind(list(zip(names, facts, strict=True)))
    behind = [one or root.name for one, root in zip(told, roots, strict=True)]
    labels = told_apart(names, behind, [root.name for root in roots], list(map(str, roots)), folders)
    found = {model: {"told": one, "label": label} for model, one, label in zip(models, told, labels, strict=True)}
    return [replace(one, **found[one.root, one.model, one.name, one.facts]) for one in saved]


def _without_details(paths: Sequence[Path], task: str) -> str:
    """Why nothing is found of a task, with the tasks that there are details of."""
    there = sorted({one.task for path in paths for file in _details_files(path) if (one := _saved_task(file))})
    names = list(dict.fromkeys(name.partition("|")[0] for name in there))
    hint = did_you_mean(task, names)
    return f"{', '.join(map(str, paths))} has no details of {task}; it has {shown_names(there, 5)}.{hint}"


def _models_of_files(saved: Sequence[SavedTask], abouts: Mapping[Path, "_About"]) -> dict[Path, ModelOfRun]:
    """The model of each results file, and of details whose results file is gone."""
    named = {file.parent: about.model for file, about in abouts.items() if about.model}
    gone = {one.results_file: _About("", facts_told({}), frozenset(), ()) for one in saved}
    found = {}
    for file, about in (gone | dict(abouts)).items():
        name = about.model or named.get(file.parent) or model_folder(file) or ""
        found[file] = ModelOfRun(file, name, date_of(file), about.facts)
    return found


def date_of(file: Path) -> str:
    """The date of a run in the name of its results file."""
    return file.stem.removeprefix("results_")


def _newer_runs(
    saved: Sequence[SavedTask],
    named: Collection[Path],
    abouts: Mapping[Path, "_About"],
    facts: Mapping[Path, ModelFacts],
) -> dict[Path, str]:
    """Details file -> the date of the newest later run of its task and model whose scores are not of these details.

    Beside a task's own results file all runs count but judgements; elsewhere those without details of the task. None
    is looked for where `named` has the task's own run, as of `_named_files`.
    """
    runs: dict[tuple[str, Path | str], list[Path]] = {}
    for file, about in abouts.items():
        for task in () if about.judged else about.tasks:
            runs.setdefault((task, file.parent), []).append(file)
            runs.setdefault((task, about.model), []).append(file)
    details: dict[Path, Collection[str]] = {}
    found: dict[Path, str] = {}
    for one in saved:
        if one.file in named or one.file.parent in named:
            continue
        own = one.results_file
        files = {*runs.get((one.task, own.parent), ()), *(runs.get((one.task, one.name), ()) if own in abouts else ())}
        for file in sorted(files, key=date_of, reverse=True):
            if date_of(file) <= one.date:
                break
            if file.parent != own.parent and file not in details:
                details[file] = details_by_task(own_details(file) if output_folder(file) else ())
            if facts[file] == one.facts and (file.parent == own.parent or one.task not in details[file]):
                found[one.file] = date_of(file)
                break
    return found


def _results_near(paths: Sequence[Path], saved: Iterable[SavedTask]) -> set[Path]:
    """All results files in folders, and beside those of saved tasks."""
    beside = {task.results_file.parent for task in saved}
    found = {file for path in paths if path.is_dir() for file in results_below(path)}
    return found | {file for folder in beside for file in folder.glob("results_*.json")}


def _named_files(paths: Sequence[Path]) -> set[Path]:
    """The paths themselves, and the details of those that are results files."""
    of_results = [file for path in paths if path.suffix == ".json" for file in _details_files(path)]
    return {*of_results, *(path.absolute() for path in paths)}


def _of_older_runs(tasks: Sequence[SavedTask], newer: Mapping[Path, str]) -> list[str]:
    """A sentence for each model with tasks whose newest run, of the date in `newer`, has no details of its own."""
    found: dict[str, list[SavedTask]] = {}
    for task in tasks:
        found.setdefault(task.label, []).append(task)
    return [
        f"{task.label}, {task.task}{more_tasks(others)}: {UNVERIFIED} (the run of {newer[task.file]}). To see the "
        f"items of the run of {task.date}, name its results file: {task.results_file}"
        for task, *others in found.values()
    ]


def more_tasks(others: Sequence[object]) -> str:
    """How many more tasks there are than the one that is named: " and 2 more tasks"."""
    return f" and {counted(len(others), 'more task')}" if others else ""


def find_details(path: Path, task: str, tell: Callable[[str], object] = print_note) -> SavedTask:
    """The newest details of a task.

    Args:
        path: As of `find_saved_tasks`.
        task: With `|k`, or without it for any number of few-shot examples.
        tell: Gets a sentence where other models have details of the task too, and where the results file is gone.

    Raises:
        CulturevalError: There are no such details; the message names the tasks that have some.
    """
    saved = find_saved_tasks([path], tell, task)
    found = [one for one in saved if task in (one.task, one.task.partition("|")[0])]
    if not found:
        some = shown_names(sorted({one.task for one in saved}), 3)
        raise CulturevalError(f"{task} is a group of tasks: name one of them ({some}).")
    newest = max(found, key=lambda one: (one.age, one.file.name))  # by the run's date; a copy has other times
    if more := sorted({one.task for one in found} - {newest.task}):
        tell(f"Of {task}, what is shown is {newest.task}; there is also {', '.join(more)}: name it so to see it.")
    if others := [one for one in found if one is not newest and one.task == newest.task]:
        other = max(others, key=lambda one: one.age)
        tell(
            f"{newest.run_name} is the newest of {len(others) + 1} runs with details of {newest.task}. Another is "
            f"{other.run_name}: name {other.results_file if other.results_file.is_file() else other.file} to see it."
        )
    if not newest.results_file.is_file():
        tell(f"{newest.run_name}: its results file is gone, so nothing says what its scores are: {newest.results_file}")
    return newest


def told_apart(names: Sequence[str], *tells: Sequence[str]) -> list[str]:
    """Names that are each another one: those of several with the first that tells one apart in brackets.

    Args:
        names: In order.
        *tells: What may tell those of one name apart, each in the same order; where nothing does, a number stands.
    """
    told = [*tells, [str(place) for place in range(1, len(names) + 1)]]
    plain = [escaped(name) for name in names]
    ways = [[f"{name} ({escaped(one)})" for name, one in zip(plain, way, strict=True)] for way in told]
    return [
        name
        if plain.count(name) == 1
        else next((way[at] for way in ways if way.count(way[at]) == 1 and way[at] not in plain), ways[-1][at])
        for at, name in enumerate(plain)
    ]


def derived_from(task: SavedTask) -> list[SavedTask]:
    """The files that were derived from a task's details (its judgements), the oldest first; what is cut is named.

    So is a judgement whose results file is gone, while that of its run is there: no score in any view is of it.
    """
    found = []
    for file in sorted((task.root / "details" / task.model).glob(f"*/details_{glob.escape(task.task)}_*.parquet")):
        other = _saved_task(file)
        if other is None or other.task != task.task or other.date <= task.date:
            continue
        try:
            if _source_of(file) != task.file.name.encode("utf-8"):
                continue
            if task.results_file.is_file() and not other.results_file.is_file():
                raise CulturevalError(f"the results file of this judgement is gone: {other.results_file}")
            found.append(other)
        except CulturevalError as error:
            print_note(LeftOut(file, str(error).rstrip(".")).sentence)
    return sorted(found, key=lambda other: other.date)


def _saved_tasks(path: Path, task: str | None, tell: Callable[[str], object]) -> list[SavedTask]:
    """The details of a path that no other details were made from; as of `find_saved_tasks`.

    Raises:
        CulturevalError: There are none, of no task at all, or none of them can be read.
    """
    there = [one for file in _details_files(path) if (one := _saved_task(file))]
    found: list[SavedTask] = []
    broken: list[LeftOut] = []
    for one in there:
        plain = one.task.partition("|")[0]
        if task not in (None, one.task, plain, plain.partition(":")[0]):
            continue
        try:
            found += [] if _source_of(one.file) else [one]
        except CulturevalError as error:
            broken.append(LeftOut(one.file, str(error).rstrip(".")))
    if broken and not found:
        raise CulturevalError("\n".join(one.reason for one in broken))
    if not found and (task is None or not there):
        raise CulturevalError(
            f"{path} has no details of LightEval (details/<model>/<date>/details_<task>_<date>.parquet): run "
            "`cultureval eval`, or lighteval with --save-details."
        )
    for one in broken:
        tell(one.sentence)
    return found


def _details_files(path: Path) -> list[Path]:
    if not path.exists():
        raise CulturevalError(f"{path} does not exist: name the --output-dir of a run, or a file in it.")
    if path.suffix == ".json":
        return _details_of_results(path.absolute(), judged_details(path))
    if path.is_file():
        return [path]
    if found := _below(path, "details_*.parquet"):
        return found
    # OUT/results/MODEL, whose details are not below it
    of_model = _below(path.absolute(), "results_*.json") if "results" in path.absolute().parts else []
    return [file for run in of_model for file in _details_of_results(run, judged_details(run))]


def output_folder(file: Path) -> Path | None:
    """The output folder that a results file is in; None where it is in none."""
    parts = file.absolute().parts
    return Path(*parts[: _place_of_last(parts, "results")]) if "results" in parts[:-1] else None


def model_folder(file: Path) -> str | None:
    """The model's folder of a results file, below `results` of its output folder; None where it is in none."""
    parts = file.absolute().parts[:-1]
    return "/".join(parts[_place_of_last(parts, "results") + 1 :]) if "results" in parts else None


def _place_of_last(parts: Sequence[str], name: str) -> int:
    """The last place of a folder's name among the parts of a path, which has it."""
    return len(parts) - 1 - parts[::-1].index(name)


def details_of_run(run: Run, task: str, most: int | None = None) -> list[dict[str, Any]]:
    """The first rows (None: all) of the details of a task (with `|k`) of a run; [] where they were not saved.

    Raises:
        CulturevalError: They cannot be read.
    """
    file = details_files_of_run(run).get(task)
    return read_details(file).slice(0, most).to_pylist() if file else []


def details_files_of_run(run: Run) -> dict[str, Path]:
    """The details of a run's tasks by their names with `|k`; {} where they were not saved.

    Args:
        run: A results file; of a judgement the details that were judged.
    """
    if output_folder(run.file) is None:
        return {}
    return details_by_task(_details_of_results(run.file.absolute(), judged_of(run.content)))


def details_by_task(files: Iterable[Path]) -> dict[str, Path]:
    """Details files by their tasks with `|k`."""
    return {task.task: task.file for task in map(_saved_task, files) if task}


def own_details(file: Path) -> list[Path]:
    """The details that were written with a results file, those of a judgement too.

    Raises:
        CulturevalError: It is not in an output folder, or has another name.
    """
    root, model = output_folder(file), model_folder(file)
    if root is None or model is None or not file.name.startswith("results_"):
        raise CulturevalError(f"{file} is not a results file of LightEval (results/<model>/results_<date>.json).")
    return sorted((root / "details" / model / date_of(file)).glob("details_*.parquet"))


def _details_of_results(file: Path, judged: Sequence[str]) -> list[Path]:
    """The details of a results file; of a judgement those that were judged, as `judged_of` names them."""
    own, root = own_details(file), output_folder(file)
    return [base for one in judged if root and (base := root / one).is_file()] or own


def judged_details(file: Path) -> list[str]:
    """The details that a judgement's results file was made from, below its output folder; [] for other files."""
    try:
        return list(_about(file, file.stat().st_mtime_ns).judged)
    except OSError:
        return []


def judged_of(content: Any) -> list[str]:
    """The details that a judgement was made from, as its results file's content names them; [] for other files."""
    names = part_of(part_of(content, "config_general"), "judged").get("details")
    names = [str(name) for name in names] if isinstance(names, Sequence) and not isinstance(names, str) else []
    return [name for name in names if not Path(name).is_absolute() and ".." not in Path(name).parts]


def _saved_task(file: Path) -> SavedTask | None:
    """The task of a details file; None if the path is not one of LightEval's."""
    file = file.absolute()
    date, parts = file.parent.name, file.parts
    suffix = f"_{date}.parquet"
    if "details" not in parts[:-2] or not file.name.startswith("details_") or not file.name.endswith(suffix):
        return None
    place = _place_of_last(parts, "details")
    task = file.name.removeprefix("details_").removesuffix(suffix)
    return SavedTask(file, Path(*parts[:place]), "/".join(parts[place + 1 : -2]), date, task)


def _source_of(file: Path) -> bytes | None:
    """The name of the details that a details file was derived from; None of details that were not."""
    import pyarrow
    import pyarrow.parquet

    try:
        return (pyarrow.parquet.read_schema(file).metadata or {}).get(DERIVED)
    except (OSError, pyarrow.ArrowException) as error:
        raise CulturevalError(f"{file} cannot be read as details of LightEval: {error}") from error
