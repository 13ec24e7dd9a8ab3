"""Runs, loaded: the newest results of each model, version and settings, with the scores that their items give.

>>> from cultureval import load_results
>>> results = load_results("results")
>>> results.runs[0].score("my_suite|0", "acc")
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cultureval.runs.files import LeftOut, ResultsFile, find_results, read_results
from cultureval.runs.frame import NAMED, Parts, ends, frame_of, read_items
from cultureval.runs.record import RunRecord, TaskRecord, in_order
from cultureval.runs.scores import (
    Influence,
    Score,
    average,
    counts_of,
    influences,
    items_of,
    score_of,
)
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import all_tasks, name_and_shots

if TYPE_CHECKING:
    import pandas

DIFFERS = 1e-6  # by which a file's score may differ from that of its items, relative to itself where that is above 1
ERROR = "_stderr"


class Difference(NamedTuple):
    """A score that a results file states otherwise than its items give."""

    task: str
    metric: str
    in_file: float
    of_items: float


class Run:
    """A model in one way of running it: the newest results of each of its tasks.

    Attributes:
        name: The model's name, with what tells it from other runs that were loaded with it.
        model: The model's name in results files.
        file: The newest results file; `date` its date, `content` what it says.
        files: Task with `|k` -> its results file.
        details: Task with `|k` -> its details, where they were saved.
        judgements: Task with `|k` -> later details with judges' verdicts, the oldest first.
        record: The newest file's record, with the tasks and signatures of all files.
    """

    def __init__(self, files: Sequence[ResultsFile], judgements: Sequence[ResultsFile] = ()) -> None:
        """Takes the files of one model and way, the newest first, and later judgements of them, the oldest first."""
        self.name = self.model = files[0].model
        self.file, self.date, self.content = files[0].path, files[0].date, files[0].content
        self._sources = {task: file for file in files[::-1] for task in _tasks_of(file)}
        self.files = {task: file.path for task, file in self._sources.items()}
        self.details = {task: file.details[task] for task, file in self._sources.items() if task in file.details}
        self.judgements: dict[str, list[Path]] = {}
        self._judges = [one for one in judgements if set(one.judged.values()) & set(self.details.values())]
        for one in self._judges:
            for task, base in one.judged.items():
                if self.details.get(task) == base and task in one.details:
                    self.judgements.setdefault(task, []).append(one.details[task])
        self.record = _merged([*files, *self._judges[::-1]], self._sources)

    @cached_property
    def items(self) -> "pandas.DataFrame":
        """The frame of this run."""
        return self._read[0]

    @cached_property
    def unverified(self) -> dict[str, str]:
        """Task with `|k` -> why its scores are the file's alone: its details are not there, or cannot be read."""
        return self._read[1]

    @cached_property
    def _read(self) -> "tuple[pandas.DataFrame, dict[str, str]]":
        columns, unverified = [], {}
        for task in self.files:
            if task not in self.details:
                unverified[task] = "its details were not saved, or are not there"
                continue
            details, judgements = self.details[task], self.judgements.get(task, ())
            try:
                columns.append(read_items(details, task, judgements))
            except CulturevalError as error:
                why = str(error)
                for file in (details, *judgements):  # pages show it: no folders of this machine
                    why = why.replace(str(file), file.name)
                unverified[task] = why.rstrip(".")
        return frame_of(columns, self.name), unverified

    @cached_property
    def scores(self) -> dict[str, dict[str, Score]]:
        """Task with `|k` -> metric -> its score: of its items, or of the file where the task is unverified."""
        found: dict[str, dict[str, Score]] = {task: {} for task in self.files}
        counts = counts_of(self.items, ["task", "metric"])
        for (task, metric), one in self._influences.items():
            found[task][metric] = score_of(one, counts[task, metric], ends(task, metric))
        for task in self.unverified:
            found[task] = self._of_file(task)
        return found

    def release(self) -> None:
        """Drops the frame from memory; scores stay, and the frame is read again where it is asked for."""
        import pyarrow

        _ = self.scores, self.differs
        for name in ("items", "_read", "_influences"):
            self.__dict__.pop(name, None)
        pyarrow.default_memory_pool().release_unused()

    @cached_property
    def _influences(self) -> dict[tuple[str, str], Influence]:
        return {(task, metric): one for (_, task, metric), one in influences(self.items).items()}

    def _of_file(self, task: str) -> dict[str, Score]:
        values, known = self._sources[task].scores.get(task, {}), self.record.tasks.get(task)
        rows = known.rows if known else 0
        return {
            name: Score(value, values.get(name + ERROR), rows, rows)
            for name, value in values.items()
            if value is not None and not name.endswith(ERROR)
        }

    @cached_property
    def differs(self) -> list[Difference]:
        """The scores that files state otherwise than their items give."""
        found = []
        for task, scores in self.scores.items():
            stated = {} if task in self.unverified else self._sources[task].scores.get(task, {})
            for metric, score in scores.items():
                value = stated.get(metric)
                if value is not None and abs(value - score.value) > DIFFERS * max(1.0, abs(value)):
                    found.append(Difference(task, metric, value, score.value))
        return found

    def score(self, name: str, metric: str) -> Score | None:
        """The score of a task (with `|k`) or of an average (`group:_average|0`); None where there is none."""
        members = members_of(name, self.files)
        if members is None:
            return self.scores.get(name, {}).get(metric)
        of_group = name_and_shots(name)[0].endswith(":_average")  # a declared mean needs all its parts
        applying = [task for task in members if not of_group or (task, metric) not in self._inapplicable]
        return self.mean({(task, metric): 1 / len(applying) for task in applying}) if applying else None

    def value(self, name: str, metric: str) -> float | None:
        """The value of `score`; None where there is none."""
        found = self.score(name, metric)
        return found.value if found else None

    def error(self, name: str, metric: str) -> float | None:
        """The standard error of `score`; None where there is none."""
        found = self.score(name, metric)
        return found.error if found else None

    def mean(self, parts: Parts) -> Score | None:
        """The weighted average of scores of tasks; None without one of them; unverified ones have no error."""
        scores = {place: self.scores.get(place[0], {}).get(place[1]) for place in parts}
        if not parts or None in scores.values():
            return None
        if len(parts) == 1:
            return next(iter(scores.values()))
        if not any(task in self.unverified for task, _ in parts):
            found = average([self._influences[place] for place in parts], list(parts.values()))
            return score_of(found, self._counts(parts), ends(*next(iter(parts))))
        known = [(weight, score) for place, weight in parts.items() if (score := scores[place])]
        value = math.fsum(weight * score.value for weight, score in known) / math.fsum(parts.values())
        return Score(value, None, sum(score.n for _, score in known), sum(score.asked for _, score in known))

    @cached_property
    def _inapplicable(self) -> set[tuple[str, str]]:
        """The metrics that apply to no item of their task (dialectal fidelity of English): no average has them."""
        most = self.items.groupby(["task", "metric"], observed=True)["den"].max()
        return set(most.index[most == 0])

    def _counts(self, parts: Parts) -> tuple[int, int]:
        """The items with a score, and the items asked: an item with several metrics counts once."""
        scores = [self.scores[task][metric] for task, metric in parts]
        if len({task for task, _ in parts}) == len(parts):
            return sum(one.n for one in scores), sum(one.asked for one in scores)
        return counts_of(items_of(self.items, parts), ["run"])[self.name]

    def tasks_of(self, suite: str) -> list[TaskRecord]:
        """The tasks of a suite, in the catalogue's order."""
        return [task for task in self.record.tasks.values() if task.suite == suite]


