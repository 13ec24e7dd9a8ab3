"""The frame: a table of item scores, from which all statistics of runs are computed.

Columns: run, task (with `|k`), metric, item, cluster, num, den, sums, reason. A task's score is sum(num) / sum(den):

- `den` is the weight of an item: 1 in a mean, the captions of an image in a recall, "Q+ was right" in CFHR. 0: the
  metric does not apply to the item.
- `num` is its share of the sum; nan for an item without a score, with a `reason`.
- `sums` is its share of a corpus score (BLEU, chrF, F1), an array [P]; None elsewhere. The score is a function of the
  sum of rows (`Declared.of_sums`).
- `cluster` names an image, a poem, or a request in several dialects that items share, alike in all tasks of the same
  data. Any other item is its own cluster.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cultureval.metrics.declared import DEN, SUMS
from cultureval.metrics.statistics import Floats
from cultureval.runs.files import read_details
from cultureval.runtime.dotted_names import load_attribute
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import data_of, declared_metric

if TYPE_CHECKING:
    import pandas
    import pyarrow

SCORE = ["run", "task", "metric"]
COLUMNS = [*SCORE, "item", "cluster", "num", "den", "sums", "reason"]
NAMED = (*SCORE, "item", "cluster", "reason")  # the columns of names
NAMES = (
    "id",
    "source_row",
    "task_id",
)  # fields of `doc.specific` for names of rows: the first that all rows have
FIELDS = ("item_id", "direction", "cluster", "unscored")
NO_SCORE = "no score"
Parts = Mapping[tuple[str, str], float]  # (task with `|k`, metric) -> weight; the weights of an average sum to 1


def read_items(file: Path, task: str, judgements: Sequence[Path] = ()) -> dict[str, Any]:
    """The rows of the frame of one task of a run, as columns without `run`: arrays and lists of equal length.

    Args:
        file: Its details, ours or stock LightEval's.
        task: With `|k`.
        judgements: Later details with the same rows and a judge's metrics, the oldest first; the newest counts.

    Raises:
        CulturevalError: A file is no details file, has no score, or a judgement has other rows.
    """
    items, clusters, parts = _file_parts(file, task)
    for later in judgements:
        judged, _, added = _file_parts(later, task)
        place = {name: at for at, name in enumerate(judged)}
        if unknown := place.keys() - set(items):
            raise CulturevalError(
                f"{later} judges the item {min(unknown)!r}, which is not in {file}: judge the run again."
            )
        order = np.array([place.get(name, -1) for name in items])
        parts |= {metric: part.on(order) for metric, part in added.items()}
    if not parts:
        raise CulturevalError(f"{file} has no metric with numbers.")
    each = list(parts.values())
    return {
        "task": [task] * (len(items) * len(each)),
        "metric": np.repeat(np.array(list(parts), object), len(items)),
        "item": items * len(each),
        "cluster": clusters * len(each),
        "num": np.concatenate([part.num for part in each]),
        "den": np.concatenate([part.den for part in each]),
        "sums": [sums for part in each for sums in part.sums or [None] * len(items)],
        "reason": np.concatenate([part.reason for part in each]),
    }


def frame_of(columns: Sequence[Mapping[str, Any]], run: str) -> "pandas.DataFrame":
    """The frame of a run from the columns of its tasks, with names as categories."""
    import pandas

    made: dict[str, Any] = {"run": pandas.Categorical([run] * sum(len(part["num"]) for part in columns))}
    for name in COLUMNS[1:]:
        if name in ("num", "den"):
            made[name] = np.concatenate([np.zeros(0), *(part[name] for part in columns)])
            continue
        values = np.empty(len(made["run"]), object)
        values[:] = [value for part in columns for value in part[name]]
        made[name] = values if name == "sums" else pandas.Categorical(values)
    return pandas.DataFrame(made)


class _Part(NamedTuple):
    """One metric of the rows of a file."""

    num: Floats
    den: Floats
    sums: list[Any] | None
    reason: NDArray[np.object_]

    def on(self, order: NDArray[np.int64]) -> "_Part":
        """These scores in another order of rows; -1: a row that was not judged."""
        missing = order < 0
        num, den = np.where(missing, np.nan, self.num[order]), np.where(missing, 1.0, self.den[order])
        sums = None if self.sums is None else [None if at < 0 else self.sums[at] for at in order]
        return _Part(num, den, sums, np.where(missing, "not judged", self.reason[order]))


def _file_parts(file: Path, task: str) -> tuple[list[str], list[str], dict[str, _Part]]:
    """The items and clusters of a file's rows, and the parts of each metric."""
    table = read_details(file, ["metric", "doc.id", *(f"doc.specific.{name}" for name in (*NAMES, *FIELDS))])
    fields = {name: leaf(table, f"doc.specific.{name}") for name in (*NAMES, *FIELDS)}
    known = {name: column.to_pylist() for name, column in fields.items() if column is not None}
    items = row_names(known, table.num_rows)
    data = data_of(task)
    nothing = [None] * table.num_rows
    named = [known.get(name, nothing) for name in ("cluster", "task_id", "item_id")]
    shared = [next(filter(None, of_row), None) for of_row in zip(*named, strict=True)]
    clusters = [f"{data} {name}" if name else f"{task} {item}" for name, item in zip(shared, items, strict=True)]
    unscored = np.array([reason or "" for reason in known.get("unscored", nothing)], object)
    parts = dict(_parts(table, unscored))
    if missing := [name for name, part in parts.items() if part.sums is None and of_sums(task, name)]:
        raise CulturevalError(
            f"{file} has no {missing[0]}{SUMS}, from which {missing[0]} is computed: score the answers again."
        )
    return items, clusters, parts


