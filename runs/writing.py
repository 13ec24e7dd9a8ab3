"""LightEval's file format of runs, and its writer for scores that LightEval's pipeline does not write.

An output folder has results/<model>/results_<date>.json and details/<model>/<date>/details_<task>_<date>.parquet.
"""

import errno
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.runs.record import RunRecord
from cultureval.runs.recording import record_of, section_of
from cultureval.runtime.rounding import without_nan
from cultureval.runtime.saving import summary_file
from cultureval.tasks.catalogue import OVERALL, is_gated, means_of_subsets, mixed_averages, name_and_shots
from cultureval.tasks.running import FinishedRun

if TYPE_CHECKING:
    import pyarrow
    from lighteval.pipeline import Pipeline

Scores = Mapping[str, Mapping[str, float | None]]


def date_of_now() -> str:
    """The current time as in the names of LightEval's files."""
    return datetime.now().isoformat(timespec="microseconds").replace(":", "-")


def write_results(root: Path, model: str, date: str, content: Mapping[str, Any], record: RunRecord) -> Path:
    """Write a results file; existing ones are not replaced.

    Args:
        date: Date of the run, also in the names of its details.
        content: In LightEval's format; undefined values (nan) of its `results` become null.
        record: Becomes the section `cultureval`.

    Raises:
        FileExistsError: There is a results file of that date.
    """
    folder = root / "results" / model.strip("/")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"results_{date}.json"
    content = {**content, "results": without_nan(content["results"])} | section_of(record)
    text = json.dumps(content, ensure_ascii=False, indent=2, default=str)
    if file.exists():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(file))
    with complete_or_absent(file) as part:
        part.write_text(text, encoding="utf-8")
    return file


@contextmanager
def complete_or_absent(file: Path) -> Iterator[Path]:
    """A context that yields the place to write a file, which moves to its name once it is whole."""
    part = file.with_name(f"{file.name}.part")
    try:
        yield part
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def write_summary(results_file: Path, text: str) -> Path:
    """Writes what is printed of a run beside its results file: summary_<date>.txt; returns that path."""
    file = summary_file(results_file)
    file.write_text(text + "\n", encoding="utf-8")
    return file


def content_of_tasks(
    scores: Mapping[str, Mapping[str, float | None]], model_config: Mapping[str, Any], configs: Mapping[str, Any]
) -> dict[str, Any]:
    """The content of the results file of a run outside LightEval's pipeline.

    Args:
        scores: Task name with `|k` -> its scores with their standard errors.
        model_config: The model's settings; `model_name` is its name.
        configs: Task name with `|k` -> its settings and counts.
    """
    model = model_config["model_name"]
    return {
        "config_general": {"lighteval_sha": "?", "model_name": model, "model_config": model_config},
        "results": scores,
        "versions": dict.fromkeys(scores, 0),
        "config_tasks": configs,
        "summary_tasks": {},
        "summary_general": {},
    }


def write_details(root: Path, model: str, date: str, task: str, rows: "pyarrow.Table") -> Path:
    """Writes the details of one task (with `|k`): rows with the columns `doc`, `metric`, `model_response`."""
    import pyarrow.parquet

    folder = root / "details" / model.strip("/") / date
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"details_{task}_{date}.parquet"
    with complete_or_absent(file) as part:
        pyarrow.parquet.write_table(rows, part)
    return file


def complete_results(run: FinishedRun, record: RunRecord) -> None:
    """Completes the results of a run, which are not yet written: undefined values, means, the record.

    Averages over tasks of ours that differ in kind are left out; so is that over all tasks, where all are ours.
    """
    scores = run.tracker.metrics_logger.metric_aggregated
    scores.update(without_nan({**scores, **means_of_subsets(scores)}))
    ours = len(record.tasks) == len(run.tasks)
    for name in mixed_averages(scores):
        if ours or name != OVERALL:
            del scores[name]
    run.tracker.sections |= section_of(record)
    run.tracker.withheld = {
        name for name, task in record.tasks.items() if is_gated(name_and_shots(name)[0], task.source)
    }


def complete_stock_run(pipeline: "Pipeline") -> None:
    """Adds our record to a run of LightEval's own pipeline before it saves; one without our tasks stays as it is."""
    tracker = pipeline.evaluation_tracker
    run = FinishedRun(pipeline.tasks_dict, pipeline.model, pipeline.pipeline_parameters.max_samples, tracker)
    age = time.perf_counter() - tracker.general_config_logger.start_time
    record = record_of(run, (), time.time() - age)
    if record.tasks:
        tracker.sections = {}
        complete_results(run, record)
