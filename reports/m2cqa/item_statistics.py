"""What the scores of M2CQA and AynVQA are made of: counts of items, whose three statements are rows."""

from functools import partial
from pathlib import Path

import numpy as np

from cultureval.metrics.item_statistics import ItemStatistics
from cultureval.metrics.m2cqa.counterfactual import item_counts, metrics_of_counts
from cultureval.metrics.m2cqa.names import PROFILE_NAMES, headline_verdict
from cultureval.metrics.m2cqa.statement_items import PROFILES, ROLES, Statement, item_verdicts, right_judgements
from cultureval.metrics.paired_tests import Floats
from cultureval.reports.item_scores import details_columns

FALSE_STATEMENTS = len(ROLES) - 1
RATES = tuple(metrics_of_counts(np.ones(8), FALSE_STATEMENTS))


def item_statistics(file: Path, task: str, metric: str) -> ItemStatistics | None:
    """The counts of a task's items for one of its rates; None for other metrics, and tasks without statements.

    Raises:
        CulturevalError: The details cannot be read, or an item's statements are not complete.
    """
    rate, _, profile = metric.rpartition("_")
    rate, verdict = (rate, profile) if profile in PROFILE_NAMES else (metric, PROFILES[headline_verdict(task)])
    (key,) = (key for key, name in PROFILES.items() if name == verdict)
    if rate not in RATES:
        return None
    paths = [*(f"doc.specific.{name}" for name in ("item_id", "role", "rows_of_task")), f"metric.{key}"]
    names, roles, counts, words = details_columns(file, paths).values()
    if names is None or roles is None or words is None:
        return None
    statements = [Statement(*row) for row in zip(names, roles, words, strict=True)]
    ids, verdicts = item_verdicts(statements, max(counts or [0]))
    parts = item_counts(*right_judgements(verdicts), verdicts == "invalid").astype(np.float64)
    rows: dict[str, list[int]] = {name: [] for name in ids}
    for row, name in enumerate(names):
        if name in rows:
            rows[name].append(row)
    return ItemStatistics(parts, _score(rate), {name: tuple(places) for name, places in rows.items()})


def _score(rate: str) -> "partial[Floats]":
    return partial(_rate, name=rate)


def _rate(sums: Floats, name: str) -> Floats:
    return metrics_of_counts(sums, FALSE_STATEMENTS)[name]
