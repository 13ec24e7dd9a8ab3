"""What we change in EvalPlus, and what we use of it that is not public."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from cultureval.runtime.patches.table import expect, patched, source_of

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


# --- canaries ---


@patched(
    "evalplus",
    "evalplus.sanitize.code_extract",
    "It parses every run of lines of a text; ours finds the same one sooner.",
)
def _extraction_parses_all_runs_of_lines() -> None:
    from unittest.mock import patch

    from evalplus import sanitize

    program = "def canary():\n    return 1"
    found = sanitize_with(lambda _: program, "text", "canary")
    expect(found == program, "EvalPlus's sanitiser finds programs in another way: read extract_target_code_or_empty")
    with patch.object(sanitize, "syntax_check", return_value=False) as parsed:
        sanitize.code_extract("line\n" * 20)
    expect(parsed.call_count > 150, "EvalPlus's code_extract no longer parses all runs of lines: it may be fast enough")


@patched(
    "evalplus",
    "evalplus.eval._poly, _surface_Area, _digit_distance_nums",
    "Its oracles judge outputs outside the sandbox, where our rules apply them.",
)
def _oracles_are_as_read() -> None:
    found = polynomial([1, 2, 3], 2.0), surface_area(3, 4), digit_distance(1, 256)
    expect(found == (17.0, 35, 12), f"EvalPlus's oracles give {found} now: read evalplus.eval.unsafe_execute")
    source = "".join(source_of("evalplus.eval").split())
    expect(
        "assertabs(_poly(*inp,out))<=atolcontinue" in source,
        "EvalPlus now judges HumanEval/32 in another way: compare with metrics/code/rules.py",
    )
