"""The scores of the items of saved tasks, read without their texts: for ranks and for comparisons of runs."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cultureval.metrics.item_statistics import ItemStatistics, of_mean
from cultureval.metrics.paired_tests import Floats, ScoreOfSums
from cultureval.runs.files import read_details
from cultureval.runs.means import agree
from cultureval.runs.rows import NAMES, NOT_ASKED, is_verdict, names_in_columns, owner_of, saved_reply
from cultureval.tasks.catalogue import all_suites, all_tasks, data_of, declared_metric

if TYPE_CHECKING:
    import pyarrow

NAME_PATHS = tuple(f"doc.specific.{name}" for name in (*NAMES, "cluster", "direction"))
CLUSTERS = ("doc.specific.cluster", "doc.specific.task_id")  # solutions of one problem are a cluster


@dataclass(frozen=True)
class ItemScores:
    """What a metric of a saved task is made of.

    Attributes:
        keys: [N] names that tell the items of a task apart, the same in every run of the same data.
        clusters: [N] what an item shares with others (an image, a poem), None where it shares nothing.
        parts: [N, P] whose sums over items give the score; for a mean the score and 1, or twice 0 for an item without.
        score: The score of sums [..., P].
        rows: [N] the rows of each item in the details.
        scored: [N] whether an item has a score; one without is never "nothing lost".
        worst: [N, P] what the parts would be with the worst possible score; None: nothing bounds it.
        best: [N, P] likewise with the best possible score.
        error: As of `ItemStatistics`; None of a selection of items.
    """

    keys: tuple[str, ...]
    clusters: tuple[str | None, ...]
    parts: Floats
    score: ScoreOfSums
    rows: tuple[tuple[int, ...], ...]
    scored: NDArray[np.bool_]
    worst: Floats | None = None
    best: Floats | None = None
    error: Callable[[Floats], float | None] | None = None

    def on(self, keys: Sequence[str]) -> "ItemScores":
        """The same of some of the items, in the given order."""
        place = {key: number for number, key in enumerate(self.keys)}
        order = [place[key] for key in keys]
        clusters, rows = (tuple(column[at] for at in order) for column in (self.clusters, self.rows))
        worst, best = (None if ends is None else ends[order] for ends in (self.worst, self.best))
        scored = self.scored[order]
        return ItemScores(tuple(keys), clusters, self.parts[order], self.score, rows, scored, worst, best)

    def with_lacking(self, count: int) -> "ItemScores":
        """With so many more items, which no run has in its details: nobody has a score for them, or knows their names.

        Where items have bounds of their own, nothing bounds these.
        """
        if not count:
            return self
        scored, nothing = np.append(self.scored, np.zeros(count, bool)), np.zeros((count, self.parts.shape[1]))
        worst, best = (
            None if ends is None or np.ptp(ends, axis=0).any() else ends[np.zeros(len(scored), int)]
            for ends in (self.worst, self.best)
        )
        keys = self.keys + tuple(f"in no details: {number}" for number in range(count))
        clusters, rows = self.clusters + (None,) * count, self.rows + ((),) * count
        return ItemScores(keys, clusters, np.vstack([self.parts, nothing]), self.score, rows, scored, worst, best)

    def values(self) -> Floats:
        """[N] the score of each item alone; nan where it has none."""
        return self.score(self.parts)

    def filled(self, best: bool = False) -> Floats | None:
        """[N, P] the parts, of items without a score the worst (or best) possible; None where nothing bounds them."""
        ends = self.best if best else self.worst
        if self.scored.all():
            return self.parts
        return None if ends is None else np.where(self.scored[:, None], self.parts, ends)


def aligned(tables: Sequence[ItemScores]) -> list[ItemScores]:
    """The items that any of some tables of one task and metric has, in each table in the same order.

    Args:
        tables: At least one, of the same data.

    Returns:
        Where a table lacks an item, it is without a score there, between the bounds that the others have of it.
        Clusters are one table's: of those that have some the one with the fewest, where they may differ (`--allow`).
    """
    first, *others = tables
    if all((table.keys, table.clusters) == (first.keys, first.clusters) for table in others):
        return list(tables)
    home = {key: (table, at) for table in reversed(tables) for at, key in enumerate(table.keys)}
    keys = tuple(dict.fromkeys(key for table in tables for key in table.keys))
    homes = [home[key] for key in keys]
    told = sorted(tables, key=lambda table: (not any(table.clusters), _share_of_clusters(table), str(table.clusters)))
    named = {key: name for table in told[::-1] for key, name in zip(table.keys, table.clusters, strict=True)}
    clusters = tuple(named[key] for key in keys)
    ends = {
        name: None
        if any(getattr(table, name) is None for table in tables)
        else np.array([getattr(table, name)[at] for table, at in homes])
        for name in ("worst", "best")
    }
    found = []
    for table in tables:
        place = {key: at for at, key in enumerate(table.keys)}
        own = [at for at, key in enumerate(keys) if key in place]
        order = [place[keys[at]] for at in own]
        parts, scored = np.zeros((len(keys), table.parts.shape[1])), np.zeros(len(keys), bool)
        parts[own], scored[own] = table.parts[order], table.scored[order]
        rows = tuple(table.rows[place[key]] if key in place else () for key in keys)
        found.append(ItemScores(keys, clusters, parts, table.score, rows, scored, **ends))
    return found


def drawn_with(items: ItemScores, task: str, tasks: Sequence[str]) -> list[Hashable | None]:
    """What is drawn together with each item where scores are averaged: one name, one draw; None for an item alone.

    A cluster is one in all tasks of the same data, such as an item that is asked in several forms; and an item without
    one is the same in all metrics of its task.

    Args:
        items: Of one of the scores.
        task: Its task with `|k`.
        tasks: Those of all scores, once a score.
    """
    data, again = data_of(task), tasks.count(task) > 1
    keys = [(task, key) if again else None for key in items.keys]
    return [key if name is None else (data, name) for name, key in zip(items.clusters, keys, strict=True)]


def note_lacking(found: dict[Any, NDArray[np.bool_]], task: Hashable, items: ItemScores) -> None:
    """Adds to `(task, keys) -> items without one of its scores`: an item is one in all metrics of its task."""
    place = task, items.keys
    found[place] = ~items.scored | found.get(place, False)


def _share_of_clusters(table: ItemScores) -> float:
    """How many clusters a table has for each of its items."""
    return len({name or (key,) for key, name in zip(table.keys, table.clusters, strict=True)}) / max(len(table.keys), 1)


def item_scores(file: Path, task: str, metric: str) -> ItemScores | None:
    """The items of a details file with what a metric is made of; None where the file does not tell it.

    Args:
        file: Details of one task.
        task: Its name; `|k` may follow.
        metric: A metric of it, or a name that stands for what a suite knows (`Suite.statistics`).

    Raises:
        CulturevalError: The file cannot be read, or is not a details file of LightEval.
    """
    made, named = suite_statistics(file, task, metric), None
    if made is None:
        table = read_details(file, [f"metric.{metric}", *NAME_PATHS])  # all at once: opening is half of reading
        scores = _scores(leaf(table, f"metric.{metric}"))
        if scores is None:
            return None
        made, named = of_mean(scores, declared_metric(task, metric)), _names_and_clusters(table)
    if made.items is not None:  # an item of several rows is a cluster: it is asked in several languages and forms
        keys = clusters = tuple(made.items)
        rows = tuple(made.items.values())
    else:
        keys, clusters = named or names_and_clusters(file)
        rows = tuple((row,) for row in range(len(keys)))
    scored = np.ones(len(keys), bool) if made.scored is None else made.scored
    return ItemScores(keys, clusters, made.parts, made.score, rows, scored, made.worst, made.best, made.error)


def suite_statistics(file: Path, task: str, metric: str) -> ItemStatistics | None:
    """What the task's suite knows that a metric is made of; None of a mean of rows, and of tasks of no known suite.

    Raises:
        CulturevalError: As of `item_scores`.
    """
    known = all_tasks().get(task.partition("|")[0])
    suite = all_suites().get(known.suite) if known else None
    return suite.part("statistics")(file, task, metric) if suite and suite.statistics else None


def score_of_all(items: ItemScores | ItemStatistics) -> float:
    """The score of all items; nan where it is undefined."""
    return float(items.score(items.parts.sum(axis=0)))


def in_denominator(items: ItemScores | ItemStatistics) -> int:
    """How many items count in the denominator of a mean or a ratio."""
    return int((items.parts[:, -1] != 0).sum())


def gives(items: ItemScores, value: float | None) -> bool:
    """Whether the items give the score of the results file, up to rounding: not every score is a mean of rows."""
    return value is not None and agree(score_of_all(items), value)


def details_columns(file: Path, paths: Sequence[str]) -> dict[str, list[Any] | None]:
    """Columns of a details file, such as `doc.specific.cluster`, without reading the others.

    Returns:
        By path the values of all rows; None where the file has no such column.
    """
    table = read_details(file, paths)
    found = {path: leaf(table, path) for path in paths}
    return {path: None if column is None else column.to_pylist() for path, column in found.items()}


def saved_replies(file: Path) -> list[str] | None:
    """`saved_reply` of each row of a details file; None of a file without replies."""
    paths = [f"model_response.{name}" for name in ("text", "text_post_processed")]
    said, read = details_columns(file, paths).values()
    if said is None:
        return None
    both = zip(said, read or [None] * len(said), strict=True)
    return [saved_reply({"text": one, "text_post_processed": other}) for one, other in both]


def metric_names(file: Path) -> list[str]:
    """The metrics that a details file has values of."""
    import pyarrow.parquet

    kind = pyarrow.parquet.read_schema(file).field("metric").type
    return [kind.field(place).name for place in range(kind.num_fields)]


def verdicts_asked(file: Path, metric: str) -> int:
    """How many rows of a details file the judge of a metric was asked about."""
    prefix = owner_of(metric, [name for name in metric_names(file) if name != metric])
    verdicts = details_columns(file, [f"metric.{prefix}"]).popitem()[1] or []
    return sum(is_verdict(one) and one["outcome"] != NOT_ASKED for one in verdicts)


@lru_cache(maxsize=8)  # the scores of a task are asked one after another
def _row_names(file: Path, *state: int) -> tuple[tuple[str, ...], tuple[str | None, ...]]:
    return _names_and_clusters(read_details(file, NAME_PATHS))


def names_and_clusters(file: Path) -> tuple[tuple[str, ...], tuple[str | None, ...]]:
    """The names of the rows of a details file, as every command has them, and as of `clusters_of`.

    Raises:
        CulturevalError: As of `item_scores`.
    """
    return _row_names(file, *state_of(file))


def clusters_of(table: "pyarrow.Table") -> list[str | None]:
    """What each row of details shares with others (an image, a poem, a problem), None where it shares nothing."""
    for path in CLUSTERS:
        if (column := leaf(table, path)) is not None:
            return [cluster or None for cluster in column.to_pylist()]
    return [None] * table.num_rows


def state_of(file: Path) -> tuple[int, int]:
    """What changes when a file does."""
    about = file.stat()
    return about.st_mtime_ns, about.st_size


def _names_and_clusters(table: "pyarrow.Table") -> tuple[tuple[str, ...], tuple[str | None, ...]]:
    """Names that tell the rows of details apart, and their clusters; of the columns `NAME_PATHS`."""
    found = {name: leaf(table, f"doc.specific.{name}") for name in (*NAMES, "direction")}
    columns = {name: column.to_pylist() for name, column in found.items() if column is not None}
    return tuple(names_in_columns(columns, table.num_rows)), tuple(clusters_of(table))


def _scores(column: "pyarrow.ChunkedArray | None") -> Floats | None:
    """A metric's column of a details file, nan for None; None where there is no such column of numbers, or no row."""
    values = None if column is None else column.to_pylist()
    if not values or not all(value is None or isinstance(value, int | float) for value in values):
        return None
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def leaf(table: "pyarrow.Table", path: str) -> "pyarrow.ChunkedArray | None":
    """A column within structures, such as `doc.specific.cluster`; None where there is none."""
    import pyarrow.compute

    first, *rest = path.split(".") if path.startswith("doc.") else path.split(".", 1)  # metrics' names may have dots
    if first not in table.column_names:
        return None
    column = table[first]
    for name in rest:
        if not pyarrow.types.is_struct(column.type) or column.type.get_field_index(name) < 0:
            return None
        column = pyarrow.compute.struct_field(column, name)
    return column
