"""Rank intervals of a table's models, from the item scores in their details."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.reports.leaderboard.entries import Entry
from cultureval.reports.run_record import Run
from cultureval.reports.saved_results import place_of_last
from cultureval.reports.standings import Standing
from cultureval.runtime.errors import CulturevalError, described

if TYPE_CHECKING:
    import numpy as np

    from cultureval.reports.ranks import Ranking, Resamples

TOLERANCE = 1e-6  # between a task's score and the mean of its items
ITEM, ID, CLUSTER = "doc.specific.source_row", "doc.id", "doc.specific.cluster"


@dataclass(frozen=True)
class ItemRanks:
    """The ranks of a table.

    Attributes:
        ranking: Of the models whose items could be compared, by their labels; None for fewer than two.
        without: Models without a rank interval -> why.
        behind: How far each other model is behind the best, with a 95 % interval: model -> difference, low, high.
    """

    ranking: "Ranking | None"
    without: dict[str, str]
    behind: dict[str, tuple[float, float, float]] = field(default_factory=dict)


class _NotComparable(Exception):
    """Why a model's items cannot be compared."""


def item_ranks(rows: Sequence[tuple[Entry, Standing]], lower: bool, seed: int = 0) -> ItemRanks:
    """Ranks with intervals by a paired bootstrap of items within subsets.

    Args:
        rows: Comparable entries, each with its row; those whose rows have no `parts` get no rank.
        lower: Whether lower scores are better.
        seed: Of the resamples.
    """
    from cultureval.reports.ranks import SubsetScores, rank_models, resample

    without = {entry.label: "it has no score in the main column" for entry, row in rows if not row.parts}
    ranked = [entry for entry, row in rows if row.parts]
    parts = next((row.parts for _, row in rows if row.parts), {})
    for entry, row in rows:
        if row.parts and row.parts.keys() != parts.keys():
            ranked.remove(entry)
            without[entry.label] = "it has other subsets"
    tables: dict[str, dict[str, _Items]] = {entry.label: {} for entry in ranked}
    for entry in ranked:
        try:
            tables[entry.label] = {
                task: _items(entry.sources[task], task, metric) for task, (metric, _) in parts.items()
            }
        except (_NotComparable, CulturevalError) as error:
            without[entry.label] = str(error)
    labels = [entry.label for entry in ranked if entry.label not in without]
    if len(labels) < 2:
        return ItemRanks(None, without)
    subsets = []
    for task, (_, weight) in parts.items():
        scores, clusters = _joined([tables[label].pop(task) for label in labels])
        if len(scores):
            subsets.append(SubsetScores(100 * scores, clusters, weight=weight))
    resamples = resample(subsets, seed=seed)
    ranking = rank_models(labels, resamples, higher_is_better=not lower)
    return ItemRanks(ranking, without, _behind(labels, ranking, resamples))


def _behind(labels: Sequence[str], ranking: "Ranking", resamples: "Resamples") -> dict[str, tuple[float, float, float]]:
    """Paired differences to the best model, each with the percentiles of its resamples."""
    import numpy as np

    best = labels.index(ranking.rows[0].model)
    found = {}
    for row in ranking.rows[1:]:
        place = labels.index(row.model)
        drawn = resamples.draws[:, place] - resamples.draws[:, best]
        low, high = np.quantile(drawn[np.isfinite(drawn)], [(1 - ranking.level) / 2, (1 + ranking.level) / 2])
        found[row.model] = (float(resamples.values[place] - resamples.values[best]), float(low), float(high))
    return found


@dataclass(frozen=True)
class _Items:
    """Scores of a task's items, in the order of their names."""

    names: "np.ndarray[Any, Any]"
    scores: "np.ndarray[Any, Any]"
    clusters: "np.ndarray[Any, Any] | None"


def _items(run: Run, task: str, metric: str) -> _Items:
    import numpy as np

    table = _columns(_file_of(run, task), metric)
    names = np.asarray(table[0], dtype=str)
    scores = np.asarray(table[1], dtype=np.float64)
    value, mean = run.value(task, metric), float(np.nanmean(scores)) if len(scores) else float("nan")
    if value is None or not abs(value - mean) < TOLERANCE:
        raise _NotComparable(f"the score of {task} is not the mean of its items' {metric}")
    order = np.argsort(names, kind="stable")
    clusters = None if table[2] is None else np.asarray(table[2], dtype=str)[order]
    return _Items(names[order], scores[order], clusters)


def _columns(file: Path, metric: str) -> tuple[list[str], list[float], list[str] | None]:
    """The names, the scores and the clusters of a details file's rows; nothing else of it is read."""
    import pyarrow
    import pyarrow.parquet

    try:
        parquet = pyarrow.parquet.ParquetFile(file)
        leaves = {parquet.schema.column(place).path for place in range(len(parquet.schema))}
        name = ITEM if ITEM in leaves else ID
        wanted = [one for one in (name, CLUSTER, f"metric.{metric}") if one in leaves]
        table = parquet.read(columns=wanted, use_threads=False).flatten().flatten()
    except (OSError, pyarrow.ArrowException) as error:
        raise CulturevalError(f"{file} cannot be read as details of LightEval: {described(error)}") from error
    if f"metric.{metric}" not in table.column_names or name not in table.column_names:
        raise _NotComparable(f"its details have no item scores of {metric}")
    clusters = table[CLUSTER].to_pylist() if CLUSTER in table.column_names else None
    return table[name].to_pylist(), table[f"metric.{metric}"].to_numpy(), clusters


def _file_of(run: Run, task: str) -> Path:
    """The details of a task of a run: details/<model>/<date>/details_<task>_<date>.parquet beside its results."""
    parts = run.file.absolute().parts
    if "results" not in parts[:-1]:
        raise _NotComparable("its results file is not in an output folder, so that its details are not found")
    place = place_of_last(parts[:-1], "results")
    folder = Path(*parts[:place], "details", *parts[place + 1 : -1], run.date)
    file = folder / f"details_{task}_{run.date}.parquet"
    if not file.is_file():
        raise _NotComparable("its details were not saved")
    return file


def _joined(items: Sequence[_Items]) -> tuple["np.ndarray[Any, Any]", list[str | None]]:
    """Scores of the items that all models have a score for, [items, models], and the items' clusters."""
    import numpy as np

    first = items[0]
    if all(np.array_equal(one.names, first.names) for one in items):
        scores, names, clusters = np.stack([one.scores for one in items], axis=1), first.names, first.clusters
    else:
        names = first.names
        for one in items[1:]:
            names = np.intersect1d(names, one.names)
        scores = np.stack([one.scores[np.searchsorted(one.names, names)] for one in items], axis=1)
        clusters = None if first.clusters is None else first.clusters[np.searchsorted(first.names, names)]
    whole = np.isfinite(scores).all(axis=1)
    shared = [None] * int(whole.sum()) if clusters is None else [name or None for name in clusters[whole].tolist()]
    return scores[whole], shared
