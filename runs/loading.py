"""Loading of runs: the newest results of each model, version and settings, with scores from their items.

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
from cultureval.runs.record import RunRecord, TaskRecord, in_order, weights_of
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

DIFFERS = 1e-6  # allowed difference between scores of a file and of its items, relative for scores above 1
ERROR = "_stderr"


class Difference(NamedTuple):
    """A score of a results file that differs from the score of its items."""

    task: str
    metric: str
    in_file: float
    of_items: float


class Run:
    """A model with its settings: the newest results of each task.

    Attributes:
        name: The model's name, with its differences from other loaded runs of the model.
        model: The model's name in results files.
        file: The newest results file; `date` is its date, `content` its content.
        files: Task with `|k` -> its results file.
        details: Task with `|k` -> its details, where they were saved.
        judgements: Task with `|k` -> later details with judges' verdicts, the oldest first.
        record: The newest file's record, with the tasks and signatures of all files.
    """

    def __init__(self, files: Sequence[ResultsFile], judgements: Sequence[ResultsFile] = ()) -> None:
        """Takes the files of a model and its settings, the newest first, and their judgements, the oldest first."""
        self.name = self.model = files[0].model
        self.file, self.date, self.content = files[0].path, files[0].date, files[0].content
        self._sources = {task: file for file in files[::-1] for task in _tasks_of(file)}
        self.files = {task: file.path for task, file in self._sources.items()}
        self.details = {task: file.details[task] for task, file in self._sources.items() if task in file.details}
        self.judgements: dict[str, list[Path]] = {}
        self._judges = [
            judgement for judgement in judgements if set(judgement.judged.values()) & set(self.details.values())
        ]
        for judgement in self._judges:
            for task, base in judgement.judged.items():
                if self.details.get(task) == base and task in judgement.details:
                    self.judgements.setdefault(task, []).append(judgement.details[task])
        self.record = _merged([*files, *self._judges[::-1]], self._sources)

    @cached_property
    def items(self) -> "pandas.DataFrame":
        """The frame of this run."""
        return self._read[0]

    @cached_property
    def unverified(self) -> dict[str, str]:
        """Task with `|k` -> why its scores cannot be computed from items: details are missing or unreadable."""
        return self._read[1]

    @cached_property
    def _read(self) -> "tuple[pandas.DataFrame, dict[str, str]]":
        columns, unverified = [], {}
        for task in self.files:
            if task not in self.details:
                unverified[task] = "its details were not saved, or are missing"
                continue
            details, judgements = self.details[task], self.judgements.get(task, ())
            try:
                columns.append(read_items(details, task, judgements))
            except CulturevalError as error:
                why = str(error)
                for file in (details, *judgements):  # pages show the reason, without folders of this machine
                    why = why.replace(str(file), file.name)
                unverified[task] = why.rstrip(".")
        return frame_of(columns, self.name), unverified

    @cached_property
    def scores(self) -> dict[str, dict[str, Score]]:
        """Task with `|k` -> metric -> score, from the items, or from the file if the task is unverified."""
        found: dict[str, dict[str, Score]] = {task: {} for task in self.files}
        counts = counts_of(self.items, ["task", "metric"])
        for (task, metric), influence in self._influences.items():
            found[task][metric] = score_of(influence, counts[task, metric], ends(task, metric))
        for task in self.unverified:
            found[task] = self._of_file(task)
        return found

    def release(self) -> None:
        """Drops the frame from memory; scores stay, and the next use reads the frame again."""
        import pyarrow

        _ = self.scores, self.differs
        for name in ("items", "_read", "_influences"):
            self.__dict__.pop(name, None)
        pyarrow.default_memory_pool().release_unused()

    @cached_property
    def _influences(self) -> dict[tuple[str, str], Influence]:
        return {(task, metric): influence for (_, task, metric), influence in influences(self.items).items()}

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
        """The scores of files that differ from the scores of their items."""
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
        return self.mean(self.weights(applying, metric)) if applying else None

    def weights(self, tasks: Sequence[str], metric: str) -> dict[tuple[str, str], float]:
        """The weights of the tasks of a group (with `|k`): equal, or by rows where lm-eval's group says so."""
        weights = weights_of([self.record.tasks.get(task) for task in tasks])
        return {(task, metric): weight for task, weight in zip(tasks, weights, strict=True)}

    def value(self, name: str, metric: str) -> float | None:
        """The value of `score`; None where there is none."""
        found = self.score(name, metric)
        return found.value if found else None

    def error(self, name: str, metric: str) -> float | None:
        """The standard error of `score`; None where there is none."""
        found = self.score(name, metric)
        return found.error if found else None

    def mean(self, parts: Parts) -> Score | None:
        """The weighted average of scores; None if one is missing. It has no error if a task is unverified."""
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
        """Metrics that apply to no item of their task (dialectal fidelity of English), left out of averages."""
        most = self.items.groupby(["task", "metric"], observed=True)["den"].max()
        return set(most.index[most == 0])

    def _counts(self, parts: Parts) -> tuple[int, int]:
        """The items with a score, and all asked items; an item with several metrics counts once."""
        scores = [self.scores[task][metric] for task, metric in parts]
        if len({task for task, _ in parts}) == len(parts):
            return sum(score.n for score in scores), sum(score.asked for score in scores)
        return counts_of(items_of(self.items, parts), ["run"])[self.name]

    def tasks_of(self, suite: str) -> list[TaskRecord]:
        """The tasks of a suite, in the catalogue's order."""
        return [task for task in self.record.tasks.values() if task.suite == suite]


