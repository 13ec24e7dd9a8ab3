"""The Counterfactual Hallucination Rate (CFHR) and related metrics, from correct and incorrect verdicts on items.

Paper: "Once Correct, Still Wrong: Counterfactual Hallucination in Multilingual Vision-Language Models", arXiv
2602.05437, section 3 (CFHR) and appendix A.5 (bootstrap). An item has one true statement Q+ and K false ones Q-.
Verified: CFHR, accuracy on Q+, combined accuracy (section 3). Established from the published tables: accuracy on Q- is
per statement, F1 is the harmonic mean of both accuracies, the bootstrap is paired (all in `tests/reference`).
Contrastive instability is of ImageEval 2026, Task 1b (overview, arXiv 2608.30475).
Our own: the standard errors (`statistics`), null for undefined values, the exact form of the p-value.
"""

from collections.abc import Sequence
from functools import lru_cache

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
)
from cultureval.metrics.statistics import errors_of_ratio, errors_of_sums

Flags = NDArray[np.bool_]
Sums = NDArray[np.float64]
ITERATIONS = 1000  # the paper's


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
        `q_plus_acc`, `q_minus_acc` (per statement), `f1` (their harmonic mean), `combined_acc` (items with all
        statements correct), `cfhr` = (q_plus_acc - combined_acc) / q_plus_acc, `invalid_rate` (of outputs),
        `cfhr_valid_only` (CFHR of the items whose outputs were all readable), `contrastive_instability` = 1 - (items
        with all statements correct) / (items with any), each with its standard error over items `<name>_stderr`; and
        `n_items`, `n_q_plus` (items with correct Q+).
        Rates are in [0, 1]. Undefined values are None: CFHR without a correct Q+, the instability without a correct
        statement, standard errors as of `statistics.ClusterErrors`.

    Raises:
        ValueError: No items, other shapes than those above, or values that are neither true nor false.
    """
    right, rejected = _checked(q_plus, q_minus)
    unreadable = np.zeros((right.size, 1 + rejected.shape[1]), bool) if invalid is None else _flags(invalid, "invalid")
    if unreadable.shape != (right.size, 1 + rejected.shape[1]):
        raise ValueError(f"invalid has shape {unreadable.shape}, not {(right.size, 1 + rejected.shape[1])}")
    return report_of_counts(item_counts(right, rejected, unreadable), rejected.shape[1])


def report_of_counts(counts: ArrayLike, false_statements: int) -> dict[str, float | int | None]:
    """`counterfactual_report` of what its metrics count of each item.

    Args:
        counts: [N, 8], as of `item_counts`; at least one item.
        false_statements: K.
    """
    table = np.asarray(counts, np.float64)
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
        As in `percentile_difference`.

    Raises:
        ValueError: As in `cfhr_replicates`.
    """
    point, draws = cfhr_replicates([(a_plus, a_minus), (b_plus, b_minus)], iterations, seed)
    return percentile_difference(point[0] - point[1], draws[:, 0] - draws[:, 1])


def percentile_difference(delta: float, draws: NDArray[np.floating]) -> dict[str, float | None]:
    """A difference, its 95% percentile interval and its two-sided p-value, from bootstrap replicates.

    Args:
        delta: The difference in the sample; nan if undefined.
        draws: [B] the same difference in each resample; nan if undefined; such resamples are excluded.

    Returns:
        `delta`, `ci_low`, `ci_high` (percentiles 2.5 and 97.5), and `p_value` = (1 + number of resamples at least
        |delta| away from delta) / (B + 1). All None if the difference is undefined in the sample or in all resamples.
    """
    known = draws[~np.isnan(draws)]
    if np.isnan(delta) or not known.size:
        return dict.fromkeys(("delta", "ci_low", "ci_high", "p_value"))
    low, high = np.percentile(known, [2.5, 97.5])
    # Equal counts give differences that are equal up to rounding, which must count as equal.
    far = np.abs(known - delta) >= abs(delta) - 1e-12
    p_value = (1 + int(far.sum())) / (known.size + 1)
    return {"delta": float(delta), "ci_low": float(low), "ci_high": float(high), "p_value": p_value}


