"""Results files as typed runs, for notebooks and for our own reports; the pandas form of their scores.

>>> from cultureval import reports
>>> runs = reports.load("results")
>>> reports.scores_table(runs).query("metric == 'acc'")
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from cultureval.runs.checks import checked, checked_judgement
from cultureval.runs.comparable import JUDGES
from cultureval.runs.files import (
    LeftOut,
    SavedTask,
    date_of,
    find_results,
    judged_details,
    judged_of,
    model_of,
    output_folder,
)
from cultureval.runs.judged import added_scores, is_of_judge, judges_of, signs, told_otherwise
from cultureval.runs.means import count_of
from cultureval.runs.record import SCHEMA, SECTION, Run, RunRecord, SignatureRecord, TaskRecord
from cultureval.runs.reruns import with_older
from cultureval.runs.rows import headline_of
from cultureval.runs.same_model import ModelFacts, facts_of_runs, told_behind
from cultureval.runs.task_records import task_records
from cultureval.runs.warnings import task_warnings
from cultureval.runtime.errors import CulturevalError, described, wrong_settings
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.tasks.catalogue import all_tasks

if TYPE_CHECKING:
    import pandas

MOST = 1e100  # no score is larger; percents and sums of it stay finite
MOST_DIGITS = 20
PLACE = ("suite", "group", "benchmark", "subset", "domain")  # of a task in the catalogue
COLUMNS = (
    "model",
    "date",
    "suite",
    "group",
    "task",
    "metric",
    "value",
    "stderr",
    "n",
    "coverage",
    "signature",
    "warnings",
    "file",
)


class LoadedRuns(list[Run]):
    """Runs, the newest first.

    Attributes:
        left_out: The files that could not be read.
    """

    def __init__(self, runs: Iterable[Run], left_out: Sequence[LeftOut] = ()) -> None:
        super().__init__(runs)
        self.left_out = tuple(left_out)


def load(path: str | Path, strict: bool = False) -> LoadedRuns:
    """Reads the runs of a path.

    Args:
        path: A results file, an output folder, or a folder in it, such as a model's. Files of stock LightEval are read
            too: their records say what the catalogue knows.
        strict: Whether a file that cannot be read stops; else it is left out, and named in `left_out`.

    Returns:
        The runs, the newest first, each with the scores that judgements of its answers add, and checked against its
        items (`Run.claims`).

    Raises:
        CulturevalError: There is no results file that can be read; all of them are named, with the reasons.
    """
    runs: dict[Path, Run] = {}
    left_out: list[LeftOut] = []
    for file in _with_relatives(find_results(Path(path).expanduser())):
        try:
            runs[file.resolve()] = read_file(file)
        except CulturevalError as error:
            left_out.append(LeftOut(file, str(error)))
    if left_out and (strict or not runs):
        raise CulturevalError("\n".join(one.reason for one in left_out))
    with use_settings(current_settings()):  # read once: every check asks the catalogue
        judged = {file: checked_judgement(run) for file, run in runs.items()}
        found = [_alone(run) if judged_of(run.content) else checked(run) for run in _with_judgements(judged)]
    used = {file for run in found for file in (run.file, *run.judgements)}
    unused = (run for run in judged.values() if run.file not in used and run.unchecked)
    left_out += [LeftOut(run.file, next(iter(run.unchecked.values()))) for run in unused]
    return LoadedRuns(sorted(with_older(found), key=lambda run: (run.date, run.model), reverse=True), left_out)


def load_all(paths: Iterable[Path], strict: bool = False) -> LoadedRuns:
    """The runs of several paths, each once, as of `load`."""
    found: dict[Path, Run] = {}
    left_out: dict[Path, LeftOut] = {}
    for path in paths:
        loaded = load(path, strict)
        found |= {run.file.resolve(): run for run in loaded}
        left_out |= {one.file: one for one in loaded.left_out}
    runs = sorted(with_older(found.values()), key=lambda run: (run.date, run.model), reverse=True)
    return LoadedRuns(runs, tuple(left_out.values()))


def read_run(file: Path) -> Run:
    """The run of one results file, as of `load`; of a judgement's file the run that was judged.

    Raises:
        CulturevalError: It is not a results file of LightEval, or its section `cultureval` cannot be read.
    """
    return load(file, strict=True)[0]


def runs_of(saved: Iterable[SavedTask]) -> dict[Path, Run]:
    """The runs of saved tasks by their results files, each read and checked once; without files that are missing."""
    saved = list(saved)
    found = {file: read_run(file) for file in {one.results_file for one in saved} if file.is_file()}
    return dict(zip(found, with_older_of(found.values(), saved), strict=False))


def with_older_of(runs: Iterable[Run], saved: Iterable[SavedTask], read: Callable[[Path], Run] = read_run) -> list[Run]:
    """`with_older` of the runs of saved tasks, and behind them of older ones; one that cannot be read is left out."""
    runs = list(runs)
    older = []
    for file in {file for one in saved for file in one.older} - {run.file for run in runs}:
        with suppress(CulturevalError):
            older += [read(file)] if file.is_file() else []
    return with_older([*runs, *older])


def newest_runs(runs: Sequence[Run]) -> list[tuple[str, Run]]:
    """The newest run of each model in each output folder, with the model's name as the page tells it from others."""
    facts = facts_of_runs(runs)
    newest = {(run.file.parent, run.model, facts[run.file]): run for run in sorted(runs, key=lambda run: run.date)}
    found = sorted(newest.values(), key=lambda run: (run.date, run.model), reverse=True)
    return [*zip(_names(found, facts), found, strict=True)]