class Results(NamedTuple):
    """What was loaded: runs, the newest first, and the files that could not be read."""

    runs: list[Run]
    left_out: list[LeftOut]

    @property
    def items(self) -> "pandas.DataFrame":
        """The frame of all runs."""
        import pandas

        frame = pandas.concat([run.items for run in self.runs], ignore_index=True)
        return frame.astype(dict.fromkeys(NAMED, "category"))


def load(*paths: str | Path, strict: bool = False) -> Results:
    """Reads the runs of paths: the newest results of each (model, version, settings) and task.

    Args:
        *paths: Output folders, folders in them, or results files; a file stands for its run alone.
        strict: Whether a file that cannot be read stops; else it is left out, and named.

    Raises:
        CulturevalError: A path has no results file that can be read; the reasons of all are told.
    """
    files: dict[Path, ResultsFile] = {}
    left_out: list[LeftOut] = []
    for file in dict.fromkeys(found for path in paths for found in _with_judgements(Path(path).expanduser())):
        try:
            files[file] = read_results(file)
        except CulturevalError as error:
            left_out.append(LeftOut(file, str(error)))
    runs = [one for one in files.values() if not one.judged]
    judgements = sorted((one for one in files.values() if one.judged), key=lambda one: one.date)
    known = {details for run in runs for details in run.details.values()}
    for one in judgements:
        if not known & set(one.judged.values()):
            left_out.append(LeftOut(one.path, "it judges a run that is not there: name the run's folder."))
    if not runs or (strict and left_out):
        raise CulturevalError("\n".join(one.sentence for one in left_out) or f"{paths} has no results.")
    ways: dict[tuple[Any, ...], list[ResultsFile]] = {}
    for one in sorted(runs, key=lambda file: file.date, reverse=True):
        ways.setdefault((one.model, *facts_of(one.record).values()), []).append(one)
    found = [Run(of_way, judgements) for of_way in ways.values()]
    name_apart(found)
    return Results(found, left_out)


