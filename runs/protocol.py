"""The protocol of a score: all that it depends on besides the model. Scores with equal protocols are comparable."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import group_of, kind_of, known_task, name_and_shots

if TYPE_CHECKING:
    from cultureval.runs.loading import Run

UNKNOWN = "unknown"
NONE = "none"
SIGNED = ("manifest", "gold", "refined_prompts", "data_hash", "options", "evalplus")
GENERATION = (
    *("max_new_tokens", "min_new_tokens", "temperature", "top_k", "top_p", "min_p", "seed", "stop_tokens"),
    *("repetition_penalty", "frequency_penalty", "presence_penalty", "reasoning_tags"),
)
OF_METRICS = {  # a package -> beginnings of the metrics that it computes
    "camel-tools": ("cider", "bleu_", "rouge_l", "parse_rate"),
    "evalplus": ("plus_pass", "base_pass"),
    "rouge-score": ("rougeL",),
    "sacrebleu": ("spbleu", "chrf", "bleu"),
}


def protocol(run: "Run", task: str, metric: str = "") -> dict[str, str]:
    """The protocol of a score; "unknown" where a results file does not have a field.

    Args:
        task: With `|k`; one of the run's.
        metric: A metric of a judge adds the judge's signature; "": of no judge.
    """
    record, signature = run.record.tasks.get(task), _signature(run, task)
    if record is None:
        unknown = dict.fromkeys(("rows", "limit", "prompt", "parity", "scorer"), UNKNOWN)
        return unknown | {"shots": name_and_shots(task)[1] or UNKNOWN}
    ours = run.record.schema_ > 0
    tells_limit = ours or "max_samples" in run.content["config_general"]
    found = {
        "rows": record.rows_hash or UNKNOWN,
        "form": record.form or UNKNOWN,
        "limit": str(record.limit or NONE) if tells_limit else UNKNOWN,
        "shots": str(record.shots),
        "prompt": record.prompt_hash or UNKNOWN,
        "parity": (record.parity or NONE) if ours else UNKNOWN,  # other backends may ignore the task's parity
        "system prompt": (run.record.model.system_prompt_hash or NONE) if ours else UNKNOWN,
        "scorer": str(signature.get("scorer") or NONE) if signature else UNKNOWN,
    }
    found |= {name: str(signature[name]) for name in SIGNED if signature.get(name)}
    if generates(task):
        settings = run.record.model.settings
        generation = ", ".join(f"{name}={settings[name]}" for name in GENERATION if name in settings)
        found["generation"] = (generation or "as the task says") if ours else UNKNOWN
        for package, names in OF_METRICS.items():
            if any(metric.startswith(names) for metric in record.metrics):
                found[package] = run.record.versions.get(package, UNKNOWN)
    if run.record.model.settings.get("image_placement"):
        found["image placement"] = str(run.record.model.settings["image_placement"])
    return found | ({"judge": _judge(run, metric, signature)} if metric.startswith("judge_") else {})


def differences(first: Mapping[str, str], second: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The fields in which two protocols differ, with both values."""
    values = {name: (first.get(name, NONE), second.get(name, NONE)) for name in {**first, **second}}
    return {name: pair for name, pair in values.items() if pair[0] != pair[1]}


def generates(task: str) -> bool:
    """Whether a task of the catalogue (with or without `|k`) generates texts, so that generation settings matter."""
    known = known_task(task)
    return known is not None and kind_of(known.task).generation_size > 0


def _signature(run: "Run", task: str) -> Mapping[str, Any]:
    """The fields of the signature of a task's group; {} without one."""
    (name, shots), record = name_and_shots(task), run.record.tasks.get(task)
    group = f"{record.group if record else group_of(name)}|{shots}"
    return next((signature.fields for signature in run.record.signatures if signature.group == group), {})


def _judge(run: "Run", metric: str, signature: Mapping[str, Any]) -> str:
    """The signature of a metric's judge: of the newest later judgement, else of the run."""
    later = [record.text.replace("|", ",") for record in run.record.signatures if "/" in record.group]
    of_run = str(signature.get("judges") or "").removeprefix("judge(").removesuffix(")").split(") + judge(")
    return next((text for text in [*later[::-1], *of_run] if _is_of(metric, text)), UNKNOWN)


def _is_of(metric: str, signature: str) -> bool:
    """Whether a judge's signature belongs to a metric `judge_<judge>_<template>_<criterion>`."""
    from cultureval.metrics.judges.items import prefix_of

    fields = dict(part.partition(":")[::2] for part in signature.split(","))
    try:
        prefix = prefix_of(fields.get("judge", ""), fields.get("template", "").rpartition("#")[0])
    except CulturevalError:  # a template of another version
        return False
    return metric.startswith(f"{prefix}_")
