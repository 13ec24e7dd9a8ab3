"""The audit by LLM judges: each item on ten criteria by two or more judges, and what a rule decides from their scores.

The judges are those of all suites (`metrics.judges`): asked concurrently, every reply in the journal at once, so that a
run that is killed resumes; their cost is estimated before, and limited while they run. A reply that breaks the form is
asked for once more; then the judge has no verdict on the item.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from cultureval.audit.checks import manifest_row
from cultureval.audit.items import AuditItem
from cultureval.judge_prompts.templates import judge_template
from cultureval.metrics.judges.asking import CostEstimate, open_askers
from cultureval.metrics.judges.items import JudgeItem, JudgeVerdict
from cultureval.metrics.judges.judge import estimate, judge_signature, judge_with_all, takes
from cultureval.metrics.judges.settings import JudgeSettings
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.servers.costs import Budget
from cultureval.tasks.manifest import Decision, ManifestRow

RuleName = Literal["blog", "paper"]


@dataclass(frozen=True)
class Rule:
    """From judges' totals to a decision: QIMMA's two published rules.

    The blog (huggingface.co/blog/tiiuae/qimma-arabic-leaderboard): a sample that both judges score below 7 of 10 is
    discarded, one that only one of them does goes to people. The paper (arXiv 2604.03395, Section 3.2.1): a sample goes
    to people where either judge scores below 7, or where the judges "disagree significantly", which it gives no number
    for. Ours is a gap of 3 points: with one of 4, one of the two totals is below 7 anyhow. A judge without a verdict
    passes nothing: its items go to people under both rules.

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


TEMPLATES = {
    ("mcq", False): "audit_mcq",
    ("qa", False): "audit_qa",
    ("mcq", True): "audit_mcq_image",
    ("qa", True): "audit_qa_image",
}  # (form, about an image) -> template
MAX_TOKENS = 1024  # ten scores and ten explanations of two sentences


@dataclass(frozen=True)
class Opinion:
    """One judge's verdict on one item.

    Attributes:
        scores: Criterion -> 0 or 1; {} where there is no verdict.
        issues: Criterion scored 0 -> the judge's explanation.
        outcome: "scored", or why not, as of `JudgeVerdict`.
        reply: The last reply, raw.
    """

    judge: str
    scores: Mapping[str, int] = field(default_factory=dict)
    issues: Mapping[str, str] = field(default_factory=dict)
    outcome: str = "scored"
    problem: str = ""
    reply: str | None = None

    @property
    def total(self) -> int | None:
        """Number of criteria scored 1; None without a verdict."""
        return sum(self.scores.values()) if self.scores else None


@dataclass(frozen=True)
class JudgedItem:
    """An item with its judges' verdicts, in the order of the judges, and the decision.

    Attributes:
        reasons: Words of the manifest: what decided, and each judge's failed criteria.
    """

    item: AuditItem
    opinions: tuple[Opinion, ...]
    decision: Decision
    reasons: tuple[str, ...]

    def manifest_row(self) -> ManifestRow:
        """Its line in a manifest."""
        by = [f"judge:{_code(opinion.judge)}" for opinion in self.opinions]
        return manifest_row(self.item, self.decision, list(self.reasons), by)


@dataclass(frozen=True)
class Audit:
    """The verdicts on all items, in the order of the sources.

    Attributes:
        signatures: One line for each judge and template: all that its verdicts depend on.
        costs: Judge -> its cost.
        stopped: Why judges stopped early; () if none did.
    """

    items: tuple[JudgedItem, ...]
    rule: Rule
    signatures: tuple[str, ...]
    costs: Mapping[str, Budget]
    stopped: tuple[str, ...] = ()


def auditing(judges: Sequence[JudgeSettings]) -> list[JudgeSettings]:
    """The judges with room for the longest reply, unless their settings say how long one may be.

    Raises:
        CulturevalError: There are fewer than two, or two have one name in manifests, where one would count for both.
    """
    if len(judges) < 2:
        raise CulturevalError("An audit needs two judges or more: --judges A,B (YAML files or models' ids).")
    named: dict[str, str] = {}
    for one in judges:
        if (other := named.setdefault(_code(one.name), one.name)) != one.name:
            raise CulturevalError(
                f"The judges {other!r} and {one.name!r} are both {_code(one.name)!r} in a manifest (40 letters, digits "
                "and _.+@- of a name): give each a different `name` in its YAML file."
            )
    return [one.with_reply_length(MAX_TOKENS) for one in judges]