class Results(NamedTuple):
    """Loaded runs, the newest first, and unreadable files."""

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
        strict: Whether an unreadable file is an error; else it is listed in `left_out`.

    Raises:
        CulturevalError: There is no readable results file; the message has all reasons.
    """
    files: dict[Path, ResultsFile] = {}
    left_out: list[LeftOut] = []
    for file in dict.fromkeys(found for path in paths for found in _with_judgements(Path(path).expanduser())):
        try:
            files[file] = read_results(file)
        except CulturevalError as error:
            left_out.append(LeftOut(file, str(error)))
    runs = [results for results in files.values() if not results.judged]
    judgements = sorted((results for results in files.values() if results.judged), key=lambda results: results.date)
    known = {details for run in runs for details in run.details.values()}
    for judgement in judgements:
        if not known & set(judgement.judged.values()):
            left_out.append(LeftOut(judgement.path, "it judges a run that was not found: name the run's folder."))
    if not runs or (strict and left_out):
        raise CulturevalError("\n".join(entry.sentence for entry in left_out) or f"{paths} has no results.")
    by_settings: dict[tuple[Any, ...], list[ResultsFile]] = {}
    for results in sorted(runs, key=lambda results: results.date, reverse=True):
        by_settings.setdefault((results.model, *facts_of(results.record).values()), []).append(results)
    found = [Run(of_model, judgements) for of_model in by_settings.values()]
    set_unique_names(found)
    return Results(found, left_out)


def _with_judgements(path: Path) -> list[Path]:
    """The results files of a path; for a single file also its judgements in the same folder."""
    files = find_results(path)
    if not path.is_file():
        return files
    details = set(read_results(path).details.values())
    beside = (
        other
        for other in sorted(path.parent.glob("results_*.json"))
        if other != path and b'"judged"' in other.read_bytes()
    )
    return [path, *(other for other in beside if details & set(read_results(other).judged.values()))]


def facts_of(record: RunRecord) -> dict[str, str]:
    """The facts in which runs of one model name may differ; "" for none, or if unknown."""
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


def set_unique_names(runs: Sequence[Run]) -> None:
    """Gives runs unique names: the model's, and in brackets the first facts that differ, else the date."""
    for model in dict.fromkeys(run.model for run in runs):
        alike = {run: facts_of(run.record) for run in runs if run.model == model}
        names = facts_of(runs[0].record)
        differing = [name for name in names if len({facts[name] for facts in alike.values()}) > 1][:2]
        for run, facts in alike.items():
            suffix = ", ".join(f"{name} {facts[name][:24] or 'none'}" for name in differing) or run.date
            run.name = f"{model} ({suffix})" if len(alike) > 1 else model
        for name, count in Counter(run.name for run in alike).items():
            same = [run for run in alike if run.name == name]
            for number, run in enumerate(same if count > 1 else ()):
                run.name = f"{model} ({run.date}{f', {number + 1}' if number else ''})"


def _tasks_of(file: ResultsFile) -> Iterable[str]:
    """The tasks with `|k` and scores of a file, from its record and its details."""
    scores = file.scores
    return [name for name in dict.fromkeys([*file.record.tasks, *file.details]) if name in scores]


def _merged(files: Sequence[ResultsFile], sources: Mapping[str, ResultsFile]) -> RunRecord:
    """The newest record, with task records of each task's file, and all signatures and missing tasks."""
    tasks = {name: record for name in in_order(sources) if (record := sources[name].record.tasks.get(name))}
    signatures = {signature.group: signature for file in files[::-1] for signature in file.record.signatures}
    missing = {name: None for file in files for name in file.record.missing if f"{name}|0" not in sources}
    changed = {"tasks": tasks, "signatures": tuple(signatures.values()), "missing": tuple(missing)}
    return files[0].record.model_copy(update=changed)


def members_of(name: str, tasks: Iterable[str]) -> list[str] | None:
    """The tasks with `|k` of an average: of a group, or of a declared mean; None for other names."""
    bare, shots = name_and_shots(name)
    group, sign, kind = bare.partition(":_")
    if not sign:
        return None
    if kind != "average":
        return [f"{task.task}|{shots}" for task in all_tasks().values() if task.mean == bare] or None
    return [task for task in tasks if task.endswith(f"|{shots}") and task.startswith(f"{group}:")]
