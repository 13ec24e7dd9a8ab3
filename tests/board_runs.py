"""Finished runs of invented models with items, as output folders: what the tests and timings of leaderboards read.

`python tests/board_runs.py FOLDER [MODELS] [ITEMS]` writes QIMMA's 109 subsets for so many models.
"""

import hashlib
import json
import math
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
from summary_runs import published_count

from cultureval.metrics.m2cqa.names import headline_verdict
from cultureval.metrics.standard_errors import clustered_standard_error
from cultureval.runs.answers import choice_metrics
from cultureval.runs.items import suite_statistics
from cultureval.runs.record import ModelRecord, RunRecord, task_records
from cultureval.runs.signature import signature_record
from cultureval.runs.writing import write_details, write_results
from cultureval.tasks.catalogue import all_tasks, declared_metric, means_of_subsets

SCALES = {"spbleu": 50.0, "bleu_4": 20.0, "cider": 10.0, "rouge_l": 20.0, "bertscore_recall": 90.0}
CAPTIONS = ["ولد صغير يلعب بالكرة في الحديقة", "بنت صغيرة تلعب بالكرة في البيت الكبير"]
QUERY = "أجب عن السؤال التالي باختيار الحرف الصحيح. " * 4
FAMILIES = ("Invented", "Imagined", "Fictitious", "Pretended", "مختلق")  # taken for nobody's real models
SIZES = (1, 3, 7, 9, 14, 27, 32, 70)


def invented_models(count: int) -> dict[str, float]:
    """Names of models, and how able they are, between 0.3 and 0.8."""
    names = [f"lab/{FAMILIES[place % 5]}-{SIZES[(place * 3) % 8]}B-v{place // 8 + 1}" for place in range(count)]
    return {name: 0.3 + 0.5 * ((place * 7) % count) / max(count, 1) for place, name in enumerate(names)}


def write_run(
    root: Path,
    model: str,
    tasks: Iterable[str],
    ability: float = 0.5,
    items: int | None = 40,
    *,
    date: str = "2026-11-01T10-00-00",
    folder: str = "",
    query: str = QUERY,
    details: bool = True,
    signed: Mapping[str, object] | None = None,
    limit: int | None = None,
    shots: int = 0,
) -> Path:
    """Writes the results and the details of one run.

    Args:
        root: The output folder.
        model: The model's name.
        tasks: Names of tasks.
        ability: Probability that an item of middle difficulty is right.
        items: Of each task; None: as many as published.
        date: Of the run.
        folder: Of the model in the output folder; "": its name.
        query: The prompt of each item.
        details: Whether details are written.
        signed: Fields of signatures that differ; None: no run record at all, as stock LightEval writes it.
        limit: As recorded.
        shots: Number of examples.
    """
    known = [all_tasks()[name] for name in tasks]
    scores: dict[str, dict[str, float]] = {}
    counts = {task.task: items or published_count(task) for task in known}
    for task in known:
        table, means = _items(task, model, ability, counts[task.task], query, signed is not None)
        file = write_details(root, folder or model, date, f"{task.task}|{shots}", table)
        scores[f"{task.task}|{shots}"] = means | _of_sums(file, task, means)
        if not details:
            file.unlink()
    for group in {task.group for task in known if task.task != task.group}:
        members = [scores[f"{task.task}|{shots}"] for task in known if task.group == group]
        scores[f"{group}:_average|{shots}"] = _average(members)
    scores |= means_of_subsets(scores)
    configs = {f"{name}|{shots}": {"effective_num_docs": count} for name, count in counts.items()}
    content = {
        "config_general": {"model_name": model, "max_samples": limit},
        "results": scores,
        "config_tasks": configs,
        "versions": {},
    }
    if signed is None:
        file = root / "results" / (folder or model) / f"results_{date}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content), encoding="utf-8")
        return file
    record = _record(configs, model, limit, signed)
    return write_results(root, folder or model, date, content, record)


