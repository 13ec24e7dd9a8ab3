"""Whether the embeddings of a checkpoint have the shapes that its configuration names, from the heads of its files."""

import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cultureval.runtime.errors import CulturevalError

TABLES = {  # one row of `hidden_size` numbers for each of `vocab_size` tokens
    "input": re.compile(r"(^|\.)(embed_tokens|wte|embed_in|word_embeddings)\.weight$"),
    "output": re.compile(r"(^|\.)(lm_head|embed_out)\.weight$"),
}
FLOATS = ("F64", "F32", "F16", "BF16")  # quantised weights are packed, in other shapes
OTHER_WIDTHS = ("embedding_size", "word_embed_proj_dim", "embd_hidden_size", "hidden_size_per_layer_input")


def safetensors_header(path: Path) -> dict[str, dict[str, Any]]:
    """The entries of a file of safetensors: `dtype`, `shape` and `data_offsets` by the tensor's name.

    Raises:
        ValueError: It is no such file, or its head is cut short.
    """
    with path.open("rb") as file:
        try:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(length)) if length < path.stat().st_size else {}
            header.pop("__metadata__", None)
            if not all(isinstance(entry["data_offsets"][1], int) for entry in header.values()):
                raise ValueError("offsets that are no numbers")
        except (struct.error, KeyError, TypeError, IndexError, AttributeError) as error:
            raise ValueError(f"no header of safetensors: {error}") from error
    return header


def require_fitting_shapes(name: str, folder: Path, config: Any) -> None:
    """Checks embeddings and output layer, which tell most configurations of another model.

    Only shapes that are sure are compared: those of the only table of its kind, in floating-point numbers.

    Args:
        name: The model, for the message.
        folder: The folder with its weights.
        config: transformers' configuration of it.

    Raises:
        CulturevalError: A shape differs; names the file, the tensor and both shapes.
    """
    text = config.get_text_config(decoder=True)
    wanted = [getattr(text, "vocab_size", None), getattr(text, "hidden_size", None)]
    unusual = any(getattr(text, other, None) for other in OTHER_WIDTHS) or hasattr(config, "quantization_config")
    if unusual or not all(isinstance(size, int) and size > 0 for size in wanted):
        return
    entries = list(_entries(folder))
    for pattern in TABLES.values():
        found = [entry for entry in entries if pattern.search(entry[1])]
        for file, tensor, entry in found if len(found) == 1 else []:
            if entry.get("dtype") in FLOATS and (shape := entry.get("shape")) != wanted:
                raise CulturevalError(
                    f"{name}: {file} does not fit config.json: {tensor} has the shape {shape}, and vocab_size and "
                    f"hidden_size ask for {wanted}. Give the config.json that belongs to these weights."
                )


def _entries(folder: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """File, tensor and entry of all tensors; broken files, which another check reports, have none."""
    for path in sorted(folder.glob("*.safetensors")):
        try:
            header = safetensors_header(path)
        except (ValueError, OSError):
            continue
        yield from ((path.name, tensor, entry) for tensor, entry in header.items())
