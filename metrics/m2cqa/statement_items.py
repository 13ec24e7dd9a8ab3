"""M2CQA's items: group verdicts on statements by item, for `counterfactual_report`."""

import logging
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cultureval.metrics.m2cqa.counterfactual import counterfactual_report
from cultureval.metrics.m2cqa.names import Profile
from cultureval.runtime.errors import CulturevalError

logger = logging.getLogger(__name__)

ROLES = ("q_plus", "q_minus_1", "q_minus_2")
WORDS = {True: "true", False: "false", None: "invalid"}
# Key in the details -> profile of `parse_verdict`.
PROFILES: dict[str, Profile] = {
    "verdict": "strict",
    "verdict_tolerant": "tolerant",
    "verdict_lenient": "lenient",
    "verdict_organisers": "organisers",
}


class Statement(NamedTuple):
    """A verdict on a statement: its item, its role (of `ROLES`), and "true", "false" or "invalid"."""

    item_id: str
    role: str
    verdict: str


def item_verdicts(statements: Sequence[Statement], rows_of_task: int) -> tuple[list[str], np.ndarray]:
    """Group verdicts by item.

    Args:
        statements: In LightEval's order.
        rows_of_task: Number of statements of the task. With fewer (a LightEval limit), an incomplete last item is
            excluded with a warning.

    Returns:
        (ids of the N items in order of first appearance, their verdicts [N, 3] in the order of `ROLES`).

    Raises:
        ValueError: There is no statement.
        CulturevalError: An item has a missing or duplicated statement, or a bad verdict; the message names the item.
    """
    if not statements:
        raise ValueError("there is no statement")
    items: dict[str, dict[str, str]] = {}
    for item_id, role, verdict in statements:
        roles = items.setdefault(item_id, {})
        if role not in ROLES or verdict not in WORDS.values():
            raise CulturevalError(f"M2CQA: the item {item_id!r} has a statement {role!r} with verdict {verdict!r}.")
        if role in roles:
            raise CulturevalError(f"M2CQA: the item {item_id!r} has a duplicated statement {role}.")
        roles[role] = verdict
    last = next(reversed(items), None)
    if len(statements) < rows_of_task and last is not None and len(items[last]) < len(ROLES):
        logger.warning("M2CQA: the limit cuts the item %r, which is excluded from the scores.", last)
        del items[last]
    for item_id, roles in items.items():
        if missing := [role for role in ROLES if role not in roles]:
            raise CulturevalError(f"M2CQA: the item {item_id!r} lacks its statement {' and '.join(missing)}.")
    table = [[roles[role] for role in ROLES] for roles in items.values()]
    return list(items), np.array(table, dtype=str).reshape(-1, len(ROLES))


def cell_report(verdicts: np.ndarray) -> dict[str, float | int | None]:
    """`counterfactual_report` of verdicts, [N, 3] of "true", "false" and "invalid", Q+ in the first column."""
    return counterfactual_report(*right_judgements(verdicts), verdicts == "invalid")


def right_judgements(verdicts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Correct verdicts: Q+ judged true, bool[N], and Q- judged false, bool[N, 2]; invalid is wrong in both."""
    return verdicts[:, 0] == "true", verdicts[:, 1:] == "false"