def _record(configs: Mapping[str, object], model: str, limit: int | None, signed: Mapping[str, object]) -> RunRecord:
    records = {
        name: record.model_copy(update={"items": record.rows, "form": "original", "rows_hash": "a" * 16})
        for name, record in task_records(configs, limit).items()
    }
    groups = dict.fromkeys((record.group, record.shots) for record in records.values())
    fields = {"model": f"{model}@0123abcd", "backend": "transformers", "dtype": "bfloat16", "cultureval": "0.1.0"}
    signatures = tuple(
        signature_record(f"{group}|{shots}", task=f"{group}/{shots}-shot/v0", **fields | signed)
        for group, shots in groups
    )
    return RunRecord(
        tasks=records,
        signatures=signatures,
        model=ModelRecord(backend="transformers", version="0123abcd", dtype="bfloat16"),
    )


def _items(task, model, ability, items, query, ours):
    """The details of a task, and its scores: what is hard is hard for all models."""
    shared = np.random.default_rng(int(hashlib.sha256(task.task.encode()).hexdigest()[:8], 16))
    own = np.random.default_rng(int(hashlib.sha256(f"{task.task}{model}".encode()).hexdigest()[:8], 16))
    difficulty = shared.random(items)
    right = ((0.5 * difficulty + 0.5 * own.random(items)) < ability).astype(float)
    values = {metric: right * SCALES.get(metric, 1.0) + metric.startswith("mean_rank") for metric in task.metrics}
    means = {}
    for metric, column in values.items():
        means[metric] = float(column.mean())
        declared = declared_metric(task.task, metric)
        bounds = declared.range if ours and declared and all(map(math.isfinite, declared.range)) else None
        known = bounds or not ours or column.min() < column.max()  # LightEval says 0 where all scores are alike
        error = clustered_standard_error(column, range(items), bounds) if known else math.nan
        means[f"{metric}_stderr"] = error
    rows = [f"test.jsonl:{place}" for place in range(items)]
    specific = pyarrow.StructArray.from_arrays(
        [pyarrow.array(one) for one in (rows, [""] * items, ["xyxy"] * items)],
        names=["source_row", "cluster", "box_format"],
    )
    choices = CAPTIONS if task.suite == "jeem" else ["أ", "ب"]
    columns = [[query] * items, [choices] * items, [0] * items, [str(place) for place in range(items)]]
    doc = pyarrow.StructArray.from_arrays(
        [*map(pyarrow.array, columns), specific], names=["query", "choices", "gold_index", "id", "specific"]
    )
    if task.suite in ("m2cqa", "aynvqa"):  # what counts of unreadable answers are made of
        values |= {headline_verdict(task.task): ["true"] * items}
    metric = pyarrow.StructArray.from_arrays([pyarrow.array(one) for one in values.values()], names=list(values))
    replies = [[choices[0 if one else 1]] for one in right]
    logprobs = [[0.0, -1e3] if one else [-1e3, 0.0] for one in right] if choice_metrics(task.task) else [[]] * items
    response = pyarrow.StructArray.from_arrays(
        [pyarrow.array(replies), pyarrow.array(logprobs, pyarrow.list_(pyarrow.float64()))], names=["text", "logprobs"]
    )
    return pyarrow.table({"doc": doc, "metric": metric, "model_response": response}), means


def _of_sums(file, task, means):
    """The scores that are no means of rows, such as BLEU, by their sums; without standard errors."""
    made = {metric: suite_statistics(file, task.task, metric) for metric in task.metrics if task.suite == "jeem"}
    found = {metric: float(one.score(one.parts.sum(axis=0))) for metric, one in made.items() if one}
    return found | {f"{metric}_stderr": math.nan for metric in found}


def _average(members):
    names = members[0]
    found = {name: sum(one[name] for one in members) / len(members) for name in names if not name.endswith("_stderr")}
    for name in [*found]:
        errors = [one.get(f"{name}_stderr") for one in members]
        if None not in errors:
            found[f"{name}_stderr"] = math.hypot(*errors) / len(errors)
    return found


if __name__ == "__main__":
    place, count, size = Path(sys.argv[1]), int((sys.argv[2:] or ["20"])[0]), int((sys.argv[3:] or ["1000"])[0])
    qimma = [task.task for task in all_tasks().values() if task.suite == "qimma"]
    for name, able in invented_models(count).items():
        write_run(place, name, qimma, able, size, signed={})
