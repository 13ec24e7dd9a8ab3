"""Plain data survives the way out of the sandbox; everything else is refused or stands for itself, and costs little."""

import collections
import decimal
import enum
import fractions
import marshal
import math
import numbers

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as some
from hypothesis.extra import numpy as some_numpy

from cultureval.runtime.sandbox.codec import ASKS, BadEncoding, Opaque, SizeLimits, decode, encode

scalars = (
    some.none()
    | some.booleans()
    | some.integers()
    | some.floats(allow_nan=False)
    | some.complex_numbers(allow_nan=False)
    | some.text(some.characters())
    | some.binary()
)
keys = some.integers() | some.text() | some.tuples(some.integers(), some.text())
plain = some.recursive(
    scalars,
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
    assert same(decode(encode(value)), value)


texts = some.builds(lambda text, nulls: text + "\0" * nulls, some.text(max_size=9), some.integers(0, 3))
of_numpy = some.sampled_from([">i2", "<i8", "u1", "?", "<f2", "<f4", ">f8", "g", "<c8", "G", "<U5", "<S5", "O"])
of_numpy = of_numpy.flatmap(
    lambda kind: some_numpy.arrays(
        kind,
        some_numpy.array_shapes(min_dims=0, min_side=0, max_side=3),
        elements=some.integers(-9, 9) | texts if kind == "O" else None,
    )
)
of_numpy = of_numpy | of_numpy.filter(lambda array: array.size and array.dtype != "O").map(lambda array: array.flat[0])
of_numpy = of_numpy | texts.map(numpy.str_) | texts.map(lambda text: numpy.bytes_(text.encode()))


@pytest.mark.slow
@given(some.recursive(of_numpy | texts, lambda inner: some.lists(inner) | some.dictionaries(texts, inner)))
def test_what_numpy_holds_returns_equal_and_unequal_to_the_same(value):
    means_the_same(decode(encode(value)), value)


def means_the_same(read, value):
    if isinstance(value, list | dict):
        parts = zip(read, value, strict=True) if isinstance(value, list) else ((read[key], value[key]) for key in value)
        for pair in parts:
            means_the_same(*pair)
    elif isinstance(value, numpy.ndarray):
        assert type(read) is numpy.ndarray and read.dtype.kind == value.dtype.kind and read.shape == value.shape
        means_the_same(read.ravel().tolist(), value.ravel().tolist())
    elif isinstance(value, str | bytes):
        for other in (value, value[:-1], value + value[-1:], value.rstrip(value[:0] + value[-1:])):
            assert (read == other) == (value == other) == (other == read)
    else:
        assert read == value or read != read and value != value
        assert type(read) is type(value)


def test_texts_of_any_length_return():
    text = "ع" * 100_000
    for value in (numpy.array([text]), numpy.array([text.encode()]), numpy.str_(text)):
        assert numpy.array_equal(decode(encode(value)), value)


@given(some.binary(max_size=200) | plain.map(encode), some.lists(some.tuples(some.integers(0, 500), some.binary())))
def test_bytes_of_any_kind_give_data_or_a_refusal(data, changes):
    for position, part in changes:
        data = data[:position] + part + data[position + len(part) :]
    for form in (b"", b"P", b"T"):
        try:
            decode(form + data, SizeLimits().of_equals())
        except BadEncoding:
            pass


class Colour(enum.IntEnum):
    RED = 3


class LyingInt(int):
    __eq__ = __ge__ = __le__ = lambda self, other: True
    __hash__ = int.__hash__
    __add__ = __int__ = __index__ = lambda self, *other: 42


class LyingText(str):
    __eq__ = lambda self, other: True  # noqa: E731
    __hash__ = str.__hash__
    __str__ = __repr__ = lambda self: "right"


class LyingList(list):
    __eq__ = lambda self, other: True  # noqa: E731
    __iter__ = lambda self: iter([42])  # noqa: E731


class LyingFloat(float):
    __eq__ = __le__ = lambda self, other: True
    __sub__ = __rsub__ = __add__ = __float__ = lambda self, *other: 0.0


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (LyingInt(7), 7),
        (LyingFloat(7.5), 7.5),
        (LyingText("wrong"), "wrong"),
        (LyingList([1, 2]), [1, 2]),
        (Colour.RED, 3),
        (collections.namedtuple("Pair", "a b")(1, [2]), (1, [2])),
        ([numpy.int64(3), numpy.float32(0.5), numpy.bool_(True), numpy.str_("ع")], [3, 0.5, True, "ع"]),
        (collections.Counter("aab"), collections.Counter(a=2, b=1)),
        (collections.OrderedDict(a=1, b=[2]), {"a": 1, "b": [2]}),
        (type("Count", (collections.Counter,), {})(a=2, b=0), collections.Counter(a=2)),
        (type("Ordered", (collections.OrderedDict,), {})(a=1), collections.OrderedDict(a=1)),
        (type("Both", (collections.OrderedDict, collections.Counter), {})(a=1, b=0), collections.OrderedDict(a=1, b=0)),
        (type("Plain", (collections.Counter,), {"__eq__": dict.__eq__, "__hash__": None})(a=0), {"a": 0}),
        (type("Layers", (collections.ChainMap,), {})({"a": 1}, {"b": 2}), {"a": 1, "b": 2}),
        (collections.defaultdict(int, {1: 2}), {1: 2}),
        (collections.deque([1, (2,)]), collections.deque([1, (2,)])),
        ([range(5), fractions.Fraction(1, 3)], [range(5), fractions.Fraction(1, 3)]),
        (decimal.Decimal("0.1"), decimal.Decimal("0.1")),
        (type("Complex", (complex,), {})(1, 2), 1 + 2j),
        (type("Bytes", (bytes,), {})(b"x"), b"x"),
        (type("Decimals", (decimal.Decimal,), {})("0.1"), decimal.Decimal("0.1")),
        (type("Queue", (collections.deque,), {})([1]), collections.deque([1])),
        (numpy.array([7]).view(type("Array", (numpy.ndarray,), {})), 7),
        (type("Single", (numpy.float32,), {})(111111111), numpy.float32(111111111)),
        (numpy.array([7, "text"], object)[1:], "text"),
        (numpy.array([numpy.int64(7), numpy.int64(8)], object)[:1], 7),
        ({"a": 1}.keys(), {"a"}),
        (collections.OrderedDict(a=1).keys(), {"a"}),
        ({"a": 1}.items(), {("a", 1)}),
        (collections.OrderedDict(a=1).items(), {("a", 1)}),
        ([numpy.str_(), numpy.bytes_(), numpy.zeros(1, [("a", "U0")])["a"]], ["", b"", [""]]),
    ],
)
def test_other_values_leave_as_what_they_hold(value, expected):
    result = decode(encode(value))
    assert result == expected
    assert expected == result


