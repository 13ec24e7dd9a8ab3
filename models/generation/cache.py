"""The cache of keys and values for the generation queue, and forward passes over it.

Transformers copies its whole cache for every token; here a token is written into a buffer with free columns. Rows of
different lengths end in the same column, padded with zeros on the left, so that rows can leave and join a batch. Rows
with a shared beginning get copies of its keys.
"""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import Cache, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from cultureval.models.generation.rows import AnswerRow
from cultureval.models.scoring.token_tree import common_length

ROOM = 64  # columns that a full buffer grows by


class GrowingLayer(DynamicLayer):
    """A layer's keys and values [rows, heads, columns, size], the visible part of larger buffers."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Writes the keys and values of new columns, and returns all keys and values."""
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
        """Takes buffers with keys and values in the first `columns`; the other columns are free."""
        self.is_initialized, self.dtype, self.device = True, keys.dtype, keys.device
        self._buffers = keys, values
        self.show(columns)

    def show(self, columns: int) -> None:
        """Keeps the first columns; the rest becomes free."""
        self.keys, self.values = (buffer[..., :columns, :] for buffer in self._buffers)


@dataclass(frozen=True)
class Part:
    """Rows of a cache to copy into another cache.

    Attributes:
        cache: The source; its rows end in the same column.
        rows: Indices of the rows; an index may repeat.
        columns: Number of last columns to take from each row.
        before: Columns of zeros before each row, which push out as many of its last columns; None for none.
    """

    cache: Cache
    rows: Sequence[int]
    columns: int
    before: Sequence[int] | None = None


def empty_cache() -> Cache:
    """A cache without rows; layers are made when a model fills them."""
    return Cache(layer_class_to_replicate=GrowingLayer)


def assembled(parts: Sequence[Part], room: int) -> Cache:
    """A cache of the rows of all parts, in order, with zeros before shorter rows and `room` free columns."""
    made = empty_cache()
    for number in range(len(parts[0].cache.layers)):
        layer = GrowingLayer()
        layers = [part.cache.layers[number] for part in parts]
        states = ([getattr(source, name) for source in layers] for name in ("keys", "values"))
        keys, values = (_together(tensors, parts, room) for tensors in states)
        layer.take(keys, values, keys.shape[-2] - room)
        made.layers.append(layer)
    return made


def _together(states: Sequence[Tensor], parts: Sequence[Part], room: int) -> Tensor:
    width, first, start = max(part.columns for part in parts), states[0], 0
    whole = first.new_zeros(sum(len(part.rows) for part in parts), first.shape[1], width + room, first.shape[-1])
    for source, part in zip(states, parts, strict=True):
        end = start + len(part.rows)
        taken = source[..., source.shape[-2] - part.columns :, :]
        if part.before is None:
            index = torch.tensor(list(part.rows), device=source.device)
            whole[start:end, :, width - part.columns : width] = taken[index]
        else:
            for place, (row, zeros) in enumerate(zip(part.rows, part.before, strict=True), start=start):
                kept = taken[row, :, : max(part.columns - zeros, 0)]
                whole[place, :, width - kept.shape[-2] : width] = kept
        start = end
    return whole


def bytes_per_column(cache: Cache) -> int:
    """Bytes of the keys and values of one token."""
    tensors = (states for layer in cache.layers for states in (layer.keys, layer.values))
    return sum(states.shape[1] * states.shape[-1] * states.element_size() for states in tensors)


class Reader:
    """Feeds a model, and keeps the keys of the last shared beginning."""

    def __init__(self, model: PreTrainedModel) -> None:
        """Prepare to read with a causal model."""
        self.model = model
        self._taken = set(inspect.signature(model.forward).parameters)
        self.forget()

    def forget(self) -> None:
        """Frees the memory of the shared beginning."""
        self._beginning: list[int] = []
        self._cache = empty_cache()

    def advance(self, cache: Cache, rows: Sequence[AnswerRow], width: int) -> Tensor:
        """Feeds the tokens of rows that are not cached; returns the last logits [rows, vocabulary], fp32.

        Args:
            cache: Is extended; its rows end in the same column.
            rows: Of at most `width` tokens.
            width: Columns of the cache afterwards.
        """
        cached, device = cache.get_seq_length(), self.model.device
        before = [width - len(row) for row in rows]
        fed = [row.last(width - cached) for row in rows]
        ids = torch.tensor([[0] * (width - cached - len(tokens)) + tokens for tokens in fed], device=device)
        padding = torch.tensor(before, device=device)[:, None]
        columns = torch.arange(width, device=device)
        inputs = {"position_ids": (columns[cached:] - padding).clamp(min=0)}
        if any(before):
            inputs["attention_mask"] = (columns >= padding).long()
        return self._logits(cache, ids, inputs)

    def _logits(self, cache: Cache, ids: Tensor, inputs: dict[str, Any]) -> Tensor:
        inputs = {name: value for name, value in (inputs | {"logits_to_keep": 1}).items() if name in self._taken}
        out = self.model(input_ids=ids, past_key_values=cache, use_cache=True, **inputs)
        return out.logits[:, -1].to(dtype=torch.float32, copy=True)

    def read(self, rows: Sequence[AnswerRow]) -> tuple[Cache, Tensor]:
        """A cache of rows, all with the same shared beginning or none, and their last logits, as of `advance`."""
        width, shared = max(map(len, rows)), rows[0].shared
        if not shared:
            return (cache := empty_cache()), self.advance(cache, rows, width)
        self._hold(list(rows[0].prompt[:shared]))
        before = [min(width - len(row), shared) for row in rows]
        cache = assembled([Part(self._cache, [0] * len(rows), shared, before)], room=width - shared)
        return cache, self.advance(cache, rows, width)

    def _hold(self, tokens: list[int]) -> None:
        """Caches a beginning; its common part with the cached one is not read again."""
        kept = common_length(self._beginning, tokens)
        if not kept:
            self.forget()
        for layer in self._cache.layers:
            layer.show(kept)
        if kept < len(tokens):
            ids = torch.tensor([tokens[kept:]], device=self.model.device)
            places = torch.arange(kept, len(tokens), device=self.model.device)[None]
            self._logits(self._cache, ids, {"position_ids": places})
        self._beginning = tokens
