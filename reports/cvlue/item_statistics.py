"""What recalls of galleries and NDCG are made of: an image counts as often as it has captions, or has no relevances."""

from pathlib import Path

import numpy as np

from cultureval.metrics.item_statistics import ItemStatistics, of_mean
from cultureval.runs.items import details_columns
from cultureval.tasks.catalogue import declared_metric

OF_CAPTIONS, OF_IMAGES, DENSE = "IR@", "TR@", "NDCG"
DIRECTION = "doc.specific.direction"  # of the rows of a dual encoder, which are queries of both directions


def item_statistics(file: Path, task: str, metric: str) -> ItemStatistics | None:
    """Hits and queries of galleries, and NDCG of the dialogues that have relevances.

    Returns:
        None for other metrics, which are means of all rows.

    Raises:
        CulturevalError: The details cannot be read.
    """
    if not metric.startswith((OF_CAPTIONS, OF_IMAGES, DENSE)):
        return None
    columns = details_columns(file, [DIRECTION, f"metric.{metric}"])
    if (directions := columns[DIRECTION]) and (values := columns[f"metric.{metric}"]):
        scores = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
        return of_mean(scores, declared_metric(task, metric), [float(one == metric[:2]) for one in directions])
    if metric.startswith(OF_IMAGES):
        return None
    paths = [f"doc.specific.{'relevance' if metric.startswith(DENSE) else 'gallery'}", "doc.gold_index"]
    given, golds, shares = details_columns(file, [*paths, f"metric.{metric}"]).values()
    if not given or golds is None or shares is None:
        return None
    scores = np.array([np.nan if share is None else share for share in shares], dtype=np.float64)
    if metric.startswith(DENSE):
        counts = [float(any(relevances or ())) for relevances in given]
    else:
        counts = [float(len(gold)) if isinstance(gold, list) else 1.0 for gold in golds]
    return of_mean(scores, declared_metric(task, metric), counts)
