"""The scores of the items of saved tasks, read without their texts: for ranks and for comparisons of runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cultureval.metrics.item_statistics import ItemStatistics
from cultureval.metrics.paired_tests import Floats, ScoreOfSums, ratio
from cultureval.reports.saved_results import read_details
from cultureval.tasks.catalogue import all_suites, all_tasks

if TYPE_CHECKING:
    import pyarrow

# Fields of `doc.specific` that name an item, the first that its data have; the place in the task where they have none.
NAMES = ("id", "source_row", "task_id")
ROUNDING = 1e-6
FIELDS = (*NAMES, "cluster", "direction")


@dataclass(frozen=True)
class ItemScores:
    """What a metric of a saved task is made of.

    Attributes:
        keys: [N] names that tell the items of a task apart, the same in every run of the same data.
        clusters: [N] what an item shares with others (an image, a poem), None where it shares nothing.
        parts: [N, P] whose sums over items give the score; for a mean the score and 1, or twice 0 for an item without.
        score: The score of sums [..., P].
        rows: [N] the rows of each item in the details.
    """

    keys: tuple[str, ...]
    clusters: tuple[str | None, ...]
    parts: Floats
    score: ScoreOfSums
    rows: tuple[tuple[int, ...], ...]

    def on(self, keys: Sequence[str]) -> "ItemScores":
        """The same of some of the items, in the given order."""
        place = {key: number for number, key in enumerate(self.keys)}
        order = [place[key] for key in keys]
        clusters, rows = (tuple(column[at] for at in order) for column in (self.clusters, self.rows))
        return ItemScores(tuple(keys), clusters, self.parts[order], self.score, rows)

    def values(self) -> Floats:
        """[N] the score of each item alone; nan where it has none."""
        return self.score(self.parts)


def item_scores(file: Path, task: str, metric: str) -> ItemScores | None:
    """The items of a details file with what a metric is made of; None where the file does not tell it.

    Args:
        file: Details of one task.
        task: Its name; `|k` may follow.
        metric: A metric of it, or a name that stands for what a suite knows (`Suite.statistics`).

    Raises:
        CulturevalError: The file cannot be read, or is not a details file of LightEval.
    """
    known = all_tasks().get(task.partition("|")[0])
    suite = all_suites().get(known.suite) if known else None
    made = suite.part("statistics")(file, task, metric) if suite and suite.statistics else None
    made = made or _mean(file, metric)
    if made is None:
        return None
    keys, clusters = row_names(file)
    if made.items is None:
        return ItemScores(keys, clusters, made.parts, made.score, tuple((row,) for row in range(len(keys))))
    names = tuple(made.items)  # an item of several rows is a cluster: it is asked in several languages and forms
    return ItemScores(names, names, made.parts, made.score, tuple(made.items.values()))


def gives(items: ItemScores, value: float | None) -> bool:
    """Whether the items give the score of the results file, up to rounding: not every score is a mean of rows."""
    found = float(items.score(items.parts.sum(axis=0)))
    return value is not None and abs(found - value) <= ROUNDING * max(1.0, abs(value))


def details_columns(file: Path, paths: Sequence[str]) -> dict[str, list[Any] | None]:
    """Single columns of a details file, without reading the others.

    Args:
        file: Details of one task.
        paths: Such as `doc.specific.cluster`.

    Returns:
        By path the values of all rows; None where the file has no such column.
    """
    table = read_details(file, paths)
    return {path: _leaf(table, path) for path in paths}


def row_names(file: Path) -> tuple[tuple[str, ...], tuple[str | None, ...]]:
    """Names that tell the rows of a details file apart, and their clusters.

    Raises:
        CulturevalError: As of `item_scores`.
    """
    import pyarrow.parquet

    columns = details_columns(file, [f"doc.specific.{name}" for name in FIELDS])
    values = {path.rpartition(".")[2]: found for path, found in columns.items()}
    count = pyarrow.parquet.read_metadata(file).num_rows
    named = next((values[name] for name in NAMES if values[name] and None not in values[name]), None)
    sides = values["direction"] or [None] * count
    keys = named or range(count)
    names = [f"{side} {key}" if side else str(key) for side, key in zip(sides, keys, strict=True)]
    clusters = values["cluster"] or values["task_id"] or [None] * count  # solutions of one problem are a cluster
    return _distinct(names), tuple(cluster or None for cluster in clusters)


def _mean(file: Path, metric: str) -> ItemStatistics | None:
    path = f"metric.{metric}"
    values = details_columns(file, [path])[path]
    if values is None or not all(value is None or isinstance(value, int | float) for value in values):
        return None
    scores = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    known = np.isfinite(scores)
    return ItemStatistics(np.column_stack([np.where(known, scores, 0.0), known]), ratio) if known.any() else None


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """The names, a repeated one with how often it came before."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, -1) + 1
        found.append(f"{name} ({seen[name] + 1})" if seen[name] else name)
    return tuple(found)


def _leaf(table: "pyarrow.Table", path: str) -> list[Any] | None:
    """The values of a column within structures; None where there is none."""
    import pyarrow.compute

    first, *rest = path.split(".") if path.startswith("doc.") else path.split(".", 1)  # metrics' names may have dots
    if first not in table.column_names:
        return None
    column = table[first]
    for name in rest:
        if not pyarrow.types.is_struct(column.type) or column.type.get_field_index(name) < 0:
            return None
        column = pyarrow.compute.struct_field(column, name)
    return column.to_pylist()
