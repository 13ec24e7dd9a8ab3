"""From judges' totals to a decision: QIMMA's two published rules.

The blog (huggingface.co/blog/tiiuae/qimma-arabic-leaderboard): a sample that both judges score below 7 of 10 is
discarded, one that only one of them does goes to people. The paper (arXiv 2604.03395, Section 3.2.1): a sample goes to
people where either judge scores below 7, or where the judges "disagree significantly", which it gives no number for.
Ours is a gap of 3 points: with one of 4, one of the two totals is below 7 anyhow. A judge without a verdict passes
nothing: its items go to people under both rules.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cultureval.tasks.manifest import Decision

RuleName = Literal["blog", "paper"]


@dataclass(frozen=True)
class Rule:
    """A decision rule.

    Attributes:
        name: "blog" or "paper".
        threshold: A total below it flags an item.
        gap: Difference of totals from which judges disagree; only in the paper's rule.
    """

    name: RuleName = "blog"
    threshold: int = 7
    gap: int = 3

    def __str__(self) -> str:
        """`blog<7`, `paper<7,gap>=4`: for summaries."""
        return f"{self.name}<{self.threshold}" + (f",gap>={self.gap}" if self.name == "paper" else "")

    def decide(self, totals: Mapping[str, int | None]) -> tuple[Decision, list[str]]:
        """The decision on an item, and its reasons as words of a manifest; all judges must flag an item to discard it.

        `totals` are the number of criteria that each judge scored 1; None: it gave no verdict.
        """
        known = {name: total for name, total in totals.items() if total is not None}
        flagged = [name for name, total in known.items() if total < self.threshold]
        silent = [name for name in totals if name not in known]
        reasons = [f"judge:{name}:below_{self.threshold}" for name in flagged]
        reasons += [f"judge:{name}:no_verdict" for name in silent]
        if self.name == "paper" and known and (gap := max(known.values()) - min(known.values())) >= self.gap:
            reasons.append(f"judges:gap_{gap}")
        if self.name == "blog" and not silent and len(flagged) == len(totals):
            return "discard", reasons
        return ("review" if reasons else "keep"), reasons
