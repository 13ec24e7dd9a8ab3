"""Scores of submission files in a benchmark's official format, as a results file like that of any other run."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cultureval.runs.record import ModelRecord, TaskRecord
from cultureval.runs.recording import run_record
from cultureval.runs.signature import signature_record
from cultureval.runs.task_records import task_records
from cultureval.runs.writing import content_of_tasks, date_of_now, write_results
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.signatures import combined_hash, installed_versions
from cultureval.tasks.catalogue import all_tasks


@dataclass(frozen=True)
class ScoredTask:
    """The scores of one task of a submission.

    Attributes:
        scores: Metric -> value, as the task's metrics in a run, nan if undefined; `<metric>_stderr` is the standard
            error.
        rows: Records of the gold file that were scored.
        items: Units that the standard errors count, such as images; None: the rows.
        scored: Metric -> rows that have a score of it, as of `TaskRecord`; likewise `counted`.
        unparsable: Rows without an answer that can be read.
        notes: What must be known of the submission, a sentence each.
    """

    scores: Mapping[str, float]
    rows: int
    items: int | None = None
    scored: Mapping[str, int] = field(default_factory=dict)
    counted: Mapping[str, int] = field(default_factory=dict)
    unparsable: int = 0
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class ScoredSubmissions:
    """What a scorer of submission files returns.

    Attributes:
        text: What is printed.
        submissions: For each submission the files that hold it, and the scores of each task by its name in `cultureval
            tasks`.
        problems: What could not be scored, a sentence each; told after the scores, as errors.
    """

    text: str
    submissions: Sequence[tuple[Sequence[Path], Mapping[str, ScoredTask]]]
    problems: Sequence[str] = ()


def save_submissions(
    scored: ScoredSubmissions, gold: Path, output_dir: Path, started: float, name: str | None = None
) -> list[Path]:
    """Writes a results file for each scored submission.

    Args:
        gold: The gold file, or a folder of them.
        started: When the command began, in seconds since 1970.
        name: Of the model; None: that of the submission's first file or folder.

    Raises:
        CulturevalError: One name for several submissions, or the scorer names a task that there is not.
    """
    if name and len(scored.submissions) > 1:
        raise CulturevalError(f"--model-name names one submission, and there are {len(scored.submissions)}.")
    named = {task for _, tasks in scored.submissions for task in tasks}
    if unknown := named - all_tasks().keys():
        raise CulturevalError(f"The scorer returned scores of {', '.join(sorted(unknown))}, which is no task.")
    written = []
    for files, tasks in scored.submissions:
        model, version = _safe_name(name or files[0].resolve().stem), _content_hash(files)
        about = {"files": [str(path) for path in files]}
        made = ModelRecord(backend="submission files", version=version, settings=about)
        results = {f"{task}|0": dict(one.scores) for task, one in tasks.items()}
        configs = {f"{task}|0": {"name": task, "effective_num_docs": one.rows} for task, one in tasks.items()}
        known = task_records(configs, None)
        records = {f"{task}|0": _record(known[f"{task}|0"], one, gold) for task, one in tasks.items()}
        fields = {"gold": f"{gold.name}@{_content_hash([gold])}", "submission": version}
        fields |= installed_versions(("cultureval",))
        signatures = [
            signature_record(f"{one.group}|0", task=f"{one.task}/submission", rows=one.rows, **fields)
            for one in records.values()
        ]
        content = content_of_tasks(results, {"model_name": model}, configs)
        record = run_record(started, records, signatures, made)
        written.append(write_results(output_dir, model, date_of_now(), content, record))
    return written


def _record(known: TaskRecord, one: ScoredTask, gold: Path) -> TaskRecord:
    metrics = tuple(name for name in one.scores if not name.endswith("_stderr"))
    changed: dict[str, Any] = {"metrics": metrics, "rows": one.rows, "items": one.items or one.rows}
    changed |= {"scored": {name: count for name, count in one.scored.items() if count < one.rows}}
    changed |= {"counted": dict(one.counted), "unparsable": one.unparsable, "notes": (*known.notes, *one.notes)}
    return known.model_copy(update=changed | {"form": "gold file", "source": str(gold)})


def _safe_name(name: str) -> str:
    """The name as a folder inside the output folder."""
    return "/".join(part for part in name.split("/") if part not in ("", "..", ".")) or "submission"


def _content_hash(paths: Sequence[Path]) -> str:
    """Hash of the files, and of the JSON files of the folders."""
    files = [file for path in paths for file in (sorted(path.rglob("*.json")) if path.is_dir() else [path])]
    return combined_hash(hashlib.sha256(file.read_bytes()).hexdigest() for file in files)
