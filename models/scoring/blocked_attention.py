"""Attention of a tree of tokens on a CPU in blocks of rows, each with the columns that its rows see.

Most of a tree's mask hides the tokens of one prompt from those of another. A product over all columns takes as long as
if it hid nothing; blocks take about half, and give the same up to rounding.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

ROWS = 64  # of a block: fewer see fewer columns, but cost a call more


class Block(NamedTuple):
    """Some rows of a mask: which, the columns that any of them sees, and the mask of both."""

    rows: slice
    columns: Tensor
    mask: Tensor


def blocked_attention(masks: Tensor | Mapping[str, Tensor]) -> AbstractContextManager[Any]:
    """A context in which attention under one of these masks is computed in blocks, where that saves time.

    Args:
        masks: Additive masks [1, 1, rows, columns], 0 where a row sees a column, as given to the model: one, or one per
            kind of layer. A model that changes them first computes its attention as always.
    """
    several = list(masks.values()) if isinstance(masks, Mapping) else [masks]
    applies = all(mask.device.type == "cpu" and mask.shape[2] > ROWS for mask in several)
    return _BlockedAttention(several) if applies else nullcontext()


class _BlockedAttention(TorchFunctionMode):
    """Computes attention under known masks block by block."""

    def __init__(self, masks: Sequence[Tensor]) -> None:
        super().__init__()
        self._masks = masks  # which keeps their memory from being another tensor's
        self._blocks = {(mask.data_ptr(), mask.shape): list(_blocks(mask)) for mask in masks}

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = kwargs or {}
        if func is scaled_dot_product_attention and len(args) == 3 and (blocks := self._of(given.get("attn_mask"))):
            query, key, value = args
            parts = (
                func(query[:, :, rows], key[:, :, columns], value[:, :, columns], **{**given, "attn_mask": mask})
                for rows, columns, mask in blocks
            )
            return torch.cat(list(parts), 2)
        return func(*args, **given)

    def _of(self, mask: Tensor | None) -> list[Block]:
        return [] if mask is None else self._blocks.get((mask.data_ptr(), mask.shape), [])


def _blocks(mask: Tensor) -> Iterator[Block]:
    for start in range(0, mask.shape[2], ROWS):
        rows = slice(start, start + ROWS)
        columns = (mask[0, 0, rows] == 0).any(0).nonzero()[:, 0]
        yield Block(rows, columns, mask[:, :, rows, columns].contiguous())
