"""The numbers and the table of `python -m benchmarks scoring`: our seconds, others' seconds, ratios, memory."""

import math
from itertools import chain
from typing import NamedTuple

from cultureval.reports.terminal_tables import terminal_table


class Measured(NamedTuple):
    """Result of one way of scoring: median seconds, peak MiB above the start, scores (None if it has none)."""

    seconds: float
    peak_mib: float
    scores: list[list[float]] | None


def summary(measured: dict[str, Measured], needed: float) -> dict[str, float | None]:
    """The numbers of one scenario, None if a harness has none.

    Args:
        measured: Of each way of scoring, of `one_pass` over all tokens, and of `products` alone.
        needed: How many times these products must be computed at least.
    """
    ours = measured["ours"]
    others = {name: measured.get(name) for name in ("lighteval", "lm_eval", "naive")}
    result: dict[str, float | None] = {"ours_s": round(ours.seconds, 6)}
    for name, other in others.items():
        if name != "naive" or other:
            result[f"{name}_s"] = round(other.seconds, 6) if other else None
            result[f"speedup_vs_{name}"] = round(other.seconds / ours.seconds, 2) if other else None
            result[f"{name}_peak_mib"] = round(other.peak_mib) if other else None
    for name, bound in (("one_pass", measured["one_pass"].seconds), ("limit", measured["products"].seconds * needed)):
        result |= {f"{name}_s": round(bound, 6), f"ratio_to_{name}": round(ours.seconds / bound, 2)}
    result |= {"peak_mib": round(ours.peak_mib)}
    differences = [
        abs(left - right)
        for other in others.values()
        if other and other.scores
        for own, theirs in zip(ours.scores, other.scores, strict=True)
        for left, right in zip(own, theirs, strict=True)
    ]
    return result | {"max_abs_difference": max(filter(math.isfinite, differences))}


def table(results: dict[str, dict[str, float | None]]) -> str:
    """The results as text, one column per scenario."""
    names = list(dict.fromkeys(chain.from_iterable(results.values())))
    cells = {name: [result.get(name) for result in results.values()] for name in names}
    rows = [[name, *("-" if cell is None else f"{cell:.4g}" for cell in row)] for name, row in cells.items()]
    return terminal_table(["", *results], rows, "lr")