def test_objects_of_sympy_leave_as_the_plain_data_that_they_equal():
    import sympy

    two, half = sympy.Integer(2), sympy.Rational(1, 2)
    for value, plain in (
        (sympy.true, True),
        (sympy.Eq(1, 2), False),
        ([sympy.false, two], [False, 2]),
        (sympy.Tuple(1, two, sympy.Tuple(half)), (1, 2, (fractions.Fraction(1, 2),))),
        (sympy.FiniteSet(1, 2), {1, 2}),
        (sympy.Dict({1: sympy.true}), {1: True}),
        (sympy.oo, math.inf),
        (-sympy.oo, -math.inf),
    ):
        result = decode(encode(value))
        assert value == plain and result == plain
        assert isinstance(value, list) or type(result) is not type(plain)
    assert decode(encode(sympy.true)) != 1 and sympy.true != 1
    assert {decode(encode(sympy.true))} == {True}
    for value in (sympy.Symbol("x"), sympy.Symbol("x") + 1, sympy.Interval(0, 1), sympy.zoo):
        assert isinstance(decode(encode(value)), Opaque)


def test_numbers_of_mpmath_and_sympy_keep_the_digits_that_a_float_has_not():
    import mpmath
    import sympy

    with mpmath.workdps(100):
        tenth, large = mpmath.mpf("0.1"), mpmath.nint(((1 + mpmath.sqrt(5)) / 2) ** 200 / mpmath.sqrt(5))
        negative = -large
    exact = fractions.Fraction(tenth.man, 2**-tenth.exp)
    for value, plain in (
        (large, 280571172992510140037611932413038677189525),
        (negative, -280571172992510140037611932413038677189525),
        (sympy.Float(large, 100), 280571172992510140037611932413038677189525),
        (tenth, exact),
        (mpmath.mpf(0.1), 0.1),
        (sympy.Float(-0.5), -0.5),
        (mpmath.mpf(0), 0.0),
        (mpmath.inf, math.inf),
        (mpmath.mpf("1e-5000"), 0.0),
    ):
        result = decode(encode([value]))[0]
        assert result == plain and type(result) is not float, value
    assert exact != 0.1


