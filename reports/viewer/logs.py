"""Inspect's logs of saved runs: a log for each task, with a sample for each row of its details."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cultureval.reports.leaderboard.assets import file_name
from cultureval.reports.viewer.samples import Maker, plain_text
from cultureval.runs.files import date_of, model_folder
from cultureval.runs.loading import Run, load
from cultureval.runs.rows import headline_of, names_of, rows_of
from cultureval.runs.scores import Score
from cultureval.runs.warnings import warnings
from cultureval.runtime.errors import CulturevalError, shown_names
from cultureval.runtime.patches.inspect_ai import write_log
from cultureval.runtime.progress import progressing
from cultureval.tasks.catalogue import group_of, is_gated, name_and_shots

if TYPE_CHECKING:
    from inspect_ai.log import EvalResults, EvalSpec

NAME = 200  # letters of a name


class TaskLog(NamedTuple):
    """The log of a task (with `|k`) of a run: `name` is its path in the folder of logs, `model` the model's folder.

    `gated`: its data may not be published; `written`: whether the log exists.
    """

    name: str
    task: str
    model: str
    date: str
    gated: bool
    written: bool


def write_logs(paths: Sequence[Path], folder: Path, task: str | None = None, gated: bool = True) -> list[TaskLog]:
    """Writes the logs of the newest details of each run and task, except logs that are newer.

    Args:
        paths: Output folders, folders in them, or results files.
        task: Only this task, or group of tasks; `|k` may follow.
        gated: Whether logs of gated data are written.

    Raises:
        CulturevalError: There are no such details, or some cannot be read.
    """
    found = [(run, name) for run in load(*paths).runs for name in run.details]
    chosen = [
        (run, name)
        for run, name in found
        if task is None or task in (name, name_and_shots(name)[0]) or name.startswith(f"{task}:")
    ]
    if not chosen:
        there = shown_names(sorted({name_and_shots(name)[0] for _, name in found}))
        raise CulturevalError(f"{paths[0]} has no details of {task or 'any task'}. It has {there or 'none at all'}.")
    logs = []
    for run, name in progressing(chosen, len(chosen), "Inspect's logs", "task"):
        record, file = run.record.tasks.get(name), run.files[name]
        secret = is_gated(name_and_shots(name)[0], record.source if record else "")
        path, model = f"{file_name(run.name)}/{file_name(name)}.eval", model_folder(file) or run.model
        log = TaskLog(path, name, model, date_of(file), secret, gated or not secret)
        if log.written:
            _write(run, name, folder, folder / log.name)
        logs.append(log)
    return logs


def _write(run: Run, task: str, folder: Path, file: Path) -> None:
    from inspect_ai.log import EvalStats

    judgements = run.judgements.get(task, [])
    newest = max(saved.stat().st_mtime for saved in (run.details[task], run.files[task], *judgements))
    if file.is_file() and file.stat().st_mtime > newest:
        return
    if folder.is_symlink() or file.parent.is_symlink():  # its target may belong to another program
        raise CulturevalError(f"{file.parent} is, or lies in, a symbolic link: name another folder.")
    file.parent.mkdir(parents=True, exist_ok=True)
    rows, headline = rows_of(run.details[task], judgements), headline_of(task)
    when = _when(run, task)
    maker = Maker(run.model, headline, any(row["doc"].get("images") for row in rows))
    addressed = zip(names_of(rows), _addresses(names_of(rows)), rows, strict=True)
    samples = (maker.sample(place, *entry) for place, entry in enumerate(addressed))
    stats, spec = EvalStats(started_at=when, completed_at=when), _spec(run, task, when, maker.pictures)
    write_log(file, spec, stats, samples, partial(_results, run.scores.get(task, {}), headline))


def _addresses(names: Iterable[str]) -> list[str]:
    """Distinct names of rows that are safe in an address and in a zip file."""
    found: dict[str, None] = {}
    for number, name in enumerate(names, 1):
        safe = re.sub(r"[^\w.-]+", "-", name[:64]).strip("-.") or "item"
        found[safe if safe not in found else f"{safe}--{number}"] = None
    return list(found)


def _results(scores: Mapping[str, Score], headline: str, count: int) -> "EvalResults":
    from inspect_ai.log import EvalMetric, EvalResults, EvalScore

    found = []
    for name in sorted(scores, key=lambda name: name != headline):
        score, shown = scores[name], plain_text(name, NAME)
        values = {"mean": score.value} | ({} if score.error is None else {"stderr": score.error})
        metrics = {key: EvalMetric(name=key, value=value) for key, value in values.items()}
        numbers = {"scored_samples": score.n, "unscored_samples": score.asked - score.n}
        found.append(EvalScore(name=shown, scorer=shown, metrics=metrics, **numbers))
    return EvalResults(total_samples=count, completed_samples=count, scores=found)


def _spec(run: Run, task: str, when: str, pictures: bool) -> "EvalSpec":
    from inspect_ai.log import EvalConfig, EvalDataset, EvalSpec
    from inspect_ai.viewer import ViewerConfig

    record = run.record.tasks.get(task)
    about = {"run": date_of(run.files[task]), "made by": "cultureval show --web"}
    name, shots = name_and_shots(task)
    group = f"{group_of(name)}|{shots}"
    if signed := [item.text for item in run.record.signatures if item.group == group]:
        about["signature"] = signed[0]
    if found := warnings(run, [task]):
        about["warnings"] = "\n".join(item.sentence for item in found)
    identity = hashlib.sha256(f"{run.files[task]} {task}".encode("utf-8", "replace")).hexdigest()
    return EvalSpec(
        eval_id=identity[:22],
        run_id=identity[22:44],
        task_id=identity[42:],
        created=when,
        task=plain_text(task, NAME),
        dataset=EvalDataset(name=plain_text(record.source, NAME) if record and record.source else None),
        model=plain_text(run.model, NAME),
        config=EvalConfig(),
        packages={plain_text(name, NAME): plain_text(version, NAME) for name, version in run.record.versions.items()},
        metadata={name: plain_text(value, 4000) for name, value in about.items()},
        # The viewer shows images only in trusted logs; their texts are escaped. Other logs are plain text.
        viewer=ViewerConfig(trust_content=None if pictures else False),
    )


def _when(run: Run, task: str) -> str:
    """The date of a run's results in ISO format; the file's own date if its name has none."""
    date = re.sub(r"T(\d\d)-(\d\d)-", r"T\1:\2:", date_of(run.files[task]))
    try:
        return datetime.fromisoformat(date).replace(tzinfo=UTC).isoformat()
    except ValueError:
        return datetime.fromtimestamp(run.files[task].stat().st_mtime, UTC).isoformat()
