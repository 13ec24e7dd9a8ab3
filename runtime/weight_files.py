"""Weights of models: a fingerprint of their files, and checks that all were loaded."""

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from cultureval.runtime.settings import current_settings

HASHED_IN_FULL = 64 * 2**20  # bytes; of larger files only samples are hashed
MIB, BLOCK = 2**20, 4096  # a file's ends are hashed in MiB, and between them a block of each MiB


def fingerprint(folder: Path) -> str:
    """A hash of the files in a folder, so that answers are not reused for other weights of the same name.

    It covers names, sizes and content, so a copy has the same hash. Of a file over 64 MiB it reads the first and the
    last MiB and 4 KiB of each MiB between, or all of it where CULTUREVAL_FINGERPRINT is "full".
    """
    digest, in_full = hashlib.sha256(), current_settings().fingerprint == "full"
    for path in sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")):
        size = path.stat().st_size
        digest.update(f"{path.name}\0{size}\0".encode())
        with path.open("rb") as file:
            if in_full or size <= HASHED_IN_FULL:
                while part := file.read(MIB):
                    digest.update(part)
                continue
            for start in (0, *range(MIB, size - MIB, MIB), size - MIB):
                file.seek(start)
                digest.update(file.read(MIB if start in (0, size - MIB) else BLOCK))
    return digest.hexdigest()


def load_sound(auto: Any, name: str, longest: int, not_needed: Collection[str] = (), **options: Any) -> tuple[Any, Any]:
    """A tokenizer and its model, in evaluation mode, with all weights loaded.

    Args:
        auto: A class of transformers, such as `AutoModel`.
        name: Hub id or folder.
        longest: Most tokens of a text; `model_max_length` becomes this, or the model's maximum where that is less.
        not_needed: Parts of names of weights that may be missing.
        options: Of `from_pretrained`.

    Raises:
        ValueError: The tokenizer has no vocabulary, or weights are missing or no numbers. Broken files raise many other
            types: OSError, KeyError, exceptions of the Rust tokenizers.
    """
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(name)
    model, report = auto.from_pretrained(name, output_loading_info=True, **options)
    if wrong := missing_vocabulary(tokenizer) or missing_weights(model, report, not_needed) or unusable_weights(model):
        raise ValueError(f"it {wrong}")
    limits = (longest, tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", 0))
    tokenizer.model_max_length = min(limit for limit in limits if limit > 0)
    return tokenizer, model.eval()


def missing_weights(model: Any, report: Mapping[str, Any], not_needed: Collection[str] = ()) -> str | None:
    """A clause with the weights that are missing in a checkpoint, or None; transformers only logs them.

    `model` and `report` are of `from_pretrained(..., output_loading_info=True)`; `not_needed` are parts of names.
    """
    missing = sorted(name for name in report["missing_keys"] if not any(part in name for part in not_needed))
    if not missing:
        return None
    named = ", ".join(missing[:3]) + ", ..." * (len(missing) > 3)
    return f"lacks {len(missing)} of the weights of a {type(model).__name__}, which would be random: {named}"


def unusable_weights(model: Any) -> str | None:
    """A clause with the first weight that is not a number; None where all are."""
    tensors = ((key, tensor) for key, tensor in model.state_dict().items() if tensor.is_floating_point())
    broken = next((key for key, tensor in tensors if not tensor.isfinite().all()), None)
    return f"has weights that are not numbers (NaN or infinite): {broken}" if broken else None


def missing_vocabulary(tokenizer: Any) -> str | None:
    """A clause where a tokenizer has only special tokens, as transformers 5 builds it without a tokenizer's files."""
    if len(tokenizer) > len(tokenizer.all_special_ids):
        return None
    return "has a tokenizer without a vocabulary: check that the tokenizer's files are there"
