"""Attention of a tree of tokens on a CPU in blocks of rows, each with the columns that its rows see.

Most of a tree's mask hides the tokens of one prompt from those of another, and a product over all columns takes as
long as if it hid nothing. Blocks give the same up to rounding.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

ROWS = 64  # of a block: fewer see fewer columns, but cost a call more


class BlockedAttention(TorchFunctionMode):
    """A context in which torch's attention under one of these masks is computed block by block.

    A model that changes the masks first, or has attention of its own, computes it as always.
    """

    def __init__(self, masks: Tensor | Mapping[str, Tensor]) -> None:
        """Divide additive masks [1, 1, rows, columns], 0 where a row sees a column: one, or one per kind of layer."""
        super().__init__()
        self._masks = list(masks.values()) if isinstance(masks, Mapping) else [masks]  # kept: so is their memory
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
        given = dict(kwargs or {})
        mask = given.get("attn_mask") if func is scaled_dot_product_attention and len(args) == 3 else None
        blocks = None if mask is None else self._blocks.get((mask.data_ptr(), mask.shape))
        if not blocks:
            return func(*args, **given)
        query, key, value = args
        parts = [
            func(query[:, :, rows], key[:, :, columns], value[:, :, columns], **given | {"attn_mask": part})
            for rows, columns, part in blocks
        ]
        return torch.cat(parts, 2)


def _blocks(mask: Tensor) -> list[tuple[slice, Tensor, Tensor]]:
    """Rows of a mask, the columns that any of them sees, and the mask of both."""
    slices = [slice(start, start + ROWS) for start in range(0, mask.shape[2], ROWS)]
    seen = [(mask[0, 0, rows] == 0).any(0).nonzero()[:, 0] for rows in slices]
    return [(rows, columns, mask[:, :, rows, columns].contiguous()) for rows, columns in zip(slices, seen, strict=True)]
