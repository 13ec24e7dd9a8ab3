"""What `cultureval audit check` prints."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.errors import counted

if TYPE_CHECKING:
    from cultureval.audit.checks.findings import Check, Finding
    from cultureval.audit.items import AuditItem

FIRST = 3  # findings of a check that are shown without --full
COLUMNS = ("check", "severity", "items", "share")


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
    parts = [terminal_table(COLUMNS, cells, align="llrr")]
    for check in checks:
        own = [finding for finding in findings if finding.check == check.name]
        if own:
            lines = [f"  {_place(finding)}: {finding.detail}" for finding in (own if full else own[:FIRST])]
            more = (
                [] if full or len(own) <= FIRST else [f"  ... and {len(own) - FIRST:,} more (--full, --findings FILE)"]
            )
            parts.append("\n".join([f"{check.name}: {check.reason}", *lines, *more]))
    return "\n\n".join([*parts, total])


def _place(finding: "Finding") -> str:
    where = finding.row or f"all of {finding.subset}"
    return f"{finding.source} {where}"
