"""The audit by LLM judges: two or more score each item on ten criteria, and a rule decides from their totals.

The judges are those of all suites (`metrics.judges`): their replies are journalled, so that a run that was killed
resumes, and their cost is estimated before and limited by a budget. A judge without a readable reply has no verdict.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
THRESHOLD = 7  # a total below it flags an item
GAP = 3  # difference of totals from which judges disagree
MAX_TOKENS = 1024  # ten scores and ten explanations of two sentences
NAME = re.compile(r"[A-Za-z0-9_.-]{1,60}")  # of a judge, as manifests may hold it


def decide(rule: RuleName, totals: Mapping[str, int | None]) -> tuple[Decision, list[str]]:
    """The decision on an item and its reasons as words of a manifest, by one of QIMMA's two published rules.

    The blog (huggingface.co/blog/tiiuae/qimma-arabic-leaderboard) discards an item that all judges score below 7 of
    10, and sends an item that one judge scores below 7 to people. The paper (arXiv 2604.03395, Section 3.2.1) discards
    nothing: it sends items to people that a judge scores below 7, or on which judges "disagree significantly". It
    gives no number for that; ours is a gap of 3 points. An item without a verdict of a judge goes to people.

    Args:
        totals: Judge -> number of criteria that it scored 1; None: it gave no verdict.
    """
    scored = [total for total in totals.values() if total is not None]
    flagged = [name for name, total in totals.items() if total is not None and total < THRESHOLD]
    reasons = [f"judge:{name}:below_{THRESHOLD}" for name in flagged]
    reasons += [f"judge:{name}:no_verdict" for name, total in totals.items() if total is None]
    if rule == "paper" and scored and (gap := max(scored) - min(scored)) >= GAP:
        reasons.append(f"judges:gap_{gap}")
    if rule == "blog" and len(flagged) == len(totals):
        return "discard", reasons
    return ("review" if reasons else "keep"), reasons


@dataclass(frozen=True)
class JudgedItem:
    """An item with its judges' verdicts and the decision.

    Attributes:
        verdicts: Judge -> its verdict.
        reasons: Words of the manifest: what decided, and each judge's failed criteria.
    """

    item: AuditItem
    verdicts: Mapping[str, JudgeVerdict]
    decision: Decision
    reasons: tuple[str, ...]

    def manifest_row(self) -> ManifestRow:
        """Its line in a manifest."""
        return manifest_row(self.item, self.decision, list(self.reasons), [f"judge:{name}" for name in self.verdicts])


@dataclass(frozen=True)
class Audit:
    """The verdicts on all items, in the order of the sources.

    Attributes:
        signatures: One line for each judge and template: all that its verdicts depend on.
        costs: Judge -> its cost.
        stopped: Why judges stopped early; () if none did.
    """

    items: tuple[JudgedItem, ...]
    rule: RuleName
    signatures: tuple[str, ...]
    costs: Mapping[str, Budget]
    stopped: tuple[str, ...] = ()


def total_of(verdict: JudgeVerdict) -> int | None:
    """Number of criteria that a judge scored 1; None without a verdict."""
    return int(sum(verdict.scores.values())) if verdict.scores else None


def audit_judges(judges: Sequence[JudgeSettings]) -> list[JudgeSettings]:
    """The judges with room for the longest reply, unless their settings say how long it may be.

    Raises:
        CulturevalError: There are fewer than two, or a name cannot stand in a manifest.
    """
    if len(judges) < 2:
        raise CulturevalError("An audit needs two judges or more: --judges A,B (YAML files or models' ids).")
    for judge in judges:
        if not NAME.fullmatch(judge.name):
            raise CulturevalError(
                f"The judge {judge.name!r} needs another `name` in its YAML file for manifests: 1 to 60 letters, "
                "digits and _.-."
            )
    return [judge.with_reply_length(MAX_TOKENS) for judge in judges]


def questions_of(items: Sequence[AuditItem]) -> dict[str, list[JudgeItem]]:
    """Template -> the items that are judged with it, those about images with their image."""
    questions: dict[str, list[JudgeItem]] = {}
    for item in items:
        images = tuple(filter(None, [item.image_file])) if item.images else ()
        asked = JudgeItem(item.id, {"sample": sample_of(item)}, images)
        questions.setdefault(f"audit_{item.form}{'_image' * item.images}", []).append(asked)
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
    """(judge, template) -> its calls and cost; no item is judged, but all judges must answer."""
    return {
        (name, template): estimate(judge, template, asked)
        for name, judge in open_askers(judges).items()
        for template, asked in questions_of(items).items()
    }


def audit_items(judges: Sequence[JudgeSettings], items: Sequence[AuditItem], rule: RuleName) -> Audit:
    """Asks all judges (`audit_judges`) about all items, which have distinct ids, and decides.

    Raises:
        CulturevalError: A judge does not answer; nothing was judged.
    """
    askers, questions = open_askers(judges), questions_of(items)
    found = judge_with_all(askers, questions)
    verdicts = {(verdict.item, name): verdict for (name, _), some in found.items() for verdict in some}
    signatures = [
        judge_signature(judge.settings, judge_template(template), judge.identity)
        for judge in askers.values()
        for template in questions
        if takes(judge.settings, judge_template(template))
    ]
    unseen = JudgeVerdict(outcome="unusable", reason="the judge takes no images")
    judged = tuple(
        _decided(item, {judge.name: verdicts.get((item.id, judge.name), unseen) for judge in judges}, rule)
        for item in items
    )
    budgets = {name: judge.budget for name, judge in askers.items()}
    stopped = tuple(f"the judge {name}: {judge.stopped}" for name, judge in askers.items() if judge.stopped)
    return Audit(judged, rule, tuple(signatures), budgets, stopped)


def _decided(item: AuditItem, verdicts: Mapping[str, JudgeVerdict], rule: RuleName) -> JudgedItem:
    decision, reasons = decide(rule, {name: total_of(verdict) for name, verdict in verdicts.items()})
    for name, verdict in verdicts.items():
        reasons += [f"judge:{name}:{criterion}" for criterion, score in verdict.scores.items() if not score]
    return JudgedItem(item, verdicts, decision, tuple(reasons))