def _with_judgements(path: Path) -> list[Path]:
    """The results files of a path; of a single file also those beside it that judge its answers."""
    files = find_results(path)
    if not path.is_file():
        return files
    own = set(read_results(path).details.values())
    beside = (
        other
        for other in sorted(path.parent.glob("results_*.json"))
        if other != path and b'"judged"' in other.read_bytes()
    )
    return [path, *(other for other in beside if own & set(read_results(other).judged.values()))]


def facts_of(record: RunRecord) -> dict[str, str]:
    """What tells two ways of running a model of one name apart; "" is not told."""
    model = record.model
    limits = sorted({str(task.limit) for task in record.tasks.values() if task.limit is not None})
    return {
        "version": model.version or "",
        "dtype": model.dtype,
        "quantisation": model.quantisation,
        "chat template": "" if model.chat_template is None else str(model.chat_template),
        "system prompt": model.system_prompt_hash,
        "settings": ", ".join(f"{name}={value}" for name, value in sorted(model.settings.items())),
        "limit": ",".join(limits),
    }


def name_apart(runs: Sequence[Run]) -> None:
    """Gives each run a name of its own: the model's, in brackets the first facts that differ, else the date."""
    for model in dict.fromkeys(run.model for run in runs):
        alike = {run: facts_of(run.record) for run in runs if run.model == model}
        differing = [name for name in facts_of(runs[0].record) if len({own[name] for own in alike.values()}) > 1][:2]
        for run, own in alike.items():
            told = ", ".join(f"{name} {own[name][:24] or 'not told'}" for name in differing) or run.date
            run.name = f"{model} ({told})" if len(alike) > 1 else model
        for name, count in Counter(run.name for run in alike).items():
            same = [run for run in alike if run.name == name]
            for number, run in enumerate(same if count > 1 else ()):
                run.name = f"{model} ({run.date}{f', {number + 1}' if number else ''})"


def _tasks_of(file: ResultsFile) -> Iterable[str]:
    """The tasks with `|k` that a file has scores of: those of its record, and other packages' with details."""
    scores = file.scores
    return [name for name in dict.fromkeys([*file.record.tasks, *file.details]) if name in scores]


def _merged(files: Sequence[ResultsFile], sources: Mapping[str, ResultsFile]) -> RunRecord:
    """The newest record, with each task's from its own file, and all signatures and left out tasks of these files."""
    tasks = {name: record for name in in_order(sources) if (record := sources[name].record.tasks.get(name))}
    signatures = {one.group: one for file in files[::-1] for one in file.record.signatures}
    missing = {name: None for file in files for name in file.record.missing if f"{name}|0" not in sources}
    changed = {"tasks": tasks, "signatures": tuple(signatures.values()), "missing": tuple(missing)}
    return files[0].record.model_copy(update=changed)


def members_of(name: str, tasks: Iterable[str]) -> list[str] | None:
    """The tasks with `|k` that an average is of: those of a group, or all of a declared mean; None of another name."""
    bare, shots = name_and_shots(name)
    group, sign, kind = bare.partition(":_")
    if not sign:
        return None
    if kind != "average":
        return [f"{task.task}|{shots}" for task in all_tasks().values() if task.mean == bare] or None
    return [task for task in tasks if task.endswith(f"|{shots}") and task.startswith(f"{group}:")]
