"""Return values as plain data: the jail calls `encode`, a trusted process `decode`.

An encoded value is the name of its type, a zero byte, and JSON. None, bool, int, float, str and list are JSON's own.
Any other value is a JSON object with one key:

| object | value |
|---|---|
| {"(": items}, {"<": items}, {">": items} | tuple, set, frozenset |
| {"{": pairs} | dict |
| {"b": hex}, {"c": [real, imaginary]} | bytes, complex |
| {"L": hex} | integer with more digits than Python reads |
| {"?": 0} | opaque: no builtin value equals it |

`decode` runs no code of the writer. It makes only builtins, in memory proportional to the bytes.
"""

import struct
import sys
from _json import encode_basestring_ascii, make_encoder  # `json` imports many modules
from collections.abc import ItemsView, KeysView, Mapping, Sized
from typing import Any

MAX_DEPTH = 100
FRAME = struct.Struct("<cdQ")  # header of a message: kind, seconds of the call, bytes of content
LONGEST_NAME = 80
OPAQUE = b'{"?":0}'
_NO_OTHERS: Any = None  # `_shown` makes JSON types only
_json_of = make_encoder(None, _NO_OTHERS, encode_basestring_ascii, None, ":", ",", False, False, True)
_ATOMS = {type(None), bool, float, str}
_NUMBERS_AND_ATOMS = _ATOMS | {int}
_TAGS: dict[type, str] = {tuple: "(", set: "<", frozenset: ">"}
_DECIMAL_BITS = 10_000  # longer integers are written in hexadecimal


class BadData(ValueError):
    """Bytes that `encode` never writes."""


class Opaque:
    """In place of an object that equals no builtin value; it equals nothing."""

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = object.__hash__


def encode(value: Any) -> bytes:
    """Writes a value; generated code runs beside it, so nobody may trust the bytes.

    An object is opaque if it has no builtin form, contains itself, is nested too deeply, or its methods fail.

    Raises:
        MemoryError: There is too little memory.
    """
    text = OPAQUE
    for flat in (True, False):
        try:
            text = "".join(_json_of(_shown(value, flat, 0), 0)).encode("ascii")
            break
        except MemoryError:
            raise
        except Exception:  # the first time also for an integer with too many digits in a list
            continue
    return type_name(value) + b"\0" + text


def type_name(value: Any) -> bytes:
    """The first characters of the name of a value's type, in ASCII, without calling code of the class."""
    name = type.__dict__["__name__"].__get__(type(value))
    return str.encode(str.__getitem__(name, slice(LONGEST_NAME)), "ascii", "replace").replace(b"\0", b"?")


def _shown(value: Any, flat: bool, depth: int) -> Any:
    """A value in JSON types. `flat`: lists of plain types are taken as they are."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is int:
        return value if value.bit_length() <= _DECIMAL_BITS else {"L": hex(value)}
    if depth > MAX_DEPTH:
        raise RecursionError
    if kind is list or kind in _TAGS:
        as_they_are = flat and set(map(type, value)) <= _NUMBERS_AND_ATOMS
        items = list(value) if as_they_are else [_shown(item, flat, depth + 1) for item in value]
        return items if kind is list else {_TAGS[kind]: items}
    if kind is dict:
        return {"{": [[_shown(key, flat, depth + 1), _shown(item, flat, depth + 1)] for key, item in value.items()]}
    if kind is bytes:
        return {"b": value.hex()}
    if kind is complex:
        return {"c": [value.real, value.imag]}
    plain = _plain(value, kind)
    return {"?": 0} if plain is None else _shown(plain, flat, depth)


def _plain(value: Any, kind: type) -> Any:
    """The builtin value of an instance of a subclass, or of a library's number; else None."""
    for base, plain in _PLAIN.items():
        if issubclass(kind, base):
            return plain(value)
    numpy = sys.modules.get("numpy")
    if numpy and issubclass(kind, numpy.generic):
        value = value.item()
        return value if type(value) in (*_NUMBERS_AND_ATOMS, complex, bytes) else None
    for make in () if issubclass(kind, Sized) else (int, float, complex, bool):
        try:
            if (found := make(value)) == value and type(found) is make:
                return found
        except (TypeError, ValueError, ArithmeticError, AttributeError):
            continue
    return None


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
        data: Untrusted bytes; the caller limits their size. A value takes at most 50 times their memory.

    Returns:
        The name of the type (untrusted), and the value, with `Opaque` in place of objects.

    Raises:
        BadData: `encode` never writes these bytes.
        MemoryError: There is too little memory.
    """
    import json  # not needed in the jail

    name, _, text = data.partition(b"\0")
    if len(name) > LONGEST_NAME:
        raise BadData("no name of a type")
    try:  # each NaN is a new object: the same object would equal itself in a list
        return name.decode("ascii"), json.loads(text.decode("ascii"), object_hook=_made, parse_constant=float)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise BadData(str(error)) from error


def _made(found: dict[str, Any]) -> Any:
    ((tag, content),) = found.items()
    return _MAKERS[tag](content)


_MAKERS: dict[str, Any] = {
    "(": tuple,
    "<": set,
    ">": frozenset,
    "{": dict,
    "b": bytes.fromhex,
    "c": lambda parts: complex(*parts),
    "L": lambda digits: int(digits, 16),
    "?": lambda _: Opaque(),
}