def _names(runs: Sequence[Run], facts: Mapping[Path, ModelFacts]) -> list[str]:
    """The models' names, with what tells each from others of the name."""
    told = told_behind([(run.model, facts[run.file]) for run in runs])
    return [f"{run.model} ({one})" if one else run.model for run, one in zip(runs, told, strict=True)]


def _with_relatives(files: Sequence[Path]) -> list[Path]:
    """The files; of a single one also the judgements of its run, or the run that it judged."""
    if len(files) > 1 or output_folder(files[0]) is None:
        return list(files)
    (file,) = files
    beside = [other for other in sorted(file.parent.glob("results_*.json")) if other != file]
    dates = _judged_dates(judged_details(file)) or {date_of(file)}
    later = {one for one in beside if date_of(one) > min(dates) and dates & _judged_dates(judged_details(one))}
    return [file, *(one for one in beside if date_of(one) in dates or one in later)]


def _judged_dates(details: Iterable[str]) -> set[str]:
    """The dates of the runs whose details were judged."""
    return {Path(name).parent.name for name in details}


def _with_judgements(runs: Mapping[Path, Run]) -> list[Run]:
    """The runs that are no judgements, each with the scores of its judgements, those without verdicts last.

    Where the run is not there, the judgement of most rows stands for it, with the scores of the others.
    """
    added: dict[Path, list[Run]] = {}
    for run in sorted(runs.values(), key=lambda run: (bool(run.unchecked), run.date)):
        for date in _judged_dates(judged_of(run.content)):
            added.setdefault((run.file.parent / f"results_{date}.json").resolve(), []).append(run)
    for base in added.keys() - runs.keys():
        judgements = added.pop(base)
        first = max(judgements, key=lambda run: sum(task.rows for task in run.record.tasks.values()))
        added[first.file.resolve()] = [run for run in judgements if run is not first]
    merged = {id(run) for base, judgements in added.items() if base in runs for run in judgements}
    return [reduce(_judged, added.get(file, ()), run) for file, run in runs.items() if id(run) not in merged]


def _alone(judgement: Run) -> Run:
    """A judgement that stands for its run, which is gone."""
    return replace(judgement, alone=dict.fromkeys(judgement.record.tasks, judged_of(judgement.content)[0]))


