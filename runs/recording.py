"""The record of a finished run: the section `cultureval` of its results file."""

import platform
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import Any

from cultureval.metrics.judges.items import metrics_of_judge
from cultureval.runs.record import (
    MachineRecord,
    ModelRecord,
    RunRecord,
    SignatureRecord,
    TaskRecord,
    TimingRecord,
    task_records,
)
from cultureval.runs.signature import asked_in_run, signatures_of
from cultureval.runtime.devices import hardware
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.patches.lighteval.row_order import LIGHTEVAL_SEED
from cultureval.runtime.patches.lighteval.stock_runs import stock_facts
from cultureval.runtime.settings import current_settings
from cultureval.tasks.catalogue import kind_of
from cultureval.tasks.options import all_options, read_data_options
from cultureval.tasks.running import FinishedRun

PROGRAMS = ("cultureval", "lighteval")
PACKAGES = (
    *("cultureval", "lighteval", "transformers", "torch", "datasets", "tokenizers", "numpy", "torchvision", "pillow"),
    *("evalplus", "sacrebleu", "camel-tools", "fasttext-predict", "rouge-score", "scipy", "openai"),
)


def record_of(
    run: FinishedRun,
    missing: Iterable[str],
    started: float,
    unscorable: Mapping[str, str] | None = None,
    unjudged: Mapping[str, str] | None = None,
) -> RunRecord:
    """The record of a run whose metrics are computed; `missing`, `unscorable` and `unjudged` as `RunRecord` has them.

    Args:
        started: When the command began, in seconds since 1970.
    """
    of_model = getattr(run.model, "run_record", dict)() or stock_facts(run.model)
    tasks = _tasks_of(run, unjudged or (), of_model.get("tasks", {}))
    tokens = {name: sum(getattr(task, name) or 0 for task in tasks.values()) for name in ("tokens_in", "tokens_out")}
    generation = getattr(getattr(run.model, "config", None), "generation_parameters", None)
    return run_record(
        started,
        tasks,
        signatures_of(run),
        ModelRecord(**{"backend": type(run.model).__name__} | _known(ModelRecord, of_model.get("model", {}))),
        timing={**run.seconds, **of_model.get("seconds", {}), **of_model.get("tokens", {}), **tokens},
        missing=tuple(missing),
        seeds={"rows": LIGHTEVAL_SEED, "generation": getattr(generation, "seed", None)},
        unscorable={**(unscorable or {}), **{task: reason for task, (_, reason) in run.unanswered.items()}},
        unjudged=dict(unjudged or {}),
    )


def _known(kind: type[ModelRecord | TimingRecord | TaskRecord], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are fields of a record."""
    return {name: value for name, value in values.items() if name in kind.model_fields}


def _tasks_of(
    run: FinishedRun, unjudged: Iterable[str], of_model: Mapping[str, Mapping[str, Any]]
) -> dict[str, TaskRecord]:
    """The records of a run's tasks; `of_model` are fields from the model."""
    configs = {name: vars(task.config) for name, task in run.tasks.items()}
    found = {}
    for name, record in task_records(configs, run.limit).items():
        parity, prompt = asked_in_run(run.model, name, configs[name].get("rows_report") or {})
        named = [metric.metric_name for metric in run.tasks[name].metrics]
        made = set(chain.from_iterable([record] if isinstance(record, str) else record for record in named))
        judged = [name for judge in unjudged for name in metrics_of_judge(judge, kind_of(record.task).judge_templates)]
        update = {
            "parity": parity,
            "prompt_hash": prompt,
            "metrics": tuple(metric for metric in record.metrics if metric in made),
            "left_out": (*judged, *(metric for metric in record.metrics if metric not in made)),
            **_counts(run.tracker.details_logger.details.get(name, ()), hasattr(run.model, "run_record")),
            **_known(TaskRecord, of_model.get(name, {})),
        }
        found[name] = record.model_copy(update=update)
    return found


def _counts(details: Sequence[Any], ours: bool) -> dict[str, int]:
    """The counts of LightEval's `Detail` of each row.

    Args:
        ours: Whether the model is ours: LightEval's own backends count cut characters, not tokens.
    """
    rows = [row for row in details if not specific_of(row.doc).get("unscored")]
    reasons = [specific_of(row.doc).get("finish_reasons") or () for row in rows]
    return {
        "rows": len(rows),
        "refused": len(details) - len(rows),
        "truncated": sum("length" in of_row for of_row in reasons),
        "cut_prompts": sum(row.model_response.truncated_tokens_count > 0 for row in rows) if ours else 0,
        "tokens_in": sum(_prompt_tokens(row.model_response.input_tokens) for row in rows),
        "tokens_out": sum(_tokens(row.model_response.output_tokens) for row in rows),
    }


def run_record(
    started: float,
    tasks: Mapping[str, TaskRecord],
    signatures: Sequence[SignatureRecord],
    model: ModelRecord,
    timing: Mapping[str, Any] | None = None,
    **more: Any,
) -> RunRecord:
    """The record of a command's run, with the command line, versions, options and machine.

    Args:
        started: When the command began, in seconds since 1970.
        tasks: By name with `|k`.
        signatures: One per group.
        model: The model and its backend.
        timing: Fields of `TimingRecord` except its start and total.
        **more: Further fields of the record.
    """
    spent = {name: round(value, 3) if isinstance(value, float) else value for name, value in (timing or {}).items()}
    start = datetime.fromtimestamp(started, UTC).isoformat(timespec="seconds")
    total = round(time.time() - started, 3)
    return RunRecord(
        command=command_line(),
        tasks=dict(tasks),
        signatures=tuple(signatures),
        versions=versions(),
        options=options_as_resolved(),
        model=model,
        machine=MachineRecord(**hardware()),
        timing=TimingRecord(started=start, total=total, **_known(TimingRecord, spent)),
        **more,
    )


def command_line() -> tuple[str, ...]:
    """The command as typed, with the program's short name."""
    file, module = Path(sys.argv[0]), getattr(sys.modules["__main__"], "__spec__", None)
    names = (file.stem, module.name.partition(".")[0] if module else "")  # a script, and `python -m`
    program = next((name for name in names if name in PROGRAMS), None)
    if program is None:
        return ("python", file.name)  # a program that uses the library: its arguments are private
    return (program, *sys.argv[1:])


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
    """The current options of reading data, and whether answers are reused."""
    options = read_data_options()
    read = {"data_root": options.root and str(options.root), "form": options.form}
    settings = current_settings()
    suite = {option.name: options.suite[option.name] for option in all_options()}
    return {**read, **suite, "resume": settings.resume, "on_refused": settings.on_refused}


def _tokens(tokens: Any) -> int:
    """Number of tokens in a response's nested lists."""
    if not isinstance(tokens, list | tuple):
        return int(tokens is not None)
    return len(tokens) if set(map(type, tokens)) == {int} else sum(map(_tokens, tokens))


def _prompt_tokens(tokens: Any) -> int:
    """Number of tokens of a prompt, which may be repeated for each choice."""
    for_each = isinstance(tokens, list | tuple) and any(isinstance(part, list | tuple) for part in tokens)
    return max(map(_tokens, tokens)) if for_each else _tokens(tokens)
