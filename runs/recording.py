"""The record of a run that has ended: the section `cultureval` of its results file."""

import logging
import math
import platform
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import Any

from cultureval.metrics.declared import bounds_of_mean
from cultureval.metrics.judges.items import metrics_of_judge
from cultureval.runs.checks import count_claims
from cultureval.runs.means import agree
from cultureval.runs.record import (
    SECTION,
    MachineRecord,
    ModelRecord,
    RunRecord,
    SignatureRecord,
    TaskRecord,
    TimingRecord,
)
from cultureval.runs.signature import asked_in_run, signatures_of
from cultureval.runs.task_records import task_records
from cultureval.runtime.devices import hardware
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.patches.lighteval.group_averages import NotApplicable
from cultureval.runtime.patches.lighteval.row_order import LIGHTEVAL_SEED
from cultureval.runtime.patches.lighteval.stock_runs import stock_facts
from cultureval.runtime.settings import current_settings
from cultureval.tasks.catalogue import declared_metric, kind_of
from cultureval.tasks.options import all_options, read_data_options
from cultureval.tasks.running import FinishedRun

logger = logging.getLogger(__name__)

PROGRAMS = ("cultureval", "lighteval")
PACKAGES = ("cultureval", "lighteval", "transformers", "torch", "datasets", "tokenizers", "numpy", "torchvision")
PACKAGES += ("pillow", "evalplus", "sacrebleu", "camel-tools", "fasttext-predict", "rouge-score", "scipy", "openai")


def section_of(record: RunRecord) -> dict[str, Any]:
    """The section to be written into a results file: its key -> content as JSON."""
    return {SECTION: record.model_dump(mode="json", by_alias=True)}


def record_of(
    run: FinishedRun,
    missing: Iterable[str],
    started: float,
    unscorable: Mapping[str, str] | None = None,
    unjudged: Mapping[str, str] | None = None,
) -> RunRecord:
    """The record of a run whose metrics are computed.

    Args:
        missing: Requested tasks without data.
        started: When the command began, in seconds since 1970.
        unscorable: Requested tasks that were left out because they cannot be scored -> why.
        unjudged: Judges whose scores were left out because they cannot be asked -> why.
    """
    configs = {name: vars(task.config) for name, task in run.tasks.items()}
    said = getattr(run.model, "run_record", dict)() or stock_facts(run.model)
    counts, details = said.get("tasks", {}), run.tracker.details_logger.details
    tasks = {}
    for name, one in task_records(configs, run.limit).items():
        parity, prompt = asked_in_run(run.model, name, configs[name].get("rows_report") or {})
        in_run = {"parity": parity, "prompt_hash": prompt, "left_out": _metrics_of(unjudged or (), one)}
        made = _names_of(run.tasks[name].metrics)
        in_run["left_out"] += tuple(metric for metric in one.metrics if metric not in made)
        in_run["metrics"] = tuple(metric for metric in one.metrics if metric in made)
        scores = run.tracker.metrics_logger.metric_aggregated.get(name, {})
        rows = details.get(name, ())
        in_run["bounds"] = _bounds(run.tasks[name].metrics, rows, scores, one.refused) if one.refused else {}
        in_run["cut_prompts"] = cut_prompts(run.model, rows)
        tasks[name] = _counted(one.model_copy(update=in_run), rows, scores, counts.get(name, {}))
    unanswered = _unanswered(run, counts)
    for wrong in chain(*map(count_claims, [*tasks.values(), *unanswered.values()])):
        told = "The counts of the run's record do not agree, which is our mistake; please report it: %s"
        logger.error(told, wrong.sentence)
    tokens = tokens_of_run(tasks, said.get("tokens", {}))
    model = ModelRecord(**{"backend": type(run.model).__name__} | said.get("model", {}))
    generation = getattr(run.model.config, "generation_parameters", None)
    left_out = {task: reason for task, (_, reason) in run.unanswered.items()}
    told = {"unscorable": {**(unscorable or {}), **left_out}, "unanswered": unanswered}
    return run_record(
        started,
        tasks,
        signatures_of(run),
        model,
        missing=tuple(missing),
        seeds={"rows": LIGHTEVAL_SEED, "generation": getattr(generation, "seed", None)},
        timing={**run.seconds, **said.get("seconds", {}), **tokens},
    ).model_copy(update=told | {"unjudged": dict(unjudged or {})})


def _unanswered(run: FinishedRun, counts: Mapping[str, Mapping[str, Any]]) -> dict[str, TaskRecord]:
    """The tasks of which no row has an answer, with their counts; any score is possible."""
    configs = {name: vars(task.config) for name, (task, _) in run.unanswered.items()}
    found = {}
    for name, one in task_records(configs, run.limit).items():
        declared = declared_metric(name, one.headline)
        known = declared is not None and all(map(math.isfinite, declared.range))
        bounds = {one.headline: declared.range} if declared and known else {}
        found[name] = _counted(one.model_copy(update={"bounds": bounds}), (), {}, counts.get(name, {}))
    return found


