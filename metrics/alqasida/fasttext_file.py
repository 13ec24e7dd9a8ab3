"""The layout of fastText's model files, checked before the library reads one: it hangs or dies on a file cut short."""

import mmap
import struct
from pathlib import Path

import numpy as np

MAGIC, SUPERVISED, LABEL = 793712314, 3, 1
ARGUMENTS = struct.Struct("<12id")
PREFIX = "__label__"
CHUNK = 2**22  # numbers that are checked at once


def labels_of(file: Path) -> list[str]:
    """The labels of a fastText classifier, without their prefix; the file is complete to its last matrix.

    Raises:
        ValueError: It is not a fastText classifier, ends early, or holds what is no number; the message is a clause.
        OSError: It cannot be read.
    """
    numbers: list[tuple[int, int]] = []
    with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        try:
            labels, end = _read(content, numbers)
        except struct.error as error:
            raise ValueError("it is cut short") from error
        if end > len(content):
            raise ValueError(f"it is cut short: {len(content)} of {end} bytes are there")
    if not all(_finite(file, *matrix) for matrix in numbers):
        raise ValueError("it has weights that are not numbers (NaN or infinite)")
    return labels


def _finite(file: Path, place: int, count: int) -> bool:
    """Whether a matrix holds finite numbers only."""
    with file.open("rb") as stream:
        stream.seek(place)
        sizes = (min(CHUNK, count - start) for start in range(0, count, CHUNK))
        return all(np.isfinite(np.fromfile(stream, "<f4", size)).all() for size in sizes)


def _read(content: mmap.mmap, numbers: list[tuple[int, int]]) -> tuple[list[str], int]:
    """The labels, and where the file must end; adds the place and size of each matrix of plain numbers."""
    magic, version = struct.unpack_from("<2i", content, 0)
    if magic != MAGIC or version not in (11, 12):
        raise ValueError("it is not a fastText model")
    arguments = ARGUMENTS.unpack_from(content, 8)
    if arguments[7] != SUPERVISED:
        raise ValueError("it is not a classifier")
    entries, _, _, _, pruned = struct.unpack_from("<3i2q", content, place := 8 + ARGUMENTS.size)
    place += struct.calcsize("<3i2q")
    labels = []
    for _ in range(entries):
        end = content.find(b"\0", place)
        if end < 0:
            raise ValueError("it is cut short")
        if content[end + 9 : end + 10] == bytes([LABEL]):
            labels.append(content[place:end].decode("utf-8", "replace").removeprefix(PREFIX))
        place = end + 10
    place = _matrix_end(content, place + 8 * max(pruned, 0), numbers)  # the input vectors
    return labels, _matrix_end(content, place, numbers)  # the output vectors


def _matrix_end(content: mmap.mmap, place: int, numbers: list[tuple[int, int]]) -> int:
    """Where a matrix ends that begins with the byte that says whether it is quantised."""
    (quantised,) = struct.unpack_from("<?", content, place)
    if not quantised:
        rows, columns = struct.unpack_from("<2q", content, place + 1)
        numbers.append((place + 17, rows * columns))
        return place + 17 + 4 * rows * columns
    normed, rows, _, codes = struct.unpack_from("<?2qi", content, place + 1)
    end = _quantiser_end(content, place + 22 + codes)
    return _quantiser_end(content, end + rows) if normed else end


def _quantiser_end(content: mmap.mmap, place: int) -> int:
    (dimensions,) = struct.unpack_from("<i", content, place)
    return place + 16 + 4 * 256 * dimensions