def cfhr_replicates(
    cells: Sequence[tuple[ArrayLike, ArrayLike]], iterations: int = ITERATIONS, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """CFHR of several cells, in the sample and in resamples of items that all cells share.

    Args:
        cells: C pairs (`q_plus` bool[N], `q_minus` bool[N, K]) of the same N items in the same order.
        iterations: B resamples.

    Returns:
        (CFHR [C], CFHR in each resample [B, C]); nan if no Q+ is correct.

    Raises:
        ValueError: As in `counterfactual_report`; or the cells differ in the number of items or false statements.
    """
    checked = [_checked(*cell) for cell in cells]
    if len({rejected.shape for _, rejected in checked}) > 1:
        raise ValueError(f"the cells differ in shape: {[rejected.shape for _, rejected in checked]}")
    right = np.column_stack([plus for plus, _ in checked])
    fooled = np.column_stack([plus & ~rejected.all(axis=1) for plus, rejected in checked])
    counted = np.hstack([right, fooled]).astype(np.float32)
    sums = resample_counts(len(right), iterations, seed) @ counted
    point = _ratio(fooled.sum(axis=0), right.sum(axis=0))
    return point, _ratio(sums[:, len(checked) :], sums[:, : len(checked)])


@lru_cache(maxsize=1)
def resample_counts(items: int, iterations: int, seed: int) -> NDArray[np.float32]:
    """How often each item is drawn in each bootstrap resample: float32 [iterations, items], rows sum to `items`.

    The draws are `default_rng(seed).integers(items, size=(iterations, items), dtype=int32)`. The last table is cached
    (40 MB for the 9,990 items and 1,000 iterations of the paper), since all comparisons of a run use the same one.
    """
    generator = np.random.default_rng(seed)
    counts = np.empty((iterations, items), np.float32)
    for row in counts:
        row[:] = np.bincount(generator.integers(items, size=items, dtype=np.int32), minlength=items)
    counts.setflags(write=False)
    return counts


def harmonic_mean(first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
    """Harmonic mean of two rates, elementwise; 0 if both are 0. The paper's F1 (established, see the module)."""
    first, second = np.asarray(first, np.float64), np.asarray(second, np.float64)
    total = first + second
    return np.divide(2 * first * second, total, out=np.zeros_like(total), where=total > 0)


def item_counts(right: Flags, rejected: Flags, unreadable: Flags) -> NDArray[np.int64]:
    """What the metrics count of each item: int [N, 8], for `metrics_of_counts`.

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
    """What F1 is made of, from counts [..., 8]: right Q+, items, rejected Q-, false statements: [..., 4]."""
    hits, rejections, items = (np.asarray(counts, np.float64)[..., place] for place in (0, 1, 7))
    return np.stack([hits, items, rejections, items * false_statements], axis=-1)


def f1_of_sums(sums: Sums) -> Sums:
    """F1 from sums of `f1_sums`: shape [..., 4] gives [...]."""
    return harmonic_mean(_ratio(sums[..., 0], sums[..., 1]), _ratio(sums[..., 2], sums[..., 3]))


def metrics_of_counts(sums: NDArray[np.floating], false_statements: int) -> dict[str, NDArray[np.float64]]:
    """The rates of `counterfactual_report` from sums over items [..., 8] of `item_counts`; nan where undefined."""
    found = {name: _ratio(*parts) for name, parts in ratios_of_counts(sums, false_statements).items()}
    return found | {F1: harmonic_mean(found[Q_PLUS_ACC], found[Q_MINUS_ACC])}


def ratios_of_counts(sums: NDArray[np.floating], false_statements: int) -> dict[str, tuple[Sums, Sums]]:
    """The rates that are ratios of two sums, each as these two: all of `metrics_of_counts` but F1.

    Args:
        sums: Of the counts, [..., 8]; of a single item the two are what it adds to each sum.
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
