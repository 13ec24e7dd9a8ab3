"""Rankings of candidates by score: the gold's rank (for recall, MRR and mean rank), and NDCG.

CVLUE's visual dialogue (paper section 3, Table 10) reports R@1, R@5 and R@10 of the gold answer among 100 candidates;
the other metrics and the definition of NDCG are those of the Visual Dialog challenge (Das et al., 2017). Ties keep
their original order.
"""

import numpy as np
from numpy.typing import ArrayLike


def gold_ranks(scores: ArrayLike, gold: ArrayLike) -> np.ndarray:
    """The rank of each item's gold candidate, from 1.

    Args:
        scores: [N, C], higher is better; minus infinity is allowed.
        gold: [N] indices, 0 to C - 1.
    """
    table, position, gold_scores = _checked(scores, gold)
    before = np.arange(table.shape[1]) < position[:, None]
    return 1 + (table > gold_scores).sum(1) + ((table == gold_scores) & before).sum(1)


def gold_ties(scores: ArrayLike, gold: ArrayLike) -> np.ndarray:
    """[N] whether another candidate has the same score as the gold one; arguments and errors as in `gold_ranks`."""
    table, _, gold_scores = _checked(scores, gold)
    return (table == gold_scores).sum(1) > 1


def ndcg(scores: ArrayLike, relevance: ArrayLike) -> float:
    """Normalised discounted cumulative gain, as the Visual Dialog challenge defines it.

    For each item k is the number of candidates of non-zero relevance; the gain is the sum over the first k candidates
    of relevance / log2(rank + 1), divided by that of the ideal order.

    Args:
        scores: [N, C], higher is better.
        relevance: [N, C], 0 to 1.

    Returns:
        The mean over the items, 0 to 1.

    Raises:
        ValueError: Shapes differ, a score is not a number, or an item has no relevant candidate or a negative one.
    """
    table = _table(scores)
    gains = np.asarray(relevance, dtype=np.float64)
    if gains.shape != table.shape:
        raise ValueError(f"scores are of shape {table.shape}, relevance of {gains.shape}")
    if not np.isfinite(gains).all() or (gains < 0).any():
        raise ValueError("relevance must be finite and not negative")
    counts = (gains > 0).sum(1)
    if not counts.all():
        raise ValueError(f"item {int(np.flatnonzero(counts == 0)[0])} has no relevant candidate")
    order = np.argsort(-table, axis=1, kind="stable")
    counted = np.arange(table.shape[1]) < counts[:, None]
    discounts = np.where(counted, 1 / np.log2(np.arange(table.shape[1]) + 2), 0)
    reached = (np.take_along_axis(gains, order, 1) * discounts).sum(1)
    ideal = (-np.sort(-gains, axis=1) * discounts).sum(1)
    return float(np.mean(reached / ideal))


def number(sums: ArrayLike) -> np.ndarray:
    """How many items have a property, from sums [..., 1]: shape [...]."""
    return np.asarray(sums)[..., 0]


def _table(scores: ArrayLike) -> np.ndarray:
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or not table.size:
        raise ValueError(f"scores must be a filled table [N, C], not of shape {table.shape}")
    broken = np.isnan(table) | np.isposinf(table)
    if broken.any():
        item, candidate = (int(place[0]) for place in np.nonzero(broken))
        raise ValueError(f"the score of candidate {candidate} of item {item} is {table[item, candidate]}")
    return table


def _checked(scores: ArrayLike, gold: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    table, positions = _table(scores), np.asarray(gold)
    if positions.shape != table.shape[:1] or not np.issubdtype(positions.dtype, np.integer):
        raise ValueError(f"gold must be {table.shape[0]} whole numbers, not {positions.dtype} of {positions.shape}")
    outside = (positions < 0) | (positions >= table.shape[1])
    if outside.any():
        item = int(np.flatnonzero(outside)[0])
        raise ValueError(f"gold {positions[item]} of item {item} is outside 0 to {table.shape[1] - 1}")
    return table, positions, np.take_along_axis(table, positions[:, None], 1)
