"""What a score that is no mean of its items is made of: sums over items, and the score of these sums."""

from dataclasses import dataclass

from cultureval.metrics.paired_tests import Floats, ScoreOfSums


@dataclass(frozen=True)
class ItemStatistics:
    """A metric's sufficient statistics.

    Attributes:
        parts: [N, P] of the rows of a task, or of its items, whose sums over items give the score.
        score: The score of sums [..., P].
        items: [N] names of the items, where an item has several rows; None: a row is an item.
    """

    parts: Floats
    score: ScoreOfSums
    items: tuple[str, ...] | None = None
