"""What the answers in details make of their scores: of chosen options, by the log-probabilities in the same rows."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cultureval.metrics.choice_names import MULTI_SELECT, MULTIPLE_CHOICE
from cultureval.metrics.likelihood import scores_of_rows
from cultureval.runs.items import leaf
from cultureval.runtime.errors import CulturevalError, shorten
from cultureval.tasks.catalogue import all_tasks

if TYPE_CHECKING:
    import pyarrow

ANSWERS = ("model_response.logprobs", "doc.choices", "doc.gold_index")


def choice_metrics(task: str) -> tuple[str, ...]:
    """The metrics of a task (`|k` may follow) that its options' log-probabilities give; () of other kinds of tasks."""
    known = all_tasks().get(task.partition("|")[0])
    return tuple(next((one for one in (MULTIPLE_CHOICE, MULTI_SELECT) if known and known.declared is one), ()))


def scores_by_answers(table: "pyarrow.Table", task: str) -> dict[str, NDArray[np.float64]]:
    """The values of `choice_metrics` by the answers in details.

    Args:
        table: With the columns `ANSWERS`.
        task: Its name; `|k` may follow.

    Returns:
        Metric -> [N], nan of rows whose answer does not tell it.

    Raises:
        CulturevalError: The columns are of other kinds.
    """
    import pyarrow
    import pyarrow.compute as compute

    try:
        (logprobs, sizes), (choices, of_choices), (gold, golds) = (_flat(table, path) for path in ANSWERS)
        lengths = compute.utf8_length(choices.cast(pyarrow.string())).fill_null(0).to_numpy(zero_copy_only=False)
        logprobs = logprobs.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
        gold = gold.cast(pyarrow.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    except pyarrow.ArrowException as error:
        raise CulturevalError(f"its details hold no choices ({shorten(str(error), 80)})") from error
    known = (sizes > 0) & (sizes == of_choices) & (golds > 0)
    for bad, counts in ((~np.isfinite(logprobs), sizes), (lengths < 1, of_choices), (gold < 0, golds)):
        known[np.repeat(np.arange(len(known)), counts)[bad]] = False
    known[np.repeat(np.arange(len(known)), golds)[gold >= np.repeat(sizes, golds)]] = False
    sizes, logprobs, lengths = sizes[known], logprobs[np.repeat(known, sizes)], lengths[np.repeat(known, of_choices)]
    is_gold = np.zeros(len(logprobs), bool)
    is_gold[np.repeat(np.cumsum(sizes) - sizes, golds[known]) + gold[np.repeat(known, golds)]] = True
    found = {}
    for metric in choice_metrics(task):
        found[metric] = np.full(len(known), np.nan)
        if known.any():
            found[metric][known] = scores_of_rows(metric, logprobs, lengths, sizes, is_gold)
    return found


def _flat(table: "pyarrow.Table", path: str) -> tuple["pyarrow.Array", NDArray[np.int64]]:
    """The values of a column, of lists one row after another, and how many each row has."""
    import pyarrow
    import pyarrow.compute as compute

    column = leaf(table, path)
    if column is None or pyarrow.types.is_null(column.type):
        return pyarrow.array([], pyarrow.int64()), np.zeros(table.num_rows, np.int64)
    if not pyarrow.types.is_nested(column.type):
        return column.combine_chunks(), np.ones(table.num_rows, np.int64)
    values = column.combine_chunks()
    counts = compute.list_value_length(values).fill_null(0).to_numpy(zero_copy_only=False)
    return compute.list_flatten(values), counts.astype(np.int64)
