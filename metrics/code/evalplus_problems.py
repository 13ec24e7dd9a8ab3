"""Problems in the form of EvalPlus's loader."""

from collections.abc import Mapping
from typing import Any


def evalplus_problems(dataset: str, rows: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Rows of a data file of `humaneval` or `mbpp`, by task id; the tuples and sets of MBPP's inputs are restored."""
    if dataset == "humaneval":
        return {task_id: dict(row) for task_id, row in rows.items()}
    from evalplus.data.mbpp import mbpp_deserialize_inputs

    return {
        task_id: {**row, **{name: mbpp_deserialize_inputs(task_id, row[name]) for name in ("base_input", "plus_input")}}
        for task_id, row in rows.items()
    }
