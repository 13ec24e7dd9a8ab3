"""The codec of return values that leave the sandbox: plain data as bytes.

A value of exact builtin types is written as `P` and the plain-data part of marshal's version 2, which C code writes
fast and which gives equal bytes for equal data. Any other value is written as `T`, or `A` (see `ASKS`), and a tree in
the same format, in which scalars are literal and every tuple is `(tag, content)`. The trusted side reads both with
`decode`, a strict reader of its own: it builds plain data only, never runs code, and checks sizes, counts and depth
before it builds anything. Neither pickle nor `marshal.loads` ever sees bytes from a sandbox. What is small can still be
slow to compare, so that all reading is done in a process with limits (`metrics/code/comparison_server.py`). The limits
of a value follow those of the one that it is compared with (`SizeLimits.of_equals`): what is beyond them cannot equal
it. Nothing that `encode` never writes is read, such as keys that come twice, so that no value is slower to read than
its own form needs.
"""

import collections
import decimal
import fractions
import itertools
import marshal
import math
import numbers
import re
import struct
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

MAX_DEPTH = 200
# How much more room an equal value takes when it is written in another way (an array of shape (1, 1) for a truth value:
# eight items for one, 49 bytes for one).
ITEMS_FACTOR = 8
BYTES_FACTOR = 64
SPARE_ITEMS = 10_000
SPARE_BYTES = 1 << 20
MAX_INTEGER_DIGITS = 10_000  # of 15 bits, or as many as the value has that it is compared with
MAX_FRACTION_BITS = 4096  # of the denominator; one with more leaves as the next fraction with so many
MOST_DIGITS = 1 << 20  # binary ones, of a number of sympy
MAX_EXPONENT = 1 << 24  # of 2, of a number of mpmath that is written with all of its digits
DIGITS_OF_AN_ITEM = 32  # of an integer, counted before it is read: they take as long as another item
SAME_HASH_LIMIT = 1000
ASKS = b"A"  # form of a value that holds an object which EvalPlus would ask what it equals; else as `T`
FRAME = struct.Struct("<dQ")  # before each value that a job sends: seconds of the call, bytes of the value
# Empty ones take as much memory as that many other items.
DEQUE_ITEMS = 10
TABLE_ITEMS = 4  # sets, dicts

_SCALARS = frozenset({int, float, complex, str, bytes, bool, type(None)})
_CONTAINERS = frozenset({list, tuple, set, frozenset, dict})
_NAMED = {
    list: "list",
    tuple: "tuple",
    set: "set",
    frozenset: "frozenset",
    collections.deque: "deque",
    dict: "dict",
    collections.Counter: "Counter",
    collections.OrderedDict: "OrderedDict",
    collections.defaultdict: "defaultdict",
}
_VIEWS = {type(view) for known in ({}, collections.OrderedDict()) for view in (known.keys(), known.items())}
_NUMPY_KINDS = "biufcSU"
_NUMPY_NUMBERS = "biufc"
# By these names EvalPlus's rules come to code of a class: of an output's, or of one of its items.
_ASKED = ("__eq__", "__hash__", "__sub__")
_ASKED_IN_PYTHON = (*_ASKED, "__class__", "__getattribute__")
_LOOK_UP = frozenset({collections.Counter, collections.ChainMap, collections.deque, fractions.Fraction})
_KNOWN = {id(kind) for kind in (*_SCALARS, *_NAMED, range, *_LOOK_UP, decimal.Decimal, *_VIEWS, object)}
_MADE_BY_PROGRAMS = 1 << 9  # flag of classes that Python code makes


class _Empty(fractions.Fraction):
    """A class with no names but those that each has."""


_OF_EMPTY_CLASSES = frozenset({*vars(_Empty), "__slots__"})


class BadEncoding(ValueError):
    """Bytes that `encode` never writes, or data beyond the limits."""


