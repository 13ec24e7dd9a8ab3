"""What `cultureval audit shortcuts` prints and writes."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.data.user_cache import write_atomically

if TYPE_CHECKING:
    from cultureval.audit.shortcuts import BlindAnswer, SubsetShortcut

COLUMNS = ("data set", "subset", "without", "items", "right", "95%", "chance", "p (Holm)", "")
FIRST = 10


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
    parts = [terminal_table(COLUMNS, cells, align="lllrrrrrl")]
    lines = [
        f"  {one.item.id}: {one.gold_probability:.0%} for the gold, without the {one.without}" for one in named[:FIRST]
    ]
    if lines:
        parts.append("\n".join(["Surest of the items that are right in every order of their options:", *lines]))
    tail = f"{above:,} of {len(subsets):,} subsets are above chance; {len(named):,} items of them are right throughout."
    return "\n\n".join([*parts, f"{tail}\nsignature: {signature}"])


def _p_value(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def write_answers(path: Path, answers: "Sequence[BlindAnswer]") -> None:
    """Writes one JSON line for each answer, without texts."""
    lines = []
    for one in answers:
        item = one.item
        place = {"source": item.source, "subset": item.subset, "row": item.row, "hash": item.hash, "task": item.task}
        record = place | {"without": one.without, "gold": item.gold[0], "right": one.right, "always": one.always}
        lines.append(json.dumps(record | {"probabilities": [round(value, 6) for value in one.probabilities]}) + "\n")
    write_atomically(path, "".join(lines).encode("utf-8"))
