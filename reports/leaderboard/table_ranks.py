"""Rank intervals of a table's models, from the item scores in their details."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from cultureval.metrics.paired_tests import FEW_DIFFER, compare_paired
from cultureval.metrics.resampling import percentile_tail
from cultureval.reports.leaderboard.entries import Entry
from cultureval.reports.ranks import TINY, Ranking
from cultureval.reports.run_ranks import RankedItems, rank_items
from cultureval.runs.table import Column, OneRow


@dataclass(frozen=True)
class ItemRanks:
    """The ranks of a table.

    Attributes:
        ranking: Of the models whose items could be compared, by their labels; None for fewer than two.
        without: Models without a rank interval -> why.
        notes: Sentences on what the ranks count.
        left_out: Model -> a sentence on the items that it has no score for, which count as wrong in its rank.
        behind: How far each other model is behind the best, with a 95 % interval: model -> difference, low, high.
    """

    ranking: Ranking | None
    without: dict[str, str]
    notes: Sequence[str] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    behind: dict[str, tuple[float, float, float]] = field(default_factory=dict)


def item_ranks(rows: Sequence[tuple[Entry, OneRow]], main: Column) -> ItemRanks:
    """Ranks with intervals by a paired bootstrap of items within subsets.

    Args:
        rows: Comparable entries, each with its row; those whose rows have no `parts` get no rank.
        main: The column by which they are ranked; rows that are ranked by another get no rank.
    """
    parts = max((row.parts for _, row in rows if row.main == main), key=len, default={})
    without = {entry.label: "it has no score in the main column" for entry, row in rows if not row.parts}
    without |= {entry.label: "it has other subsets" for entry, row in rows if row.parts and row.parts != parts}
    models = [
        (entry.label, {task: entry.sources[task] for task, _ in parts}) for entry, row in rows if row.parts == parts
    ]
    found = rank_items(models if parts else [], parts, higher_is_better=not main.lower)
    ranks = ItemRanks(found.ranking, without | dict(found.without), found.notes, found.left_out)
    return replace(ranks, behind=_behind(found))


def _behind(found: RankedItems) -> dict[str, tuple[float, float, float]]:
    """Paired differences to the best model, each with percentiles of its resamples, for few clusters wider ones.

    Where few items differ, or all alike, the interval reaches as far as that of `compare`, which is no single point.
    """
    import numpy as np

    ranking, resamples = found.ranking, found.resamples
    if ranking is None or resamples is None:
        return {}
    tail = percentile_tail(resamples.freedom, ranking.level)
    best = found.labels.index(ranking.rows[0].model)
    behind = {}
    for row in ranking.rows[1:]:
        place = found.labels.index(row.model)
        drawn = resamples.draws[:, place] - resamples.draws[:, best]
        difference = float(resamples.values[place] - resamples.values[best])
        low, high = np.quantile(drawn[np.isfinite(drawn)], [tail, 1 - tail])
        pairs = [subset.pair(place, best) for subset in found.subsets]
        differ = sum(int((np.asarray(pair.first) != pair.second).any(axis=1).sum()) for pair in pairs)
        if differ < FEW_DIFFER or high - low < TINY:
            result = compare_paired(pairs, len(resamples.draws), resamples.seed)
            bounds = [low, high, *(bound for bound in (result.low, result.high) if bound is not None)]
            low, high = min(bounds), max(bounds)
        behind[row.model] = (difference, float(low), float(high))
    return behind