def cut_prompts(model: object, rows: Sequence[Any]) -> int:
    """How many prompts lost their beginnings, by LightEval's `Detail` of each row; 0 of LightEval's own backends.

    Of those, some count by how much the characters of a prompt are more than its tokens, and others say -1.
    """
    return sum(row.model_response.truncated_tokens_count > 0 for row in rows) if hasattr(model, "run_record") else 0


def tokens_of_run(tasks: Mapping[str, TaskRecord], spent: Mapping[str, float]) -> dict[str, float]:
    """The tokens and the cost of a run.

    Args:
        tasks: With their own tokens, which those of refused and withdrawn answers are not among.
        spent: What the model counts of all answers (`Budget.totals`).
    """
    sums = {name: sum(getattr(task, name) or 0 for task in tasks.values()) for name in ("tokens_in", "tokens_out")}
    return {**spent, **sums}


def _bounds(
    metrics: Iterable[Any], rows: Sequence[Any], scores: Mapping[str, Any], refused: int
) -> dict[str, tuple[float, float]]:
    """Metric -> its mean if all refused rows had the lowest score, and if all had the highest."""
    found = {}
    for name, compute in chain(*(metric.get_corpus_aggregations().items() for metric in metrics)):
        limits = getattr(getattr(compute, "__self__", compute), "bounds", None)
        values = [row.metric.get(name) for row in rows] if limits else []
        values = [value for value in values if isinstance(value, int | float) and not math.isnan(value)]
        if values and math.isclose(sum(values) / len(values), scores.get(name) or 0.0, abs_tol=1e-6):
            found[name] = bounds_of_mean(sum(values), len(values), refused, limits)
    return found


def _names_of(metrics: Iterable[Any]) -> set[str]:
    """The names of LightEval's metrics, each of which has one or several."""
    named = (metric.metric_name for metric in metrics)
    return set(chain.from_iterable([one] if isinstance(one, str) else one for one in named))


def _metrics_of(judges: Iterable[str], task: TaskRecord) -> tuple[str, ...]:
    """The metrics that judges would have in a task."""
    templates = kind_of(task.task).judge_templates
    return tuple(name for judge in judges for name in metrics_of_judge(judge, templates))


def run_record(
    started: float,
    tasks: Mapping[str, TaskRecord],
    signatures: Sequence[SignatureRecord],
    model: ModelRecord,
    missing: tuple[str, ...] = (),
    seeds: Mapping[str, int | None] | None = None,
    timing: Mapping[str, Any] | None = None,
) -> RunRecord:
    """The record of any command's run: what it knows, with the command line, versions, options and machine.

    Args:
        started: When the command began, in seconds since 1970.
        tasks: By name with `|k`.
        signatures: One per group.
        model: The model and its backend.
        missing: Requested tasks without data.
        seeds: By name.
        timing: Fields of `TimingRecord`, but for its start and total.
    """
    spent = {name: round(value, 3) if isinstance(value, float) else value for name, value in (timing or {}).items()}
    return RunRecord(
        command=command_line(),
        tasks=dict(tasks),
        missing=missing,
        signatures=tuple(signatures),
        versions=versions(),
        options=options_as_resolved(),
        instruments=_instruments(signatures),
        seeds=dict(seeds or {}),
        model=model,
        machine=MachineRecord(**hardware()),
        timing=TimingRecord(
            started=datetime.fromtimestamp(started, UTC).isoformat(timespec="seconds"),
            total=round(time.time() - started, 3),
            **spent,
        ),
    )


def command_line() -> tuple[str, ...]:
    """The command as it was typed but for secrets, with the program's short name."""
    file, module = Path(sys.argv[0]), getattr(sys.modules["__main__"], "__spec__", None)
    names = (file.stem, module.name.partition(".")[0] if module else "")  # of a script, and of `python -m`
    program = next((name for name in names if name in PROGRAMS), None)
    if program is None:
        return ("python", file.name)  # a program that uses the library, whose arguments are its own
    return (program, *_without_secrets(sys.argv[1:]))


def _without_secrets(arguments: Sequence[str]) -> list[str]:
    """The arguments of a command, `--option VALUE` or `--option=VALUE`, without values of options that are secret."""
    flags = {option.flag for option in all_options() if option.secret}
    shown: list[str] = []
    for before, part in zip(("", *arguments), arguments, strict=False):
        name, sign, _ = part.partition("=")
        shown.append(f"{name}=[secret]" if sign and name in flags else "[secret]" if before in flags else part)
    return shown


