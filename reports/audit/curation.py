"""What `cultureval curate m2cqa` writes about a curation, and prints."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.data.user_cache import write_json_lines

if TYPE_CHECKING:
    from cultureval.audit.m2cqa.curation import Contrast
    from cultureval.audit.m2cqa.items import Outcome
    from cultureval.audit.m2cqa.people import Decided
    from cultureval.metrics.agreement import Coefficient
    from cultureval.metrics.judges.asking import CostEstimate

MOST_DISPUTED = 10  # statements that are named
PUBLISHED = {"statements": (0.71, 0.19), "options": (0.39, 0.16)}  # M2CQA, A.2.3: within, across
PUBLISHED_AGREEMENT = {  # Table 1: AC1, raw
    ("need_image", "q_plus"): (0.996, 0.996),
    ("need_image", "q_minus_1"): (0.997, 0.997),
    ("need_image", "q_minus_2"): (0.996, 0.996),
    ("correctness", "q_plus"): (0.752, 0.784),
    ("correctness", "q_minus_1"): (0.775, 0.803),
    ("correctness", "q_minus_2"): (0.695, 0.738),
}


def write_rejected(outcomes: "Mapping[str, Outcome]", file: Path) -> None:
    """Writes each rejected item with its step, reason and detail as a line of JSON."""
    write_json_lines(
        file, ({"step": step} | asdict(one) for step, outcome in outcomes.items() for one in outcome.rejected)
    )


def curation_text(outcomes: "Mapping[str, Outcome]", contrasts: "Mapping[str, Contrast]") -> str:
    """Kept and rejected items of each step with the reasons, and the check of contrast beside the paper's."""
    rows = []
    for step, outcome in outcomes.items():
        why = Counter(one.reason for one in outcome.rejected)
        told = ", ".join(f"{count} {reason}" for reason, count in why.most_common())
        rows.append([step, f"{len(outcome.kept):,}", f"{len(outcome.rejected):,}", told])
    parts = [terminal_table(["step", "kept", "rejected", "reasons"], rows, "lrrl")]
    if contrasts:
        rows = [_contrast(name, one) for name, one in contrasts.items()]
        header = ["mean cosine", "items", "within an item", "[paper]", "across items", "[paper]"]
        parts.append(terminal_table(header, rows, "lr"))
    return "\n\n".join(parts)


def _contrast(name: str, one: "Contrast") -> list[str]:
    paper = PUBLISHED[name]
    return [name, f"{one.items:,}", f"{one.within:.2f}", f"[{paper[0]}]", f"{one.across:.2f}", f"[{paper[1]}]"]


def estimates_text(estimates: "Mapping[str, CostEstimate]") -> str:
    """Calls and cost of each step and of all, if no item were rejected."""
    if not estimates:
        return "Nothing would be asked."
    first, *others = estimates.values()
    total = sum(others, first)
    lines = [f"{name}: {one}" for name, one in estimates.items()]
    return "\n".join([*lines, f"all, if no item is rejected: {total}"])


def agreement_text(found: "Mapping[tuple[str, str], Mapping[str, Coefficient]]", items: int) -> str:
    """Agreement of annotators for each question and kind of statement, beside the paper's Table 1."""
    rows = []
    for (question, role), values in found.items():
        paper = PUBLISHED_AGREEMENT[question, role]
        cells = [
            f"{values[name].value:.3f} [{values[name].low:.3f}, {values[name].high:.3f}]" for name in ("AC1", "raw")
        ]
        rows.append([question, role, cells[0], f"{paper[0]}", cells[1], f"{paper[1]}"])
    table = terminal_table(["question", "statement", "AC1", "[paper]", "raw", "[paper]"], rows, "llr")
    return f"{items:,} items with labels; 95% intervals over items.\n{table}"


def people_text(decided: "Mapping[str, Decided]", file: Path, root: Path) -> str:
    """What people decide of the items that they labelled, and how a run leaves out what they discard."""
    counts = Counter(one.decision for one in decided.values())
    return (
        f"Of {len(decided):,} items that people labelled, {counts['keep']:,} are kept, {counts['discard']:,} "
        f"discarded, {counts['review']:,} still to be reviewed: {file}\n"
        f"Leave out the discarded ones: cultureval eval MODEL m2cqa --data {root} --manifest {file}"
    )


def disputed_lines(keys: "Sequence[tuple[str, str, str]]") -> list[str]:
    """Statements on which annotators have no majority, for a further one."""
    lines = [f"  {item} ({variety}, {role})" for item, variety, role in keys[:MOST_DISPUTED]]
    more = [f"  and {len(keys) - MOST_DISPUTED} more"] if len(keys) > MOST_DISPUTED else []
    return [f"{len(keys):,} statements without a majority, for a further annotator:", *lines, *more] if keys else []
