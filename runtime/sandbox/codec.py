"""Return values as plain data: the jail writes them with `encode`, a trusted process reads them with `decode`.

An encoded value is the name of its type, a zero byte, and JSON. None, bool, int, float, str and list are JSON's own.
Any other value is an object with one name:

| object | value |
|---|---|
| {"(": items}, {"<": items}, {">": items} | tuple, set, frozenset |
| {"{": pairs} | dict |
| {"b": hex}, {"c": [real, imaginary]} | bytes, complex |
| {"L": hex} | integer of more digits than Python reads at once |
| {"?": 0} | opaque: no builtin value equals it |

`decode` runs no code of the writer. It builds builtins only, and no more than its bytes need.
"""

import struct
import sys
from _json import encode_basestring_ascii, make_encoder  # `json` imports much
from collections.abc import ItemsView, KeysView, Mapping, Sized
from typing import Any

MAX_DEPTH = 100
FRAME = struct.Struct("<cdQ")  # before each message of a job: its kind, seconds of the call, bytes of the content
LONGEST_NAME = 80
OPAQUE = b'{"?":0}'
_NO_OTHERS: Any = None  # `_shown` leaves nothing else
_json_of = make_encoder(None, _NO_OTHERS, encode_basestring_ascii, None, ":", ",", False, False, True)
_ATOMS = {type(None), bool, float, str}
_NUMBERS_AND_ATOMS = _ATOMS | {int}
_TAGS: dict[type, str] = {tuple: "(", set: "<", frozenset: ">"}
_DECIMAL_BITS = 10_000  # of integers in decimal digits


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
    text = OPAQUE
    for flat in (True, False):
        try:
            text = "".join(_json_of(_shown(value, flat, 0), 0)).encode("ascii")
            break
        except MemoryError:
            raise
        except Exception:  # the first time also of a list with an integer of too many digits
            continue
    return type_name(value) + b"\0" + text


def type_name(value: Any) -> bytes:
    """The beginning of the name of a value's type in ASCII, for which no code of the class is asked."""
    name = type.__dict__["__name__"].__get__(type(value))
    return str.encode(str.__getitem__(name, slice(LONGEST_NAME)), "ascii", "replace").replace(b"\0", b"?")


def _shown(value: Any, flat: bool, depth: int) -> Any:
    """A value as JSON has it. `flat`: items that are all numbers and the like are not looked at one by one."""
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
    """What a subclass holds, by its builtin's own methods, or the builtin number that a library's equals; else None."""
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
        data: Untrusted bytes, of a size that the caller limits; a value takes at most 50 times their memory.

    Returns:
        The name of the type (untrusted), and the value, in which `Opaque` stands for objects.

    Raises:
        BadData: `encode` never writes these bytes.
        MemoryError: There is too little memory.
    """
    import json  # which the jail does not need

    name, _, text = data.partition(b"\0")
    if len(name) > LONGEST_NAME:
        raise BadData("no name of a type")
    try:  # each NaN is made anew, since one that is the same object would equal itself within a list
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