def _judged(run: Run, judgement: Run) -> Run:
    """A run with what a later judgement adds: the judges' scores of its tasks, never another score."""
    scores: dict[str, Mapping[str, float | None]] = dict(run.scores)
    tasks = dict(run.record.tasks)
    if judged_of(run.content):  # it stands for its run, which is gone
        scores = dict(judgement.scores) | scores
        tasks = judgement.record.tasks | tasks
    unverified = judgement.unchecked.keys() - run.unchecked.keys()
    added = {
        task: added_scores(scores[task], values, tasks[task].rows if task in tasks else 0, task in unverified)
        for task, values in judgement.scores.items()
        if task in scores
    }
    rejudged = {task: why for task, values in added.items() if (why := told_otherwise(scores[task], values))}
    for name, values in added.items():
        scores[name] = {**scores[name], **values}
        known, later = tasks.get(name), judgement.record.tasks.get(name)
        if known and later and values:
            changes = {field: getattr(later, field) for field in ("verdicts_reused", "verdicts_reused_since")}
            changes["scored"] = known.scored | {one: count for one, count in later.scored.items() if one in values}
            left_out = tuple(one for one in known.left_out if one not in values)
            tasks[name] = known.model_copy(update={**changes, "left_out": left_out})
    left = [(one, task.suite) for task in tasks.values() for one in task.left_out]
    unjudged = {
        judge: why
        for judge, why in run.record.unjudged.items()
        if any(is_of_judge(one, judge, suite) for one, suite in left)
    }
    places = [(name, task) for task, values in added.items() for name in values]
    new = [one for one in judgement.record.signatures if any(signs(one, *place) for place in places)]
    left_places = [(name, task) for task in tasks for name in scores.get(task, {}) if name not in added.get(task, {})]
    staying = {one.group for one in run.record.signatures if any(signs(one, *place) for place in left_places)}
    replaced = {one.group for one in new} - staying  # else two judges of one name have scored a task each
    old = [one for one in run.record.signatures if one.group not in replaced]
    signatures = {(one.group, one.text): one for one in (*old, *new)}
    changed = {"tasks": tasks, "unjudged": unjudged, "signatures": tuple(signatures.values())}
    kept = [claim for claim in run.claims if claim.metric not in added.get(claim.task, {})]
    claims = [claim for claim in judgement.claims if claim.metric in added.get(claim.task, {})]
    return replace(
        run,
        scores=scores,
        record=run.record.model_copy(update=changed),
        claims=(*kept, *claims),
        judgements=(*run.judgements, *([judgement.file] if places or not judgement.unchecked else ())),
        rejudged={**run.rejudged, **rejudged},
        unchecked={task: why for task, why in judgement.unchecked.items() if added.get(task)} | dict(run.unchecked),
    )