class SizeLimits:
    """How much may still be read, and how much has been; several values can share one.

    Args:
        digits: Of 15 bits, of an integer.

    Attributes:
        left: Items that may still be read; `read` counts those that have been.
        longest: Digits of the largest integer so far.
        opaque: Name of the type of the last object that was read without a plain-data form, or "".
    """

    def __init__(self, items: int = sys.maxsize, digits: int = sys.maxsize) -> None:
        self.left = items
        self.digits = digits
        self.read = 0
        self.longest = 0
        self.opaque = ""

    def of_equals(self) -> "SizeLimits":
        """The limits of values that could be equal to what has been read with these."""
        return SizeLimits(most_items_of_equals(self.read), max(MAX_INTEGER_DIGITS, self.longest))

    def take(self, items: int) -> None:
        """Count items.

        Raises:
            BadEncoding: They are too many.
        """
        self.left -= items
        self.read += items
        if self.left < 0:
            raise BadEncoding("too many items")


def most_items_of_equals(items: int) -> int:
    """Items that a value can have which is equal to one of so many."""
    return ITEMS_FACTOR * items + SPARE_ITEMS


def most_bytes_of_equals(size: int) -> int:
    """Bytes that a value can take which is equal to one of `size` bytes."""
    return BYTES_FACTOR * size + SPARE_BYTES


class Opaque:
    """A placeholder for an object without a plain-data form; it equals nothing."""

    def __init__(self, type_name: str) -> None:
        self.type_name = type_name


class Truth:
    """A truth value of another library: it equals True or False, and no number."""

    def __init__(self, value: bool) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return other is self.value

    def __hash__(self) -> int:
        return hash(self.value)


# For each builtin type a subclass that stands for any other: as under EvalPlus, its instances equal plain values and
# are of another type, which matters where a tolerance decides. Those of frozenset's subclasses are read as a set's.
_SUBCLASSES: dict[type, Any] = {
    kind: type(f"{kind.__name__}_subclass", (kind,), {})
    for kind in (int, float, complex, str, bytes, list, tuple, set, dict)
}


def encode(value: Any, asked: bool = False) -> bytes:
    """Write a value as bytes. It runs inside the sandbox, where generated code can tamper with it: do not trust it.

    Args:
        value: Anything; an object without a plain-data form, such as a generator, or one whose own methods fail, is
            written as opaque, with its type's name: no exception here is the program's.
        asked: Whether the value was made of one that holds an object which EvalPlus would ask what it equals.

    Returns:
        One byte for the form, then the data.
    """
    writer = _Writer()
    writer.asks = asked
    try:
        if not asked and _is_plain(value):
            return b"P" + marshal.dumps(value, 2)
        tree = marshal.dumps(writer.tree(value, 0), 2)
    except MemoryError:
        raise
    except Exception as error:  # also of what is nested too deeply, or contains itself
        writer.asks |= not isinstance(error, RecursionError)
        tree = marshal.dumps(("opaque", _class_name(type(value))), 2)
    return (ASKS if writer.asks else b"T") + tree


def _class_name(kind: type) -> str:
    """The beginning of a class's name, for which neither a metaclass nor a name of the program's is asked."""
    return str.__getitem__(type.__dict__["__name__"].__get__(kind), slice(80))


def _classes(kind: type, before: type | None = None) -> list[type]:
    """A class and those that it is made of, up to one of them; no metaclass is asked."""
    return list(itertools.takewhile(lambda one: one is not before, type.__dict__["__mro__"].__get__(kind)))


def _names(kind: type) -> Mapping[str, Any]:
    return type.__dict__["__dict__"].__get__(kind)


def _is_plain(value: Any) -> bool:
    """Tell whether a value and all that it contains are of exact builtin types, level by level at C speed."""
    level = [value]
    for _ in range(MAX_DEPTH):
        kinds = set(map(type, level))
        if kinds <= _SCALARS:
            return True
        if not kinds <= _SCALARS | _CONTAINERS:
            return False
        inner = [item for item in level if type(item) in _CONTAINERS] if kinds & _SCALARS else level
        mappings = [item for item in inner if type(item) is dict] if dict in kinds else []
        level = list(itertools.chain(itertools.chain.from_iterable(inner), *(item.values() for item in mappings)))
    return False


