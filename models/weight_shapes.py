"""Whether a checkpoint has the layers, and embeddings of the shapes, that its configuration names.

Told from the heads of its files, before a model loads.
"""

import json
import re
import struct
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cultureval.runtime.errors import CulturevalError, counted

TABLES = {  # one row of `hidden_size` numbers for each of `vocab_size` tokens
    "input": re.compile(r"(^|\.)(embed_tokens|wte|embed_in|word_embeddings)\.weight$"),
    "output": re.compile(r"(^|\.)(lm_head|embed_out)\.weight$"),
}
FLOATS = ("F64", "F32", "F16", "BF16")  # quantised weights are packed, in other shapes
OTHER_WIDTHS = ("embedding_size", "word_embed_proj_dim", "embd_hidden_size", "hidden_size_per_layer_input")


LAYER = re.compile(r"(?P<stack>(?:.*?\.)?(?:layers|layer|blocks|h))\.(?P<number>\d+)\.")
# Stacks beside the decoder: of images and sounds, and of drafts of further tokens, which are left out when it loads.
OTHER_STACKS = re.compile(r"vis(ion|ual)|image|audio|speech|encoder|resampler|projector|perceiver|connector|mtp|nextn")
# Settings of architectures whose decoder has fewer layers of weights than num_hidden_layers.
UNUSUAL_DEPTH = ("block_configs", "hybrid_layer_ids", "num_mem_blocks", "num_kv_shared_layers")


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


def require_fitting_depth(name: str, folder: Path, config: Any) -> None:
    """Checks that the decoder's layers of weights are as many as the configuration says.

    A model of fewer layers loads, and scores, as if the others did not exist. Only one stack of layers whose numbers
    have no gap is compared.

    Raises:
        CulturevalError: There are more, or fewer.
    """
    text = config.get_text_config(decoder=True)
    wanted, drafts = getattr(text, "num_hidden_layers", None), getattr(text, "num_nextn_predict_layers", None) or 0
    stacks: dict[str, set[int]] = defaultdict(set)
    for _, tensor, _ in _entries(folder):
        if (layer := LAYER.match(tensor)) and not OTHER_STACKS.search(layer["stack"]):
            stacks[layer["stack"]].add(int(layer["number"]))
    if len(stacks) != 1 or not isinstance(wanted, int) or any(getattr(text, one, None) for one in UNUSUAL_DEPTH):
        return
    ((stack, numbers),) = stacks.items()
    if len(numbers) == max(numbers) + 1 and len(numbers) not in (wanted, wanted + drafts):
        raise CulturevalError(
            f"{name}: its weights have {counted(len(numbers), 'layer')} ({stack}.0 to {stack}.{max(numbers)}), and "
            f"num_hidden_layers in config.json is {wanted}. Give the config.json that belongs to these weights."
        )


def _entries(folder: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """File, tensor and entry of all tensors; broken files, which another check reports, have none."""
    for path in sorted(folder.glob("*.safetensors")):
        try:
            header = safetensors_header(path)
        except (ValueError, OSError):
            continue
        yield from ((path.name, tensor, entry) for tensor, entry in header.items())
