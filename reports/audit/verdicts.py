"""What `cultureval audit run` writes and prints."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.metrics.agreement import gwet_ac1, krippendorff_alpha
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.data.user_cache import write_atomically, write_json_lines
from cultureval.runtime.rounding import printed_or_na
from cultureval.tasks.manifest import write_manifest

if TYPE_CHECKING:
    from cultureval.audit.judging import Audit, JudgedItem, Opinion
    from cultureval.metrics.judges.calls import CostEstimate

VERDICTS, MANIFEST, SUMMARY = "verdicts.jsonl", "manifest.jsonl", "summary.txt"
MOST_REASONS = 5  # kinds of missing verdicts that are shown


def write_audit(audit: "Audit", folder: Path) -> str:
    """Writes verdicts (with the items' texts), the manifest (without) and the summary."""
    write_json_lines(folder / VERDICTS, map(_record, audit.items))
    write_manifest(folder / MANIFEST, [one.manifest_row() for one in audit.items])
    text = audit_text(audit)
    write_atomically(folder / SUMMARY, f"{text}\n".encode())
    return text


def _record(one: "JudgedItem") -> dict[str, Any]:
    item = one.item
    names = ("source", "revision", "benchmark", "subset", "task", "row", "hash", "form", "question", "context")
    return {name: getattr(item, name) for name in names} | {
        "options": list(item.options or item.answers),
        "gold": list(item.gold),
        "decision": one.decision,
        "reasons": list(one.reasons),
        "opinions": [_opinion(opinion) for opinion in one.opinions],
    }


def _opinion(opinion: "Opinion") -> dict[str, Any]:
    names = ("judge", "outcome", "problem", "total", "reply")
    copied = {"scores": dict(opinion.scores), "issues": dict(opinion.issues), "flags": list(opinion.flags)}
    return {name: getattr(opinion, name) for name in names} | copied


def audit_text(audit: "Audit") -> str:
    """Kept, discarded and to be reviewed per benchmark; what judges failed; their agreement and cost."""
    parts = [_decisions(audit.items), _criteria(audit.items), _agreement(audit.items, audit.rule.threshold)]
    costs = [f"{name}: {budget}" for name, budget in audit.costs.items()]
    silent = Counter(
        f"{opinion.judge}: {opinion.outcome}, {opinion.problem.partition(': ')[0][:100]}"
        for one in audit.items
        for opinion in one.opinions
        if not opinion.scores
    )
    missing = [f"{count:,} without a verdict of {why}" for why, count in silent.most_common(MOST_REASONS)]
    mended = Counter(flag for one in audit.items for reason in one.reasons if (flag := _mended(reason)))
    mended_line = (
        [f"Mended replies: {', '.join(f'{count:,} {how}' for how, count in mended.items())}."] if mended else []
    )
    signed = [f"signature: {line}" for line in audit.signatures]
    tail = [*missing, *mended_line, f"Rule: {audit.rule}. Cost: {'; '.join(costs)}.", *signed]
    return "\n\n".join([*filter(None, parts), "\n".join(tail)])


def _mended(reason: str) -> str:
    flag = reason.rpartition(":")[2]
    return flag.removeprefix("mended_") if flag.startswith("mended_") else ""


def _decisions(items: "Sequence[JudgedItem]") -> str:
    counts: dict[str, Counter[str]] = {}
    for one in items:
        counts.setdefault(one.item.benchmark or one.item.source, Counter())[one.decision] += 1
    cells = [
        (name, *(f"{count[decision]:,}" for decision in ("keep", "discard", "review")), f"{count.total():,}")
        for name, count in counts.items()
    ]
    return terminal_table(("benchmark", "kept", "discarded", "to review", "items"), cells, align="lr")


def _criteria(items: "Sequence[JudgedItem]") -> str:
    judges, rows = failed_criteria((opinion.judge, opinion.scores) for one in items for opinion in one.opinions)
    cells = [(name, *(f"{count:,}" for count in counts)) for name, *counts in rows]
    return terminal_table(("criterion scored 0", *judges), cells, align="lr") if cells else ""


def failed_criteria(opinions: Iterable[tuple[str, Mapping[str, int]]]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The judges, and a row for each criterion: its name, and how many items each judge scored 0.

    Args:
        opinions: A judge and its scores by criterion, for each item and judge.
    """
    judges: dict[str, None] = {}
    failed: dict[str, Counter[str]] = {}
    for judge, scores in opinions:
        judges[judge] = None
        for name, score in scores.items():
            failed.setdefault(name, Counter())[judge] += not score
    return list(judges), [(name, *(count[judge] for judge in judges)) for name, count in failed.items()]


def _agreement(items: "Sequence[JudgedItem]", threshold: int) -> str:
    both = [[opinion.total for opinion in one.opinions] for one in items]
    both = [totals for totals in both if len(totals) > 1 and None not in totals]
    if not both:
        return "No item has a verdict of every judge, so that there is no agreement to measure."
    flags = [[int(total < threshold) for total in totals if total is not None] for totals in both]
    same = sum(len(set(row)) == 1 for row in flags)
    values = agreement_of(flags)
    return (
        f"Judges agree on {same:,} of {len(both):,} items whether the total is below {threshold}: "
        f"AC1 {printed_or_na(values['ac1'])}, alpha {printed_or_na(values['alpha'])}."
    )


def agreement_of(flags: Sequence[Sequence[int]]) -> dict[str, float]:
    """Gwet's AC1 and Krippendorff's alpha of raters who said 0 or 1 of each item: a row an item, a value a rater."""
    return {"ac1": gwet_ac1(flags, [0, 1]), "alpha": krippendorff_alpha(flags, [0, 1])}


def estimates_text(found: "Mapping[tuple[str, str], CostEstimate]", priced: Mapping[str, bool]) -> str:
    """Calls and cost before an audit, a line for each judge and template.

    Args:
        found: (judge, template) -> its estimate.
        priced: Judge -> whether its prices are set.
    """
    lines = []
    for (judge, template), one in found.items():
        cost = f"cost about {one.cost:.4g}, at most {one.most:.4g}" if priced[judge] else "no prices are set"
        lines.append(
            f"{judge}  {template}: {one.calls:,} calls ({one.known:,} known), about {one.input_tokens:,} tokens of "
            f"prompts, {cost}"
            + (f"; {one.unusable:,} without a question, image or judge for it" if one.unusable else "")
        )
    return "\n".join([*lines, "Nothing was judged."])