class _Writer:
    """Makes trees of values.

    Attributes:
        asks: Whether EvalPlus would ask an object, of those seen so far, what it equals.
    """

    def __init__(self) -> None:
        self.asks = False
        self._bases: dict[int, tuple[type, bool]] = {}  # by the identity of a class, which cannot lie

    def base(self, kind: type) -> tuple[type, bool]:
        """The class that we know among those that a class is made of, and whether the others change what it equals."""
        if id(kind) not in self._bases:
            base = next(one for one in _classes(kind) if id(one) in _KNOWN or _is_of_numpy(one))
            asks = _decides(_classes(kind, base), base) or any(
                "__eq__" in _names(one) for one in _classes(type(kind), type)
            )
            # Of numpy's texts an array would drop the null characters at their end, which they have.
            self._bases[id(kind)] = next((text for text in (str, bytes) if issubclass(base, text)), base), asks
        base, asks = self._bases[id(kind)]
        self.asks |= asks
        return base, asks

    def tree(self, value: Any, depth: int) -> Any:
        kind = type(value)
        base, asks = self.base(kind)
        if base in _SCALARS:  # overridden methods are not trusted, here and below
            return value if kind is base else (base.__name__, getattr(base, f"__{base.__name__}__")(value))
        if depth > MAX_DEPTH:
            raise RecursionError("nested too deeply")
        if base in _NAMED:
            name = f"sub{base.__name__}" if base in _CONTAINERS and kind is not base else _NAMED[base]
            return (name, self.items(value, base, depth))
        if base is range:
            return ("range", [value.start, value.stop, value.step])
        if base is fractions.Fraction:
            return _fraction_tree(value.numerator, value.denominator)
        if base is decimal.Decimal:
            return ("Decimal", decimal.Decimal.__str__(value))
        if base is collections.ChainMap:  # no subclass of dict, but equal to one
            return ("subdict", self.items(dict(value), dict, depth))
        if base in _VIEWS:
            return ("keys", [self.tree(item, depth + 1) for item in value])
        if base is object:
            tree = self.of_a_library(value, depth)
        else:
            tree = None if asks and base.__name__ == "ndarray" else self.of_numpy(value, depth)
            self.asks |= tree is None
        return tree or ("opaque", _class_name(kind))

    def items(self, value: Any, kind: type, depth: int) -> list[Any]:
        if issubclass(kind, dict):
            return [self.tree(part, depth + 1) for pair in dict.items(value) for part in pair]
        found: list[Any] = []
        for kind_of_items, run in itertools.groupby(kind.__iter__(value), type):
            if kind_of_items in _SCALARS:
                found += run
            elif (items := list(run)) and _are_alike(kind_of_items, items):
                data = b"".join(map(kind_of_items.tobytes, items))
                found.append(("run", [items[0].dtype.str, list(items[0].shape), data]))
            else:
                for item in items:  # with few frames of the stack for each level of depth
                    found.append(self.tree(item, depth + 1))
        return found

    def of_numpy(self, value: Any, depth: int) -> tuple[str, Any] | None:
        import numpy

        if not issubclass(type(value), (numpy.ndarray, numpy.generic)):  # an array of a `flatiter`'s items is another
            return None
        array = numpy.asarray(value)
        if array.dtype.kind == "O":
            return ("objects", [list(array.shape), self.items(array.ravel().tolist(), list, depth)])
        if array.dtype.kind not in _NUMPY_KINDS:
            return None
        if not array.dtype.itemsize:  # empty texts, of which any number would leave as no bytes
            array = array.astype(f"{array.dtype.kind}1")
        name = "array" if isinstance(value, numpy.ndarray) else "scalar"
        return (name, [array.dtype.str, list(array.shape), array.tobytes()])

    def of_a_library(self, value: Any, depth: int) -> tuple[str, Any] | None:
        """What objects of other packages hold that equal plain data; sympy's are told by name, since few load it."""
        kinds = list(filter(_is_of_a_library, _classes(type(value))))
        if kinds and (tree := _number_tree(value, kinds[0])):
            return tree
        names = {kind.__name__ for kind in kinds if kind.__module__.startswith("sympy.")}
        if names & {"BooleanTrue", "BooleanFalse"}:
            return ("truth", "BooleanTrue" in names)
        if names & {"Infinity", "NegativeInfinity"}:
            return ("float", float(value))
        if "Tuple" in names or "FiniteSet" in names:
            tag = "subtuple" if "Tuple" in names else "subset"
            return (tag, [self.tree(item, depth + 1) for item in value.args])
        if "Dict" in names:
            return ("subdict", [self.tree(part, depth + 1) for pair in value.items() for part in pair])
        return None


