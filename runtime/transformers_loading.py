"""Checks of loaded models for defects that transformers only logs and that would make every score wrong."""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

_NUMBER = re.compile(r"\.\d+\.")
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")  # files of weights


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
