"""The lm_head on chosen rows only, and log-probabilities from it in fp32.

Most lm_heads are one matrix, and the model returns its product unchanged. Then logits are computed, normalised and
dropped by slices of the vocabulary, which saves memory. A numerical check on the first rows finds other heads
(soft-capping, scaling, quantised); for them the model computes the logits.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

SLICE = 2**20  # logits of a slice: 4 MiB in fp32, which fits the processor's cache


@dataclass(frozen=True)
class Rows:
    """Rows over the vocabulary.

    Attributes:
        values: Logits [rows, vocabulary], or hidden states [rows, width] for `head`.
        head: The model's head; None if the values are logits.
    """

    values: Tensor
    head: nn.Linear | None = None

    def join(self, other: "Rows") -> "Rows":
        """These rows, followed by other rows of the same model."""
        return Rows(torch.cat([self.values, other.values]), self.head)

    def __getitem__(self, row: int) -> "Rows":
        """One row."""
        return Rows(self.values[row : row + 1].clone(), self.head)

    def log_probs(self, at: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of pairs of a row and a token, both [pairs].

        Returns:
            ([pairs] log-probability in fp32, [pairs] whether the token is its row's first most likely one).
        """
        picked = torch.zeros(len(tokens), device=self.values.device)
        is_best = torch.zeros(len(tokens), dtype=torch.bool, device=self.values.device)
        top = torch.full((len(self.values),), -math.inf, device=self.values.device)
        total = torch.zeros_like(top)
        for start, logits in self._slices():
            here = ((tokens >= start) & (tokens < start + logits.shape[1])).nonzero().flatten()
            rows, places = at[here], tokens[here] - start
            picked[here] = logits[rows, places]
            high = logits.amax(-1)
            # Few tokens are the highest of their row; only these need the slow search for the first of a tie.
            highest = (picked[here] == high[rows]) & (high > top)[rows]
            is_best &= ~(high > top)[at]
            asked, row = rows[highest].unique(return_inverse=True)
            is_best[here[highest]] = logits[asked].argmax(-1)[row] == places[highest]
            higher = torch.maximum(top, high)
            # The largest probability is 1 / sum(exp(logits - high)).
            total = total * (top - higher).exp_() + (high - higher).exp_() / logits.softmax(-1).amax(-1)
            top = higher
        return picked - (top + total.log())[at], is_best

    def _slices(self) -> Iterator[tuple[int, Tensor]]:
        """(first token, fp32 logits [rows, tokens of the slice]) over the whole vocabulary."""
        size = self.values.shape[1] if self.head is None else self.head.weight.shape[0]
        step = max(1024, SLICE // max(len(self.values), 1))
        for start in range(0, size, step):
            if self.head is None:
                logits = self.values[:, start : start + step]
            else:
                bias = None if self.head.bias is None else self.head.bias[start : start + step]
                logits = nn.functional.linear(self.values, self.head.weight[start : start + step], bias)
            yield start, logits.float()


class LMHead:
    """Runs a model with its lm_head on chosen rows only.

    Attributes:
        is_plain: Whether the head is one matrix with nothing after it; None before the first rows.
        fed: Tokens that the model has computed, without padding.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        """Finds a model's lm_head; a ValueError if it has none."""
        self.model, self.fed = model, 0
        self.head = model.get_output_embeddings()
        if self.head is None:
            raise ValueError(f"{type(model).__name__} has no lm_head: it cannot score text")
        self.size = self.head.weight.shape[0]
        # A head with offloaded weights must be called: accelerate's hook loads them.
        simple = type(self.head) is nn.Linear and not hasattr(self.head, "_hf_hook")
        self.is_plain: bool | None = None if simple else False
        layers = getattr(model.get_decoder(), "layers", None)
        last = getattr(layers[-1], "mlp", None) if layers else None
        self.last_mlp = last if hasattr(last, "down_proj") else None  # dense, so that rows are independent

    def rows(self, wanted: Tensor, padding: int = 0, **inputs: Any) -> Rows:
        """Runs the model on inputs, and keeps the rows `wanted`.

        Args:
            wanted: Indices into the batch's tokens, row by row.
            padding: How many of these tokens are padding.
            inputs: The model's.
        """
        self.fed += inputs["input_ids"].numel() - padding
        captured: list[Tensor] = []

        def choose(_: nn.Module, args: tuple[Tensor, ...]) -> tuple[Any, ...]:
            captured.append(args[0].flatten(0, 1)[wanted.to(args[0].device)])
            return (captured[0][None, : 1 if self.is_plain else None], *args[1:])

        hook = self.head.register_forward_pre_hook(choose)
        try:
            with only_rows(self.last_mlp, wanted):
                logits = self.model(**inputs).logits[0]
        finally:
            hook.remove()
        hidden = captured[0]
        if self.is_plain is None:
            self.is_plain = torch.allclose(self.head(hidden), logits, rtol=1e-3, atol=1e-3)
        return Rows(hidden, self.head) if self.is_plain else Rows(logits)


@contextmanager
def only_rows(mlp: nn.Module | None, wanted: Tensor) -> Iterator[None]:
    """A context that runs the last layer's feed-forward block, if given, on the rows `wanted` only."""
    if mlp is None:
        yield
        return

    shapes: list[torch.Size] = []

    def cut(_: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        shapes.append(args[0].shape)
        return (args[0].flatten(0, 1)[wanted.to(args[0].device)][None], *args[1:])

    def spread(_: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> Tensor:
        full = output.new_zeros(shapes.pop())
        full.flatten(0, 1)[wanted.to(output.device)] = output[0]
        return full

    handles = [mlp.register_forward_pre_hook(cut), mlp.register_forward_hook(spread)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
