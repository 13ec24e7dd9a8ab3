"""When an output is correct: EvalPlus 0.3.1's rules, applied by trusted code to plain data.

The oracles and the lists of tasks with a special rule are EvalPlus's own (`evalplus.eval`). Two differences: the
oracles get the inputs from before the call, even if the solution changed its arguments; and HumanEval/32 can pass
(EvalPlus 0.3.1 forgets to record results in that branch, so that every solution of this problem fails). The rules run
only in a process with limits (`comparison_server`), since hostile outputs can make them slow. How large an output may
be follows the expected one: what is beyond cannot be equal to it, so that EvalPlus fails it too.
"""

import math
from typing import Any, Literal

from cultureval.runtime.patches.evalplus import oracle
from cultureval.runtime.sandbox import codec

Dataset = Literal["humaneval", "mbpp"]
TEST_SUITES = ("base", "plus")  # of a problem: its own tests, and those that EvalPlus added

_FLOAT_ATOL = 1e-6
_RTOL = 1e-7
_NANS = (b"\0\0\0\0\0\0\xf8\x7f", b"\0\0\0\0\0\0\xf8\xff")
_MBPP_ORACLES = ("are_equivalent", "sum_div", "surface_Area", "digit_distance_nums")


def compares_sets(dataset: Dataset, entry_point: str) -> bool:
    """Whether outputs of this problem are compared as sets, so that any iterable is accepted."""
    from evalplus.eval import MBPP_OUTPUT_SET_EQ_TASKS

    return dataset == "mbpp" and entry_point in MBPP_OUTPUT_SET_EQ_TASKS


def asks_for_any_value(dataset: Dataset, entry_point: str) -> bool:
    """Whether this problem only asks for a result that is not None (such as a match object)."""
    from evalplus.eval import MBPP_OUTPUT_NOT_NONE_TASKS

    return dataset == "mbpp" and entry_point in MBPP_OUTPUT_NOT_NONE_TASKS


def asks_for_a_zero(dataset: Dataset, entry_point: str) -> bool:
    """Whether this problem asks for a zero of a polynomial, which EvalPlus 0.3.1 fails whatever it is."""
    return dataset == "humaneval" and entry_point == "find_zero"


def needs_arguments(dataset: Dataset, entry_point: str) -> bool:
    """Whether the rule of this problem looks at the arguments of the call."""
    return asks_for_a_zero(dataset, entry_point) or (dataset == "mbpp" and entry_point in _MBPP_ORACLES)


def bytes_suffice(dataset: Dataset, entry_point: str) -> bool:
    """Whether an output of this problem is right if its encoding is equal to the expected one and is `plain`."""
    special = compares_sets(dataset, entry_point) or asks_for_any_value(dataset, entry_point)
    return not special and not needs_arguments(dataset, entry_point)


def plain(encoded: bytes) -> bool:
    """Whether equal encodings mean equal values: builtin types without NaN, which is not equal to itself."""
    return encoded[:1] == b"P" and not any(nan in encoded for nan in _NANS)


