"""The Counterfactual Hallucination Rate (CFHR) and related metrics, from correct and incorrect verdicts on items.

Paper: "Once Correct, Still Wrong: Counterfactual Hallucination in Multilingual Vision-Language Models", arXiv
2602.05437, section 3 (CFHR) and appendix A.5 (bootstrap). An item has one true statement Q+ and K false ones Q-.
Verified: CFHR, accuracy on Q+, combined accuracy (section 3). Established from the published tables: accuracy on Q- is
per statement, F1 is the harmonic mean of both accuracies, the bootstrap is paired (all in `tests/reference`).
Contrastive instability is of ImageEval 2026, Task 1b (overview, arXiv 2608.30475).
Ours: the standard errors (`statistics`), null for undefined values, the exact form of the p-value.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cultureval.metrics.m2cqa.names import (
    CFHR,
    CFHR_VALID_ONLY,
    COMBINED_ACC,
    CONTRASTIVE_INSTABILITY,
    F1,
    INVALID_RATE,
    N_ITEMS,
    N_Q_PLUS,
    Q_MINUS_ACC,
    Q_PLUS_ACC,
    Profile,
)
from cultureval.metrics.statistics import errors_of_ratio, errors_of_sums

Flags = NDArray[np.bool_]
Sums = NDArray[np.float64]
ITERATIONS = 1000  # the paper's
ROLES = ("q_plus", "q_minus_1", "q_minus_2")
CONDITIONAL = (CFHR, CFHR_VALID_ONLY, CONTRASTIVE_INSTABILITY)  # rates with denominators that depend on outputs
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


def counterfactual_report(
    q_plus: ArrayLike, q_minus: ArrayLike, invalid: ArrayLike | None = None
) -> dict[str, float | int | None]:
    """The metrics of one cell: a model under one prompt in one language variety.

    Args:
        q_plus: bool[N], whether each item's true statement was judged true.
        q_minus: bool[N, K], whether each of its false statements was judged false. An output without a readable verdict
            is False here and in `q_plus`.
        invalid: bool[N, 1 + K], which outputs (Q+ first) had no readable verdict; None: none.

    Returns:
        Rates in [0, 1]: `q_plus_acc`, `q_minus_acc` (per statement), `f1` (their harmonic mean), `combined_acc` (items
        with all statements correct), `cfhr` = (q_plus_acc - combined_acc) / q_plus_acc, `invalid_rate` (of outputs),
        `cfhr_valid_only` (CFHR of items with readable outputs only), `contrastive_instability` = 1 - (items with all
        statements correct) / (items with any). `<name>_stderr`: the standard error of each over items. Numbers:
        `n_items`, `n_q_plus` (items with correct Q+). Undefined values are None: CFHR without a correct Q+, the
        instability without a correct statement, standard errors as of `statistics.ClusterErrors`.

    Raises:
        ValueError: No items, other shapes than those above, or values that are neither true nor false.
    """
    right, rejected = _checked(q_plus, q_minus)
    unreadable = np.zeros((right.size, 1 + rejected.shape[1]), bool) if invalid is None else _flags(invalid, "invalid")
    if unreadable.shape != (right.size, 1 + rejected.shape[1]):
        raise ValueError(f"invalid has shape {unreadable.shape}, not {(right.size, 1 + rejected.shape[1])}")
    table, false_statements = item_counts(right, rejected, unreadable).astype(np.float64), rejected.shape[1]
    errors = {}
    for name, (part, total) in ratios_of_counts(table, false_statements).items():
        counted = total > 0
        errors[name] = errors_of_ratio(part[counted], total[counted], np.flatnonzero(counted).tolist(), share=True)
    errors[F1] = errors_of_sums(f1_sums(table, false_statements), range(len(table)), f1_of_sums, share=True)
    report: dict[str, float | int | None] = {name: _number(found.value) for name, found in errors.items()}
    report |= {f"{name}_stderr": _number(found.error) for name, found in errors.items()}
    return report | {N_ITEMS: len(table), N_Q_PLUS: int(table[:, 0].sum())}


def paired_cfhr_difference(
    a_plus: ArrayLike,
    a_minus: ArrayLike,
    b_plus: ArrayLike,
    b_minus: ArrayLike,
    iterations: int = ITERATIONS,
    seed: int = 0,
) -> dict[str, float | None]:
    """CFHR of cell a minus CFHR of cell b, on the same items, with a paired bootstrap over items.

    Paper, appendix A.5 and Table 7: each resample draws the items once, with replacement, for both cells.

    Args:
        a_plus: bool[N], as `q_plus` of `counterfactual_report`.
        a_minus: bool[N, K], as `q_minus`; the same items in the same order in all four.
        b_plus: bool[N].
        b_minus: bool[N, K].
        iterations: Resamples.
        seed: Random seed of the resamples; the same seed makes all comparisons of N items consistent.

    Returns:
        `delta`, `ci_low`, `ci_high` (percentiles 2.5 and 97.5), and `p_value` = (1 + number of resamples at least
        |delta| away from delta) / (resamples + 1). Resamples without a correct Q+ are left out. All None if a CFHR is
        undefined in the sample or in all resamples.

    Raises:
        ValueError: As in `counterfactual_report`; or the cells differ in the number of items or false statements.
    """
    (a_right, a_rejected), (b_right, b_rejected) = _checked(a_plus, a_minus), _checked(b_plus, b_minus)
    if a_rejected.shape != b_rejected.shape:
        raise ValueError(f"the cells differ in shape: {a_rejected.shape} and {b_rejected.shape}")
    fooled = [right & ~rejected.all(axis=1) for right, rejected in ((a_right, a_rejected), (b_right, b_rejected))]
    counted = np.column_stack([*fooled, a_right, b_right]).astype(np.float64)
    generator, size = np.random.default_rng(seed), len(counted)
    drawn = np.array([counted[generator.integers(size, size=size, dtype=np.int32)].sum(0) for _ in range(iterations)])
    delta, *deltas = _cfhr_difference(np.vstack([counted.sum(axis=0), drawn]))
    defined = np.array([value for value in deltas if not np.isnan(value)])
    if np.isnan(delta) or not defined.size:
        return dict.fromkeys(("delta", "ci_low", "ci_high", "p_value"))
    low, high = np.percentile(defined, [2.5, 97.5])
    as_far = (
        np.abs(defined - delta) >= abs(delta) - 1e-12
    )  # equal counts give differences that are equal up to rounding
    p_value = (1 + int(as_far.sum())) / (defined.size + 1)
    return {"delta": float(delta), "ci_low": float(low), "ci_high": float(high), "p_value": p_value}


def _cfhr_difference(sums: Sums) -> list[float]:
    """[R] differences of two CFHRs from sums [R, 4]: fooled of a, of b, right Q+ of a, of b."""
    rates = _ratio(sums[:, :2], sums[:, 2:])
    return (rates[:, 0] - rates[:, 1]).tolist()


def item_counts(right: Flags, rejected: Flags, unreadable: Flags) -> NDArray[np.int64]:
    """The counts of each item for the metrics: int [N, 8].

    Args:
        right: bool[N], Q+ judged true.
        rejected: bool[N, K], Q- judged false.
        unreadable: bool[N, 1 + K], outputs without a verdict.
    """
    fooled, readable = right & ~rejected.all(axis=1), ~unreadable.any(axis=1)
    partly, every = right | rejected.any(axis=1), np.ones(right.size)
    counts = [right, rejected.sum(axis=1), fooled, unreadable.sum(axis=1), right & readable, fooled & readable, partly]
    return np.column_stack([*counts, every]).astype(np.int64)


def f1_sums(counts: NDArray[np.floating], false_statements: int) -> Sums:
    """The sums for F1, [..., 4], from counts [..., 8]: right Q+, items, rejected Q-, false statements."""
    hits, rejections, items = (np.asarray(counts, np.float64)[..., place] for place in (0, 1, 7))
    return np.stack([hits, items, rejections, items * false_statements], axis=-1)


def f1_of_sums(sums: Sums) -> Sums:
    """The harmonic mean of both accuracies from sums of `f1_sums`, 0 if both are 0: shape [..., 4] gives [...]."""
    hits, rejections = _ratio(sums[..., 0], sums[..., 1]), _ratio(sums[..., 2], sums[..., 3])
    total = hits + rejections
    return np.divide(2 * hits * rejections, total, out=np.zeros_like(total), where=total > 0)


def ratios_of_counts(sums: NDArray[np.floating], false_statements: int) -> dict[str, tuple[Sums, Sums]]:
    """Rate -> numerator and denominator, for all rates of `counterfactual_report` except F1.

    Args:
        sums: Of the counts, [..., 8].
        false_statements: K.
    """
    columns = np.moveaxis(np.float64(sums), -1, 0)
    hits, rejections, fooled, unreadable, readable_hits, readable_fooled, partly, items = columns
    return {
        Q_PLUS_ACC: (hits, items),
        Q_MINUS_ACC: (rejections, items * false_statements),
        COMBINED_ACC: (hits - fooled, items),
        CFHR: (fooled, hits),
        CONTRASTIVE_INSTABILITY: (partly - (hits - fooled), partly),
        INVALID_RATE: (unreadable, items * (1 + false_statements)),
        CFHR_VALID_ONLY: (readable_fooled, readable_hits),
    }


def _ratio(part: ArrayLike, total: ArrayLike) -> NDArray[np.float64]:
    part, total = np.asarray(part, np.float64), np.asarray(total, np.float64)
    return np.divide(part, total, out=np.full_like(total, np.nan), where=total > 0)


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _checked(q_plus: ArrayLike, q_minus: ArrayLike) -> tuple[Flags, Flags]:
    right, rejected = _flags(q_plus, "q_plus"), _flags(q_minus, "q_minus")
    if right.ndim != 1 or not right.size:
        raise ValueError(f"q_plus must be a non-empty list of flags, not of shape {right.shape}")
    if rejected.ndim != 2 or rejected.shape[0] != right.size or not rejected.shape[1]:
        raise ValueError(f"q_minus has shape {rejected.shape}, not ({right.size}, K) with K of at least 1")
    return right, rejected


def _flags(values: ArrayLike, name: str) -> Flags:
    array = np.asarray(values)
    if array.dtype != np.bool_:
        if array.dtype.kind not in "iuf" or not np.isin(array, (0, 1)).all():
            raise ValueError(f"{name} has values that are neither true nor false")
        array = array.astype(bool)
    return array


def item_columns(
    statements: Sequence[Statement],
) -> dict[str, tuple[list[float], list[float], list[list[float] | None]]]:
    """The columns of the rates, with an item's values in the row of its true statement.

    An item with a missing statement (LightEval's limit may cut the last item) does not count.

    A rate is the weighted mean of its scores. If an unreadable output excludes an item from a rate (CFHR counts only
    items with a right Q+), the item has the weight 1 and no score. If all items are excluded, the rate does not apply,
    and averages of languages leave it out.

    Args:
        statements: The rows of a task.

    Returns:
        Rate -> (scores, nan for rows without one; weights; for F1 sums [4], else None).
    """
    roles: dict[str, dict[str, int]] = {}
    for row, statement in enumerate(statements):
        roles.setdefault(statement.item_id, {})[statement.role] = row
    whole = [rows for rows in roles.values() if set(rows) >= set(ROLES)]
    places = np.array([[rows[role] for role in ROLES] for rows in whole], int).reshape(-1, len(ROLES))
    verdicts = np.array([statement.verdict for statement in statements])[places]
    invalid = verdicts == WORDS[None]
    counts = item_counts(verdicts[:, 0] == WORDS[True], verdicts[:, 1:] == WORDS[False], invalid).astype(np.float64)
    found = {}
    for rate, (part, total) in ratios_of_counts(counts, len(ROLES) - 1).items():
        decisive = invalid[:, 0] if rate == CFHR else invalid.any(axis=1)  # what decides on a place in the denominator
        lost = decisive & (total == 0) & (rate in CONDITIONAL and bool(total.any()))
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
    for place, score, den, item_sums in zip(places, scores, dens, sums, strict=True):
        all_scores[place], all_dens[place], all_sums[place] = float(score), float(den), item_sums
    return all_scores, all_dens, all_sums