def _decides(own: list[type], base: type) -> bool:
    """Whether EvalPlus's rules come to code of the classes that stand before one that we know.

    Some classes, as those in Python and numpy's, look up other names when they are compared: there any counts.
    """
    if base in _LOOK_UP or _is_of_numpy(base):
        return any(name not in _OF_EMPTY_CLASSES for one in own for name in _names(one))
    return any(name in _names(one) for one in own for name in (_ASKED_IN_PYTHON if _is_made(one) else _ASKED))


def _is_of_a_library(kind: type) -> bool:
    """Whether a class is that which an installed package has under its name: another can give itself the name."""
    module = getattr(kind, "__module__", "")
    is_other = module.partition(".")[0] not in sys.stdlib_module_names
    return is_other and getattr(sys.modules.get(module), kind.__name__, None) is kind


def _are_alike(kind: type, items: list[Any]) -> bool:
    """Whether items are numpy's numbers, or its arrays of one shape, which leave in a few bytes each."""
    first = items[0]
    if not _is_of_numpy(kind) or getattr(getattr(first, "dtype", None), "kind", "O") not in _NUMPY_NUMBERS:
        return False
    if kind.__name__ != "ndarray":
        return first.shape == ()
    form = first.shape, first.dtype  # an array without shape is read as an array, of which there is no set
    return first.size > 0 and first.shape != () and all((item.shape, item.dtype) == form for item in items)


def _is_of_numpy(kind: type) -> bool:
    """Whether a class is one of numpy's own in C; one that `type(...)` made may have no name of a module."""
    return not _is_made(kind) and kind.__module__ == "numpy"


def _is_made(kind: type) -> bool:
    """Whether Python code can have made a class; no metaclass is asked."""
    return bool(type.__dict__["__flags__"].__get__(kind) & _MADE_BY_PROGRAMS)


def _number_tree(value: Any, kind: type) -> tuple[str, Any] | None:
    """A number of another library, such as sympy, by what the library says that its class is."""
    if issubclass(kind, numbers.Integral):
        return ("int", int(value))
    if issubclass(kind, numbers.Rational):
        return _fraction_tree(int(value.numerator), int(value.denominator))
    if issubclass(kind, numbers.Real):
        return _binary_tree(value, kind)
    return None


