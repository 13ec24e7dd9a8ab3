"""What we change in EvalPlus, and what we use of it that is not public."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

# --- data ---


def evalplus_problems(dataset: str, rows: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Rows of a data file of `humaneval` or `mbpp`, by task id; the tuples and sets of MBPP's inputs are restored."""
    if dataset == "humaneval":
        return {task_id: dict(row) for task_id, row in rows.items()}
    from evalplus.data.mbpp import mbpp_deserialize_inputs

    return {
        task_id: {**row, **{name: mbpp_deserialize_inputs(task_id, row[name]) for name in ("base_input", "plus_input")}}
        for task_id, row in rows.items()
    }


# --- sanitising ---


def sanitize_with(extract: Callable[[str], str], code: str, entry_point: str) -> str:
    """EvalPlus's `sanitize` of a model's code, with another function in place of its `code_extract`."""
    module = import_module("evalplus.sanitize")
    stock = module.code_extract
    module.code_extract = extract
    try:
        return module.sanitize(code, entry_point)
    finally:
        module.code_extract = stock


# --- the oracles of problems with several right answers ---


def polynomial(coefficients: Sequence[float], at: float) -> float:
    """HumanEval/32: the value of a polynomial."""
    from evalplus.eval import _poly

    return _poly(coefficients, at)


def surface_area(base_edge: float, height: float) -> int:
    """Mbpp/581: the surface of a square pyramid, where `height` is that of its apex."""
    from evalplus.eval import _surface_Area

    return _surface_Area(base_edge, height)


def digit_distance(one: int, other: int) -> int:
    """Mbpp/558: the sum of the differences of two numbers' digits."""
    from evalplus.eval import _digit_distance_nums

    return _digit_distance_nums(one, other)
