"""Forward passes over rows that end in the same column, and over a prefix that several of them share."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import Cache, PreTrainedModel

from cultureval.models.generation.growing_cache import Part, assembled, empty_cache
from cultureval.models.generation.rows import DecodingRow
from cultureval.models.scoring.token_tree import common_length
from cultureval.runtime.patches.transformers import rope_offset


class Reader:
    """Feeds a model, and keeps the prefix that it fed last.

    Attributes:
        prefix: Tokens of the prefix.
        images: Hash of its images, "" for text alone.
        fed: Tokens fed so far, padding included.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        """Prepare to read with a causal or image-text-to-text model."""
        self.model = model
        self._taken = set(inspect.signature(model.forward).parameters)
        self.fed = 0
        self.forget()

    def forget(self) -> None:
        """Frees the memory of the prefix."""
        self.prefix: list[int] = []
        self.images, self.offset, self._cache = "", 0, empty_cache()

    def advance(self, cache: Cache, rows: Sequence[DecodingRow], width: int) -> Tensor:
        """Feed each row's tokens that the cache lacks, and return the logits after the last: [rows, vocabulary], fp32.

        Args:
            cache: Its rows end in the same column; it is extended.
            rows: The longest of at most `width` tokens.
            width: Columns of the cache afterwards.
        """
        cached = cache.get_seq_length()
        before = [width - len(row) for row in rows]
        fed = [row.last(width - cached) for row in rows]
        device = self.model.device
        ids = torch.tensor([[0] * (width - cached - len(tokens)) + tokens for tokens in fed], device=device)
        padding = torch.tensor(before, device=device)[:, None]
        columns = torch.arange(width, device=device)
        offsets = torch.tensor([row.offset for row in rows], device=device)[:, None]
        given = {"position_ids": (columns[cached:] - padding).clamp(min=0) + offsets}
        if any(before):
            given["attention_mask"] = (columns >= padding).long()
        return self._logits(cache, ids, given)

    def _logits(self, cache: Cache, ids: Tensor, given: Mapping[str, Any]) -> Tensor:
        self.fed += ids.numel()
        given = {name: value for name, value in given.items() if name in self._taken}
        if "logits_to_keep" in self._taken:
            given["logits_to_keep"] = 1
        out = self.model(input_ids=ids, past_key_values=cache, use_cache=True, **given)
        return out.logits[:, -1].to(dtype=torch.float32, copy=True)

    def hold(self, row: DecodingRow, length: int) -> None:
        """Hold the first tokens of a row as the prefix; what it shares with the one held so far is not read again.

        Args:
            row: With its images, if it has any.
            length: Tokens of the prefix.
        """
        tokens = row.to_be_read()[:length]
        shared = common_length(self.prefix, tokens) if row.images == self.images else 0
        if shared < max(row.images_end, 1):
            self.forget()
            shared = 0
        if shared < length:
            for layer in self._cache.layers:
                layer.show(shared)
            self._read(row, tokens, shared)

    def _read(self, row: DecodingRow, tokens: list[int], start: int) -> None:
        """Feed a prefix from a column on; images only from its beginning, with the model's own mask and positions."""
        ids = torch.tensor([tokens[start:]], device=self.model.device)
        if row.images and not start:
            given = row.vision_of(len(tokens))
            self._logits(self._cache, ids, {name: value.to(self.model.device) for name, value in given.items()})
            self.offset = rope_offset(self.model)
        else:
            places = torch.arange(start, len(tokens), device=self.model.device)[None] + self.offset
            self._logits(self._cache, ids, {"position_ids": places})
        self.prefix, self.images = tokens, row.images

    def read(self, rows: Sequence[DecodingRow], shared: int) -> tuple[Cache, Tensor]:
        """A cache of rows, and the logits after their last tokens: [rows, vocabulary], fp32.

        Args:
            rows: All begin with the first `shared` tokens of the prefix; where they have images, none is shorter than
                the longest by more tokens than are shared after the last image.
            shared: 0 to read them whole.
        """
        width = max(map(len, rows))
        if any(row.images and shared - (width - len(row)) < row.images_end for row in rows):
            raise ValueError("tokens of an image would be read without its pixels")
        for row in rows:
            row.offset = self.offset if shared else 0
        if not shared:
            return (cache := empty_cache()), self.advance(cache, rows, width)
        before = [min(width - len(row), shared) for row in rows]
        held = self._cache.get_seq_length()
        for layer in self._cache.layers:
            layer.show(shared)
        cache = assembled([Part(self._cache, [0] * len(rows), shared, before)], room=width - shared)
        for layer in self._cache.layers:
            layer.show(held)
        return cache, self.advance(cache, rows, width)