def _fraction_tree(above: int, below: int) -> tuple[str, Any]:
    """A fraction; where its denominator is too long, the nearest odd number of 2**-`MAX_FRACTION_BITS`.

    Both equal no integer and no float, and are as near to one, which decides where there is a tolerance.
    """
    if below.bit_length() > MAX_FRACTION_BITS:
        above, below = 2 * ((above << MAX_FRACTION_BITS - 2) // below) + 1, 1 << MAX_FRACTION_BITS - 1
    return ("Fraction", [above, below])


def _binary_tree(value: Any, kind: type) -> tuple[str, Any]:
    """A real number; one of mpmath or sympy, mantissa * 2**exponent, with all of its digits where a float has fewer."""
    number = value
    if kind.__module__.startswith("sympy."):
        with sys.modules["mpmath"].workprec(MOST_DIGITS):  # `num` is rounded to what is worked with
            number = value.num
    mantissa, exponent = getattr(number, "man", 0), getattr(number, "exp", 0)
    nearest = float(value)
    if not mantissa or not -MAX_FRACTION_BITS < exponent < MAX_EXPONENT:
        return ("float", nearest)
    size = fractions.Fraction(int(mantissa)) * fractions.Fraction(2) ** int(exponent)
    exact = -size if value < 0 else size
    if exact == nearest:
        return ("float", nearest)
    whole = exact.denominator == 1
    return ("int", exact.numerator) if whole else ("Fraction", [exact.numerator, exact.denominator])


def decode(data: bytes, limits: SizeLimits | None = None) -> Any:
    """Read what `encode` wrote.

    Args:
        data: Untrusted bytes from a sandbox.
        limits: Of the number of items and more; by default there are none, for bytes that are not hostile.

    Returns:
        Plain data, numpy scalars and arrays, or placeholders of this module for other objects.

    Raises:
        BadEncoding: If the bytes are malformed, nested too deeply, too many, or built to be slow to hash.
    """
    reader = _Reader(data, limits or SizeLimits())
    form = reader.take(1)
    if form not in (b"P", b"T", ASKS):
        raise BadEncoding(f"unknown form {form!r}")
    value = reader.value(0)
    if reader.position != len(data):
        raise BadEncoding("bytes follow the value")
    return value if form == b"P" else _Builder(reader.limits).build(value)


class _Reader:
    """A strict reader of the plain-data part of marshal's version 2."""

    def __init__(self, data: bytes, limits: SizeLimits) -> None:
        self.data = data
        self.position = 0
        self.limits = limits
        self.run = _SHORT_RUN  # numbers of one kind that the next ones are looked at together with

    def take(self, size: int) -> bytes:
        end = self.position + size
        if size < 0 or end > len(self.data):
            raise BadEncoding("cut off")
        part = self.data[self.position : end]
        self.position = end
        return part

    def number(self, layout: str) -> Any:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def value(self, depth: int) -> Any:
        self.limits.take(1)
        if depth > MAX_DEPTH:
            raise BadEncoding("nested too deeply")
        code = self.take(1)
        if code in _CONSTANTS:
            return _CONSTANTS[code]
        if code in _NUMBERS:
            return self.number(_NUMBERS[code])
        if code in b"([<>":
            return self.sequence(code, depth)
        if code not in _READERS:
            raise BadEncoding(f"unknown code {code!r}")
        return _READERS[code](self, depth)

    def sequence(self, code: bytes, depth: int) -> Any:
        size = self.number("<i")
        if size < 0 or size > len(self.data) - self.position:
            raise BadEncoding("cut off")
        items: list[Any] = []
        while len(items) < size:
            items += self.numbers(size - len(items)) or [self.value(depth + 1)]
        if code in b"<>":
            self.limits.take(TABLE_ITEMS)
        return items if code == b"[" else _SEQUENCES[code](items)

    def numbers(self, most: int) -> list[Any]:
        """The next numbers, as long as they are all int or all float of one width: at C speed, unlike `value`."""
        code = self.data[self.position : self.position + 1]
        if code not in _NUMBERS:
            return []
        pair = _PAIRS[code]
        looked_at = min(most, self.run, (len(self.data) - self.position) // pair.size)
        codes = self.data[self.position : self.position + looked_at * pair.size : pair.size]
        length = len(codes) - len(codes.lstrip(code))
        self.run = 2 * self.run if length == looked_at else _SHORT_RUN
        self.limits.take(length)
        return list(itertools.chain.from_iterable(pair.iter_unpack(self.take(length * pair.size))))

    def long(self, _depth: int) -> int:
        size = self.number("<i")
        self.limits.longest = max(self.limits.longest, abs(size))
        if abs(size) > self.limits.digits:
            raise BadEncoding("an integer of too many digits")
        self.limits.take(abs(size) // DIGITS_OF_AN_ITEM)
        digits = self.take(2 * abs(size))
        if digits[-2:] in (b"", b"\0\0") or any(high & 0x80 for high in digits[1::2]):
            raise BadEncoding("a digit of an integer is out of range, or one too many")
        bits = "".join(f"{digit:015b}" for digit in reversed(struct.unpack(f"<{abs(size)}H", digits)))
        return int(bits, 2) * (-1 if size < 0 else 1)

    def text(self, _depth: int) -> str:
        try:
            return self.take(self.number("<i")).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise BadEncoding("text is not UTF-8") from error

    def raw(self, _depth: int) -> bytes:
        return self.take(self.number("<i"))

    def complex(self, _depth: int) -> complex:
        return complex(self.number("<d"), self.number("<d"))

    def mapping(self, depth: int) -> dict[Any, Any]:
        self.limits.take(TABLE_ITEMS)
        pairs = []
        while self.data[self.position : self.position + 1] != b"0":
            pairs.append((self.value(depth + 1), self.value(depth + 1)))
        self.position += 1
        return keyed(pairs)


def hashable(items: list[Any]) -> list[Any]:
    """Check that items can be hashed, and fast: many distinct ones with one hash make sets and dicts quadratic.

    Raises:
        BadEncoding: If an item cannot be hashed, or too many distinct ones share one hash.
    """
    try:
        hashes = list(map(hash, items))
    except TypeError as error:
        raise BadEncoding(str(error)) from error
    for value, count in collections.Counter(hashes).items():
        if count > SAME_HASH_LIMIT:
            alike = [item for item, own in zip(items, hashes, strict=True) if own == value]
            if any(item is not alike[0] and item != alike[0] for item in alike):
                raise BadEncoding("too many different items share one hash")
    return items


def keyed(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """Build a dict from pairs whose keys are checked by `hashable`.

    Raises:
        BadEncoding: As `hashable`, or a key comes twice.
    """
    hashable([key for key, _ in pairs])
    return _distinct(dict(pairs), len(pairs))


def _set(items: list[Any], kind: Callable[[list[Any]], Any] = set) -> Any:
    return _distinct(kind(hashable(items)), len(items))


def _distinct(table: Any, items: int) -> Any:
    if len(table) != items:
        raise BadEncoding("an item comes twice")
    return table


_CONSTANTS = {b"N": None, b"T": True, b"F": False}
_NUMBERS = {b"i": "<i", b"g": "<d"}
_PAIRS = {b"i": struct.Struct("<xi"), b"g": struct.Struct("<xd")}  # a code and its number
_SHORT_RUN = 16
_SEQUENCES: dict[bytes, Callable[[list[Any]], Any]] = {
    b"(": tuple,
    b"<": _set,
    b">": lambda items: _set(items, frozenset),
}
_READERS: dict[bytes, Callable[[_Reader, int], Any]] = {
    b"l": _Reader.long,
    b"u": _Reader.text,
    b"s": _Reader.raw,
    b"y": _Reader.complex,
    b"{": _Reader.mapping,
}


class _Builder:
    """Turns the tree of form `T` into values."""

    def __init__(self, limits: SizeLimits) -> None:
        self.limits = limits

    def build(self, node: Any) -> Any:
        if type(node) in _SCALARS:
            return node
        if type(node) is not tuple or len(node) != 2 or type(node[0]) is not str:
            raise BadEncoding("not a node")
        tag, content = node
        maker = _MAKERS.get(tag)
        if maker is None:
            raise BadEncoding(f"unknown tag {tag[:80]!r}")
        try:
            return maker(self, content)
        except (TypeError, ValueError, ArithmeticError) as error:
            raise BadEncoding(f"bad {tag}: {error}"[:200]) from error

    def items(self, content: Any) -> list[Any]:
        if type(content) is not list:
            raise BadEncoding("not a list of nodes")
        found: list[Any] = []
        for node in content:
            if type(node) is tuple and node[:1] == ("run",):
                found.extend(self.run(node))
            else:
                found.append(self.build(node))
        return found

    def run(self, node: Any) -> Iterable[Any]:
        import numpy

        _, (name, shape, data) = node
        if not re.fullmatch(rf"[<>|=][{_NUMPY_NUMBERS}][1-9]\d?", _exact(str, name)) or not data:
            raise BadEncoding("not a run of numbers")
        flat = numpy.frombuffer(_exact(bytes, data), dtype=numpy.dtype(name))
        items = flat.reshape((-1, *(_exact(int, size) for size in shape)))
        self.limits.take(len(items) * (1 + len(shape)))
        return items

    def deque(self, content: Any) -> collections.deque[Any]:
        self.limits.take(DEQUE_ITEMS)
        return collections.deque(self.items(content))

    def opaque(self, content: Any) -> Opaque:
        name = _exact(str, content)[:80]
        self.limits.opaque = name if name.isidentifier() else "object"
        return Opaque(self.limits.opaque)

    def objects(self, content: Any) -> Any:
        import numpy

        shape, nodes = content
        items = self.items(nodes)
        array = numpy.empty(len(items), object)
        for place, item in enumerate(items):
            array[place] = item
        if any(_exact(int, size) < 0 for size in shape):
            raise BadEncoding("a size below zero")
        return array.reshape(shape)

    def range(self, content: Any) -> range:
        numbers = range(*(_exact(int, part) for part in content))
        self.limits.take(len(numbers))
        return numbers

    def decimal(self, content: Any) -> decimal.Decimal:
        if len(_exact(str, content)) > max(MAX_INTEGER_DIGITS, 5 * self.limits.digits):
            raise BadEncoding("a number of too many digits")
        self.limits.take(len(content) // (5 * DIGITS_OF_AN_ITEM))
        return decimal.Decimal(content)

    def fraction(self, content: Any) -> fractions.Fraction:
        above, below = (_exact(int, part) for part in content)
        if below.bit_length() > MAX_FRACTION_BITS or above.bit_length() > max(
            MAX_FRACTION_BITS, 15 * self.limits.digits
        ):
            raise BadEncoding("a number of too many digits")
        fraction = fractions.Fraction(above, below)
        if fraction.denominator != below:
            raise BadEncoding("a fraction not in lowest terms")
        return fraction

    def table(self, content: Any, kind: Callable[[list[Any]], Any]) -> Any:
        self.limits.take(TABLE_ITEMS)
        return _set(self.items(content), kind)

    def pairs(self, content: Any) -> dict[Any, Any]:
        self.limits.take(TABLE_ITEMS)
        items = self.items(content)
        return keyed(list(zip(items[::2], items[1::2], strict=True)))


def _exact(kind: type, content: Any) -> Any:
    if type(content) is not kind:
        raise BadEncoding(f"not of type {kind.__name__}")
    return content


def _numpy(builder: _Builder, content: Any, scalar: bool) -> Any:
    import numpy

    name, shape, data = content
    known = re.fullmatch(rf"[<>|=][{_NUMPY_KINDS}][1-9]\d{{0,8}}", _exact(str, name))
    if not known or not all(type(size) is int for size in shape):
        raise BadEncoding("not an array of plain numbers or text")
    dtype = numpy.dtype(name)
    if any(size < 0 for size in shape) or math.prod(shape) * dtype.itemsize != len(_exact(bytes, data)):
        raise BadEncoding("the array's shape is not that of its data")
    if scalar and shape:
        raise BadEncoding("a scalar has no shape")
    builder.limits.take(math.prod(shape))
    array = numpy.frombuffer(data, dtype=dtype).reshape(shape) if data else numpy.zeros(shape, dtype)
    return array[()] if scalar else array


def _from_items(make: Callable[[Iterable[Any]], Any]) -> Callable[[_Builder, Any], Any]:
    return lambda builder, content: make(builder.items(content))


def _from_distinct(kind: Callable[[list[Any]], Any]) -> Callable[[_Builder, Any], Any]:
    return lambda builder, content: builder.table(content, kind)


def _from_pairs(make: Callable[[dict[Any, Any]], Any]) -> Callable[[_Builder, Any], Any]:
    return lambda builder, content: make(builder.pairs(content))


_MAKERS: dict[str, Callable[[_Builder, Any], Any]] = {
    "list": _from_items(list),
    "tuple": _from_items(tuple),
    "set": _from_distinct(set),
    "frozenset": _from_distinct(frozenset),
    "deque": lambda builder, content: builder.deque(content),
    "dict": _from_pairs(dict),
    "Counter": _from_pairs(collections.Counter),
    "OrderedDict": _from_pairs(collections.OrderedDict),
    "defaultdict": _from_pairs(lambda pairs: collections.defaultdict(None, pairs)),
    "range": _Builder.range,
    "Fraction": _Builder.fraction,
    "Decimal": _Builder.decimal,
    "keys": _from_distinct(lambda items: dict.fromkeys(items).keys()),
    "scalar": lambda builder, content: _numpy(builder, content, scalar=True),
    "array": lambda builder, content: _numpy(builder, content, scalar=False),
    "objects": _Builder.objects,
    "int": lambda builder, content: _SUBCLASSES[int](_exact(int, content)),
    "float": lambda builder, content: _SUBCLASSES[float](_exact(float, content)),
    "truth": lambda builder, content: Truth(_exact(bool, content)),
    "complex": lambda builder, content: _SUBCLASSES[complex](_exact(complex, content)),
    "str": lambda builder, content: _SUBCLASSES[str](_exact(str, content)),
    "bytes": lambda builder, content: _SUBCLASSES[bytes](_exact(bytes, content)),
    "sublist": _from_items(_SUBCLASSES[list]),
    "subtuple": _from_items(_SUBCLASSES[tuple]),
    "subset": _from_distinct(_SUBCLASSES[set]),
    "subfrozenset": _from_distinct(_SUBCLASSES[set]),
    "subdict": _from_pairs(_SUBCLASSES[dict]),
    "opaque": lambda builder, content: builder.opaque(content),
}
