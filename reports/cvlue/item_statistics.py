"""What the recalls of galleries are made of: an image's share of hits counts as often as it has captions."""

from pathlib import Path

import numpy as np

from cultureval.metrics.item_statistics import ItemStatistics
from cultureval.metrics.paired_tests import ratio
from cultureval.reports.item_scores import details_columns

OF_CAPTIONS = "IR@"


def item_statistics(file: Path, task: str, metric: str) -> ItemStatistics | None:
    """Hits and queries of the images of galleries; None for other metrics, which are means of rows.

    Raises:
        CulturevalError: The details cannot be read.
    """
    if not metric.startswith(OF_CAPTIONS):
        return None
    paths = ["doc.specific.gallery", "doc.gold_index", f"metric.{metric}"]
    gallery, golds, shares = details_columns(file, paths).values()
    if gallery is None or golds is None or shares is None:
        return None
    scores = np.array([np.nan if share is None else share for share in shares], dtype=np.float64)
    queries = np.array([len(gold) if isinstance(gold, list) else 1 for gold in golds], dtype=np.float64)
    queries[np.isnan(scores)] = 0
    return ItemStatistics(np.column_stack([np.nan_to_num(scores) * queries, queries]), ratio)
