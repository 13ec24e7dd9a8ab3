"""`cultureval score alqasida`: outputs that were made elsewhere are scored, written and analysed as those of a run."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cultureval.reports.alqasida.given_outputs import FORM, GivenSet, read_outputs
from cultureval.reports.summary_text import shown_run
from cultureval.runs.load_runs import read_run
from cultureval.runs.record import ModelRecord, RunRecord, SignatureRecord, TaskRecord
from cultureval.runs.recording import run_record, score_counts
from cultureval.runs.signature import signature_record
from cultureval.runs.writing import (
    content_of_tasks,
    date_of_now,
    write_details,
    write_results,
    write_summary,
)
from cultureval.runtime import processes
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError, all_of
from cultureval.runtime.signatures import combined_hash, installed_versions
from cultureval.tasks.alqasida.kinds import KINDS
from cultureval.tasks.alqasida.published_prompts import prompts_hash, which_prompts
from cultureval.tasks.catalogue import all_tasks, means_of_subsets, mixed_averages

SUITE = "alqasida"
Scores = dict[str, dict[str, float]]
Details = dict[str, list[dict[str, Any]]]


def score_outputs(pred: Sequence[Path], output_dir: Path) -> str:
    """Score outputs, write results and details as a run has them, and return what is printed of each model.

    Args:
        pred: As of `read_outputs`.
        output_dir: Output folder.

    Raises:
        CulturevalError: A file is not understood, or a scoring model cannot be used.
    """
    started = time.time()
    models: dict[str, list[GivenSet]] = {}
    for one in read_outputs(pred):
        models.setdefault(one.model, []).append(one)
    for name in models:
        if not name.strip("/") or any(part in ("", ".", "..") for part in name.strip("/").split("/")):
            raise CulturevalError(f"{name!r} cannot be a model's name: it names a folder of the results.")
    groups = dict.fromkeys(_group(one) for members in models.values() for one in members)
    all_of([instrument.check for group in groups if (instrument := KINDS[group].instrument)])
    from cultureval.runtime.patches.lighteval.start_up import prepare_lighteval
    from cultureval.tasks.running import OWN_TASKS

    prepare_lighteval(OWN_TASKS)
    with processes.scoring_alone():
        scored = {model: _scores_and_details(members) for model, members in models.items()}
    return "\n\n".join(_written(model, models[model], *found, output_dir, started) for model, found in scored.items())


def _written(
    model: str,
    members: Sequence[GivenSet],
    scores: Scores,
    details: Details,
    output_dir: Path,
    started: float,
) -> str:
    """Writes the results, details and summary of a model's outputs; returns the summary."""
    date = date_of_now()
    tasks = {one.task: _task_record(one, details[one.task], scores[one.task]) for one in members}
    record = _record(model, members, tasks, started)
    configs = {name: {"name": name.partition("|")[0], "effective_num_docs": one.rows} for name, one in tasks.items()}
    content = content_of_tasks(scores, {"model_name": model}, configs)
    import pyarrow

    for name, rows in details.items():
        write_details(output_dir, model, date, name, pyarrow.Table.from_pylist(rows))
    file = write_results(output_dir, model, date, content, record)
    text = shown_run(read_run(file), None, full=True)
    write_summary(file, text)
    return text


def _scores_and_details(members: Sequence[GivenSet]) -> tuple[Scores, Details]:
    """By task and average as LightEval makes them of our metrics; and the rows of the details."""
    from lighteval.logging.info_loggers import MetricsLogger
    from lighteval.metrics import apply_metric

    logger, details, tasks = MetricsLogger(), {}, {}
    for one in members:
        metrics = KINDS[_group(one)].metrics()
        docs, responses = _docs_and_responses(one)
        values = apply_metric(responses, docs, metrics)
        for row in values:
            logger.log(one.task, row)
        corpus = {name: compute for metric in metrics for name, compute in metric.get_corpus_aggregations().items()}
        tasks[one.task] = SimpleNamespace(aggregation=lambda corpus=corpus: corpus)
        details[one.task] = [
            {
                "doc": asdict(doc),
                "metric": {k: float(v) for k, v in row.items()},
                "model_response": asdict(response),
            }
            for doc, row, response in zip(docs, values, responses, strict=True)
        ]
    logger.aggregate(tasks, bootstrap_iters=0)
    scores = logger.metric_aggregated
    scores.update(means_of_subsets(scores))
    for name in mixed_averages(scores):
        del scores[name]
    return dict(scores), details


def _docs_and_responses(one: GivenSet) -> tuple[list[Any], list[Any]]:
    """As LightEval's own run of the task would log them."""
    from lighteval.models.model_output import ModelResponse

    docs = []
    for number, (row, prompt) in enumerate(zip(one.rows, one.prompts, strict=True)):
        doc = KINDS[_group(one)].prompt(row, one.task)
        doc.query, doc.id = prompt, str(number)
        docs.append(doc)
    responses = [ModelResponse(text=[text], input=doc.query) for text, doc in zip(one.outputs, docs, strict=True)]
    return docs, responses


def _task_record(one: GivenSet, rows: Sequence[Mapping[str, Any]], scores: Mapping[str, Any]) -> TaskRecord:
    bare, _, shots = one.task.partition("|")
    group, _, subset = bare.partition(":")
    known = all_tasks().get(bare)
    metrics = [row["metric"] for row in rows]
    return TaskRecord(
        task=one.task,
        suite=SUITE,
        benchmark=known.benchmark if known else subset.partition("_")[0],
        group=group,
        subset=subset,
        domain=known.domain if known else "",
        task_type=known.task_type if known else "",
        language="ar",
        register="dialectal",
        shots=int(shots),
        metrics=tuple(metrics[0]),
        rows=len(rows),
        items=len({specific_of(row["doc"])["cluster"] for row in rows}),
        expected_rows=known.expected_rows if known else None,
        form=FORM,
        source=", ".join(dict.fromkeys(row["source_row"].rpartition(":")[0] for row in one.rows)),
        rows_hash=prompts_hash([row["prompt"] for row in one.rows]),
        prompt_hash=FORM if group == "alqasida_mt" else which_prompts(one.rows),
        **score_counts(metrics[0], metrics, scores),
    )


def _record(model: str, members: Sequence[GivenSet], tasks: Mapping[str, TaskRecord], started: float) -> RunRecord:
    groups: dict[str, list[TaskRecord]] = {}
    for one in members:
        groups.setdefault(f"{_group(one)}|{tasks[one.task].shots}", []).append(tasks[one.task])
    signatures = tuple(_signature(name, found) for name, found in groups.items())
    return run_record(started, tasks, signatures, ModelRecord(backend="outputs made elsewhere"))


def _signature(name: str, tasks: Sequence[TaskRecord]) -> SignatureRecord:
    group, _, shots = name.partition("|")
    instrument = KINDS[group].instrument
    return signature_record(
        name,
        task=f"{group}/{shots}-shot/v0",
        subsets=len(tasks),
        rows=sum(task.rows for task in tasks),
        data=",".join(sorted({task.source for task in tasks})),
        form=FORM,
        rows_hash=combined_hash(task.rows_hash for task in tasks),
        prompt=",".join(sorted({task.prompt_hash for task in tasks})),
        scorer=instrument.name() if instrument else None,
        backend="outputs made elsewhere",
        **installed_versions(),
    )


def _group(one: GivenSet) -> str:
    return one.task.partition(":")[0]
