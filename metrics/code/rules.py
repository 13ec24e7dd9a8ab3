"""When an output is right: EvalPlus 0.3.1's rules, applied to plain data.

The oracles and the lists of problems with special rules are EvalPlus's (`evalplus.eval`). Three differences: the
oracles see the inputs as before the call; HumanEval/32 can pass (EvalPlus does not count its right outputs); a list
that contains an empty list is not close to a list of numbers.
"""

import re
from typing import Any, Literal

from cultureval.runtime.patches.evalplus import oracle
from cultureval.runtime.sandbox.codec import OPAQUE, decode

Dataset = Literal["humaneval", "mbpp"]
_FLOAT_ATOL, _RTOL = 1e-6, 1e-7
_FLOATS = re.compile(rb'[^\0]*\0(?:\{"\(":)?\[?-?(?:\d+[.e]|Infinity)')  # begins a float, or a list or tuple of them


def output_form(dataset: Dataset, entry_point: str, canonical: bool) -> str:
    """The form of a problem's results when they leave the jail (`worker`), by EvalPlus's rule."""
    from evalplus.eval import MBPP_OUTPUT_NOT_NONE_TASKS, MBPP_OUTPUT_SET_EQ_TASKS

    if dataset == "mbpp" and entry_point in MBPP_OUTPUT_SET_EQ_TASKS:
        return "set"
    if dataset == "mbpp" and entry_point in MBPP_OUTPUT_NOT_NONE_TASKS:
        return "is not None" if canonical else "bool or is not None"
    return ""


class OutputRule:
    """The rule for the outputs of one suite, in order. A float raises the tolerance of later outputs, as in EvalPlus.

    Args:
        dataset: The data set of the problem.
        entry_point: Name of the function.
        atol: The problem's absolute tolerance.
    """

    def __init__(self, dataset: Dataset, entry_point: str, atol: float) -> None:
        self.atol = atol
        self._special = entry_point if (dataset == "mbpp") != (entry_point == "find_zero") else ""

    def agrees(self, arguments: list[Any], output: bytes, expected: bytes) -> bool:
        """Whether an output is right.

        Args:
            arguments: The call's arguments, as they were before it.
            output: The solution's output, encoded; untrusted.
            expected: The canonical solution's output, encoded.

        Raises:
            MemoryError: The process has too little to read them.
        """
        # Equal bytes mean equal values, but for opaque objects and NaN.
        plain = OPAQUE not in expected and b"NaN" not in expected
        if plain and output == expected and self._special != "find_zero":
            if self.atol == 0 and _FLOATS.match(expected):
                self._raise_tolerance(decode(expected)[1])
            return True
        if self._special == "are_equivalent":
            return True
        kind, expected_value = decode(expected)
        try:
            output_kind, value = decode(output)
            return bool(self._values_agree(arguments, value, expected_value, output_kind == kind))
        except MemoryError:
            raise
        except Exception:  # as in EvalPlus, what cannot be compared is wrong; so are bytes that the jail never writes
            return False

    def _raise_tolerance(self, expected: Any) -> None:
        from evalplus.eval import is_floats

        if self.atol == 0 and is_floats(expected):
            self.atol = _FLOAT_ATOL

    def _values_agree(self, arguments: list[Any], output: Any, expected: Any, same_type: bool) -> bool:
        import numpy

        if self._special == "find_zero":
            return abs(oracle("poly")(*arguments, output)) <= self.atol
        exact = (
            output == expected
            or (self._special == "sum_div" and output == 0)
            or (self._special == "surface_Area" and abs(output - oracle("surface_Area")(*arguments)) <= self.atol)
            or (self._special == "digit_distance_nums" and output == oracle("digit_distance_nums")(*arguments))
        )
        self._raise_tolerance(expected)
        if exact or self.atol == 0:
            return exact
        if not same_type or type(output) is not type(expected):
            return False
        if numpy.shape(output) != numpy.shape(expected):  # an empty array is close to any
            return False
        with numpy.errstate(all="ignore"):
            return numpy.allclose(output, expected, rtol=_RTOL, atol=self.atol)
