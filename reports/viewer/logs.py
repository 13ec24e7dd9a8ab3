"""Inspect's logs of saved runs: one a task, with a sample for each row of its details."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from cultureval.reports.item_fields import fields_of_items
from cultureval.reports.leaderboard.assets import file_name
from cultureval.reports.viewer.samples import Maker, plain_text
from cultureval.runs.files import date_of, model_folder
from cultureval.runs.loading import Run, load
from cultureval.runs.rows import Row, headline_of, judged_metrics, rows_in_parts
from cultureval.runs.scores import Score
from cultureval.runs.warnings import warnings
from cultureval.runtime.errors import CulturevalError, shown_names
from cultureval.runtime.patches.inspect_ai import write_log
from cultureval.runtime.progress import progressing
from cultureval.tasks.catalogue import is_gated, name_and_shots

if TYPE_CHECKING:
    from inspect_ai.log import EvalResults, EvalSample, EvalSpec

NAME = 200  # letters of a name


@dataclass(frozen=True)
class TaskLog:
    """The log of one task of a run.

    Attributes:
        name: Its path in the folder of logs, ASCII.
        task: The task with `|k`.
        model: The model's folder of the run.
        date: Of the results.
        gated: Whether its data may not be passed on.
        written: Whether it is there: not where gated ones were to be left out.
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
        folder: Of the logs.
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
        log = TaskLog(
            *(f"{file_name(run.name)}/{file_name(name)}.eval", name, model_folder(file) or run.model, date_of(file)),
            *(secret, gated or not secret),
        )
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
    parts = rows_in_parts(run.details[task])
    first = next(parts, [])
    headline = headline_of(task)
    maker = Maker(task, run.model, headline, any(row["doc"].get("images") for row in first))
    known = run.scores.get(task, {})
    scores = {name: known[name] for name in sorted(known, key=lambda name: name != headline)}
    when = _when(run, task)
    write_log(
        file,
        _spec(run, task, when, maker.pictures),
        EvalStats(started_at=when, completed_at=when),
        _samples(maker, run.details[task], chain([first], parts), judged_metrics(judgements)),
        lambda count: _results(scores, count),
    )


def _address_names(names: Iterable[str]) -> list[str]:
    """Names of rows that are safe in an address and in a zip file, each another, as the viewer has them."""
    found: dict[str, None] = {}
    for name in names:
        safe = address = re.sub(r"[^\w.-]+", "-", name[:64]).strip("-.") or "item"
        number = 2
        while address in found:
            address, number = f"{safe}-{number}", number + 1
        found[address] = None
    return list(found)


def _samples(
    maker: Maker, details: Path, parts: Iterator[list[Row]], judged: Mapping[str, Row]
) -> "Iterator[EvalSample]":
    """The samples of all rows, each with what judges made of it later."""
    names = list(fields_of_items(details, ()).index)
    pairs = zip(names, _address_names(names), strict=True)
    for place, (pair, row) in enumerate(zip(pairs, chain.from_iterable(parts), strict=True)):
        yield maker.sample(place, pair, row, judged.get(pair[0], {}))


def _results(scores: Mapping[str, Score], count: int) -> "EvalResults":
    from inspect_ai.log import EvalMetric, EvalResults, EvalScore

    found = []
    for name, score in scores.items():
        values = {"mean": score.value} | ({} if score.error is None else {"stderr": score.error})
        metrics = {key: EvalMetric(name=key, value=value) for key, value in values.items()}
        shown = plain_text(name, NAME)
        numbers = {"scored_samples": score.n, "unscored_samples": score.asked - score.n}
        found.append(EvalScore(name=shown, scorer=shown, metrics=metrics, **numbers))
    return EvalResults(total_samples=count, completed_samples=count, scores=found)


def _spec(run: Run, task: str, when: str, pictures: bool) -> "EvalSpec":
    from inspect_ai.log import EvalConfig, EvalDataset, EvalSpec
    from inspect_ai.viewer import ViewerConfig

    record = run.record.tasks.get(task)
    about = {"run": date_of(run.files[task]), "made by": "cultureval view"}
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
    """The date of a run's results as Inspect writes it; the file's where it is none."""
    date = re.sub(r"T(\d\d)-(\d\d)-", r"T\1:\2:", date_of(run.files[task]))
    try:
        return datetime.fromisoformat(date).replace(tzinfo=UTC).isoformat()
    except ValueError:
        return datetime.fromtimestamp(run.files[task].stat().st_mtime, UTC).isoformat()