def versions(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Versions of Python and of the packages that are installed."""
    found = {"python": platform.python_version()}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def options_as_resolved() -> dict[str, Any]:
    """The current options of reading data but for secrets, and whether answers are reused."""
    options = read_data_options()
    root = str(options.root) if options.root else None
    read = {"data_root": root, "bad_rows": options.bad_rows, "form": options.form}
    settings = current_settings()
    suite = {option.name: options.suite[option.name] for option in all_options() if not option.secret}
    return {**read, **suite, "resume": settings.resume, "on_refused": settings.on_refused}


def _instruments(signatures: Iterable[SignatureRecord]) -> dict[str, str]:
    found = {}
    for signature in signatures:
        parts = [str(signature.fields[name]) for name in ("scorer", "judges", "judge") if signature.fields.get(name)]
        if parts:
            found[signature.group] = "; ".join(parts)
    return found


def _counted(
    record: TaskRecord, rows: Sequence[Any], scores: Mapping[str, Any], answers: Mapping[str, Any]
) -> TaskRecord:
    """A task's record with the counts of LightEval's `Detail` of each row; `answers` are the model's own fields."""
    kind = kind_of(record.task)
    reasons = [specific_of(row.doc).get("finish_reasons") or () for row in rows]
    unreadable = kind.unreadable
    return record.model_copy(
        update={
            "rows": len(rows),
            "row_counts": _rows_of_files(record, rows),
            "items": _items(rows, kind.rows_per_item),
            **score_counts(record.metrics, [row.metric for row in rows], scores),
            "not_means": _not_means(record.metrics, [row.metric for row in rows], scores),
            "truncated": sum("length" in of_row for of_row in reasons),
            "unparsable": sum(unreadable(row.metric) for row in rows) if unreadable else 0,
            **_reused_verdicts(row.metric for row in rows),
            "tokens_in": sum(_prompt_tokens(row.model_response.input_tokens) for row in rows),
            "tokens_out": sum(_tokens(row.model_response.output_tokens) for row in rows),
            **answers,
        }
    )


def _not_means(metrics: Iterable[str], rows: Sequence[Mapping[str, Any]], scores: Mapping[str, Any]) -> tuple[str, ...]:
    """The metrics whose score is another than the mean of the numbers that the details have of it."""
    found = []
    for name in metrics:
        values = [row.get(name) for row in rows]
        known = [value for value in values if isinstance(value, int | float) and not math.isnan(value)]
        score = scores.get(name)
        if known and score is not None and not math.isnan(score) and not agree(math.fsum(known) / len(known), score):
            found.append(name)
    return tuple(found)


def _rows_of_files(record: TaskRecord, rows: Sequence[Any]) -> dict[str, int]:
    """What became of the rows of a task's files, with those that the limit left out; several docs may be of one row."""
    counts = record.row_counts
    places = {specific_of(row.doc).get("source_row") for row in rows}
    if record.limit is None or None in places or "scored" not in counts:
        return counts
    return counts | {"scored": len(places), "not_asked": counts["scored"] - len(places)}


def _reused_verdicts(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """How many verdicts of judges in the details are of an earlier run, and of when the oldest is."""
    records = (value for row in rows for value in row.values() if isinstance(value, Mapping))
    return reused_verdicts([record["reused"] for record in records if record.get("reused")])


def reused_verdicts(times: Sequence[float]) -> dict[str, Any]:
    """The fields of a task's record on the verdicts of an earlier run.

    Args:
        times: When each of them was given, in seconds since 1970.
    """
    since = datetime.fromtimestamp(min(times), UTC).isoformat(timespec="seconds") if times else None
    return {"verdicts_reused": len(times), "verdicts_reused_since": since}


def _items(rows: Sequence[Any], rows_per_item: int) -> int:
    """Units that standard errors count: clusters of rows, or items of several rows."""
    clusters = {specific_of(row.doc).get("cluster") or number for number, row in enumerate(rows)}
    return len(clusters) // rows_per_item


def _tokens(tokens: Any) -> int:
    """Number of tokens in a response's nested lists of them."""
    if not isinstance(tokens, list | tuple):
        return int(tokens is not None)
    return len(tokens) if set(map(type, tokens)) == {int} else sum(map(_tokens, tokens))


def _prompt_tokens(tokens: Any) -> int:
    """Number of tokens of a prompt, which may be given once for each of its choices."""
    for_each = isinstance(tokens, list | tuple) and any(isinstance(one, list | tuple) for one in tokens)
    return max(map(_tokens, tokens)) if for_each else _tokens(tokens)


def score_counts(
    metrics: Iterable[str], rows: Sequence[Mapping[str, Any]], scores: Mapping[str, Any]
) -> dict[str, Any]:
    """The fields of a task's record on metrics that have no value of some rows, or no meaning in the task."""
    silent = tuple(name for name in metrics if isinstance(scores.get(name), NotApplicable))
    counts: dict[str, int] = {}  # what a corpus metric keeps of a row is a value, whatever its type
    for metric, value in (one for row in rows for one in row.items()):
        undefined = value is None or (isinstance(value, float) and math.isnan(value))
        counts[metric] = counts.get(metric, 0) + (not undefined)
    scored = {name: count for name, count in counts.items() if count < len(rows) and name not in silent}
    return {"not_applicable": silent, "scored": scored}
