"""Our rule for outputs says what EvalPlus 0.3.1's own executor says, output by output, in order, on honest data.

Reference: `evalplus.eval.untrusted_check` of the installed package, run on every pair of output and expected value.
"""

import collections
import math
import pickle
import re
import sys
import types
from fractions import Fraction

import numpy
import pytest
from evalplus.eval import MBPP_OUTPUT_SET_EQ_TASKS as SETS
from evalplus.eval import _digit_distance_nums, _poly, _surface_Area, untrusted_check
from hypothesis import given, settings
from hypothesis import strategies as some

from cultureval.metrics.code.rules import OutputRule, output_form
from cultureval.runtime.sandbox.codec import encode
from cultureval.runtime.sandbox.worker import FORMS

Pair = collections.namedtuple("Pair", "first second")
VALUES = [
    *(None, True, False, 0, 1, 3, 24, -2, 10**30, 0.5, 1.0, 3.0000005, 3.0, 24.0000001, math.inf, math.nan, 1 + 2j),
    *("", "text", "نص", b"text", [], [1, 2], [1.0, 2.0], [1.0, 2.0000001], [2, 1], [[1], [2]], ["a", "b"]),
    *(
        (),
        (1, 2),
        (1.0, 2.0),
        (1.0000001, 2.0),
        Pair(1, 2),
        Pair(1.0, 2.0000001),
        {1, 2},
        frozenset({1, 2}),
        {"a", "b"},
    ),
    *({}, {"a": 1}, {"a": 1.0}, {1: 2, 2: 1}, collections.Counter("a"), collections.OrderedDict(a=1)),
    *(collections.deque([1, 2]), range(3), Fraction(1, 2), numpy.int64(3), numpy.float64(3.0), numpy.float32(0.5)),
    *(numpy.bool_(True), numpy.array([1.0, 2.0]), numpy.array([1, 2]), {"a": 1}.keys()),
    *({"a": 1}.items(), collections.OrderedDict(a=1).keys()),
    *(re.match("a", "a"), object, [math.nan], [True, 1], [1, True], (None,)),
]
PLAIN = (bool, int, float, str, list, tuple, dict, set, collections.Counter)
# Through pickle, as EvalPlus keeps its ground truth: no expected value is the same object as an output.
EXPECTED = pickle.loads(pickle.dumps([value for value in VALUES if type(value) in PLAIN]))  # noqa: S301


def evalplus_says(dataset, entry_point, inputs, outputs, expected, atol):
    """EvalPlus's verdict on each output; a module hands them over, since its process is forked from this one."""
    sys.modules["outputs_of_the_test"] = module = types.ModuleType("outputs_of_the_test")
    module.outputs = iter(outputs)
    code = f"import outputs_of_the_test as given\ndef {entry_point}(*arguments):\n    return next(given.outputs)\n"
    status, details = untrusted_check(
        dataset, code, inputs, entry_point, expected, atol, [1.0] * len(inputs), fast_check=False
    )
    assert len(details) == len(inputs), status
    return [bool(detail) for detail in details]


def compare(dataset, entry_point, inputs, outputs, expected, atol):
    theirs = evalplus_says(dataset, entry_point, inputs, outputs, expected, atol)
    rule, ours = OutputRule(dataset, entry_point, atol), []
    form, canonical = (FORMS[output_form(dataset, entry_point, canonical)] for canonical in (False, True))
    for arguments, output, value in zip(inputs, outputs, expected, strict=True):
        try:
            sent = encode(form(output))
        except TypeError:  # it raises in the jail, as under EvalPlus
            ours.append(False)
            continue
        known = value if entry_point == "check_str" else canonical(value)  # EvalPlus has made a truth value of it
        ours.append(rule.agrees(arguments, sent, encode(known)))
    different = [(o, e, t) for o, e, t, u in zip(outputs, expected, theirs, ours, strict=True) if t != u]
    assert not different
    return ours


@pytest.mark.parametrize("atol", [0, 1e-6, 1e-4])
@pytest.mark.parametrize("dataset", ["humaneval", "mbpp"])
def test_ordinary_problems(dataset, atol):
    pairs = [(output, value) for value in EXPECTED for output in VALUES]
    ours = compare(dataset, "solve", [[0]] * len(pairs), *map(list, zip(*pairs, strict=True)), atol)
    assert sum(ours) > len(EXPECTED)


def test_the_tolerance_that_evalplus_keeps():
    outputs, expected = [1, 1.0000005, 1], [1, 1.0, 1.0000005]
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        compare("mbpp", "solve", [[0]] * 3, [outputs[i] for i in order], [expected[i] for i in order], 0)
    # A tolerance raised for a float holds for the list of integers after it.
    compare("mbpp", "solve", [[0]] * 2, [1.0, [1, 2]], [1.0, [1, 2.0000001]], 0)


few = some.lists(some.integers(0, 3), max_size=4)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(some.lists(few | few.map(tuple) | few.map(set), max_size=5))
def test_problems_that_compare_sets(expected):
    expected = [*expected, [1, 2], (1, 2), ["a", "b"], [], ()]
    outputs = [*(one for one in VALUES if not isinstance(one, numpy.ndarray)), *[list(one) * 2 for one in expected]]
    pairs = [(output, value) for value in expected for output in outputs]
    compare("mbpp", sorted(SETS)[0], [[0]] * len(pairs), *map(list, zip(*pairs, strict=True)), 0)


def test_problems_that_ask_for_any_value():
    pairs = [(output, value) for value in (True, False) for output in VALUES]
    compare("mbpp", "check_str", [[0]] * len(pairs), *map(list, zip(*pairs, strict=True)), 0)


@pytest.mark.parametrize("entry_point", ["are_equivalent", "sum_div", "surface_Area", "digit_distance_nums"])
def test_problems_with_an_oracle(entry_point):
    values = [one for one in VALUES if not isinstance(one, numpy.ndarray)]  # EvalPlus cannot tell whether one is true
    inputs = [[3, 2]] * len(values) + [[6, 4]] * 3 + [[123, 256]] * 3
    outputs = [*values, _surface_Area(6, 4), 96.00005, 95, _digit_distance_nums(123, 256), 8, 7.0]
    compare("mbpp", entry_point, inputs, outputs, [7] * len(inputs), 1e-4)


def test_zeros_of_polynomials_are_put_into_them():
    """EvalPlus cannot be the reference here: it forgets to count this problem's outputs, so that no solution passes."""
    assert (
        untrusted_check("humaneval", "def find_zero(xs): return -0.5", [[[1, 2]]], "find_zero", [0], 1e-4, [1.0])[0]
        == "fail"
    )
    rule = OutputRule("humaneval", "find_zero", 1e-4)
    for root in (-0.5, -0.50001, -0.6, 0, math.nan, math.inf, "text", None, 10**400):
        right = isinstance(root, float) and abs(_poly([1, 2], root)) <= 1e-4
        assert rule.agrees([[1, 2]], encode(root), encode(-0.5)) == right
