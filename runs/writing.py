"""Writing runs in LightEval's file format: runs without its pipeline, and our additions to its runs.

An output folder has results/<model>/results_<date>.json and details/<model>/<date>/details_<task>_<date>.parquet.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cultureval.runs.frame import frame_of, read_items
from cultureval.runs.record import SECTION, RunRecord
from cultureval.runs.recording import record_of
from cultureval.runs.scores import Score, task_scores
from cultureval.runtime.rounding import without_nan
from cultureval.runtime.saving import summary_file
from cultureval.tasks.catalogue import OVERALL, is_gated, known_task, means_of_subsets, mixed_averages, name_and_shots
from cultureval.tasks.running import FinishedRun

if TYPE_CHECKING:
    import pyarrow
    from lighteval.pipeline import Pipeline


class SavedRun(NamedTuple):
    """A written run: its results file, and its scores by task with `|k` and metric."""

    file: Path
    scores: dict[str, dict[str, Score]]


def save_run(
    root: Path,
    model: str,
    details: "Mapping[str, Sequence[Mapping[str, Any]] | pyarrow.Table]",
    record: RunRecord,
    general: Mapping[str, Any] | None = None,
) -> SavedRun:
    """Writes details, and a results file with their scores.

    Args:
        root: The output folder.
        details: Task with `|k` -> rows with `doc`, `metric`, `model_response`; every row has the same metrics.
        record: The section `cultureval`.
        general: Further entries of `config_general`.
    """
    date, folder = datetime.now().isoformat(timespec="microseconds").replace(":", "-"), model.strip("/")
    found: dict[str, dict[str, Score]] = {}
    results: dict[str, dict[str, float | None]] = {}
    for task, rows in details.items():
        file = root / "details" / folder / date / f"details_{task}_{date}.parquet"
        _write_details(file, rows)
        items = frame_of([read_items(file, task)], model)
        found[task] = {metric: score for (*_, metric), score in task_scores(items).items()}
        scores = {metric: found[task].get(metric) for metric in items["metric"].unique()}
        results[task] = {metric: score and score.value for metric, score in scores.items()}
        results[task] |= {f"{metric}_stderr": score and score.error for metric, score in scores.items()}
    tasks = {task: {"name": name_and_shots(task)[0], "effective_num_docs": len(rows)} for task, rows in details.items()}
    named = {"model_name": model}
    about = {"lighteval_sha": "?", "model_config": named, **named, **(general or {})}
    content = {"config_general": about, "results": without_nan(results), "versions": dict.fromkeys(details, 0)}
    content |= {"config_tasks": tasks, "summary_tasks": {}, "summary_general": {}}
    file = root / "results" / folder / f"results_{date}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    with complete_or_absent(file) as part:
        text = json.dumps(content | section_of(record), ensure_ascii=False, indent=2, default=str)
        part.write_text(text, encoding="utf-8")
    return SavedRun(file, found)


def _write_details(file: Path, rows: "Sequence[Mapping[str, Any]] | pyarrow.Table") -> None:
    import pyarrow
    import pyarrow.parquet

    table = rows if isinstance(rows, pyarrow.Table) else pyarrow.Table.from_pylist([dict(row) for row in rows])
    file.parent.mkdir(parents=True, exist_ok=True)
    with complete_or_absent(file) as part:
        pyarrow.parquet.write_table(table, part)


@contextmanager
def complete_or_absent(file: Path) -> Iterator[Path]:
    """A context with a temporary path, which is renamed to `file` once it is complete."""
    part = file.with_name(f"{file.name}.part")
    try:
        yield part
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def section_of(record: RunRecord) -> dict[str, Any]:
    """Our section of a results file: its key -> content as JSON."""
    return {SECTION: record.model_dump(mode="json", by_alias=True)}


def write_summary(results_file: Path, text: str) -> Path:
    """Writes the printed summary beside the results file: summary_<date>.txt; returns its path."""
    file = summary_file(results_file)
    file.write_text(text + "\n", encoding="utf-8")
    return file


def complete_results(run: FinishedRun, record: RunRecord) -> None:
    """Completes unwritten results of a run: undefined values, means, the record.

    Averages over different kinds of our tasks are left out, and the average over all tasks if all are ours.
    """
    tracker: Any = run.tracker  # ours has `sections` and `withheld`
    scores = tracker.metrics_logger.metric_aggregated
    for name in scores:  # LightEval's average of a harness's tasks gives each the metrics of all, as 0
        if (task := known_task(name)) and task.kind.load:
            scores[name] = {
                key: score for key, score in scores[name].items() if key.removesuffix("_stderr") in task.metrics
            }
    scores.update(without_nan({**scores, **means_of_subsets(scores)}))
    ours = len(record.tasks) == len(run.tasks)
    for name in mixed_averages(scores):
        if ours or name != OVERALL:
            del scores[name]
    tracker.sections |= section_of(record)
    tracker.withheld = {name for name, task in record.tasks.items() if is_gated(name_and_shots(name)[0], task.source)}


def complete_stock_run(pipeline: "Pipeline") -> None:
    """Adds our record to a run of LightEval's pipeline before it saves; a run without our tasks is unchanged."""
    tracker: Any = pipeline.evaluation_tracker
    run = FinishedRun(pipeline.tasks_dict, pipeline.model, pipeline.pipeline_parameters.max_samples, tracker)
    age = time.perf_counter() - tracker.general_config_logger.start_time
    record = record_of(run, (), time.time() - age)
    if record.tasks:
        tracker.sections = {}
        complete_results(run, record)
