"""Scored submission files in official formats, written as runs, so that every view reads them."""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from cultureval.metrics.declared import DEN
from cultureval.runs.record import ModelRecord, TaskRecord, task_records
from cultureval.runs.recording import run_record
from cultureval.runs.scores import Score, task_scores
from cultureval.runs.signature import signature_record
from cultureval.runs.writing import save_run
from cultureval.runtime.errors import CulturevalError, did_you_mean
from cultureval.runtime.signatures import combined_hash, installed_versions
from cultureval.tasks.catalogue import all_suites, all_tasks

CODE = ("humaneval", "mbpp")  # formats of solutions, as EvalPlus writes them
Row = Mapping[str, Any]
Metric = Mapping[str, float | None]


class ScoredRow(NamedTuple):
    """One row of a gold file that was scored.

    Attributes:
        id: Its name, that of the row in a run of the task.
        metric: As in a run's details: metric -> score or None; `<metric>_den` if the score's weight is not 1. A metric
            that is missing does not apply to the row.
        cluster: What it shares with other rows, such as its image; "": nothing.
        answer: The submitted answer, as text.
    """

    id: str
    metric: Metric
    cluster: str = ""
    answer: str = ""


@dataclass(frozen=True)
class ScoredTask:
    """The scored rows of one task of a submission.

    Attributes:
        rows: Of the gold file, also those without an answer.
        notes: What must be known of the submission, a sentence each.
    """

    rows: Sequence[ScoredRow]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class ScoredSubmissions:
    """What a scorer of submission files returns.

    Attributes:
        text: What is printed.
        submissions: For each submission its files, and name in `cultureval tasks` -> scored task.
        problems: What could not be scored, a sentence each; printed as errors after the scores.
    """

    text: str
    submissions: Sequence[tuple[Sequence[Path], Mapping[str, ScoredTask]]]
    problems: Sequence[str] = field(default_factory=tuple)


def same_metrics(metrics: Sequence[Metric]) -> list[dict[str, float | None]]:
    """Gives all rows the same metrics: a metric that does not apply to a row is None with weight 0."""
    names = dict.fromkeys(name for metric in metrics for name in metric if not name.endswith(DEN))
    counted = [name for name in names if any(name not in metric or name + DEN in metric for metric in metrics)]
    return [
        {name: metric.get(name) for name in names}
        | {name + DEN: metric.get(name + DEN, 1.0 if name in metric else 0.0) for name in counted}
        for metric in metrics
    ]


def scores_of(task: str, groups: Mapping[str, Sequence[ScoredRow]]) -> dict[str, dict[str, Score]]:
    """The scores of groups of rows, computed as for a run.

    Args:
        task: Its name; it gives the metrics' ranges.
        groups: Name -> rows.

    Returns:
        Name of the group -> metric -> its score; without metrics that no row of the group has.
    """
    import pandas

    rows = [
        (name, task, metric, row.cluster or row.id, value * den, den, None)
        for name, members in groups.items()
        for row, found in zip(members, same_metrics([row.metric for row in members]), strict=True)
        for metric, value in found.items()
        if not metric.endswith(DEN) and value is not None
        for den in [found.get(metric + DEN, 1.0) or 0.0]
    ]
    frame = pandas.DataFrame(rows, columns=["run", "task", "metric", "cluster", "num", "den", "sums"])
    scores: dict[str, dict[str, Score]] = {name: {} for name in groups}
    for (name, _, metric), score in task_scores(frame).items():
        scores[name][metric] = score
    return scores


ScoreFiles = Callable[[Sequence[Path], Path, str | None], tuple[str, list[str]]]


def scorer_of(name: str, gold: Path | None) -> ScoreFiles:
    """The function that scores files of an official format, or outputs of a suite.

    Args:
        name: The format, or the suite.
        gold: The gold file of the format; None for outputs, which name it.

    Returns:
        (files, output folder, model's name or None) -> the text to print, and what could not be scored.

    Raises:
        CulturevalError: The format is unknown, or `gold` is missing or has no use.
    """
    with_outputs = {suite.name: suite for suite in all_suites().values() if suite.outputs}
    with_gold = {form: suite for suite in all_suites().values() if suite.submissions for form in suite.scorers()}
    if name in CODE:
        raise CulturevalError(f"{name}: only the command judges solutions: cultureval score {name} --pred FILE.jsonl")
    if name not in with_outputs | with_gold:
        known = [*CODE, *with_outputs, *with_gold]
        raise CulturevalError(f"There is no format {name!r}.{did_you_mean(name, known)} They are {', '.join(known)}.")
    if name in with_gold:
        if gold is None:
            raise CulturevalError(f"{name} needs the gold file: --gold, or `gold`.")
        return partial(score_submissions, with_gold[name].scorers()[name], gold)
    if gold is not None:
        raise CulturevalError(f"{name} takes no gold file, which its outputs name: leave --gold or `gold` out.")
    return lambda files, folder, _: (with_outputs[name].part("outputs")(files, folder), [])