class OutputRule:
    """The rule for the outputs of one suite of inputs, to be checked in order.

    After a float output, the raised tolerance stays for the suite's later outputs, as in EvalPlus.

    Args:
        dataset: The data set of the problem, which has its own special rules.
        entry_point: Name of the function to implement.
        atol: The problem's absolute tolerance.
    """

    def __init__(self, dataset: Dataset, entry_point: str, atol: float) -> None:
        self.dataset = dataset
        self.entry_point = entry_point
        self.atol = atol
        self.opaque = ""  # of the latest output, the type of an object that is not plain data
        self._set_rule = compares_sets(dataset, entry_point)
        self._any_value = asks_for_any_value(dataset, entry_point)
        self._takes_all = dataset == "mbpp" and entry_point == "are_equivalent"
        self._zero_rule = asks_for_a_zero(dataset, entry_point)
        self._bytes_suffice = bytes_suffice(dataset, entry_point)

    def agrees(self, arguments: list[Any], output: bytes, expected: bytes) -> bool:
        """Whether an output is correct.

        Args:
            arguments: The call's arguments, as they were before it; [] where no rule needs them.
            output: The solution's output, encoded; untrusted.
            expected: The canonical solution's output, encoded.

        Raises:
            MemoryError: The process has too little to read them.
        """
        if self._bytes_suffice and output == expected and plain(expected):
            if self.atol == 0 and _all_floats(expected):
                self.atol = _FLOAT_ATOL
            return True
        known, limits = codec.SizeLimits(), codec.SizeLimits()
        self.opaque = ""
        try:
            value = codec.decode(expected, known)
            if self._any_value and output[:2] not in (b"PN", b"PT", b"PF"):
                return bool(value)  # it is not None, and no bool: what it is does not matter
            limits = known.of_equals()
            given = codec.decode(output, limits)
        except codec.BadEncoding:  # also beyond the limits of equal values
            return self._takes_all
        finally:
            self.opaque = limits.opaque
        try:
            return self._values_agree(arguments, given, value)
        except Exception:  # as in EvalPlus: outputs that cannot be compared are wrong, also for want of memory
            return False

    def _values_agree(self, arguments: list[Any], output: Any, expected: Any) -> bool:
        import numpy
        from evalplus.eval import is_floats

        if self._zero_rule:
            return bool(abs(oracle("poly")(arguments[0], output)) <= self.atol)
        if isinstance(output, numpy.ndarray):
            if output.size != 1 and not (self._set_rule or self._any_value):
                return False  # EvalPlus asks whether such an array is true, which numpy refuses; before all comparisons
            if self._set_rule and output.ndim == 1:
                output == expected  # noqa: B015  # as EvalPlus does first: numpy raises where the lengths differ
        with numpy.errstate(all="ignore"):
            exact = bool(self._exact(arguments, output, expected))
        if self.atol == 0 and is_floats(expected):
            self.atol = _FLOAT_ATOL
        if exact or self.atol == 0:
            return exact
        if type(output) is not type(expected):
            return False
        if isinstance(expected, list | tuple) and len(output) != len(expected):
            return False
        given, known = numpy.asanyarray(output), numpy.asanyarray(expected)
        if math.prod(numpy.broadcast_shapes(given.shape, known.shape)) > codec.most_items_of_equals(known.size):
            return False
        with numpy.errstate(all="ignore"):
            return bool(numpy.allclose(given, known, rtol=_RTOL, atol=self.atol))

    def _exact(self, arguments: list[Any], output: Any, expected: Any) -> Any:
        if self._set_rule:
            return set(codec.hashable(list(output))) == set(expected)
        if self._any_value:
            return output == expected if isinstance(output, bool) else expected == (output is not None)
        equal = output == expected
        if self.dataset != "mbpp" or bool(equal):
            return equal
        if self._takes_all:
            return True
        if self.entry_point == "sum_div":
            return output == 0
        if self.entry_point == "surface_Area":
            return abs(output - oracle("surface_Area")(*arguments)) <= self.atol
        if self.entry_point == "digit_distance_nums":
            return output == oracle("digit_distance_nums")(*arguments)
        return equal


def _all_floats(encoded: bytes) -> bool:
    """EvalPlus's `is_floats` on an encoded plain value: a float, or a non-empty list or tuple of floats."""
    if encoded[1:2] == b"g":
        return True
    size = (len(encoded) - 6) // 9
    if encoded[1:2] not in (b"[", b"(") or size < 1 or len(encoded) != 6 + 9 * size:
        return False
    # A float takes its code and eight bytes: if the first is one, the second starts nine bytes on, and so forth.
    return int.from_bytes(encoded[2:6], "little") == size and encoded[6::9].count(b"g") == size
