"""EvalPlus: our change, and private functions that we use."""

from collections.abc import Callable, Mapping
from importlib import import_module
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


def sanitize_with(extract: Callable[[str], str], code: str, entry_point: str) -> str:
    """EvalPlus's `sanitize` of a model's code, with another function in place of its `code_extract`."""
    module = import_module("evalplus.sanitize")
    stock = module.code_extract
    module.code_extract = extract
    try:
        return module.sanitize(code, entry_point)
    finally:
        module.code_extract = stock


def oracle(name: str) -> Callable[..., Any]:
    """A function of a problem with several right answers: `poly`, `surface_Area` or `digit_distance_nums`."""
    return getattr(import_module("evalplus.eval"), f"_{name}")