def test_arrays_keep_type_and_shape():
    array = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
    result = decode(encode(array))
    assert result.dtype == array.dtype and (result == array).all()
    alike = [numpy.array([[number]]) for number in range(1000)]
    assert len(encode(alike)) < 9000  # those of one shape share their form
    for values in (alike, [*alike[:9], array, 7, numpy.zeros((0, 2)), numpy.array(0.5), numpy.float32(0.5)]):
        for result, value in zip(decode(encode(values)), values, strict=True):
            assert numpy.array_equal(result, value) and numpy.shape(result) == numpy.shape(value)
            assert getattr(result, "dtype", int) == getattr(value, "dtype", int)


def test_classes_without_a_module_leave_as_what_they_hold():
    for base, held in ((list, [1, 2]), (tuple, (1, 2)), (int, 7), (float, 7.5), (str, "text")):
        names = {"held": held, "base": base}
        exec("made = type('Made', (base,), {})(held)", names)  # noqa: S102  # without a `__name__`, as in the jail
        assert not hasattr(type(names["made"]), "__module__")
        assert decode(encode([names["made"]] * 2)) == [held] * 2


def test_a_fraction_with_a_long_denominator_is_as_near_as_it_is():
    for near in (0.5, 2.0, -3.25, 1e300, 5e-324):
        long = fractions.Fraction(near) + fractions.Fraction(1, 3**30_000)
        read = decode(encode(long), SizeLimits().of_equals())
        assert float(read) == near and read != near and abs(read - long) < fractions.Fraction(1, 2**4000)


def test_a_mark_tells_objects_that_decide_themselves_what_they_equal_before_anything_of_them_is_read():
    sympy = pytest.importorskip("sympy")
    kept = collections.namedtuple("Pair", "a b")(1, type("Plain", (list,), {"__len__": lambda self: 0})([2]))
    half = type("Half", (fractions.Fraction,), {"__slots__": ()})(1, 2)
    assert encode([kept, numpy.float64(1), numpy.array(1), half, collections.Counter("a"), object()])[:1] == b"T"
    hidden = type("Hiding", (type,), {"__mro__": (), "__dict__": {}, "__flags__": 0})("Hidden", (LyingInt,), {})(7)
    equal_type = type("Meta", (type,), {"__eq__": lambda *_: True, "__hash__": type.__hash__})("Equal", (int,), {})(7)
    endless, deep = LyingList([1]), LyingList([1])
    endless.append(endless)
    for _ in range(300):
        deep[0] = [deep[0]]
    marked = (LyingInt(7), LyingFloat(7.5), LyingText("x"), sympy.Rational(1, 2), hidden, equal_type, endless, deep)
    of_numpy = (numpy.ma.array([1]), numpy.timedelta64(1), numpy.array(["a"]).flat, numpy.dtype("f8"), numpy.add)
    for value in (*marked, *of_numpy, collections.UserDict()):
        assert encode([value, 1])[:1] == ASKS, value
    assert all(isinstance(decode(encode(value)), Opaque) for value in of_numpy)


@pytest.mark.slow
def test_as_many_objects_with_equality_of_their_own_as_plain_numbers_are_within_the_limits():
    kind = type("Own", (fractions.Fraction,), {"__eq__": fractions.Fraction.__eq__, "__hash__": None})
    known = SizeLimits()
    decode(encode([0.5] * 50_000), known)
    limits = known.of_equals()
    assert decode(encode([kind(1, 2)] * 50_000), limits) == [0.5] * 50_000


