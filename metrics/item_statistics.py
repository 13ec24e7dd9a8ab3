"""What a score that is no mean of its items is made of: sums over items, and the score of these sums."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cultureval.metrics.declared import Declared
from cultureval.metrics.paired_tests import Floats, ScoreOfSums, ratio


@dataclass(frozen=True)
class ItemStatistics:
    """A metric's sufficient statistics.

    Attributes:
        parts: [N, P] of the rows of a task, or of its items, whose sums over items give the score; of an item without a
            score they add nothing.
        score: The score of sums [..., P].
        items: The names of the N items with their rows, where an item has several; None: a row is an item.
        scored: [N] whether an item has a score; None: all have.
        worst: [N, P] what the parts would be with the worst possible score, of a metric that is better if lower the
            highest; None: nothing bounds it.
        best: [N, P] likewise with the best possible score.
        error: The standard error of the score of all items as its metric draws it, from the sums [G, P] of clusters,
            None where it has none; None: that of a ratio of two sums, and of other scores nobody knows.
    """

    parts: Floats
    score: ScoreOfSums
    items: Mapping[str, tuple[int, ...]] | None = None
    scored: NDArray[np.bool_] | None = None
    worst: Floats | None = None
    best: Floats | None = None
    error: Callable[[Floats], float | None] | None = None


def of_mean(scores: ArrayLike, declared: Declared | None, counts: ArrayLike = 1.0) -> ItemStatistics:
    """The statistics of a mean of items.

    Args:
        scores: [N]; nan of items without a score.
        declared: What is known of the metric; None: nothing bounds its scores.
        counts: [N] how often an item counts; 0 where the metric does not apply to it, which then needs no score.

    Raises:
        ValueError: There is no item.
    """
    values = np.asarray(scores, np.float64)
    if not values.size:
        raise ValueError("there is no item")
    weights = np.broadcast_to(np.asarray(counts, np.float64), values.shape)
    known = np.isfinite(values)
    ends = declared.range if declared else (-np.inf, np.inf)
    fills = [np.column_stack([end * weights, weights]) if np.isfinite(end) else None for end in ends]
    worst, best = fills if declared is None or declared.higher_is_better else reversed(fills)
    parts = np.column_stack([np.where(known, values, 0.0) * weights, known * weights])
    return ItemStatistics(parts, ratio, scored=known | (weights == 0), worst=worst, best=best)
