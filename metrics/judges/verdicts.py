"""Items and verdicts of judges, and their texts for people."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Union

if TYPE_CHECKING:
    from PIL.Image import Image

    from cultureval.runtime.servers.identity import ServerIdentity

ItemImage = Union[Path, str, bytes, "Image"]
Outcome = Literal["scored", "malformed", "doubtful", "refused", "no_answer", "not_asked", "unusable"]


@dataclass(frozen=True)
class JudgeItem:
    """One item for a judge.

    Attributes:
        id: Id of the item in verdicts and messages.
        slots: The template's slots and their texts.
        images: Files (paths or bytes) or PIL images, for templates that show them.
        cluster: Items with the same one (such as their image) are not independent; "" is a cluster of its own.
    """

    id: str
    slots: Mapping[str, str]
    images: Sequence[ItemImage] = ()
    cluster: str = ""


@dataclass(frozen=True)
class JudgeVerdict:
    """A judge's verdict on an item, or why there is none.

    Attributes:
        item: Id of the item.
        scores: Criterion -> score from 1 to 5; empty if the item is unscored or the template asks for a label.
        label: The label, if the template asks for one and the judge gave one.
        outcome: "scored" (also with a label), or why not; "doubtful" where it is open whose the reply's scores are.
        reason: Why there is no score; "" if there is one.
        flags: Properties of the text (those of `suspicions`, "wrong_script") and of the reply (those of `Reading`).
        reply: The last reply, raw.
        asked: Number of replies.
        reused: When the reply was given, in seconds since 1970, if that was in an earlier run; else None.
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
    reused: float | None = None


@dataclass(frozen=True)
class Judgement:
    """The verdicts on all items.

    Attributes:
        verdicts: One per item, in order.
        cost: Cost of these verdicts' calls, including those of earlier runs.
        stopped: Why judging ended early, in one line; None if it did not.
        failed: Whether the judge's server failed (rather than the budget being spent).
        served_models: The model names that the servers returned.
        identity: What the servers say of the model; None where they were not asked.
    """

    verdicts: list[JudgeVerdict]
    cost: float = 0.0
    stopped: str | None = None
    failed: bool = False
    served_models: tuple[str, ...] = ()
    identity: "ServerIdentity | None" = None

    def outcomes(self) -> Counter[str]:
        """Numbers of items by outcome."""
        return Counter(verdict.outcome for verdict in self.verdicts)

    @property
    def says_something(self) -> bool:
        """Whether the judge replied, readably or not, or no item could be judged: else there is nothing to tell."""
        outcomes = self.outcomes().keys()
        return bool(outcomes - {"no_answer", "not_asked", "unusable"}) or outcomes == {"unusable"}


def unscored_lines(verdicts: Sequence[JudgeVerdict], most: int = 10) -> list[str]:
    """Why items have no score: one line per reason with its number of items, the most frequent first."""
    reasons = Counter(f"{verdict.outcome}: {verdict.reason}" for verdict in verdicts if verdict.reason)
    lines = [f"{count} unscored, {reason}" for reason, count in reasons.most_common(most)]
    return lines + ([f"{len(reasons) - most} more reasons are in the details"] if len(reasons) > most else [])


def reuse_line(verdicts: Sequence[JudgeVerdict]) -> str | None:
    """How many verdicts are of an earlier run, and of when; None if none is."""
    times = [verdict.reused for verdict in verdicts if verdict.reused is not None]
    if not times:
        return None
    first, last = (
        datetime.fromtimestamp(when, UTC).isoformat(" ", "minutes")[:16] for when in (min(times), max(times))
    )
    when = f"of {first}" if first == last else f"of {first} to {last}"
    return f"{len(times):,} of {len(verdicts):,} verdicts are reused, {when} UTC (--no-resume judges again)"


def metric_part(criterion: str) -> str:
    """A criterion's part of a metric's name: "Dialect Authenticity" -> "dialect_authenticity"."""
    return "_".join(criterion.lower().split())
