"""Weights of models: which they are, whatever their folder is called; and whether all of them were loaded."""

import hashlib
import json
import re
import struct
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from cultureval.runtime.settings import current_settings

HASHED_IN_FULL = 64 * 2**20  # bytes; of larger files samples are hashed
BLOCK = 4096  # bytes, what a disk reads at once
BLOCKS_PER_TENSOR = 16
BLOCKS_PER_FILE = 2**15  # where a file has thousands of tensors, each gets fewer, but at least its ends
END = 2**20  # bytes of a file's beginning and end: a .bin file of torch ends with the checksums of its tensors
_NUMBER = re.compile(r"\.\d+\.")
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")  # files of weights


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


def missing_weights(model: Any, report: Mapping[str, Any], not_needed: Collection[str] = ()) -> str | None:
    """Weights that a checkpoint lacks; transformers initialises them at random and only logs a warning.

    Args:
        model: First value of `from_pretrained(..., output_loading_info=True)`.
        report: Its second value, the loading report.
        not_needed: Parts of the names of weights whose output is not used.

    Returns:
        A clause for an error, None where nothing is missing.
    """
    missing = sorted(name for name in report["missing_keys"] if not any(part in name for part in not_needed))
    if not missing:
        return None
    named = ", ".join(missing[:3]) + ", ..." * (len(missing) > 3)
    return f"lacks {len(missing)} of the weights of a {type(model).__name__}, which would be random: {named}"


def surplus_layers(model: Any, report: Mapping[str, Any]) -> str | None:
    """Layers that a checkpoint has beyond those of its configuration; transformers leaves them out and only logs it.

    Returns:
        A clause for an error, None where there are none; weights of other parts, such as another head, are none.
    """
    kinds = {_without_numbers(name) for name in model.state_dict()}
    surplus = sorted(
        name for name in report["unexpected_keys"] if _NUMBER.search(name) and _without_numbers(name) in kinds
    )
    if not surplus:
        return None
    return f"has weights of more layers than its config.json says, which would be left out ({surplus[0]})"


def _without_numbers(name: str) -> str:
    return _NUMBER.sub(".#.", name)


def missing_vocabulary(tokenizer: Any) -> str | None:
    """A clause where a tokenizer has only special tokens, as transformers 5 builds it without a tokenizer's files."""
    if len(tokenizer) > len(tokenizer.all_special_ids):
        return None
    return "has a tokenizer without a vocabulary; are the tokenizer's files there?"


def unusable_weights(model: Any, name: str) -> str | None:
    """A clause with the first weight of a model that is not a number, and its file in the model's folder; else None."""
    for key, tensor in model.state_dict().items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            files = sorted(path.name for kind in WEIGHTS for path in Path(name).expanduser().glob(kind))
            place = f" in {', '.join(files)}" if files else ""
            return f"has weights{place} that are not numbers (NaN or infinite): {key}"
    return None