def score_submissions(
    scorer: Callable[[Path, Sequence[Path], Path], ScoredSubmissions],
    gold: Path,
    pred: Sequence[Path],
    output_dir: Path,
    model_name: str | None,
) -> tuple[str, list[str]]:
    """Scores submission files and saves them as runs.

    Returns:
        The text to print, and a sentence for each submission that could not be scored.
    """
    started = time.time()
    scored = scorer(gold, pred, output_dir)
    files = save_submissions(scored, gold, output_dir, started, model_name)
    results = "\n".join(f"Results: {file.resolve()}" for file in files)
    return f"{scored.text}\nTables: {output_dir.resolve()}\n{results}", list(scored.problems)


def save_submissions(
    scored: ScoredSubmissions, gold: Path, output_dir: Path, started: float, name: str | None = None
) -> list[Path]:
    """Writes details and a results file for each scored submission; returns the results files.

    Args:
        gold: The gold file, or a folder of them.
        started: When the command began, in seconds since 1970.
        name: Of the model; None: that of the submission's first file or folder.

    Raises:
        CulturevalError: One name for several submissions, or the scorer returns an unknown task.
    """
    if name and len(scored.submissions) > 1:
        raise CulturevalError(f"--model-name names one submission, and there are {len(scored.submissions)}.")
    names = {task for _, tasks in scored.submissions for task in tasks}
    if unknown := names - all_tasks().keys():
        raise CulturevalError(f"The scorer returned scores of {', '.join(sorted(unknown))}, which is no task.")
    written = []
    for files, tasks in scored.submissions:
        version = content_hash(files)
        made = ModelRecord(
            backend="submission files", version=version, settings={"files": [str(path) for path in files]}
        )
        records = {f"{task}|0": _record(task, found, gold) for task, found in tasks.items()}
        fields = {"gold": f"{gold.name}@{content_hash([gold])}", "submission": version}
        fields |= installed_versions(("cultureval",))
        signatures = [
            signature_record(f"{record.group}|0", task=f"{record.task}/submission", rows=record.rows, **fields)
            for record in records.values()
        ]
        details = {f"{task}|0": _details(f"{task}|0", found.rows) for task, found in tasks.items()}
        model = safe_name(name or files[0].resolve().stem)
        written.append(save_run(output_dir, model, details, run_record(started, records, signatures, made)).file)
    return written


def _record(task: str, scored: ScoredTask, gold: Path) -> TaskRecord:
    (record,) = task_records({f"{task}|0": {"effective_num_docs": len(scored.rows)}}, None).values()
    return record.model_copy(update={"notes": (*record.notes, *scored.notes), "source": str(gold)})


def _details(task: str, rows: Sequence[ScoredRow]) -> list[Row]:
    """The rows as details; texts of the gold file are not in them."""
    return [
        {
            "doc": {"query": "", "choices": [""], "gold_index": 0, "task_name": task, "id": row.id}
            | {"specific": {"id": row.id, "cluster": row.cluster}},
            "metric": metric,
            "model_response": {"text": [row.answer]},
        }
        for row, metric in zip(rows, same_metrics([row.metric for row in rows]), strict=True)
    ]


def safe_name(name: str) -> str:
    """A model's name as a folder inside the output folder."""
    safe = "/".join(part for part in name.split("/") if part not in ("..", "."))
    return safe if safe.strip("/") else "submission"


def content_hash(paths: Sequence[Path]) -> str:
    """Hash of the files, and of the JSON files of the folders."""
    files = [file for path in paths for file in (sorted(path.rglob("*.json")) if path.is_dir() else [path])]
    return combined_hash(hashlib.sha256(file.read_bytes()).hexdigest() for file in files)
