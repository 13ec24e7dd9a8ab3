"""Between LightEval's Docs and details and a judge's items and verdicts; it needs no LightEval."""

from collections.abc import Mapping, Sequence
from typing import Any

from cultureval.judge_prompts.templates import JudgeTemplate
from cultureval.metrics.judges.verdicts import JudgeItem, Verdict, metric_part


def metric_prefix(judge: str, template: JudgeTemplate) -> str:
    """What the names of a judge's metrics begin with: judge_gpt-4o_image_reference."""
    return f"judge_{judge}_{template.short}"


def item_of(
    item_id: str,
    slots: Mapping[str, str | None],
    template: JudgeTemplate,
    reply: str,
    images: Sequence[Any],
    cluster: str,
) -> JudgeItem:
    """What a judge is asked about one Doc and the model's reply to it.

    Args:
        item_id: Names the item.
        slots: Those of the Doc's `specific["judge"]`; one that is None does not count.
        template: How the judge is asked.
        reply: The model's reply; it fills the slot under judgement, unless the Doc fills it itself.
        images: The Doc's.
        cluster: The Doc's.
    """
    given = {name: text for name, text in slots.items() if text is not None}
    return JudgeItem(item_id, {template.judged: reply} | given, tuple(images), cluster)


def record_of(verdict: Verdict) -> dict[str, Any]:
    """A verdict without its scores, as the details keep it."""
    return {
        "outcome": verdict.outcome,
        "reason": verdict.reason,
        "label": verdict.label,
        "flags": list(verdict.flags),
        "reply": verdict.reply,
        "asked": verdict.asked,
    }


def row_metrics(prefix: str, criteria: Sequence[str], verdict: Verdict) -> dict[str, Any]:
    """What the details hold of a verdict: its record, and a score for each criterion, nan where there is none."""
    scores = {f"{prefix}_{metric_part(name)}": verdict.scores.get(name, float("nan")) for name in criteria}
    return {prefix: record_of(verdict), **scores}
