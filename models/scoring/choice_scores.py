"""Requests (a prompt and its choices), and scores of choices from the rows of a tree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from cultureval.models.scoring.lm_head import Rows
from cultureval.models.scoring.token_tree import Branch, TokenTree


@dataclass(frozen=True)
class ScoringRequest(Branch):
    """One prompt and its choices.

    Attributes:
        vision: The processor's outputs for the images: `pixel_values`, `image_grid_thw`, ... and, of shape
            [1, len(prompt)], `mm_token_type_ids`, `token_type_ids` where the model has them. None for text.
        images: Name of the images; requests with the same name share their keys. "" for text.
    """

    vision: Mapping[str, Tensor] | None = None
    images: str = ""

    def length(self) -> int:
        """Tokens of the prompt plus the fed tokens of the longest choice."""
        return len(self.prompt) + max(map(len, self.choices), default=0) - (0 if self.ending else 1)

    def tree_size(self) -> int:
        """Upper bound of the tokens to feed after the prompt."""
        keep = 0 if self.ending else 1
        return sum(max(len(choice) - keep, 0) for choice in self.choices)

    def tokens_alone(self) -> int:
        """Tokens of one pass per choice without any sharing."""
        return len(self.prompt) * len(self.choices) + self.tree_size()

    def is_per_token(self, value: Tensor) -> bool:
        """Whether an output of the processor has one number per token of the prompt."""
        return value.shape == (1, len(self.prompt))


class ChoiceScore(NamedTuple):
    """Score of one choice.

    Attributes:
        logprob: Sum of the natural log-probabilities of the choice's tokens; 0.0 for a choice without tokens.
        tokens: Number of the choice's tokens.
        is_greedy: Whether every token is the model's most likely one.
        end_logprob: Log-probability that the text ends after the choice (any end token), None unless requested.
    """

    logprob: float
    tokens: int
    is_greedy: bool
    end_logprob: float | None = None


def read_scores(
    rows: Rows, tree: TokenTree, branches: Sequence[Branch], end_ids: Sequence[int]
) -> list[list[ChoiceScore]]:
    """Scores of the choices of a tree's branches, a list for each branch.

    Args:
        rows: One for each of `tree.columns()`.
        tree: Over these branches, in this order.
        end_ids: Tokens that end a text.
    """
    row_of = {column: row for row, column in enumerate(tree.columns())}
    pairs = [(row_of[column], token) for column, token, _ in tree.reads]
    pairs += [(row_of[column], token) for column, _ in tree.closes for token in end_ids]
    at, tokens = torch.tensor(pairs, dtype=torch.long, device=rows.values.device).reshape(-1, 2).T
    logprobs, is_best = (values.cpu() for values in rows.log_probs(at, tokens))
    reads, count = len(tree.reads), sum(len(branch.choices) for branch in branches)
    owner = torch.tensor([choice for *_, choice in tree.reads], dtype=torch.long)
    sums = torch.zeros(count, dtype=torch.double).index_add_(0, owner, logprobs[:reads].double()).tolist()
    misses = torch.zeros(count).index_add_(0, owner, (~is_best[:reads]).float()).tolist()
    ends = logprobs[reads:].reshape(-1, max(len(end_ids), 1)).logsumexp(1).tolist()
    end_of = {choice: end for (_, choice), end in zip(tree.closes, ends, strict=True)}
    choices = [choice for branch in branches for choice in branch.choices]
    scores = iter(
        ChoiceScore(sums[index], len(choice), not misses[index], end_of.get(index))
        for index, choice in enumerate(choices)
    )
    return [[next(scores) for _ in branch.choices] for branch in branches]
