"""Return values as plain data: the jail writes them with `encode`, a trusted process reads them with `decode`.

An encoded value is the name of its type, a zero byte, and a body: a tag of one byte and its content.

| tag | value |
|---|---|
| N T F | None, True, False |
| i L | integer of 8 bytes; a longer one: count of bytes, bytes |
| d c | float, complex |
| s b | text in UTF-8, bytes: count, bytes |
| [ ( < > | list, tuple, set, frozenset: count, items |
| { | dict: count, pairs |
| Q D | list or tuple (its tag) of integers of 8 bytes or of floats, in one piece: count, numbers |
| M | the same of integers and floats: count, a byte for each that says whether it is an integer, floats |
| ? | opaque: no builtin value equals it; the name of the type then ends with ? |

`decode` runs no code of the writer. It builds builtins only, and no more than its bytes need.
"""

import struct
import sys
from array import array
from collections.abc import ItemsView, KeysView, Mapping, Sized
from contextlib import suppress
from typing import Any

MAX_DEPTH = 100
FRAME = struct.Struct("<cdQ")  # before each message of a job: its kind, seconds of the call, bytes of the content
LONGEST_NAME = 80
_COUNT, _INT, _FLOAT, _COMPLEX = struct.Struct("<I"), struct.Struct("<q"), struct.Struct("<d"), struct.Struct("<dd")
_CONSTANTS: dict[Any, bytes] = {None: b"N", True: b"T", False: b"F"}
_OF_CONSTANTS = {tag: value for value, tag in _CONSTANTS.items()}
_SEQUENCES: dict[type, bytes] = {list: b"[", tuple: b"(", set: b"<", frozenset: b">"}
_OF_SEQUENCES: dict[bytes, Any] = {tag: kind for kind, tag in _SEQUENCES.items()}
_PIECES = {b"Q": "q", b"D": "d", b"M": "d"}  # type codes of `array`
_EXACT_FLOATS = 1 << 53  # integers below are floats without loss
_FEWEST = 4  # items that are written in one piece


class BadData(ValueError):
    """Bytes that `encode` never writes."""


class Opaque:
    """Stands for an object that equals no builtin value; it equals nothing."""

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = object.__hash__


def encode(value: Any) -> bytes:
    """Writes a value; it runs beside generated code, so nobody may trust the bytes.

    An object is opaque where it has no builtin form, contains itself, is nested too deeply or its own methods fail.

    Raises:
        MemoryError: There is too little memory.
    """
    parts: list[bytes] = []
    try:
        _write(value, parts, 0)
    except MemoryError:
        raise
    except Exception:
        parts = [b"?"]
    mark = b"?" if b"?" in parts else b""
    return type_name(value) + mark + b"\0" + b"".join(parts)


def type_name(value: Any) -> bytes:
    """The beginning of the name of a value's type in ASCII, for which no code of the class is asked."""
    name = type.__dict__["__name__"].__get__(type(value))
    return str.encode(str.__getitem__(name, slice(LONGEST_NAME)), "ascii", "replace").replace(b"\0", b"?")


def _write(value: Any, parts: list[bytes], depth: int) -> None:
    kind = type(value)
    if value is None or kind is bool:
        parts.append(_CONSTANTS[value])
    elif kind in _SCALARS:
        parts.append(_SCALARS[kind](value))
    elif depth > MAX_DEPTH:
        raise RecursionError
    elif kind in _SEQUENCES:
        _write_items(value, _SEQUENCES[kind], parts, depth)
    elif kind is dict:
        parts.append(b"{" + _COUNT.pack(len(value)))
        for key, item in value.items():
            _write(key, parts, depth + 1)
            _write(item, parts, depth + 1)
    else:
        plain = _plain(value, kind)
        parts.append(b"?") if plain is None else _write(plain, parts, depth)


def _counted(tag: bytes, data: bytes) -> bytes:
    return tag + _COUNT.pack(len(data)) + data


def _integer(value: int) -> bytes:
    if -(1 << 63) <= value < 1 << 63:
        return b"i" + _INT.pack(value)
    return _counted(b"L", value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))


def _write_items(items: Any, tag: bytes, parts: list[bytes], depth: int) -> None:
    count = _COUNT.pack(len(items))
    if tag in b"[(" and len(items) >= _FEWEST:
        kinds = set(map(type, items))
        if kinds in ({int}, {float}):
            piece = b"Q" if int in kinds else b"D"
            with suppress(OverflowError):  # an integer takes more than 8 bytes
                return parts.append(piece + tag + count + array(_PIECES[piece], items).tobytes())
        if kinds == {int, float} and max(map(abs, items)) < _EXACT_FLOATS:
            whole = bytes(type(item) is int for item in items)
            return parts.append(b"M" + tag + count + whole + array("d", items).tobytes())
    parts.append(tag + count)
    for item in items:
        _write(item, parts, depth + 1)


