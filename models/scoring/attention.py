"""Masks of token trees, and attention under them on a CPU in blocks of rows, each with the columns that its rows see.

Most of a tree's mask hides prompts from each other, but a product over all columns takes as long as without a mask.
Blocks give the same result up to rounding.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode
from transformers import PreTrainedModel

ROWS = 64  # of a block: smaller blocks see fewer columns but need more calls


def layer_masks(model: PreTrainedModel, visibility: Callable[[int | None], Tensor]) -> Tensor | dict[str, Tensor]:
    """Additive masks [batch, 1, rows, columns]: one, or one per kind of layer of the model.

    Args:
        model: The model.
        visibility: From the size of a sliding window (None for full attention) to a bool tensor of the same shape:
            the columns that each row sees.

    Raises:
        ValueError: There is no such mask for a kind of layer (recurrent, chunked, other windows).
    """
    config = model.config.get_text_config(decoder=True)
    window = getattr(config, "sliding_window", None)
    kinds = set(getattr(config, "layer_types", None) or [])
    if kinds - {"full_attention", "sliding_attention"}:
        raise ValueError(f"no tree mask for layers of kind {', '.join(sorted(kinds))}")

    def additive(reach: int | None) -> Tensor:
        hidden = torch.full((), torch.finfo(model.dtype).min, dtype=model.dtype, device=model.device)
        return torch.where(visibility(reach), hidden.new_zeros(()), hidden)

    if not kinds:
        return additive(window)
    if "sliding_attention" not in kinds:
        return additive(None)
    return {kind: additive(window if kind == "sliding_attention" else None) for kind in kinds}


class BlockedAttention(TorchFunctionMode):
    """A context that computes torch's attention under one of these masks block by block.

    Models that change the masks, or have their own attention, are not affected.
    """

    def __init__(self, masks: Tensor | Mapping[str, Tensor]) -> None:
        """Takes a mask, or a mask per kind of layer: [1, 1, rows, columns], 0 where a row sees a column."""
        super().__init__()
        self._masks = list(masks.values()) if isinstance(masks, Mapping) else [masks]  # keeps their memory
        large = [mask for mask in self._masks if mask.device.type == "cpu" and mask.shape[2] > ROWS]
        self._blocks = {(mask.data_ptr(), mask.shape): _blocks(mask) for mask in large}

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call a function of torch."""
        options = dict(kwargs or {})
        mask = options.get("attn_mask") if func is scaled_dot_product_attention and len(args) == 3 else None
        blocks = None if mask is None else self._blocks.get((mask.data_ptr(), mask.shape))
        if not blocks:
            return func(*args, **options)
        query, key, value = args
        parts = [
            func(query[:, :, rows], key[:, :, columns], value[:, :, columns], **options | {"attn_mask": part})
            for rows, columns, part in blocks
        ]
        return torch.cat(parts, 2)


def _blocks(mask: Tensor) -> list[tuple[slice, Tensor, Tensor]]:
    """Blocks: rows, the columns that any of them sees, and the mask of both."""
    slices = [slice(start, start + ROWS) for start in range(0, mask.shape[2], ROWS)]
    seen = [(mask[0, 0, rows] == 0).any(0).nonzero()[:, 0] for rows in slices]
    return [(rows, columns, mask[:, :, rows, columns].contiguous()) for rows, columns in zip(slices, seen, strict=True)]
