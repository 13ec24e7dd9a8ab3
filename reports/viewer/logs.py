"""Inspect's logs of saved runs: one a task, with a sample for each row of its details."""

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
from cultureval.tasks.catalogue import is_gated, name_and_shots

if TYPE_CHECKING:
    from inspect_ai.log import EvalResults, EvalSpec

NAME = 200  # letters of a name


class TaskLog(NamedTuple):
    """The log of one task (with `|k`) of a run: its path in the folder of logs, the model's folder, the run's date.

    `gated`: its data may not be passed on; `written`: it is there, since gated ones were not to be left out.
    """

    name: str
    task: str
    model: str
    date: str
    gated: bool
    written: bool


def write_logs(paths: Sequence[Path], folder: Path, task: str | None = None, gated: bool = True) -> list[TaskLog]:
    """Writes the logs of the newest details of each run and task; those that are newer than these stay.

    Args:
        paths: Output folders, folders in them, or results files.
        task: Only this task, or group of tasks; `|k` may follow.
        gated: Whether tasks are written whose data may not be passed on.

    Raises:
        CulturevalError: There are no such details, or some cannot be read.
    """
    found = [(run, name) for run in load(*paths).runs for name in run.details]
    wanted = [
        (run, name)
        for run, name in found
        if task is None or task in (name, name_and_shots(name)[0]) or name.startswith(f"{task}:")
    ]
    if not wanted:
        there = shown_names(sorted({name_and_shots(name)[0] for _, name in found}))
        raise CulturevalError(f"{paths[0]} has no details of {task or 'any task'}. It has {there or 'none at all'}.")
    logs = []
    for run, name in progressing(wanted, len(wanted), "Inspect's logs", "task"):
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
    newest = max(one.stat().st_mtime for one in (run.details[task], run.files[task], *judgements))
    if file.is_file() and file.stat().st_mtime > newest:
        return
    if folder.is_symlink() or file.parent.is_symlink():  # what lies behind one may be anybody's
        raise CulturevalError(f"{file.parent} is a link, or lies behind one: name another folder.")
    file.parent.mkdir(parents=True, exist_ok=True)
    rows, headline = rows_of(run.details[task], judgements), headline_of(task)
    when = _when(run, task)
    maker = Maker(run.model, headline, any(row["doc"].get("images") for row in rows))
    named = zip(names_of(rows), _addresses(names_of(rows)), rows, strict=True)
    samples = (maker.sample(place, *one) for place, one in enumerate(named))
    stats, spec = EvalStats(started_at=when, completed_at=when), _spec(run, task, when, maker.pictures)
    write_log(file, spec, stats, samples, partial(_results, run.scores.get(task, {}), headline))


def _addresses(names: Iterable[str]) -> list[str]:
    """Names of rows that are safe in an address and in a zip file, each another, as the viewer has them."""
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
    group = f"{name.partition(':')[0]}|{shots}"
    if signed := [one.text for one in run.record.signatures if one.group == group]:
        about["signature"] = signed[0]
    if told := warnings(run, [task]):
        about["warnings"] = "\n".join(one.sentence for one in told)
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
        # Plain text; with images, which are shown only in logs that the viewer trusts, all texts are escaped.
        viewer=ViewerConfig(trust_content=None if pictures else False),
    )


def _when(run: Run, task: str) -> str:
    """The date of a run's results as Inspect writes it; the file's where its name has none."""
    date = re.sub(r"T(\d\d)-(\d\d)-", r"T\1:\2:", date_of(run.files[task]))
    try:
        return datetime.fromisoformat(date).replace(tzinfo=UTC).isoformat()
    except ValueError:
        return datetime.fromtimestamp(run.files[task].stat().st_mtime, UTC).isoformat()
