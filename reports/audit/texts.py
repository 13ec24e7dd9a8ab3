"""What `cultureval audit` prints of checks, cleaned data, reviews and shortcuts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.data.user_cache import write_json_lines
from cultureval.runtime.errors import counted
from cultureval.runtime.rounding import printed_or_na

if TYPE_CHECKING:
    from cultureval.audit.checks.findings import Check, Finding
    from cultureval.audit.cleaning import CleanedSubset
    from cultureval.audit.items import AuditItem
    from cultureval.audit.review.verdicts import Reviewed
    from cultureval.audit.shortcuts import BlindAnswer, SubsetShortcut
    from cultureval.tasks.manifest import Manifest

FEW_FINDINGS = 3  # of a check, without --full
MOST_ITEMS = 10  # that are right without what they ask about


def findings_text(
    checks: "Sequence[Check]", findings: "Sequence[Finding]", items: "Sequence[AuditItem]", full: bool = False
) -> str:
    """The findings as a table of checks, and under it the first of each check.

    Args:
        checks: The table of checks, in whose order they are shown.
        findings: Of all sources.
        items: All that were looked at, few-shot examples among them.
        full: Whether every finding is shown.
    """
    counts = Counter(finding.check for finding in findings)
    cells = [
        (check.name, check.severity, f"{counts[check.name]:,}", f"{counts[check.name] / len(items):.1%}")
        for check in checks
        if counts[check.name]
    ]
    rows = len({(finding.source, finding.row) for finding in findings if finding.row})
    examples = sum(item.split == "few_shot" for item in items)
    among = f" ({examples:,} of them few-shot examples)" if examples else ""
    sources = len({item.source for item in items})
    places = counted(sources, "data set")
    total = f"{len(items):,} items{among} of {places}: {rows:,} with findings, {len(findings):,} findings."
    if not cells:
        return total
    parts = [terminal_table(("check", "severity", "items", "share"), cells, align="llrr")]
    for check in checks:
        own = [finding for finding in findings if finding.check == check.name]
        if own:
            lines = [f"  {_place(finding)}: {finding.detail}" for finding in (own if full else own[:FEW_FINDINGS])]
            more = (
                []
                if full or len(own) <= FEW_FINDINGS
                else [f"  ... and {len(own) - FEW_FINDINGS:,} more (--full, --findings FILE)"]
            )
            parts.append("\n".join([f"{check.name}: {check.reason}", *lines, *more]))
    return "\n\n".join([*parts, total])


def _place(finding: "Finding") -> str:
    where = finding.row or f"all of {finding.subset}"
    return f"{finding.source} {where}"


def cleaned_text(
    subsets: "Sequence[CleanedSubset]", manifest: "Manifest", folders: Sequence[Path], pushed_to: str | None
) -> str:
    """Rows kept, discarded and not decided on, and where the data are.

    Args:
        subsets: What was written.
        manifest: The manifest.
        folders: Folders of the data sets.
        pushed_to: The data set on the hub, if any.
    """
    cells = [
        (one.source, one.subset, *(f"{count:,}" for count in (kept, one.discarded, one.undecided, examples)))
        for one in subsets
        for kept, examples in [_rows(one)]
    ]
    places = ", ".join([*map(str, folders), *([f"the hub's {pushed_to}"] if pushed_to else [])])
    review = manifest.count("review")
    waiting = f" To be reviewed in the whole manifest: {review:,} (such rows are kept)." if review else ""
    columns = ("data set", "subset", "kept", "discarded", "undecided", "few-shot examples")
    return (
        f"{terminal_table(columns, cells, align='llrrrr')}\n\nManifest {manifest.hash}: written to {places}.{waiting}"
    )


def _rows(one: "CleanedSubset") -> tuple[int, int]:
    """Evaluated rows, of which the manifest decides, and few-shot examples."""
    examples = len(one.splits.get(one.few_shot, ()))
    return sum(map(len, one.splits.values())) - examples, examples


def reviewed_text(reviewed: "Reviewed") -> str:
    """Who gave how many verdicts, what came of them, and how far people agree."""
    people = ", ".join(f"{name} {count:,}" for name, count in sorted(reviewed.annotators.items()))
    lines = [
        f"{counted(reviewed.verdicts, 'verdict')} of {counted(len(reviewed.annotators), 'annotator')} ({people}).",
        f"{counted(reviewed.kept, 'item')} kept, {reviewed.discarded:,} discarded, {reviewed.tied:,} tied, which stay "
        f"open, {reviewed.waiting:,} still without enough votes.",
    ]
    if reviewed.pairs:
        named = (("AC1", "ac1"), ("alpha", "alpha"))
        values = ", ".join(f"{name} {printed_or_na(reviewed.agreement[key])}" for name, key in named)
        lines.append(f"Agreement on {counted(reviewed.pairs, 'item')} with two votes or more: {values}.")
    return "\n".join(lines)


def desks_text(addresses: Mapping[str, str], done: Mapping[str, tuple[int, int]]) -> str:
    """The address of each annotator's page, which nobody else may know, and how far each is."""
    return "\n".join(
        f"{name} ({done[name][0]:,} of {done[name][1]:,} done): {address}" for name, address in addresses.items()
    )


def shortcuts_text(subsets: "Sequence[SubsetShortcut]", named: "Sequence[BlindAnswer]", signature: str) -> str:
    """The subsets against chance, and the items that are surest.

    Args:
        subsets: In their order.
        named: Items that are right without it.
        signature: One line.
    """
    cells = [
        (
            *(one.source, one.subset, one.without, f"{one.items:,}", f"{one.right / one.items:.1%}"),
            *(f"{one.low:.1%}-{one.high:.1%}", f"{one.chance:.1%}", _p_value(one.p_value)),
            "above chance" if one.named else "",
        )
        for one in subsets
    ]
    above = sum(one.named for one in subsets)
    columns = ("data set", "subset", "without", "items", "right", "95%", "chance", "p (Holm)", "")
    parts = [terminal_table(columns, cells, align="lllrrrrrl")]
    lines = [
        f"  {one.item.id}: {one.gold_probability:.0%} for the gold, without the {one.without}"
        for one in named[:MOST_ITEMS]
    ]
    if lines:
        parts.append("\n".join(["Surest of the items that are right in every order of their options:", *lines]))
    tail = f"{above:,} of {len(subsets):,} subsets are above chance; {len(named):,} items of them are right throughout."
    return "\n\n".join([*parts, f"{tail}\nsignature: {signature}"])


def _p_value(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def write_answers(path: Path, answers: "Sequence[BlindAnswer]") -> None:
    """Writes one JSON line for each answer, without texts."""
    records = []
    for one in answers:
        item = one.item
        place = {"source": item.source, "subset": item.subset, "row": item.row, "hash": item.hash, "task": item.task}
        record = place | {"without": one.without, "gold": item.gold[0], "right": one.right, "always": one.always}
        records.append(record | {"probabilities": [round(value, 6) for value in one.probabilities]})
    write_json_lines(path, records)