def read_file(file: Path) -> Run:
    """What one results file says, without its judgements and unchecked.

    Raises:
        CulturevalError: It cannot be read.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8-sig"), parse_int=_whole_number)
    except OSError as error:
        raise CulturevalError(f"{file} cannot be read: {described(error)}.") from error
    except (ValueError, RecursionError) as error:
        remedy = "If it was half written, move it and the run's details out of the folder to leave the run out."
        raise CulturevalError(f"{file} cannot be read: {described(error)}. {remedy}") from error
    try:
        return run_of(content, file)
    except CulturevalError as error:
        raise CulturevalError(f"{file}: {error}") from error


def run_of(content: Any, file: Path) -> Run:
    """The run of a results file's content.

    Args:
        content: In LightEval's format, with our section or without.
        file: Where it was read; its name holds the date.

    Raises:
        CulturevalError: The content is of another format, or of a newer version.
    """
    general = content.get("config_general") if isinstance(content, Mapping) else None
    if not isinstance(general, Mapping) or not isinstance(content.get("results"), Mapping):
        raise CulturevalError("it is no results file of LightEval: it lacks `config_general` or `results`.")
    return Run(
        file=file,
        model=model_of(content, file) or "?",
        date=date_of(file),
        scores={str(task): _scores(str(task), values) for task, values in content["results"].items()},
        record=_record(content, general),
        content=content,
    )


def scores_table(runs: Iterable[Run]) -> "pandas.DataFrame":
    """The scores of runs as a long table: a row for each run, task or average, and metric.

    Args:
        runs: As `load` returns them.

    Returns:
        The columns of `COLUMNS`: `model` is as `show` names it, with what tells it from others of the name, `n` the
        number of items that the score is of, as in all views (rows, or items of several rows), `coverage` their share
        of all that were asked, `signature` that of the task's group, with the judge's of a judge's score, `warnings`
        what a reader of the score must know; an average's `n` is that of its tasks; metrics that do not apply to a task
        have none.
    """
    import pandas

    runs = list(runs)
    named = zip(_names(runs, facts_of_runs(runs)), runs, strict=True)
    table = pandas.DataFrame([row for name, run in named for row in _rows(name, run)], columns=list(COLUMNS))
    return table.astype(dict.fromkeys(("value", "stderr"), float))  # also where none has any


def _rows(name: str, run: Run) -> Iterator[tuple[Any, ...]]:
    suites = {record.group: record.suite for record in run.record.tasks.values()}
    for task, values in run.scores.items():
        group = task.partition("|")[0].partition(":")[0]
        warnings = " ".join(task_warnings(run, task))
        signed = run.signature_of(task)
        for metric, value in values.items():
            if metric.endswith("_stderr") and metric.removesuffix("_stderr") in values:
                continue
            about = (name, run.date, suites.get(group), group, task, metric, value, run.stderr(task, metric))
            yield (*about, *count_of(run, task, metric), _signature(run, signed, task, metric), warnings, str(run.file))


def _signature(run: Run, signed: SignatureRecord | None, task: str, metric: str) -> str | None:
    """The line of a score: its group's, and of a judge's score that of the judge."""
    text, told = (signed.text, str(signed.fields.get(JUDGES) or "")) if signed else ("", "")
    return "|".join(filter(None, [text, judges_of(run, task, metric, told)])) or None


def _whole_number(digits: str) -> int:
    """Of a JSON file; what no computer word holds is refused, since it cannot become a float."""
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _scores(task: str, values: Any) -> dict[str, float | None]:
    if not isinstance(values, Mapping):
        raise CulturevalError(f"the results of {task!r} are not a mapping of metrics.")
    for metric, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float | None):
            raise CulturevalError(f"the value of {metric!r} of {task!r} is {value!r}, not a number.")
        if value is not None and MOST < abs(value) < math.inf:
            raise CulturevalError(f"the value of {metric!r} of {task!r} is {value!r}, which is no score.")
    return {metric: None if value is None or not math.isfinite(value) else value for metric, value in values.items()}


def _record(content: Mapping[str, Any], general: Mapping[str, Any]) -> RunRecord:
    section, configs = content.get(SECTION), content.get("config_tasks")
    if section is None:
        try:
            records = task_records(configs if isinstance(configs, Mapping) else {}, general.get("max_samples"))
        except (ValidationError, AttributeError, TypeError) as error:
            raise CulturevalError(f"its `config_tasks` or `max_samples` cannot be read: {described(error)}.") from error
        return RunRecord(schema=0, tasks=records)
    version = section.get("schema") if isinstance(section, Mapping) else None
    if isinstance(version, int) and version > SCHEMA:
        raise CulturevalError(
            f"its section `{SECTION}` has version {version}, and this cultureval reads up to {SCHEMA}: update it."
        )
    try:
        record = RunRecord.model_validate(section)
    except ValidationError as error:
        raise CulturevalError(
            f"its section `{SECTION}` cannot be read: {wrong_settings(error, values=True)}."
        ) from error
    if other := next((name for name, task in record.tasks.items() if task.task != name), None):
        told = f"its section `{SECTION}` has {record.tasks[other].task!r} under the name of {other!r}"
        raise CulturevalError(f"{told}: it was changed. Its `tasks` need the record of each task under its own name.")
    return record.model_copy(update={"tasks": {name: _as_catalogued(task) for name, task in record.tasks.items()}})


def _as_catalogued(record: TaskRecord) -> TaskRecord:
    """The record with the catalogue's headline as its first metric and its place there, whatever it says itself."""
    task = all_tasks().get(record.task.partition("|")[0])
    changed = {field: getattr(task, field) for field in PLACE} if task else {}
    changed["metrics"] = tuple(dict.fromkeys([*filter(None, [headline_of(record.task)]), *record.metrics]))
    same = all(getattr(record, field) == value for field, value in changed.items())
    return record if same else record.model_copy(update=changed)
