"""A line of the journal: one answer, after a checksum of all that follows it.

    {"checksum": "<16 hex digits>", "sequence": 7, "time": <ns>, "key": "<64 hex digits>", "of": "...", "answer": {...}}

The line that a check of who a server is was passed has the key `check NAME` and an empty answer.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

_HEAD = b'{"checksum": "'
_CHECKSUM_DIGITS = 16
CHECK = "check "  # begins the keys of lines that are no answers
UNCONFIRMED = " or another, since nobody could be asked"  # behind a model: whose the answers without a check are
_BODY_START = len(_HEAD) + _CHECKSUM_DIGITS + len(b'", ')


def encode_line(key: str, answer: Mapping[str, Any], sequence: int, time: int, of: str) -> bytes:
    """The line of an answer.

    Args:
        answer: A JSON object; log-probabilities of minus infinity are kept, as Python's JSON writes and reads them.
        sequence: The place among all answers of a journal; of equal keys the highest is the newest.
        time: In ns since 1970, for people.
        of: Whose answer it is (a model), for people.

    Raises:
        TypeError: The answer holds what JSON cannot.
    """
    record = {"sequence": sequence, "time": time, "key": key, "of": of, "answer": dict(answer)}
    body = utf8(json.dumps(record, ensure_ascii=False))[1:]
    return _HEAD + _checksum(body) + b'", ' + body + b"\n"


def decode_line(line: bytes) -> dict[str, Any] | None:
    """The record of a line, or None where the line is damaged."""
    line = line.removesuffix(b"\n")
    body = line[_BODY_START:]
    if line[:_BODY_START] != _HEAD + _checksum(body) + b'", ':
        return None
    record = json.loads((b"{" + body).decode("utf-8", "surrogatepass"))
    return record if "sequence" in record else None


def check_key(name: str) -> str:
    """The key of a passed check's line."""
    return CHECK + name


def utf8(text: str) -> bytes:
    """UTF-8 that keeps lone surrogates: a server may cut an emoji in half, and the answer must still be kept."""
    return text.encode("utf-8", "surrogatepass")


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest()[:_CHECKSUM_DIGITS].encode("ascii")