def _parts(table: "pyarrow.Table", unscored: NDArray[np.object_]) -> Iterable[tuple[str, _Part]]:
    metric = table.schema.field("metric").type
    names = [metric.field(place).name for place in range(metric.num_fields)]
    columns = {name: leaf(table, f"metric.{name}") for name in names}
    verdicts = {name: _outcomes(column) for name, column in columns.items()}
    numbers = {name: _numbers(column) for name, column in columns.items() if not name.endswith((DEN, SUMS))}
    for name, values in numbers.items():
        if values is None:
            continue
        weights = _numbers(columns.get(name + DEN))
        den = np.ones(len(values)) if weights is None else np.nan_to_num(weights, nan=1.0)
        num = np.where(den == 0, 0.0, values * den)
        of_rows = columns.get(name + SUMS)
        sums = None if of_rows is None else [row and np.array(row, np.float64) for row in of_rows.to_pylist()]
        judged = max((key for key in verdicts if verdicts[key] and name.startswith(f"{key}_")), key=len, default="")
        why = np.array(verdicts[judged], object) if judged else np.full(len(values), NO_SCORE, object)
        reason = np.where(np.isnan(num), np.where(unscored != "", unscored, why), "")
        yield name, _Part(num, den, sums, reason)


def _numbers(column: "pyarrow.ChunkedArray | None") -> Floats | None:
    """A metric of all rows, nan for none; None if it is not numeric, such as a verdict."""
    import pyarrow
    import pyarrow.compute as compute

    if column is None:
        return None
    kinds = (pyarrow.types.is_null, pyarrow.types.is_floating, pyarrow.types.is_integer, pyarrow.types.is_boolean)
    known = any(is_kind(column.type) for is_kind in kinds)
    return compute.cast(column, pyarrow.float64()).to_numpy() if known else None


def _outcomes(column: "pyarrow.ChunkedArray | None") -> list[str]:
    """The outcome of each verdict of a judge; [] for other columns."""
    import pyarrow
    import pyarrow.compute as compute

    if column is None or not pyarrow.types.is_struct(column.type) or column.type.get_field_index("outcome") < 0:
        return []
    return [str(outcome or "").replace("_", " ") for outcome in compute.struct_field(column, "outcome").to_pylist()]


def row_names(columns: Mapping[str, Sequence[Any]], count: int) -> list[str]:
    """Unique names of the rows of a task, the same in every run of the same data.

    Args:
        columns: Fields of `doc.specific`: those in `NAMES`, `item_id` and `direction`; a field may be absent.
        count: Number of rows.

    Returns:
        The id in the data, after a direction of retrieval if there is one, and with a count from the second of a name
        on; `FILE row N` for a place in a file; `row N` for data without ids. Rows count from 1.
    """
    known = [name for name in NAMES if columns.get(name) and None not in columns[name]]
    values = columns[known[0]] if known else [f"row {place + 1}" for place in range(count)]
    if known[:1] == ["source_row"]:
        values = [_place_in_file(str(value)) for value in values]
    sides = columns.get("direction") or [None] * count
    names = [f"{side} {name}" if side else str(name) for side, name in zip(sides, values, strict=True)]
    seen: dict[str, int] = {}
    for place, name in enumerate(names):
        seen[name] = seen.get(name, 0) + 1
        names[place] = f"{name} ({seen[name]})" if seen[name] > 1 else name
    return names


def _place_in_file(source_row: str) -> str:
    """`file.csv row 1000` of `file.csv:999`, a row from 0."""
    file, _, number = source_row.rpartition(":")
    return f"{file} row {int(number) + 1}" if number.isdecimal() else source_row


def leaf(table: "pyarrow.Table", path: str) -> "pyarrow.ChunkedArray | None":
    """A column within structures, such as `doc.specific.cluster`; None where there is none."""
    import pyarrow
    import pyarrow.compute as compute

    first, *rest = path.split(".") if path.startswith("doc.") else path.split(".", 1)  # names of metrics may have dots
    if first not in table.column_names:
        return None
    column = table[first]
    for name in rest:
        if not pyarrow.types.is_struct(column.type) or column.type.get_field_index(name) < 0:
            return None
        column = compute.struct_field(column, name)
    return column


def of_sums(task: str, metric: str) -> Callable[[Floats], Floats] | None:
    """The function [..., P] -> [...] of a corpus score; None for a mean or a ratio."""
    declared = declared_metric(task, metric)
    return load_attribute(declared.of_sums) if declared and declared.of_sums else None


def ends(task: str, metric: str) -> tuple[float, float]:
    """The declared worst and best score of a metric; minus and plus infinity if it is not declared."""
    declared = declared_metric(task, metric)
    if declared is None:
        return -np.inf, np.inf
    return declared.range if declared.higher_is_better else declared.range[::-1]
