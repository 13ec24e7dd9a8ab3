"""Checks of loaded models for defects that transformers only logs and that would make every score wrong."""

from collections.abc import Collection, Mapping
from typing import Any


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


def missing_vocabulary(tokenizer: Any) -> str | None:
    """A clause where a tokenizer has only special tokens, as transformers 5 builds it without a tokenizer's files."""
    if len(tokenizer) > len(tokenizer.all_special_ids):
        return None
    return "has a tokenizer without a vocabulary; are the tokenizer's files there?"
