"""Keys and values of several rows, aligned at their ends, in buffers with room for the tokens to come.

Transformers' own cache is copied whole for every token; here a token is written after the others. Rows of different
lengths end in the same column, with zeros before the shorter ones: the layout of prompts padded on the left, which
every model that generates in batches can read. So rows can leave a batch and join it, and rows that share a prefix get
copies of its keys, moved to where each row needs them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import Cache
from transformers.cache_utils import DynamicLayer

ROOM = 64  # columns that a full buffer grows by


class GrowingLayer(DynamicLayer):
    """A layer's keys and values [rows, heads, columns, size], the visible part of larger buffers."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Writes the keys and values of new columns, and returns those of all."""
        if not self.is_initialized:
            self.take(key_states, value_states, key_states.shape[-2])
            return self.keys, self.values
        held, end = self.keys.shape[-2], self.keys.shape[-2] + key_states.shape[-2]
        if end > self._buffers[0].shape[-2]:
            room = (0, 0, 0, end - held + ROOM)
            self.take(*(torch.nn.functional.pad(states, room) for states in (self.keys, self.values)), held)
        for buffer, states in zip(self._buffers, (key_states, value_states), strict=True):
            buffer[..., held:end, :] = states
        self.show(end)
        return self.keys, self.values

    def take(self, keys: Tensor, values: Tensor, columns: int) -> None:
        """Takes buffers, of which the first columns hold keys and values, and the others are free."""
        self.is_initialized, self.dtype, self.device = True, keys.dtype, keys.device
        self._buffers = keys, values
        self.show(columns)

    def show(self, columns: int) -> None:
        """Keeps the first columns; those after them become free."""
        self.keys, self.values = (buffer[..., :columns, :] for buffer in self._buffers)


@dataclass(frozen=True)
class Part:
    """Rows of a cache that become rows of another.

    Attributes:
        cache: From which they are taken; its rows end in the same column.
        rows: Their indices, an index several times for copies.
        columns: How many of the last columns are taken of each.
        before: Columns of zeros put before each row's, which push as many of its last ones out; None for none.
    """

    cache: Cache
    rows: Sequence[int]
    columns: int
    before: Sequence[int] | None = None


def empty_cache() -> Cache:
    """A cache without rows, whose layers are made as a model fills them."""
    return Cache(layer_class_to_replicate=GrowingLayer)


def assembled(parts: Sequence[Part], room: int) -> Cache:
    """A cache of all rows of some parts, in order, as wide as the widest, with zeros before shorter ones.

    Args:
        parts: Of caches of one model.
        room: Free columns after those in use.
    """
    made = empty_cache()
    for number in range(len(parts[0].cache.layers)):
        layer = GrowingLayer()
        layers = [part.cache.layers[number] for part in parts]
        keys, values = (_together([getattr(one, name) for one in layers], parts, room) for name in ("keys", "values"))
        layer.take(keys, values, keys.shape[-2] - room)
        made.layers.append(layer)
    return made


def _together(states: Sequence[Tensor], parts: Sequence[Part], room: int) -> Tensor:
    width = max(part.columns for part in parts)
    count = sum(len(part.rows) for part in parts)
    first = states[0]
    whole = first.new_zeros(count, first.shape[1], width + room, first.shape[-1])
    start = 0
    for one, part in zip(states, parts, strict=True):
        end = start + len(part.rows)
        taken = one[..., one.shape[-2] - part.columns :, :]
        if part.before is None:
            index = torch.tensor(list(part.rows), device=one.device)
            whole[start:end, :, width - part.columns : width] = taken[index]
        else:
            for place, (row, zeros) in enumerate(zip(part.rows, part.before, strict=True), start=start):
                kept = taken[row, :, : max(part.columns - zeros, 0)]
                whole[place, :, width - kept.shape[-2] : width] = kept
        start = end
    return whole


def bytes_per_column(cache: Cache) -> int:
    """Bytes of the keys and values of one token."""
    tensors: Iterable[Tensor] = (states for layer in cache.layers for states in (layer.keys, layer.values))
    return sum(states.shape[1] * states.shape[-1] * states.element_size() for states in tensors)