def _plain(value: Any, kind: type) -> Any:
    """What a subclass holds, by its builtin's own methods, or the builtin number that a library's equals; else None."""
    for base, plain in _PLAIN.items():
        if issubclass(kind, base):
            return plain(value)
    numpy = sys.modules.get("numpy")
    if numpy and issubclass(kind, numpy.generic):
        value = value.item()
        return value if type(value) in _SCALARS or type(value) is bool else None
    for make in () if issubclass(kind, Sized) else (int, float, complex, bool):
        try:
            if (found := make(value)) == value and type(found) is make:
                return found
        except (TypeError, ValueError, ArithmeticError, AttributeError):
            continue
    return None


_SCALARS: dict[type, Any] = {
    int: _integer,
    float: lambda value: b"d" + _FLOAT.pack(value),
    complex: lambda value: b"c" + _COMPLEX.pack(value.real, value.imag),
    str: lambda value: _counted(b"s", value.encode("utf-8", "surrogatepass")),
    bytes: lambda value: _counted(b"b", value),
}
_PLAIN: dict[Any, Any] = {
    int: int.__int__,
    float: float.__float__,
    complex: complex.__complex__,
    str: str.__str__,
    bytes: lambda value: b"".join((value,)),
    bytearray: bytes,
    list: lambda value: list(list.__iter__(value)),
    tuple: lambda value: tuple(tuple.__iter__(value)),
    set: lambda value: set(set.__iter__(value)),
    frozenset: lambda value: frozenset(frozenset.__iter__(value)),
    dict: lambda value: dict(dict.items(value)),
    Mapping: dict,
    KeysView: set,
    ItemsView: set,
}


def decode(data: bytes) -> tuple[str, Any]:
    """Reads what `encode` wrote.

    Args:
        data: Untrusted bytes, of a size that the caller limits; a value takes at most 50 times their memory.

    Returns:
        The name of the type (untrusted), and the value, in which `Opaque` stands for objects.

    Raises:
        BadData: `encode` never writes these bytes.
    """
    name, found, _ = data[: LONGEST_NAME + 2].partition(b"\0")
    if not found:
        raise BadData("no name of a type")
    reader = _Reader(data, len(name) + 1)
    try:
        value = reader.value(0)
    except (TypeError, ValueError, OverflowError) as error:  # keys that cannot be hashed, text that is not UTF-8
        raise BadData(str(error)) from error
    if reader.at != len(data):
        raise BadData("bytes follow the value")
    return name.decode("ascii", "replace"), value


_FIXED: dict[bytes, tuple[struct.Struct, Any]] = {b"i": (_INT, int), b"d": (_FLOAT, float), b"c": (_COMPLEX, complex)}
_COUNTED: dict[bytes, Any] = {
    b"s": lambda data: data.decode("utf-8", "surrogatepass"),
    b"b": bytes,
    b"L": lambda data: int.from_bytes(data, "little", signed=True),
}


class _Reader:
    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at

    def take(self, size: int) -> bytes:
        part = self.data[self.at : self.at + size]
        if len(part) < size:
            raise BadData("cut off")
        self.at += size
        return part

    def count(self) -> int:
        number = _COUNT.unpack(self.take(_COUNT.size))[0]
        if number > len(self.data) - self.at:
            raise BadData("cut off")
        return number

    def value(self, depth: int) -> Any:
        if depth > MAX_DEPTH + 1:
            raise BadData("nested too deeply")
        tag = self.take(1)
        if tag in _FIXED:
            form, make = _FIXED[tag]
            return make(*form.unpack(self.take(form.size)))
        if tag in _COUNTED:
            return _COUNTED[tag](self.take(self.count()))
        if tag in _OF_CONSTANTS:
            return _OF_CONSTANTS[tag]
        if tag in _OF_SEQUENCES:
            return _OF_SEQUENCES[tag]([self.value(depth + 1) for _ in range(self.count())])
        if tag == b"{":
            return {self.value(depth + 1): self.value(depth + 1) for _ in range(self.count())}
        if tag in _PIECES:
            return self.piece(tag)
        if tag == b"?":
            return Opaque()
        raise BadData("unknown tag")

    def piece(self, tag: bytes) -> Any:
        kind, numbers = self.take(1), array(_PIECES[tag])
        if kind not in (b"[", b"("):
            raise BadData("numbers in one piece that are no list or tuple")
        count = self.count()
        whole = self.take(count) if tag == b"M" else b""
        numbers.frombytes(self.take(numbers.itemsize * count))
        items = (int(number) if flag else number for number, flag in zip(numbers, whole, strict=True))
        return _OF_SEQUENCES[kind](items if whole else numbers)
