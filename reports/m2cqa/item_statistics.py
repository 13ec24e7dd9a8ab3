"""What the scores of M2CQA and AynVQA are made of: counts of items, whose three statements are rows."""

from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cultureval.metrics.item_statistics import ItemStatistics
from cultureval.metrics.m2cqa.counterfactual import (
    item_counts,
    metrics_of_counts,
    ratios_of_counts,
    report_of_counts,
)
from cultureval.metrics.m2cqa.names import (
    CFHR,
    CFHR_VALID_ONLY,
    CONTRASTIVE_INSTABILITY,
    INVALID_RATE,
    LOWER,
    PROFILE_NAMES,
    headline_verdict,
)
from cultureval.metrics.m2cqa.statement_items import PROFILES, ROLES, Statement, item_verdicts, right_judgements
from cultureval.metrics.paired_tests import Floats, ratio
from cultureval.runs.items import details_columns, state_of

FALSE_STATEMENTS = len(ROLES) - 1
CONDITIONAL = (CFHR, CFHR_VALID_ONLY, CONTRASTIVE_INSTABILITY)  # rates whose denominators the outputs decide on
RATES = tuple(metrics_of_counts(np.ones(8), FALSE_STATEMENTS))


def item_statistics(file: Path, task: str, metric: str) -> ItemStatistics | None:
    """The counts of a task's items for one of its rates; None for other metrics, and tasks without statements.

    Of rates that are a ratio of two sums these two, of F1 all (`item_counts`). An item that an unreadable output keeps
    out of a rate's denominator (CFHR counts only items with a right Q+) has no score: a model must not gain by it.

    Raises:
        CulturevalError: The details cannot be read, or an item's statements are not complete.
    """
    rate, _, profile = metric.rpartition("_")
    rate, verdict = (rate, profile) if profile in PROFILE_NAMES else (metric, PROFILES[headline_verdict(task)])
    (key,) = (key for key, name in PROFILES.items() if name == verdict)
    if rate not in RATES:
        return None
    if (found := _judged(file, key, *state_of(file))) is None:
        return None
    items, counts, unread = found
    return replace(
        statistics_of(counts, unread, rate), items=items, error=partial(_error, file=file, key=key, rate=rate)
    )


def statistics_of(counts: Floats, unread: NDArray[np.bool_], rate: str) -> ItemStatistics:
    """`item_statistics` of verdicts that are at hand.

    Args:
        counts: [N, 8], as of `item_counts`.
        unread: [N, 1 + K] outputs without a verdict, Q+ first.
        rate: As in `RATES`.
    """
    parts = _parts(counts, rate)
    unreadable = unread[:, 0] if rate == CFHR else unread.any(axis=1)  # what decides on a place in the denominator
    left_out = unreadable & (parts[:, -1] == 0) & (rate in CONDITIONAL)
    score = ratio if parts.shape[-1] == 2 else partial(_rate, name=rate)
    worst, best = (np.tile(_parts(ends, rate), (len(parts), 1)) for ends in _ends(rate))
    return ItemStatistics(parts, score, scored=~left_out, worst=worst, best=best)


@lru_cache(maxsize=8)  # a run's rates are asked one after another
def _judged(file: Path, key: str, *state: int) -> tuple[dict[str, tuple[int, ...]], Floats, NDArray[np.bool_]] | None:
    """Items with their rows, [N, 8] counts of items and [N, 1 + K] unreadable outputs; None of other details."""
    paths = [*(f"doc.specific.{name}" for name in ("item_id", "role", "rows_of_task")), f"metric.{key}"]
    names, roles, numbers, words = details_columns(file, paths).values()
    if not names or roles is None or words is None:
        return None
    statements = [Statement(*row) for row in zip(names, roles, words, strict=True)]
    ids, verdicts = item_verdicts(statements, max(numbers or [0]))
    unread = verdicts == "invalid"
    rows: dict[str, list[int]] = {name: [] for name in ids}
    for row, name in enumerate(names):
        if name in rows:
            rows[name].append(row)
    items = {name: tuple(places) for name, places in rows.items()}
    return items, item_counts(*right_judgements(verdicts), unread).astype(np.float64), unread


def _error(sums: Floats, file: Path, key: str, rate: str) -> float | None:
    """The standard error of a rate of all items, each its own cluster, as results have it."""
    return _report(file, key, *state_of(file))[f"{rate}_stderr"]


@lru_cache(maxsize=8)
def _report(file: Path, key: str, *state: int) -> dict[str, float | int | None]:
    found = _judged(file, key, *state)
    return report_of_counts(found[1], FALSE_STATEMENTS) if found else {}


def _parts(counts: Floats, rate: str) -> Floats:
    """What a rate is made of: its two sums, or all counts where it is no ratio of two."""
    of_two = ratios_of_counts(counts, FALSE_STATEMENTS).get(rate)
    return counts if of_two is None else np.stack(of_two, axis=-1)


def _ends(rate: str) -> tuple[Floats, Floats]:
    """The counts of the worst and the best item for a rate.

    Right Q+ is what the denominators of CFHR and of the instability count: an item that fools after a right Q+ makes
    them worst, while one without any right statement would not count at all.
    """
    verdicts = [["true"] + ["true"] * FALSE_STATEMENTS, ["false"] + ["true"] * FALSE_STATEMENTS]
    verdicts += [["invalid"] * len(ROLES), ["true"] + ["false"] * FALSE_STATEMENTS]
    table = np.array(verdicts)
    fooled, wrong, unread, best = item_counts(*right_judgements(table), table == "invalid").astype(np.float64)
    worst = unread if rate == INVALID_RATE else fooled if rate.startswith(LOWER) else wrong
    return worst, best


def _rate(sums: Floats, name: str) -> Floats:
    return metrics_of_counts(sums, FALSE_STATEMENTS)[name]
