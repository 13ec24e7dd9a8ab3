"""Fingerprints of models' folders: which weights they are, whatever the folder is called and whenever it was copied."""

import hashlib
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from cultureval.runtime.settings import current_settings

HASHED_IN_FULL = 64 * 2**20  # bytes; of larger files samples are hashed
BLOCK = 4096  # bytes, what a disk reads at once
BLOCKS_PER_TENSOR = 16
BLOCKS_PER_FILE = 2**15  # where a file has thousands of tensors, each gets fewer, but at least its ends
END = 2**20  # bytes of a file's beginning and end: a .bin file of torch ends with the checksums of its tensors


def fingerprint(folder: Path) -> str:
    """A hash of the files in a folder, so that answers are not reused for other weights of the same name.

    It covers names, sizes and content, not times: a copy has the same one. Files up to 64 MiB are hashed in full. Of
    larger ones, unless CULTUREVAL_FINGERPRINT is "full": of safetensors the header and 16 blocks of 4 KiB of every
    tensor, its first and its last among them; of others both ends and a block of each MiB.

    Returns:
        The SHA-256 as 64 hexadecimal digits.

    Raises:
        CulturevalError: CULTUREVAL_FINGERPRINT is neither "sampled" nor "full".
    """
    digest, in_full = hashlib.sha256(), current_settings().fingerprint == "full"
    for path in sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")):
        size = path.stat().st_size
        digest.update(f"{path.name}\0{size}\0".encode())
        with path.open("rb") as file:
            for start, length in [(0, size)] if in_full or size <= HASHED_IN_FULL else _samples(file, size):
                file.seek(start)
                while length > 0 and (part := file.read(min(length, END))):
                    digest.update(part)
                    length -= len(part)
    return digest.hexdigest()


def _samples(file: BinaryIO, size: int) -> Iterator[tuple[int, int]]:
    """Begin and length of the parts of a large file that are hashed."""
    tensors = _tensors(file, size)
    if tensors is None:
        yield 0, END
        yield from ((start, BLOCK) for start in range(END, size - END, END))
        yield size - END, END
        return
    yield 0, min(start for start, _ in tensors)
    blocks = max(2, min(BLOCKS_PER_TENSOR, BLOCKS_PER_FILE // len(tensors)))
    for start, end in tensors:
        if end - start <= blocks * BLOCK:
            yield start, end - start
        else:
            room = end - start - BLOCK
            yield from ((start + room * number // (blocks - 1), BLOCK) for number in range(blocks))


def _tensors(file: BinaryIO, size: int) -> list[tuple[int, int]] | None:
    """Begin and end of each tensor in a safetensors file; None for other files."""
    try:
        (length,) = struct.unpack("<Q", file.read(8))
        if length > size - 8:
            return None
        entries = json.loads(file.read(length))
        found = [entry["data_offsets"] for name, entry in entries.items() if name != "__metadata__"]
        return sorted((8 + length + int(start), 8 + length + int(end)) for start, end in found) or None
    except (struct.error, ValueError, KeyError, TypeError, AttributeError):
        return None
