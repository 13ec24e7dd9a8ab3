"""What `cultureval audit` prints of checks, reviews and refined code."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.csv_files import write_csv
from cultureval.runtime.data.user_cache import write_json_lines
from cultureval.runtime.errors import counted
from cultureval.runtime.rounding import printed_or_na

if TYPE_CHECKING:
    from cultureval.audit.checks.findings import Check, Finding
    from cultureval.audit.code_refinement import Refined
    from cultureval.audit.items import AuditItem
    from cultureval.audit.review.verdicts import Reviewed

FEW_FINDINGS = 3  # of a check, without --full
PUBLISHED = {"HumanEval+": (145, 19), "MBPP+": (308, 70)}  # QIMMA's paper: modified, unchanged
REASONS = {
    "human_check": "the model asks for a person",
    "not_only_arabic": "more than the Arabic of the docstring changed",
    "no_reply": "no readable reply",
}
REVIEW_COLUMNS = ("task_id", "reason", "detail", "original", "proposed", "verdict")


def findings_text(
    checks: "Sequence[Check]", findings: "Sequence[Finding]", items: "Sequence[AuditItem]", full: bool = False
) -> str:
    """The findings as a table of checks, and under it the first of each check.

    Args:
        checks: The table of checks, in whose order they are shown.
        items: All that were looked at, few-shot examples among them.
        full: Whether every finding is shown.
    """
    rows, parts = [], []
    for check in checks:
        own = [finding for finding in findings if finding.check == check.name]
        if own:
            rows.append((check.name, check.severity, f"{len(own):,}", f"{len(own) / len(items):.1%}"))
            shown = own if full else own[:FEW_FINDINGS]
            lines = [f"  {one.source} {one.row or f'all of {one.subset}'}: {one.detail}" for one in shown]
            left = len(own) - len(shown)
            more = [f"  ... and {left:,} more (--full, --findings FILE)"] if left else []
            parts.append("\n".join([f"{check.name}: {check.reason}", *lines, *more]))
    table = [terminal_table(("check", "severity", "items", "share"), rows, align="llrr")] if rows else []
    found = len({(finding.source, finding.row) for finding in findings if finding.row})
    examples = sum(item.split == "few_shot" for item in items)
    among = f" ({examples:,} of them few-shot examples)" if examples else ""
    total = f"{len(items):,} items{among} of {counted(len({item.source for item in items}), 'data set')}: "
    return "\n\n".join([*table, *parts, f"{total}{found:,} with findings, {len(findings):,} findings."])


def reviewed_text(reviewed: "Reviewed") -> str:
    """Who gave how many verdicts, what came of them, and how far people agree."""
    people = ", ".join(f"{name} {count:,}" for name, count in sorted(reviewed.annotators.items()))
    text = (
        f"{counted(reviewed.verdicts, 'verdict')} of {counted(len(reviewed.annotators), 'annotator')} ({people}).\n"
        f"{counted(reviewed.kept, 'item')} kept, {reviewed.discarded:,} discarded, {reviewed.tied:,} tied, which stay "
        f"open, {reviewed.waiting:,} still without enough votes."
    )
    if not reviewed.pairs:
        return text
    ac1, alpha = (printed_or_na(reviewed.agreement[name]) for name in ("ac1", "alpha"))
    agreed = f"Agreement on {counted(reviewed.pairs, 'item')} with two votes or more: AC1 {ac1}, alpha {alpha}."
    return f"{text}\n{agreed}"


def prompts_file(folder: Path, dataset: str) -> Path:
    """Where the prompts of a data set (`humaneval`) are, in the form that `cultureval code --prompts` reads."""
    return folder / f"{dataset}.jsonl"


def write_refined(refined: "Sequence[Refined]", folder: Path, dataset: str) -> None:
    """Writes the prompts of all problems, and those that people shall look at."""
    write_json_lines(prompts_file(folder, dataset), map(asdict, refined))
    rows = [asdict(one) for one in refined if one.outcome == "review"]
    review = [{name: row.get(name) for name in REVIEW_COLUMNS} for row in rows]
    write_csv(folder / f"{dataset}_review.csv", review, REVIEW_COLUMNS, "utf-8-sig")


def refined_text(refined: "Mapping[str, Sequence[Refined]]", canonical: Mapping[str, tuple[int, int]]) -> str:
    """Modified and unchanged prompts as the paper counts them, what is to be reviewed and why.

    Args:
        refined: Title of a data set -> its prompts.
        canonical: Title -> (canonical solutions that pass with the refined prompts, all).
    """
    rows, lines = [], []
    for title, some in refined.items():
        counts = Counter(one.outcome for one in some)
        modified, unchanged = PUBLISHED[title]
        paper = f"{modified} / {unchanged} ({modified / (modified + unchanged):.0%})"
        numbers = [f"{counts[name]:,}" for name in ("modified", "unchanged", "review")]
        share = f"{counts['modified'] / len(some):.0%}"
        rows.append([title, f"{len(some):,}", *numbers, share, paper, "{} of {}".format(*canonical[title])])
        why = Counter(one.reason for one in some if one.outcome == "review")
        told = "; ".join(f"{count:,} {REASONS.get(name, name)}" for name, count in why.most_common())
        lines += [f"{title}: {counted(why.total(), 'prompt')} to review: {told}."] if told else []
    header = ["", "prompts", "modified", "unchanged", "to review", "modified", "[paper]", "canonical solutions pass"]
    return "\n".join([terminal_table(header, rows, "lr"), *lines])