def questions_of(items: Sequence[AuditItem]) -> dict[str, list[JudgeItem]]:
    """Template -> the items that are asked about with it, those about images with their image."""
    questions: dict[str, list[JudgeItem]] = {}
    for item in items:
        shown = tuple(filter(None, [item.image_file])) if item.images else ()
        asked = JudgeItem(item.id, {"sample": sample_of(item)}, shown)
        questions.setdefault(TEMPLATES[item.form, item.images], []).append(asked)
    return questions


def sample_of(item: AuditItem) -> str:
    """The item as the templates describe a sample: JSON with question, choices, gold_index and perhaps context."""
    gold = list(item.gold) if item.form == "mcq" else list(range(len(item.answers)))
    sample = {
        "question": item.question,
        "choices": list(item.options or item.answers),
        "gold_index": gold[0] if len(gold) == 1 or (gold and item.form == "qa") else gold or None,
    }
    return json.dumps(sample | ({"context": item.context} if item.context else {}), ensure_ascii=False, indent=2)


def estimates(judges: Sequence[JudgeSettings], items: Sequence[AuditItem]) -> dict[tuple[str, str], CostEstimate]:
    """(judge, template) -> its calls and cost; judges are asked only who they are, and must all answer."""
    return {
        (name, template): estimate(judge, template, asked)
        for name, judge in open_askers(judges).items()
        for template, asked in questions_of(items).items()
    }


def audit_items(judges: Sequence[JudgeSettings], items: Sequence[AuditItem], rule: Rule) -> Audit:
    """Asks all judges (as of `auditing`) about all items, which have distinct ids, and decides.

    Raises:
        CulturevalError: Some judges do not answer, or none takes the images that all items are about; nothing was
            judged.
    """
    if all(item.images for item in items) and not any(judge.images for judge in judges):
        raise CulturevalError("All of these items are about images, and no judge takes images (`images: false`).")
    askers, questions = open_askers(judges), questions_of(items)
    found = judge_with_all(askers, questions)
    opinions = {(one.item, name): _opinion(name, one) for (name, _), verdicts in found.items() for one in verdicts}
    signatures = [
        judge_signature(judge.settings, judge_template(template), judge.identity)
        for judge in askers.values()
        for template in questions
        if takes(judge.settings, judge_template(template))
    ]
    unseen = {one.name: Opinion(one.name, outcome="unusable", problem="the judge takes no images") for one in judges}
    judged = tuple(
        _decided(item, tuple(opinions.get((item.id, name), none) for name, none in unseen.items()), rule)
        for item in items
    )
    budgets = {name: judge.budget for name, judge in askers.items()}
    stopped = tuple(f"the judge {name}: {judge.stopped}" for name, judge in askers.items() if judge.stopped)
    return Audit(judged, rule, tuple(signatures), budgets, stopped)


def _opinion(judge: str, verdict: JudgeVerdict) -> Opinion:
    scores = {name: int(score) for name, score in verdict.scores.items()}
    return Opinion(judge, scores, verdict.notes, verdict.outcome, verdict.reason, verdict.reply)


def _decided(item: AuditItem, opinions: tuple[Opinion, ...], rule: Rule) -> JudgedItem:
    decision, reasons = rule.decide({_code(opinion.judge): opinion.total for opinion in opinions})
    for opinion in opinions:
        name = _code(opinion.judge)
        reasons += [f"judge:{name}:{criterion}" for criterion, score in opinion.scores.items() if not score]
    return JudgedItem(item, opinions, decision, tuple(reasons))


def _code(name: str) -> str:
    """A judge's name as a word of a manifest."""
    return re.sub(r"[^A-Za-z0-9_.+@-]", "_", name)[:40]
