"""Items, verdicts and what is made of them: means, bounds, counts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Union

from cultureval.judge_prompts.replies import HIGHEST, LOWEST
from cultureval.metrics.standard_errors import clustered_standard_error

if TYPE_CHECKING:
    from PIL.Image import Image

ItemImage = Union[Path, str, bytes, "Image"]
Outcome = Literal["scored", "malformed", "refused", "no_answer", "not_asked", "unusable"]
SUSPICIOUS = frozenset({"gives_orders", "looks_like_a_rating", "holds_a_heading"})


@dataclass(frozen=True)
class JudgeItem:
    """What a judge is asked about.

    Attributes:
        id: Names the item in verdicts and messages.
        slots: The template's slots and their texts.
        images: Files (paths or bytes) or PIL images, for templates that show them.
        cluster: Items with the same one (such as their image) are not independent; "" is a cluster of its own.
    """

    id: str
    slots: Mapping[str, str]
    images: Sequence[ItemImage] = ()
    cluster: str = ""


@dataclass(frozen=True)
class Verdict:
    """What a judge says of an item, or why it says nothing.

    Attributes:
        item: Id of the item.
        scores: Criterion -> score from 1 to 5; empty where the item is unscored or a label was asked for.
        label: The label, where one was asked for and given.
        outcome: "scored" (a label counts too), or what stood in the way.
        reason: Why there is no score, in words; "" where there is one.
        flags: What stands out of the text ("gives_orders", "looks_like_a_rating", "holds_a_heading", "wrong_script"),
            of the prompt ("delimited"), of the reply ("extra_prose", "decimal", "repeated", "reasoning").
        reply: The last reply, raw.
        asked: How many replies there were.
        cluster: The item's.
    """

    item: str
    scores: Mapping[str, float] = field(default_factory=dict)
    label: str | None = None
    outcome: Outcome = "scored"
    reason: str = ""
    flags: tuple[str, ...] = ()
    reply: str | None = None
    asked: int = 0
    cluster: str = ""


@dataclass(frozen=True)
class Judgement:
    """What became of all items.

    Attributes:
        verdicts: One an item, in order.
        cost: Of these verdicts' calls, those of earlier runs included.
        stopped: Why the judge was not asked to the end, in one line; None where it was.
        failed: Whether it was the judge's server that stopped, not the budget.
        served_models: The models as the servers named them.
    """

    verdicts: list[Verdict]
    cost: float = 0.0
    stopped: str | None = None
    failed: bool = False
    served_models: tuple[str, ...] = ()

    def outcomes(self) -> Counter[str]:
        """How many items ended how."""
        return Counter(verdict.outcome for verdict in self.verdicts)


def summarize(
    verdicts: Sequence[Verdict], criteria: Sequence[str], highest: Mapping[str, int] | None = None
) -> dict[str, float]:
    """Means of the scored items, their bounds and the counts.

    Args:
        verdicts: Any number.
        criteria: Names of the template's criteria.
        highest: Criterion -> the highest score of its scale, where that is not 5.

    Returns:
        For each criterion `<part>` (mean over scored items, nan where there is none), `<part>_stderr` (clustered),
        `<part>_missing_as_1` and `<part>_missing_as_5` (means over all items), where `<part>` is `metric_part`; and the
        counts of `count_verdicts`.
    """
    values: dict[str, float] = {}
    for criterion in criteria:
        scored = [(verdict.scores[criterion], verdict) for verdict in verdicts if criterion in verdict.scores]
        values |= score_summary(
            metric_part(criterion),
            [score for score, _ in scored],
            [verdict.cluster or index for index, (_, verdict) in enumerate(scored)],
            len(verdicts),
            (highest or {}).get(criterion, int(HIGHEST)),
        )
    return values | count_verdicts([(verdict.outcome, verdict.flags) for verdict in verdicts])


def count_verdicts(verdicts: Sequence[tuple[str, Sequence[str]]]) -> dict[str, int]:
    """How many items there are, are scored, are not, could steer the judge, and are in the wrong script.

    Args:
        verdicts: Outcome and flags of each item.
    """
    parsed = sum(outcome == "scored" for outcome, _ in verdicts)
    return {
        "n_items": len(verdicts),
        "n_parsed": parsed,
        "n_unscored": len(verdicts) - parsed,
        "n_flagged": sum(bool(SUSPICIOUS & set(flags)) for _, flags in verdicts),
        "n_wrong_script": sum("wrong_script" in flags for _, flags in verdicts),
    }


def unscored_lines(verdicts: Sequence[Verdict], most: int = 10) -> list[str]:
    """Why items have no score: one line for each reason with its number of items, the commonest first.

    Args:
        verdicts: Any number.
        most: Reasons that are spelled out.
    """
    reasons = Counter(f"{verdict.outcome}: {verdict.reason}" for verdict in verdicts if verdict.reason)
    lines = [f"{count} unscored, {reason}" for reason, count in reasons.most_common(most)]
    return lines + ([f"{len(reasons) - most} more reasons stand in the details"] if len(reasons) > most else [])


def score_summary(
    name: str, scores: Sequence[float], clusters: Sequence[Any], items: int, highest: int = int(HIGHEST)
) -> dict[str, float]:
    """Mean, standard error and bounds of one criterion, as `summarize` describes them.

    Args:
        name: Beginning of the keys.
        scores: Of the scored items.
        clusters: Of the scored items.
        items: How many items there are, the unscored ones included.
        highest: Of the scale; stands in the last key.
    """
    missing, total = items - len(scores), sum(scores)
    return {
        name: total / len(scores) if scores else float("nan"),
        f"{name}_stderr": clustered_standard_error(scores, clusters) if scores else float("nan"),
        f"{name}_missing_as_1": (total + LOWEST * missing) / items if items else float("nan"),
        f"{name}_missing_as_{highest}": (total + highest * missing) / items if items else float("nan"),
    }


def metric_part(criterion: str) -> str:
    """A criterion's part of a metric's name: "Dialect Authenticity" -> "dialect_authenticity"."""
    return "_".join(criterion.lower().split())
