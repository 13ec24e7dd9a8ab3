"""Plain data leaves the sandbox as it was; objects leave as what they equal or as opaque; other bytes are refused."""

import collections
import decimal
import enum
import fractions
import math
import types

import numpy
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as some

from cultureval.runtime.sandbox.codec import BadData, Opaque, decode, encode

scalars = (
    some.none()
    | some.booleans()
    | some.integers()
    | some.floats(allow_nan=False)
    | some.complex_numbers(allow_nan=False)
    | some.text(some.characters())
    | some.binary()
)
numbers = some.lists(some.integers() | some.floats(allow_nan=False) | some.booleans(), min_size=4)
keys = some.integers() | some.text() | some.tuples(some.integers(), some.text())
plain = some.recursive(
    scalars | numbers,
    lambda inner: (
        some.lists(inner)
        | some.lists(inner).map(tuple)
        | some.dictionaries(keys, inner)
        | some.sets(keys)
        | some.frozensets(keys)
    ),
    max_leaves=20,
)


def same(left, right):
    """Equal, and of the same types all the way down."""
    if type(left) is not type(right) or left != right:
        return False
    if isinstance(left, dict):
        return all(same(*pair) for pair in zip(left.items(), right.items(), strict=True))
    return not isinstance(left, list | tuple) or all(same(*pair) for pair in zip(left, right, strict=True))


@given(plain)
def test_data_returns_as_it_was(value):
    name, found = decode(encode(value))
    assert same(found, value) and name == type(value).__name__


@given(some.lists(some.sampled_from([1, 2**40, 2**70, 0.5, -0.0, math.inf, True, 2**53]), min_size=4))
def test_numbers_in_one_piece_keep_their_types(items):
    assert same(decode(encode(items))[1], items) and same(decode(encode(tuple(items)))[1], tuple(items))


class Liar(int):
    __hash__ = int.__hash__

    def __eq__(self, other):
        return True

    def __int__(self):
        return 3


class Named(type):
    __name__ = property(lambda cls: 1 // 0)


class Colour(enum.IntEnum):
    RED = 3


EQUALS = [
    (collections.Counter("aab"), {"a": 2, "b": 1}),
    (collections.OrderedDict(a=1), {"a": 1}),
    (collections.ChainMap({"a": 1}, {"a": 2}), {"a": 1}),
    (types.MappingProxyType({"a": 1}), {"a": 1}),
    ({"a": 1}.keys(), {"a"}),
    (collections.namedtuple("Pair", "a b")(1, 2), (1, 2)),
    (type("Rows", (list,), {"__iter__": None, "__len__": lambda self: 9})([1, 2]), [1, 2]),
    (Colour.RED, 3),
    (Liar(0), 0),
    (numpy.int64(3), 3),
    (numpy.bool_(True), True),
    (numpy.float32(0.5), 0.5),
    (numpy.str_("text"), "text"),
    ([numpy.float64(0.5)] * 5, [0.5] * 5),
    (fractions.Fraction(3, 1), 3),
    (decimal.Decimal("0.5"), 0.5),
    (sympy.Integer(3), 3),
    (sympy.true, True),
    (bytearray(b"ab"), b"ab"),
]


@pytest.mark.parametrize(("value", "equal"), EQUALS)
def test_objects_leave_as_the_builtin_value_that_they_hold(value, equal):
    assert same(decode(encode(value))[1], equal)


KNOT = []
KNOT.append(KNOT)
OPAQUE = [
    object(),
    object,
    range(3),
    (one for one in "a"),
    Named("N", (), {})(),
    KNOT,
    numpy.zeros(3),
    collections.deque(),
]
OPAQUE += [fractions.Fraction(1, 3), decimal.Decimal("sNaN")]


@pytest.mark.parametrize("value", OPAQUE, ids=lambda value: type.__dict__["__name__"].__get__(type(value)))
def test_an_object_that_equals_no_builtin_value_equals_nothing(value):
    found = decode(encode(value))[1]
    assert isinstance(found, Opaque) and found != value and found != found
    (item,) = decode(encode([value]))[1] if value is not KNOT else [found]
    assert isinstance(item, Opaque)


@settings(max_examples=300)
@given(plain, some.data())
def test_changed_bytes_are_read_or_refused(value, data):
    changed = bytearray(encode(value))
    for _ in range(data.draw(some.integers(1, 3))):
        changed[data.draw(some.integers(0, len(changed) - 1))] = data.draw(some.integers(0, 255))
    try:
        decode(bytes(changed[: data.draw(some.integers(0, len(changed)))]))
    except BadData:
        pass


@pytest.mark.parametrize(
    "body",
    [b"", b"[1", b"3 3", b"[" * 50_000, b"{}", b'{"x":1}', b'{"(":[],"<":[]}', b'{"(":3}', b'{"<":[[]]}', b'{"{":[1]}']
    + [b'{"c":["x",1]}', b'{"L":"no"}', b'{"b":"x"}', b'"\xff"', b"\xef\xbb\xbf1", b"[\0", b"1" * 5_000],
)
def test_bytes_that_are_never_written_are_refused(body):
    with pytest.raises(BadData):
        decode(b"int\0" + body)
    with pytest.raises(BadData):
        decode(b"x" * 200 + b"\0" + b"1")


def test_integers_of_any_size_leave():
    for value in (10**4299, -(10**4300), [1, 10**9999], {7**200_000: (2**20_000,)}):
        assert same(decode(encode(value))[1], value)
