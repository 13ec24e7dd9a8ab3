"""What `cultureval audit code` writes and prints."""

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.csv_files import write_csv
from cultureval.runtime.data.user_cache import write_atomically, write_json_lines
from cultureval.runtime.errors import counted

if TYPE_CHECKING:
    from cultureval.audit.code_refinement import Refined

PUBLISHED = {"HumanEval+": (145, 19), "MBPP+": (308, 70)}  # QIMMA's paper: modified, unchanged
REASONS = {
    "human_check": "the model asks for a person",
    "not_only_arabic": "more than the Arabic of the docstring changed",
    "no_reply": "no readable reply",
}
REVIEW_COLUMNS = ("task_id", "reason", "detail", "original", "proposed", "verdict")


def prompts_file(folder: Path, dataset: str) -> Path:
    """Where the prompts of a data set (`humaneval`) are, in the form that `cultureval code --prompts` reads."""
    return folder / f"{dataset}.jsonl"


def review_file(folder: Path, dataset: str) -> Path:
    """Where the prompts are that people shall look at."""
    return folder / f"{dataset}_review.csv"


def write_refined(refined: "Sequence[Refined]", folder: Path, dataset: str) -> None:
    """Writes the prompts of all problems, the differences from the source, and those to review."""
    write_json_lines(prompts_file(folder, dataset), map(asdict, refined))
    changes = "".join(map(_difference, refined))
    write_atomically(folder / f"{dataset}_changes.diff", changes.encode("utf-8"))
    rows = [asdict(one) for one in refined if one.outcome == "review"]
    review = [{name: row.get(name) for name in REVIEW_COLUMNS} for row in rows]
    write_csv(review_file(folder, dataset), review, REVIEW_COLUMNS, "utf-8-sig")


def _difference(one: "Refined") -> str:
    lines = [text.splitlines() for text in (one.original, one.prompt)]
    found = difflib.unified_diff(*lines, f"source/{one.task_id}", f"refined/{one.task_id}", lineterm="", n=1)
    return "".join(f"{line}\n" for line in found)


def refined_text(refined: "Mapping[str, Sequence[Refined]]", canonical: Mapping[str, tuple[int, int]]) -> str:
    """Modified and unchanged prompts as the paper counts them, what is to be reviewed and why.

    Args:
        refined: Title of a data set -> its prompts.
        canonical: Title -> (canonical solutions that pass with the refined prompts, all).
    """
    rows = []
    for title, some in refined.items():
        counts = Counter(one.outcome for one in some)
        modified, unchanged = PUBLISHED.get(title, (0, 0))
        share = f"{counts['modified'] / len(some):.0%}" if some else "n/a"
        passed = "{} of {}".format(*canonical[title]) if title in canonical else "not run"
        paper = f"{modified} / {unchanged} ({modified / (modified + unchanged):.0%})" if modified else ""
        numbers = [f"{len(some):,}", *(f"{counts[name]:,}" for name in ("modified", "unchanged", "review"))]
        rows.append([title, *numbers, share, paper, passed])
    header = ["", "prompts", "modified", "unchanged", "to review", "modified", "[paper]", "canonical solutions pass"]
    lines = [terminal_table(header, rows, "lr")]
    for title, some in refined.items():
        why = Counter(one.reason for one in some if one.outcome == "review")
        told = [f"{count:,} {REASONS.get(name, name)}" for name, count in why.most_common()]
        if told:
            lines.append(f"{title}: {counted(sum(why.values()), 'prompt')} to review: {'; '.join(told)}.")
    return "\n".join(lines)
