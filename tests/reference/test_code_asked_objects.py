"""The mark of an object that EvalPlus would ask what it equals is there where EvalPlus 0.3.1's executor runs its code.

Each name that a class can have is overridden in a subclass of each type that leaves the sandbox as plain data, and its
uses are counted while `evalplus.eval.untrusted_check` judges an instance, by each of its rules.
"""

import collections
import decimal
import fractions
import inspect
import mmap
import sys
import types

import numpy
import pytest
from evalplus.eval import untrusted_check

from cultureval.runtime.sandbox.codec import ASKS, encode
from cultureval.runtime.sandbox.worker import encode_as_set

VALUES = [
    *(3, 3.5, 1 + 2j, "text", b"text", [1, 2], (1, 2), {1, 2}, frozenset({1, 2}), {"a": 1}, decimal.Decimal("0.5")),
    *(fractions.Fraction(1, 2), collections.Counter("a"), collections.OrderedDict(a=1), collections.deque([1])),
    *(collections.ChainMap({"a": 1}), numpy.int64(3), numpy.float64(3.5), numpy.float32(0.5), numpy.array([3])),
]
MARKED_FOR_MORE = (fractions.Fraction, collections.Counter, collections.ChainMap, collections.deque)
MARKED_FOR_MORE += (numpy.ndarray, numpy.generic)
NOT_OF_INSTANCES = {"__new__", "__init__", "__del__", "__dict__", "__slots__", "__weakref__", "__init_subclass__"}
NOT_OF_INSTANCES |= {"__array_finalize__", "__set_name__"}
RULES = [("solve", 0.0), ("solve", 1e-4), ("Diff", 0.0), ("check_str", 0.0), ("surface_Area", 1e-4), ("sum_div", 0.0)]
used = mmap.mmap(-1, 1 << 16)  # by place of an output; EvalPlus's process writes it
judged = types.SimpleNamespace(place=-1)


class Noted:
    """An attribute of a class as it was, whose uses are noted while an output is judged."""

    def __init__(self, earlier):
        self.earlier = earlier
        if hasattr(earlier, "__set__"):
            self.__class__ = NotedField

    def __get__(self, one, kind=None):
        if judged.place >= 0:
            used[judged.place] = 1
        if self.earlier is None:
            raise AttributeError
        return self.earlier.__get__(one, kind) if hasattr(self.earlier, "__get__") else self.earlier


class NotedField(Noted):
    def __set__(self, one, value):
        self.earlier.__set__(one, value)


def overridden(value, name):
    """An instance of a subclass with one name of its own, or whose metaclass has an `==`."""
    base = type(value)
    if name == "==":
        kind = type("Meta", (type(base),), {"__eq__": Noted(type.__eq__), "__hash__": type.__hash__})(
            "Own", (base,), {}
        )
    else:
        kind = type("Own", (base,), {name: Noted(inspect.getattr_static(base, name, None))})
    return value.view(kind) if base is numpy.ndarray else kind(value)


def outputs():
    names = {name for value in VALUES for name in dir(value) if name.startswith("__")} - NOT_OF_INSTANCES
    for value in VALUES:
        for name in sorted(names | ({*dir(value)} - NOT_OF_INSTANCES)):
            try:
                yield value, name, overridden(value, name)
            except (TypeError, AttributeError):  # no such instance can be made
                continue
        yield value, "==", overridden(value, "==")


def asked_by_evalplus(entry_point, atol, results, expected):
    """Whether EvalPlus's rule of a problem used the noted attribute of each result."""
    used[: len(results)] = bytes(len(results))
    sys.modules["outputs_of_the_test"] = module = types.ModuleType("outputs_of_the_test")

    def following():
        judged.place += 1
        return results[judged.place]

    module.following = following
    code = f"import outputs_of_the_test as given\ndef {entry_point}(*_):\n    return given.following()\n"
    inputs = [[3, 2]] * len(results)
    settings = (entry_point, expected, atol, [1.0] * len(results))
    _, details = untrusted_check("mbpp", code, inputs, *settings, fast_check=False)
    assert len(details) == len(results)
    return [bool(one) for one in used[: len(results)]]


@pytest.mark.slow
def test_marked_is_what_evalplus_asks():
    values, names, results = zip(*outputs(), strict=True)
    asked = [False] * len(results)
    for entry_point, atol in RULES:
        for known in (values, [True] * len(values)):
            given, expected = results, known
            if entry_point == "Diff":
                given, expected = [[one] for one in given], [[one] for one in known]
            found = asked_by_evalplus(entry_point, atol, given, expected)
            asked = [one or other for one, other in zip(asked, found, strict=True)]
    cases = list(zip(values, names, asked, [encode([one])[:1] == ASKS for one in results], strict=True))
    assert not [case for case in cases if case[2] and not case[3]]
    assert not [case for case in cases if case[3] and not case[2] and not isinstance(case[0], MARKED_FOR_MORE)]
    assert len(cases) > 1000 and sum(asked) > 60


def test_marked_is_what_evalplus_asks_where_it_compares_sets():
    cases = [case for case in outputs() if case[1] == "__eq__" and hasattr(case[0], "__iter__")]
    values, _, results = zip(*cases, strict=True)
    asked = asked_by_evalplus("similar_elements", 0.0, results, values)
    assert sum(asked) > 9
    assert not [case for case, one in zip(cases, asked, strict=True) if one and encode_as_set(case[2])[:1] != ASKS]
