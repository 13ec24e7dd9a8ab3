"""What a score that is no mean of its items is made of: sums over items, and the score of these sums."""

from collections.abc import Mapping
from dataclasses import dataclass

from cultureval.metrics.paired_tests import Floats, ScoreOfSums


@dataclass(frozen=True)
class ItemStatistics:
    """A metric's sufficient statistics.

    Attributes:
        parts: [N, P] of the rows of a task, or of its items, whose sums over items give the score.
        score: The score of sums [..., P].
        items: The names of the N items with their rows, where an item has several; None: a row is an item.
    """

    parts: Floats
    score: ScoreOfSums
    items: Mapping[str, tuple[int, ...]] | None = None
