"""What a score depends on besides the model: two scores are comparable where their protocols are equal."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import kind_of, known_task, name_and_shots

if TYPE_CHECKING:
    from cultureval.runs.loading import Run

NOT_TOLD = "not told"
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
    """Everything that a score depends on besides the model; what a results file does not say is "not told".

    Args:
        task: With `|k`; one of the run's.
        metric: A judge's metric also depends on that judge; "": a metric of no judge.
    """
    record, signature = run.record.tasks.get(task), _signature(run, task)
    if record is None:
        unknown = dict.fromkeys(("rows", "limit", "prompt", "parity", "scorer"), NOT_TOLD)
        return unknown | {"shots": name_and_shots(task)[1] or NOT_TOLD}
    ours = run.record.schema_ > 0
    tells_limit = ours or "max_samples" in run.content["config_general"]
    found = {
        "rows": record.rows_hash or NOT_TOLD,
        "form": record.form or NOT_TOLD,
        "limit": str(record.limit or NONE) if tells_limit else NOT_TOLD,
        "shots": str(record.shots),
        "prompt": record.prompt_hash or NOT_TOLD,
        "parity": (record.parity or NONE) if ours else NOT_TOLD,  # another backend may ignore what the task asks for
        "system prompt": (run.record.model.system_prompt_hash or NONE) if ours else NOT_TOLD,
        "scorer": str(signature.get("scorer") or NONE) if signature else NOT_TOLD,
    }
    found |= {name: str(signature[name]) for name in SIGNED if signature.get(name)}
    if generates(task):
        settings = run.record.model.settings
        told = ", ".join(f"{name}={settings[name]}" for name in GENERATION if name in settings)
        found["generation"] = (told or "as the task says") if ours else NOT_TOLD
        for package, names in OF_METRICS.items():
            if any(metric.startswith(names) for metric in record.metrics):
                found[package] = run.record.versions.get(package, NOT_TOLD)
    if run.record.model.settings.get("image_placement"):
        found["image placement"] = str(run.record.model.settings["image_placement"])
    return found | ({"judge": _judge(run, metric, signature)} if metric.startswith("judge_") else {})


def differences(first: Mapping[str, str], second: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The fields in which two protocols differ, with both values."""
    values = {name: (first.get(name, NONE), second.get(name, NONE)) for name in {**first, **second}}
    return {name: pair for name, pair in values.items() if pair[0] != pair[1]}


def generates(task: str) -> bool:
    """Whether a task of the catalogue (`|k` may follow) generates texts, so that settings of generation matter."""
    known = known_task(task)
    return known is not None and kind_of(known.task).generation_size > 0


def _signature(run: "Run", task: str) -> Mapping[str, Any]:
    """The fields of the signature of a task's group; {} without one."""
    name, shots = name_and_shots(task)
    return next((one.fields for one in run.record.signatures if one.group == f"{name.partition(':')[0]}|{shots}"), {})


def _judge(run: "Run", metric: str, signature: Mapping[str, Any]) -> str:
    """The signature of the judge of a metric: of a later judgement, else of the run."""
    later = [one.text.replace("|", ",") for one in run.record.signatures if "/" in one.group]
    own = str(signature.get("judges") or "").removeprefix("judge(").removesuffix(")").split(") + judge(")
    return next((text for text in [*later[::-1], *own] if _is_of(metric, text)), NOT_TOLD)


def _is_of(metric: str, signature: str) -> bool:
    """Whether a judge's signature is that of a metric `judge_<judge>_<template>_<criterion>`."""
    from cultureval.metrics.judges.items import prefix_of

    fields = dict(part.partition(":")[::2] for part in signature.split(","))
    try:
        prefix = prefix_of(fields.get("judge", ""), fields.get("template", "").rpartition("#")[0])
    except CulturevalError:  # a template of another version
        return False
    return metric.startswith(f"{prefix}_")
