"""Scoring by plain forward passes: for models that cannot be packed, and as the reference for packed scores."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor
from transformers import PreTrainedModel

from cultureval.models.scoring.choice_scores import ChoiceScore, read_scores
from cultureval.models.scoring.lm_head import Rows
from cultureval.models.scoring.token_tree import Branch, build_tree

CROSS_MASK, PALIGEMMA = "cross_attention_mask", "paligemma"


class Request(Protocol):
    """A prompt, its choices and its images; see `scoring.packed.ScoringRequest`."""

    prompt: Sequence[int]
    choices: Sequence[Sequence[int]]
    ending: bool
    vision: Mapping[str, Tensor] | None


class PlainScorer:
    """Scores choices by one forward pass each, with the model's own causal attention.

    Attributes:
        forwarded_tokens: Tokens fed to the model so far.
    """

    def __init__(self, model: PreTrainedModel, end_ids: Sequence[int]) -> None:
        """Prepare to score.

        Args:
            model: A causal or image-text-to-text model.
            end_ids: Tokens that end a text.
        """
        self.model, self.end_ids = model, end_ids
        self.kind = model.config.model_type
        self.forwarded_tokens = 0
        self._trims = "logits_to_keep" in inspect.signature(model.forward).parameters

    def score(self, requests: Sequence[Request]) -> list[list[ChoiceScore]]:
        """Score requests, one list of scores per request."""
        return [
            [
                self._read(rows, choice, request.ending)
                for choice, rows in zip(request.choices, self.rows(request), strict=True)
            ]
            for request in requests
        ]

    def rows(self, request: Request) -> Iterator[Tensor]:
        """For each choice the logits [tokens + 1, vocabulary] of the prompt's last row and of the following rows.

        Consecutive choices with the same input share a pass: choices of one token, whose only row is the prompt's.
        """
        rows, before = torch.empty(0), None
        for choice in request.choices:
            fed = list(choice if request.ending else choice[:-1])
            if fed != before:
                rows, before = self._pass(request, fed), fed
            yield rows

    def looks_ahead(self, request: Request) -> float:
        """Mean change of the log-probabilities after the prompt if its last choice follows; 0 for causal models."""
        alone, followed = self.rows(replace(request, choices=[[], request.choices[-1]], ending=False))
        return (alone[0].log_softmax(-1) - followed[0].log_softmax(-1)).abs().mean().item()

    def _pass(self, request: Request, fed: Sequence[int]) -> Tensor:
        device, count = self.model.device, len(fed) + 1
        ids = torch.tensor([[*request.prompt, *fed]], device=device)
        self.forwarded_tokens += ids.numel()
        given = {
            name: _lengthened(name, value.to(device), len(fed), self.kind)
            for name, value in (request.vision or {}).items()
        }
        trimmed = {"logits_to_keep": count} if self._trims else {}
        return self.model(input_ids=ids, use_cache=False, **given, **trimmed).logits[0, -count:]

    def _read(self, logits: Tensor, choice: Sequence[int], ending: bool) -> ChoiceScore:
        branch = Branch([0], [choice], ending)
        tree = build_tree([0], [branch])
        return read_scores(Rows(logits[tree.columns()]), tree, [branch], self.end_ids)[0][0]


def _lengthened(name: str, value: Tensor, more: int, kind: str) -> Tensor:
    """A processor's output for a prompt followed by `more` tokens of text; unchanged if it is not per token."""
    if name == CROSS_MASK:  # Mllama's [1, tokens, images, tiles]: text sees the images before it
        return torch.cat([value, value[:, -1:].expand(-1, more, -1, -1)], 1)
    if name not in ("token_type_ids", "mm_token_type_ids"):
        return value
    # Type 0 is text, but in PaliGemma it is the prompt, with bidirectional attention; what follows is 1.
    return torch.nn.functional.pad(value, (0, more), value=int(kind == PALIGEMMA))
