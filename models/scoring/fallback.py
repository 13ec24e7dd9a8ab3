"""Scoring of choices without custom masks: for models that reject them, and as the reference for packed scoring.

- `plain`: one forward pass per choice.
- `cached`: the prompt once, then one row per choice on copies of the model's own cache.
Prompts whose choices all have one token need neither: they are batched, padded on the right.
"""

import copy
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel

from cultureval.models.scoring.choice_scores import ChoiceScore, read_scores
from cultureval.models.scoring.lm_head import Rows
from cultureval.models.scoring.token_tree import Branch, build_tree
from cultureval.runtime.patches.transformers import rope_offset

CROSS_MASK, PALIGEMMA = "cross_attention_mask", "paligemma"


class Request(Protocol):
    """A prompt, its choices and its images; see `scoring.packed.ScoringRequest`."""

    prompt: Sequence[int]
    choices: Sequence[Sequence[int]]
    ending: bool
    vision: Mapping[str, Tensor] | None


class UnmaskedScorer:
    """Scores requests with the model's own causal attention.

    Attributes:
        forwarded_tokens: Tokens fed to the model so far, padding included.
    """

    def __init__(self, model: PreTrainedModel, end_ids: Sequence[int], token_budget: int) -> None:
        """Prepare to score.

        Args:
            model: A causal or image-text-to-text model.
            end_ids: Tokens that end a text.
            token_budget: Tokens per batch of several rows.
        """
        self.model, self.end_ids, self.token_budget = model, end_ids, token_budget
        self.kind = model.config.model_type
        self.forwarded_tokens = 0

    def score(self, requests: Sequence[Request], route: str) -> list[list[ChoiceScore]]:
        """Score requests, one at a time if choices have several tokens.

        Args:
            requests: With or without images.
            route: `cached` or `plain`.
        """
        one_token = all(len(choice) == 1 for request in requests for choice in request.choices)
        if route == "cached" and one_token and not any(request.ending or request.vision for request in requests):
            pairs = zip(requests, self._last_rows(requests), strict=True)
            return [[self._read(row[None], choice, False) for choice in one.choices] for one, row in pairs]
        scores = []
        for request in requests:
            rows = self._cached_rows(request) if route == "cached" else self.plain_rows(request)
            pairs = zip(request.choices, rows, strict=True)
            scores.append([self._read(logits, choice, request.ending) for choice, logits in pairs])
        return scores

    def looks_ahead(self, request: Request) -> float:
        """Mean change of the log-probabilities after the prompt if its last choice follows."""
        alone, followed = self.plain_rows(replace(request, choices=[[], request.choices[-1]], ending=False))
        return (alone[0].log_softmax(-1) - followed[0].log_softmax(-1)).abs().mean().item()

    def _read(self, logits: Tensor, choice: Sequence[int], ending: bool) -> ChoiceScore:
        """Score one choice by the logits of its prompt's last row and of the following rows."""
        branch = Branch([0], [choice], ending)
        tree = build_tree([0], [branch])
        rows = Rows(logits[tree.columns()])
        return read_scores(rows, tree, [branch], self.end_ids)[0][0]

    def _logits(self, ids: Tensor, keep: int | None, **inputs: Any) -> Any:
        """A forward pass that makes only the last `keep` logits, if the model has `logits_to_keep`."""
        self.forwarded_tokens += ids.numel()
        trims = keep is not None and "logits_to_keep" in inspect.signature(self.model.forward).parameters
        return self.model(input_ids=ids, **inputs, **({"logits_to_keep": keep} if trims else {}))

    def _last_rows(self, requests: Sequence[Request]) -> Iterator[Tensor]:
        """Logits after each prompt; prompts are batched within the token budget."""
        width = max(len(request.prompt) for request in requests)
        at_once = max(1, self.token_budget // width)
        for start in range(0, len(requests), at_once):
            prompts = [torch.tensor(request.prompt) for request in requests[start : start + at_once]]
            ids = pad_sequence(prompts, batch_first=True).to(self.model.device)
            logits = self._logits(ids, None, use_cache=False).logits
            yield from (row[len(prompt) - 1] for row, prompt in zip(logits, prompts, strict=True))

    def _vision(self, request: Request) -> dict[str, Tensor]:
        return {name: value.to(self.model.device) for name, value in (request.vision or {}).items()}

    def plain_rows(self, request: Request) -> Iterator[Tensor]:
        """For each choice the logits of the prompt's last row and of the following rows, by one pass per choice.

        Consecutive choices with the same input share a pass: choices of one token, whose only row is the prompt's.
        """
        rows, before = torch.empty(0), None
        for choice in request.choices:
            fed = list(choice if request.ending else choice[:-1])
            if fed != before:
                ids = torch.tensor([[*request.prompt, *fed]], device=self.model.device)
                given = self._vision(request).items()
                vision = {name: lengthen(name, value, len(fed), self.kind) for name, value in given}
                count, before = len(fed) + 1, fed
                rows = self._logits(ids, count, use_cache=False, **vision).logits[0, -count:]
            yield rows

    def _cached_rows(self, request: Request) -> Iterator[Tensor]:
        """The same rows from one pass over the prompt and copies of the model's own cache."""
        device, length = self.model.device, len(request.prompt)
        prompt, vision = torch.tensor([list(request.prompt)], device=device), self._vision(request)
        out = self._logits(prompt, 1, use_cache=True, **vision)
        first, cache = out.logits[0, -1:], out.past_key_values
        offset = (rope_offset(self.model) if vision else 0) + (self.kind == PALIGEMMA)  # whose positions count from 1
        at_once = max(1, self.token_budget // max(1, *map(len, request.choices)))
        for start in range(0, len(request.choices), at_once):
            run = request.choices[start : start + at_once]
            ids = pad_sequence([torch.tensor(choice, dtype=torch.long) for choice in run], batch_first=True).to(device)
            if not ids.shape[1]:
                yield from (first for _ in run)
                continue
            copied = copy.deepcopy(cache)
            # batch_repeat_interleave skips recurrent states; reorder_cache does not.
            copied.reorder_cache(torch.zeros(len(run), dtype=torch.long, device=device))
            positions = torch.arange(ids.shape[1], device=device) + length + offset
            more = {"position_ids": positions.expand(len(run), -1)}
            if (seen := vision.get(CROSS_MASK)) is not None:
                more[CROSS_MASK] = lengthen(CROSS_MASK, seen, ids.shape[1], self.kind).expand(len(run), -1, -1, -1)
            logits = self._logits(ids, None, past_key_values=copied, use_cache=True, **more).logits
            for choice, rows in zip(run, logits, strict=True):
                yield torch.cat([first, rows[: len(choice)]])


def lengthen(name: str, value: Tensor, more: int, kind: str) -> Tensor:
    """A processor's output for a prompt followed by `more` tokens of text.

    Args:
        name: Name of the output.
        value: For the prompt alone; returned unchanged if it is not per token.
        more: Tokens of text.
        kind: The model's type.
    """
    if name == CROSS_MASK:  # Mllama's [1, tokens, images, tiles]: text sees the images before it
        return torch.cat([value, value[:, -1:].expand(-1, more, -1, -1)], 1)
    if name not in ("token_type_ids", "mm_token_type_ids"):
        return value
    # Type 0 is text, but in PaliGemma it is the prompt, with bidirectional attention; what follows is 1.
    return torch.nn.functional.pad(value, (0, more), value=int(kind == PALIGEMMA))
