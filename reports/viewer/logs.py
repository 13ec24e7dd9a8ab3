"""Inspect's logs of saved runs: one a task, in the folder `inspect` beside `results` and `details`."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.reports.leaderboard.assets import file_name
from cultureval.reports.viewer.samples import Maker, plain_text
from cultureval.runs.files import SavedTask, derived_from, find_saved_tasks
from cultureval.runs.items import names_and_clusters
from cultureval.runs.load_runs import runs_of
from cultureval.runs.record import Run, TaskRecord
from cultureval.runs.rows import Row, address_names, headline_of, judged_metrics, key_of, rows_in_parts
from cultureval.runs.warnings import task_warnings
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.inspect_ai import write_log
from cultureval.runtime.progress import progressing
from cultureval.tasks.catalogue import is_gated

if TYPE_CHECKING:
    from inspect_ai.log import EvalResults, EvalSample, EvalSpec
    from inspect_ai.viewer import ViewerConfig

FOLDER = "inspect"
NAME = 200  # letters of a name
MOST_COLUMNS = 6  # of scores, in the list of answers
VERSION = 1  # of what a log holds; raised, logs of earlier versions are written again
_DATE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d)-(\d\d)-(\d\d(?:\.\d{1,6})?)")


@dataclass(frozen=True)
class TaskLog:
    """The log of one task of a run.

    Attributes:
        file: The log.
        name: Its path in a folder of logs, ASCII.
        task: The task with `|k`.
        model: Of the run.
        gated: Whether its data may not be passed on.
        dates: Of the run, and of what was derived from its details later.
    """

    file: Path
    name: str
    task: str
    model: str
    gated: bool
    dates: tuple[str, ...]


def write_logs(paths: Sequence[Path], task: str | None = None) -> list[TaskLog]:
    """Writes the logs of the newest details of each model and task; those that are up to date stay.

    Args:
        paths: Output folders, results files, folders of details or details files.
        task: Only this task, or group of tasks; `|k` may follow.

    Raises:
        CulturevalError: There are no details, or some cannot be read.
    """
    saved = find_saved_tasks(paths, task=task)
    runs = runs_of(saved)
    logs = []
    for one in progressing(saved, len(saved), "Inspect's logs", "task"):
        folder = f"{one.model} ({one.told})" if one.told else one.model
        file = one.root / FOLDER / file_name(folder) / f"{file_name(one.task)}.eval"
        logs.append(_write(one, file, f"{file_name(one.label)}/{file_name(one.task)}.eval", runs.get(one.results_file)))
    return logs


def _write(saved: SavedTask, file: Path, name: str, run: Run | None) -> TaskLog:
    from inspect_ai.log import EvalStats

    derived = derived_from(saved)
    record = run.record.tasks.get(saved.task) if run else None
    gated = is_gated(saved.task.partition("|")[0], record.source if record else "")
    log = TaskLog(file, name, saved.task, saved.model, gated, tuple(one.date for one in (saved, *derived)))
    made_from = _made_from(saved, derived, run)
    if _made_from_of(file) == made_from:
        return log
    rows = rows_in_parts(saved.file)
    first = next(rows, [])
    headline = headline_of(saved.task)
    maker = Maker(saved.task, saved.model_name, headline, any(row["doc"].get("images") for row in first))
    results = _scores_of(saved, run, headline)
    _make_folder(saved.root, file)
    write_log(
        file,
        _spec(saved, run, made_from, maker.pictures, list(results)),
        EvalStats(started_at=_when(saved), completed_at=_when(saved)),
        _samples(maker, names_and_clusters(saved.file)[0], chain([first], rows), judged_metrics(saved)),
        lambda count: _results(results, run.record.tasks.get(saved.task) if run else None, count),
    )
    return log


def _samples(
    maker: Maker, names: Sequence[str], parts: Iterable[list[Row]], judged: Mapping[tuple[str, str], Row]
) -> "Iterator[EvalSample]":
    """The samples of all rows, each with what judges made of it later."""
    pairs = list(zip(names, address_names(names), strict=True))
    for place, row in enumerate(chain.from_iterable(parts)):
        yield maker.sample(place, pairs[place], row, judged.get(key_of(row), {}))


def _make_folder(root: Path, file: Path) -> None:
    folder = file.parent
    for place in (file, *file.parents):
        if place == root:
            break
        if place.is_symlink():  # what lies behind one may be anybody's
            raise CulturevalError(f"{place} is a link, through which nothing is written: remove it.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise CulturevalError(f"{folder} cannot be a folder: a file of that name is in its place.") from error


def _made_from(saved: SavedTask, derived: Sequence[SavedTask], run: Run | None) -> str:
    """Changes with every file that a log is made of, and with what is told of its scores."""
    parts: list[Any] = [VERSION, saved.model_name]
    parts += [run.scores.get(saved.task), *task_warnings(run, saved.task)] if run else []
    for file in (saved.file, *(one.file for one in derived), *((run.file, *run.judgements) if run else ())):
        about = file.stat()
        parts.append([file.name, about.st_size, about.st_mtime_ns])
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _made_from_of(log: Path) -> str | None:
    """What an earlier log was made of; None where there is none that can be read."""
    from inspect_ai.log import read_eval_log

    if not log.is_file():
        return None
    try:
        about = read_eval_log(str(log), header_only=True).eval.metadata or {}
    except Exception:  # whatever its reader raises of a broken file, which is written again
        return None
    return about.get("made_from")


def _scores_of(saved: SavedTask, run: Run | None, headline: str) -> dict[str, tuple[float, float | None]]:
    """Metric -> score and standard error, the headline first."""
    found = {
        metric: (value, run.stderr(saved.task, metric))
        for metric, value in (run.scores.get(saved.task, {}) if run else {}).items()
        if run and value is not None and not metric.endswith("_stderr")
    }
    return {name: found[name] for name in sorted(found, key=lambda name: name != headline)}


def _results(scores: Mapping[str, tuple[float, float | None]], record: TaskRecord | None, count: int) -> "EvalResults":
    """The scores, each with how many samples it is of; refused ones are without an answer (`count` have one)."""
    from inspect_ai.log import EvalMetric, EvalResults, EvalScore

    found = []
    asked = count + (record.refused if record else 0)
    for name, (value, error) in scores.items():
        values = {"mean": value} | ({} if error is None else {"stderr": error})
        metrics = {key: EvalMetric(name=key, value=number) for key, number in values.items()}
        known = record if record and record.rows and name not in record.not_applicable else None
        scored = known.rows_with(name) if known else None
        numbers: dict[str, Any] = {"scored_samples": scored}
        numbers["unscored_samples"] = None if scored is None else max(asked - scored, 0)
        numbers["metadata"] = {"items": known.n_of(name)} if known else None  # of which several samples may be one
        found.append(EvalScore(name=plain_text(name, NAME), scorer=plain_text(name, NAME), metrics=metrics, **numbers))
    return EvalResults(total_samples=asked, completed_samples=count, scores=found)


def _spec(saved: SavedTask, run: Run | None, made_from: str, pictures: bool, metrics: Sequence[str]) -> "EvalSpec":
    from inspect_ai.log import EvalConfig, EvalDataset, EvalSpec

    record = run.record.tasks.get(saved.task) if run else None
    versions = run.record.versions if run else {}
    about = {"made_from": made_from, "run": saved.date, "made by": "cultureval view"}
    if run and (signed := run.signature_of(saved.task)):
        about["signature"] = signed.text
    if run and (warnings := task_warnings(run, saved.task)):
        about["warnings"] = "\n".join(map(str, warnings))
    identity = hashlib.sha256(f"{saved.root}\0{saved.model}\0{saved.date}\0{saved.task}".encode("utf-8", "replace"))
    return EvalSpec(
        eval_id=identity.hexdigest()[:22],
        run_id=identity.hexdigest()[22:44],
        task_id=identity.hexdigest()[42:],
        created=_when(saved),
        task=plain_text(saved.task, NAME),
        dataset=EvalDataset(name=plain_text(record.source, NAME) if record and record.source else None),
        model=plain_text(saved.model_name, NAME),
        config=EvalConfig(),
        packages={plain_text(name, NAME): plain_text(version, NAME) for name, version in versions.items()},
        metadata={name: plain_text(value, 4000) for name, value in about.items()},
        viewer=_viewer(pictures, metrics),
    )


def _viewer(pictures: bool, metrics: Sequence[str]) -> "ViewerConfig":
    """How the viewer shows a log: as plain text, or with images where it has some; then all texts are escaped."""
    from inspect_ai.viewer import TaskSamplesColumn, TaskSamplesView, ViewerConfig

    columns = [TaskSamplesColumn(id=name) for name in ("sampleId", "input", "target", "answer")]
    columns += [
        TaskSamplesColumn.score(plain_text(name, NAME), visible=place < MOST_COLUMNS)
        for place, name in enumerate(metrics)
    ]
    columns += [TaskSamplesColumn(id=name, visible=False) for name in ("sampleStatus", "tokens", "duration")]
    view = TaskSamplesView(name="answers", columns=columns)
    return ViewerConfig(trust_content=None if pictures else False, task_samples_view=view)


def _when(saved: SavedTask) -> str:
    """The run's date as Inspect writes it; the file's where it is none."""
    if found := _DATE.fullmatch(saved.date):
        try:
            return datetime.fromisoformat(":".join(found.groups())).replace(tzinfo=UTC).isoformat()
        except ValueError:
            pass
    return datetime.fromtimestamp(saved.file.stat().st_mtime, UTC).isoformat()