def test_arrays_without_shape_stay_arrays_of_which_there_is_no_set():
    read = decode(encode([numpy.array(1), numpy.array(2)]))
    assert read == [1, 2] and all(type(one) is numpy.ndarray for one in read)


def test_what_is_not_data_equals_nothing():
    deep = []
    for _ in range(5000):
        deep = [deep]
    for value in (object(), len, (3).__class__, [object()], deep, numpy.array([object()])):
        result = decode(encode(value))
        assert isinstance(result, Opaque) or isinstance(result[0], Opaque)
        assert result != value
    assert isinstance(decode(encode(iter([1]))), Opaque)
    registered = type("Number", (), {"__int__": lambda self: 7})
    numbers.Integral.register(registered)
    named = type("BooleanTrue", (), {"__module__": "sympy.logic.boolalg"})
    broken = type("Broken", (), {"__class__": property(lambda _: 1 / 0)})
    for value in (numpy.timedelta64(1, "s"), broken(), registered(), named(), collections.UserDict()):
        assert isinstance(decode(encode(value)), Opaque)
    assert math.isnan(decode(encode(math.nan)))


@pytest.mark.parametrize(
    "data",
    [
        b"T" + marshal.dumps(("set", [number * (2**61 - 1) for number in range(200_000)]), 2),
        b"P" + marshal.dumps({number * (2**61 - 1): 0 for number in range(2000)}, 2),
        b"T" + marshal.dumps(("range", [0, 10**12, 1]), 2),
        b"T" + marshal.dumps(("Decimal", "9" * 60_000), 2),
        b"T" + marshal.dumps(("array", ["|O8", [1], b"\1" * 8]), 2),
        b"T" + marshal.dumps(("array", ["<f8", [2**40], b""]), 2),
        b"T" + marshal.dumps(("array", ["<U0", [2**40], b""]), 2),
        b"T" + marshal.dumps(("array", ["|S1", [99_999], b" " * 99_999]), 2),
        b"P[\xff\xff\xff\x7f",
        b"P(" + b"\1\0\0\0(" * 100_000,
        b"P" + marshal.dumps(test_arrays_keep_type_and_shape.__code__),
        b"Pu\xff\xff\xff\xff",
        b"P" + marshal.dumps(1) * 2,
        # What would make an equal value slower to read.
        b"P{" + marshal.dumps("key", 2) * 4 + b"0",
        b"T" + marshal.dumps(("dict", ["key", 1, "key", 1]), 2),
        b"P<\2\0\0\0" + marshal.dumps(1) * 2,
        b"T" + marshal.dumps(("subset", [1, 1]), 2),
        b"T" + marshal.dumps(("keys", [1, 1]), 2),
        b"Pl\2\0\0\0\1\0\0\0",
        b"Pl\0\0\0\0",
        b"P" + marshal.dumps([7**50_000] * 200, 2),
        b"T" + marshal.dumps(("list", [("Decimal", "1" * 9000)] * 200), 2),
        b"T" + marshal.dumps(("Fraction", [2, 2]), 2),
        b"T" + marshal.dumps(("objects", [[2**40], []]), 2),
        b"T" + marshal.dumps(("objects", [[-1, -1], [1]]), 2),
        b"T" + marshal.dumps(("list", [("run", ["<f8", [], b""])]), 2),
        b"T" + marshal.dumps(("list", [("run", ["<f8", [0], b"12345678"])]), 2),
        b"T" + marshal.dumps(("list", [("run", ["<f8", [-1], b"12345678"])]), 2),
    ],
)
def test_data_made_to_harm_the_reader_is_refused(data):
    with pytest.raises(BadEncoding):
        decode(data, SizeLimits().of_equals())


def test_no_class_of_a_program_answers_for_its_own_name():
    """A metaclass whose name raises made `encode` raise, which no output of a program may."""

    class Meta(type):
        @property
        def __name__(cls):
            raise ZeroDivisionError

    class Name(str):
        def __getitem__(self, place):
            raise ZeroDivisionError

    class Output(metaclass=Meta):
        pass

    for name in ("Output", Name("Other")):
        type.__dict__["__name__"].__set__(Output, name)
        assert marshal.loads(encode(Output())[1:]) == ("opaque", str(name))
