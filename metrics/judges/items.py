"""Items and verdicts of judges, and the names of their metrics; without importing LightEval or a client of servers."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Union

from cultureval.judge_prompts.replies import LOWEST, ReplyReading
from cultureval.judge_prompts.templates import JudgeTemplate, judge_template
from cultureval.metrics.declared import Range

if TYPE_CHECKING:
    from PIL.Image import Image

JUDGED = "judge_"  # how the names of judges' metrics begin
ItemImage = Union[Path, str, bytes, "Image"]
Unanswered = Literal["malformed", "refused", "no_answer", "not_asked"]


@dataclass(frozen=True)
class JudgeItem:
    """One item for a judge.

    Attributes:
        id: Id of the item in verdicts and messages.
        slots: The template's slots and their texts.
        images: Files (paths or bytes) or PIL images, for templates that show them.
    """

    id: str
    slots: Mapping[str, str]
    images: Sequence[ItemImage] = ()


@dataclass(frozen=True)
class JudgeVerdict(ReplyReading):
    """A judge's verdict on an item; without a verdict it has no scores and no label.

    Attributes:
        item: Id of the item.
        outcome: "scored" (also with a label), or why not; "unusable" if the item cannot be shown to the judge.
        reason: Why there is no score; "" if there is one.
        reply: The last reply, raw.
        asked: How often it was asked, in this run or an earlier one.
        reused: Whether the reply is of an earlier run.
    """

    item: str = ""
    outcome: Literal["scored", "unusable"] | Unanswered = "scored"
    reason: str = ""
    reply: str | None = None
    asked: int = 0
    reused: bool = False


def lines_about(verdicts: Sequence[JudgeVerdict], most: int = 10) -> list[str]:
    """A line on reused verdicts, and a line for each reason of unscored items, the most frequent first."""
    reused = sum(verdict.reused for verdict in verdicts)
    lines = [f"{reused:,} of {len(verdicts):,} verdicts are reused (--no-resume judges again)"] if reused else []
    reasons = Counter(f"{verdict.outcome}: {verdict.reason}" for verdict in verdicts if verdict.reason)
    lines += [f"{count} unscored, {reason}" for reason, count in reasons.most_common(most)]
    return lines + ([f"{len(reasons) - most} more reasons are in the details"] if len(reasons) > most else [])


def metric_part(criterion: str) -> str:
    """A criterion's part of a metric's name: "Dialect Authenticity" -> "dialect_authenticity"."""
    return "_".join(criterion.lower().split())


def metric_prefix(judge: str, template: JudgeTemplate) -> str:
    """The prefix of a judge's metric names: judge_gpt-4o_image_reference."""
    return f"{JUDGED}{judge}_{template.short}"


def prefix_of(judge: str, template: str) -> str:
    """`metric_prefix` of the template with this name; CulturevalError if there is none."""
    return metric_prefix(judge, judge_template(template))


def metrics_of_judge(judge: str, templates: Iterable[str]) -> tuple[str, ...]:
    """The names of a judge's metrics: one for each criterion of each template, by the templates' names."""
    rows = map(judge_template, templates)
    return tuple(f"{metric_prefix(judge, row)}_{metric_part(criterion)}" for row in rows for criterion in row.criteria)


def scales_of_judges(templates: Iterable[str]) -> dict[str, Range]:
    """The end of any judge's metric name, for each criterion of each template -> the lowest and the highest score."""
    rows = map(judge_template, templates)
    return {
        f"_{row.short}_{metric_part(criterion)}": (LOWEST, float(row.top(criterion)))
        for row in rows
        for criterion in row.criteria
    }


def item_of(
    item_id: str, slots: Mapping[str, str | None], template: JudgeTemplate, reply: str, images: Sequence[Any]
) -> JudgeItem:
    """The judge item of a Doc and the model's reply. The reply fills the judged slot unless the Doc does.

    `slots` is from the Doc's `specific["judge"]`; None values are ignored.
    """
    texts = {name: text for name, text in slots.items() if text is not None}
    return JudgeItem(item_id, {template.judged: reply} | texts, tuple(images))


def record_of(verdict: JudgeVerdict) -> dict[str, Any]:
    """A verdict without its scores, as saved in the details."""
    names = ("outcome", "reason", "label", "reply", "asked", "reused")
    return {name: getattr(verdict, name) for name in names}


def row_metrics(prefix: str, criteria: Sequence[str], verdict: JudgeVerdict) -> dict[str, Any]:
    """The details of a verdict: its record, and a score for each criterion, nan if there is none."""
    scores = {f"{prefix}_{metric_part(name)}": verdict.scores.get(name, float("nan")) for name in criteria}
    return {prefix: record_of(verdict), **scores}
