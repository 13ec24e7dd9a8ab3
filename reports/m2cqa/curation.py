"""What `cultureval audit curate` writes about a curation, and prints."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.data.user_cache import write_json_lines
from cultureval.runtime.errors import shown_names

if TYPE_CHECKING:
    import pandas

    from cultureval.audit.m2cqa.items import Outcome
    from cultureval.metrics.agreement import Coefficient
    from cultureval.tasks.manifest import Decision

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


def curation_text(outcomes: "Mapping[str, Outcome]", contrasts: Mapping[str, tuple[float, float]], items: int) -> str:
    """Kept and rejected items of each step with the reasons, and the contrast check of the items beside the paper's."""
    rows = []
    for step, outcome in outcomes.items():
        reasons = Counter(one.reason for one in outcome.rejected).most_common()
        listed = ", ".join(f"{count} {reason}" for reason, count in reasons)
        rows.append([step, f"{len(outcome.kept):,}", f"{len(outcome.rejected):,}", listed])
    text = terminal_table(["step", "kept", "rejected", "reasons"], rows, "lrrl")
    if not contrasts:
        return text
    header = ["mean cosine", "items", "within an item", "[paper]", "across items", "[paper]"]
    rows = []
    for name, values in contrasts.items():
        cells = zip(values, PUBLISHED[name], strict=True)
        rows.append([name, f"{items:,}", *(cell for one, paper in cells for cell in (f"{one:.2f}", f"[{paper}]"))])
    return f"{text}\n\n{terminal_table(header, rows, 'lr')}"


def people_text(
    agreement: "Mapping[tuple[str, str], Mapping[str, Coefficient]]",
    majority: "pandas.DataFrame",
    decisions: "Mapping[str, tuple[Decision, str]]",
) -> str:
    """What annotators decide, their agreement beside the paper's Table 1, and statements without a majority.

    Args:
        agreement: (question, role) -> coefficients; empty where no statement has two labels.
        majority: The majority of labels by statement and question, "" without one.
        decisions: Item -> the decision and its reason.
    """
    rows = []
    for place, values in agreement.items():
        numbers = zip((values["AC1"], values["raw"]), PUBLISHED_AGREEMENT[place], strict=True)
        cells = [(f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]", f"{paper}") for one, paper in numbers]
        rows.append([*place, *cells[0], *cells[1]])
    header = ["question", "statement", "AC1", "[paper]", "raw", "[paper]"]
    table = [terminal_table(header, rows, "llr"), "95% intervals over items."] if rows else []
    open_statements = majority.index[majority.eq("").any(axis=1)]
    named = shown_names([f"{item} ({variety}, {role})" for item, variety, role in open_statements], MOST_DISPUTED)
    counts = Counter(decision for decision, _ in decisions.values())
    return "\n".join(
        [
            *table,
            f"{len(open_statements):,} statements without a majority, for a further annotator: {named or 'none'}.",
            f"Of {len(decisions):,} items that people labelled, {counts['keep']:,} are kept, {counts['discard']:,} "
            f"discarded, {counts['review']:,} still to be reviewed.",
        ]
    )
