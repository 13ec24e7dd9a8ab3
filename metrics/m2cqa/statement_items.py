"""M2CQA's items of three statements, and what their rates are made of."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cultureval.metrics.m2cqa.counterfactual import (
    f1_of_sums,
    f1_sums,
    item_counts,
    ratios_of_counts,
)
from cultureval.metrics.m2cqa.names import CFHR, CFHR_VALID_ONLY, CONTRASTIVE_INSTABILITY, F1, Profile

ROLES = ("q_plus", "q_minus_1", "q_minus_2")
CONDITIONAL = (CFHR, CFHR_VALID_ONLY, CONTRASTIVE_INSTABILITY)  # rates whose denominators the outputs decide on
WORDS = {True: "true", False: "false", None: "invalid"}
# Key in the details -> profile of `parse_verdict`.
PROFILES: dict[str, Profile] = {
    "verdict": "strict",
    "verdict_lenient": "lenient",
    "verdict_organisers": "organisers",
}


class Statement(NamedTuple):
    """A verdict on a statement: its item, its role (of `ROLES`), and "true", "false" or "invalid"."""

    item_id: str
    role: str
    verdict: str


def item_columns(
    statements: Sequence[Statement],
) -> dict[str, tuple[list[float], list[float], list[list[float] | None]]]:
    """What the rates of items are made of, in the rows of their true statements.

    An item that lacks a statement, as the last one where LightEval's limit cuts it, does not count.

    A rate's score is the sum of score times count over rows, divided by the sum of counts. An item that an unreadable
    output keeps out of a rate (CFHR counts only items with a right Q+) counts once and has no score; where that is all
    items, the rate does not apply, and averages of languages leave it out.

    Args:
        statements: The rows of a task.

    Returns:
        Rate -> (scores, nan of rows without one; how often rows count; of F1 its sums [4], else None).
    """
    roles: dict[str, dict[str, int]] = {}
    for row, statement in enumerate(statements):
        roles.setdefault(statement.item_id, {})[statement.role] = row
    whole = [rows for rows in roles.values() if set(rows) >= set(ROLES)]
    places = np.array([[rows[role] for role in ROLES] for rows in whole], int).reshape(-1, len(ROLES))
    verdicts = np.array([statement.verdict for statement in statements])[places]
    unread = verdicts == WORDS[None]
    counts = item_counts(verdicts[:, 0] == WORDS[True], verdicts[:, 1:] == WORDS[False], unread).astype(np.float64)
    found = {}
    for rate, (part, total) in ratios_of_counts(counts, len(ROLES) - 1).items():
        unreadable = unread[:, 0] if rate == CFHR else unread.any(axis=1)  # what decides on a place in the denominator
        lost = unreadable & (total == 0) & (rate in CONDITIONAL and bool(total.any()))
        scores = np.divide(part, total, out=np.full(len(part), np.nan), where=total > 0)
        found[rate] = (scores, np.where(lost, 1.0, total), [None] * len(part))
    sums = f1_sums(counts, len(ROLES) - 1)
    found[F1] = (f1_of_sums(sums), np.ones(len(sums)), sums.tolist())
    return {rate: _in_rows(len(statements), places[:, 0], *columns) for rate, columns in found.items()}


def _in_rows(
    size: int, places: np.ndarray, scores: np.ndarray, dens: np.ndarray, sums: Sequence[list[float] | None]
) -> tuple[list[float], list[float], list[list[float] | None]]:
    all_scores, all_dens = [float("nan")] * size, [0.0] * size
    all_sums: list[list[float] | None] = [None] * size
    for place, score, den, own in zip(places, scores, dens, sums, strict=True):
        all_scores[place], all_dens[place], all_sums[place] = float(score), float(den), own
    return all_scores, all_dens, all_sums
