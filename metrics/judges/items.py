"""Convert LightEval's Docs to judge items, and verdicts to details; without importing LightEval."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cultureval.judge_prompts.replies import LOWEST
from cultureval.judge_prompts.templates import JudgeTemplate, judge_template
from cultureval.metrics.declared import Range
from cultureval.metrics.judges.verdicts import JudgeItem, JudgeVerdict, metric_part

JUDGED = "judge_"  # how the names of judges' metrics begin


def metric_prefix(judge: str, template: JudgeTemplate) -> str:
    """The prefix of a judge's metric names: judge_gpt-4o_image_reference."""
    return f"{JUDGED}{judge}_{template.short}"


def metrics_of_judge(judge: str, templates: Iterable[str]) -> tuple[str, ...]:
    """The names of a judge's metrics: one for each criterion of each template, by the templates' names."""
    rows = map(judge_template, templates)
    return tuple(f"{metric_prefix(judge, row)}_{metric_part(one)}" for row in rows for one in row.criteria)


def short_names(templates: Iterable[str]) -> list[str]:
    """What templates are called in the names of metrics."""
    rows = map(judge_template, templates)
    return list(dict.fromkeys(row.short for row in rows))


def scales_of_judges(templates: Iterable[str]) -> dict[str, Range]:
    """How the metrics of any judge end, one for each criterion of each template -> the lowest and the highest score."""
    rows = map(judge_template, templates)
    return {f"_{row.short}_{metric_part(one)}": (LOWEST, float(row.top(one))) for row in rows for one in row.criteria}


def item_of(
    item_id: str,
    slots: Mapping[str, str | None],
    template: JudgeTemplate,
    reply: str,
    images: Sequence[Any],
    cluster: str,
) -> JudgeItem:
    """The judge item of a Doc and the model's reply, which fills the judged slot unless the Doc fills it.

    The slots are those of the Doc's `specific["judge"]`; None values are ignored.
    """
    given = {name: text for name, text in slots.items() if text is not None}
    return JudgeItem(item_id, {template.judged: reply} | given, tuple(images), cluster)


def record_of(verdict: JudgeVerdict) -> dict[str, Any]:
    """A verdict without its scores, as saved in the details."""
    return {
        "outcome": verdict.outcome,
        "reason": verdict.reason,
        "label": verdict.label,
        "flags": list(verdict.flags),
        "reply": verdict.reply,
        "asked": verdict.asked,
        "reused": verdict.reused,
    }


def row_metrics(prefix: str, criteria: Sequence[str], verdict: JudgeVerdict) -> dict[str, Any]:
    """The details of a verdict: its record, and a score for each criterion, nan if there is none."""
    scores = {f"{prefix}_{metric_part(name)}": verdict.scores.get(name, float("nan")) for name in criteria}
    return {prefix: record_of(verdict), **scores}
