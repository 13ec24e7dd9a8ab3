"""What `cultureval audit curate m2cqa` writes and prints about a curation."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.data.user_cache import write_json_lines
from cultureval.runtime.errors import shown_names

if TYPE_CHECKING:
    from cultureval.audit.m2cqa.curation import Contrast
    from cultureval.audit.m2cqa.items import Outcome
    from cultureval.metrics.agreement import Coefficient

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
        file, ({"step": step} | asdict(item) for step, outcome in outcomes.items() for item in outcome.rejected)
    )


def curation_text(outcomes: "Mapping[str, Outcome]", contrasts: "Mapping[str, Contrast]") -> str:
    """Kept and rejected items of each step with reasons, and the contrast of options beside the paper's."""
    rows = []
    for step, outcome in outcomes.items():
        reasons = Counter(item.reason for item in outcome.rejected)
        counts = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
        rows.append([step, f"{len(outcome.kept):,}", f"{len(outcome.rejected):,}", counts])
    text = terminal_table(["step", "kept", "rejected", "reasons"], rows, "lrrl")
    if not contrasts:
        return text
    header = ["mean cosine", "items", "within an item", "[paper]", "across items", "[paper]"]
    rows = [
        [name, f"{item.items:,}", f"{item.within:.2f}", f"[{within}]", f"{item.across:.2f}", f"[{across}]"]
        for name, item in contrasts.items()
        for within, across in [PUBLISHED[name]]
    ]
    return f"{text}\n\n{terminal_table(header, rows, 'lr')}"


def agreement_text(found: "Mapping[tuple[str, str], Mapping[str, Coefficient]]", items: int) -> str:
    """Agreement of annotators for each question and kind of statement, beside the paper's Table 1."""
    rows = []
    for kind, values in found.items():
        numbers = zip((values["AC1"], values["raw"]), PUBLISHED_AGREEMENT[kind], strict=True)
        cells = [(f"{own.value:.3f} [{own.low:.3f}, {own.high:.3f}]", f"{paper}") for own, paper in numbers]
        rows.append([*kind, *cells[0], *cells[1]])
    table = terminal_table(["question", "statement", "AC1", "[paper]", "raw", "[paper]"], rows, "llr")
    return f"{items:,} items with labels; 95% intervals over items.\n{table}"


def disputed_text(keys: "Sequence[tuple[str, str, str]]") -> str:
    """Statements without a majority of annotators, for a further annotator."""
    statements = shown_names([f"{item} ({variety}, {role})" for item, variety, role in keys], MOST_DISPUTED)
    return f"{len(keys):,} statements without a majority, for a further annotator: {statements or 'none'}."
