"""Log-probabilities of choices on accelerators, in two phases without a mask over prompts.

First prompts of similar length, padded on the right, are fed with causal attention alone, which fused kernels compute.
Labels of one token are read from each prompt's last row. Then the longer choices of each prompt are fed as a tree (see
`token_tree`) after the prompt's keys and values; only their rows need a mask. A long common beginning of a batch
(few-shot examples, an image) is fed once.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch
from torch import Tensor
from transformers import DynamicCache

from cultureval.models.scoring.attention import layer_masks
from cultureval.models.scoring.choice_scores import ChoiceScore, ScoringRequest, read_scores
from cultureval.models.scoring.lm_head import LMHead, Rows
from cultureval.models.scoring.prefix_cache import PrefixCache, images_end
from cultureval.models.scoring.token_tree import Branch, TokenTree, build_tree, common_length

LONG_BEGINNING = 256  # tokens; a shorter one is fed with each prompt, which needs no mask


class TwoPhaseScorer:
    """Scores batches of requests with one model.

    Attributes:
        beginning: Keys and values of the last long common beginning.
    """

    def __init__(self, head: LMHead, end_ids: Sequence[int] = ()) -> None:
        """Prepares to score with the model of an lm_head; `end_ids` are end-of-text tokens."""
        self.head, self.model, self.end_ids = head, head.model, end_ids
        self.beginning = PrefixCache()

    def batches(self, requests: Sequence[ScoringRequest], budget: int, most_rows: int) -> Iterator[list[int]]:
        """Groups requests for `score`, as indices: with one beginning or none, and of similar length.

        Args:
            requests: With or without images; requests of a batch share their images.
            budget: Most tokens of a batch, with padding, without its common beginning.
            most_rows: Most rows of a batch with logits.
        """
        for group, shared in self._groups(requests):
            batch: list[int] = []
            prompt = tree = rows = 0
            for index in sorted(group, key=lambda index: _size(requests[index])):
                nodes, rest = requests[index].tree_size(), len(requests[index].prompt) - shared
                padded = (len(batch) + 1) * (max(prompt, rest) + max(tree, nodes))
                if batch and (padded > budget or rows + nodes + 1 > most_rows or bool(nodes) != bool(tree)):
                    yield batch
                    batch, prompt, tree, rows = [], 0, 0, 0
                batch.append(index)
                prompt, tree, rows = max(prompt, rest), max(tree, nodes), rows + nodes + 1
            yield batch

    def _groups(self, requests: Sequence[ScoringRequest]) -> Iterator[tuple[list[int], int]]:
        """Indices of requests with a long common beginning, and its length; then those without one, with 0."""
        order = sorted(range(len(requests)), key=lambda index: (requests[index].images, requests[index].prompt))
        groups: list[tuple[list[int], int]] = [(order[:1], 0)] if order else []
        for before, index in pairwise(order):
            common = self._shared([requests[before], requests[index]])
            group, shared = groups[-1]
            if common and (not shared or max(common, shared) <= 2 * min(common, shared)):
                groups[-1] = ([*group, index], min(common, shared or common))
            else:
                groups.append(([index], 0))
        alone = [group for group, shared in groups if not shared]
        yield from ((group, shared) for group, shared in groups if shared)
        yield from ((group, 0) for group in alone if requests[group[0]].vision)
        if texts := [index for group in alone for index in group if not requests[index].vision]:
            yield texts, 0

    def _shared(self, requests: Sequence[ScoringRequest]) -> int:
        """Tokens of the common beginning to feed once: with all images, but without any prompt's last token."""
        first, shortest = requests[0], min(len(request.prompt) for request in requests)
        if any(request.images != first.images for request in requests):
            return 0
        shared = min(shortest - 1, *(common_length(first.prompt, request.prompt) for request in requests))
        if first.vision:
            return shared if shared >= images_end(self.model, first) else 0
        return shared if shared >= LONG_BEGINNING and len(requests) > 1 else 0

    def score(self, requests: Sequence[ScoringRequest], shared: int | None = None) -> list[list[ChoiceScore]]:
        """Scores of a batch, a list for each request.

        Args:
            requests: Each with something to predict; with the same images, if any, and text after them.
            shared: Tokens of their common beginning to feed once; None for a long one, if they have it.
        """
        shared = self._begin(requests[0], self._shared(requests) if shared is None else shared)
        batch = _Batch(requests, shared, self.beginning.offset if shared else 0)
        cache = self._copies(len(requests), shared) if shared or batch.nodes else None
        rows = self._feed_prompts(batch, cache)
        if batch.nodes:
            rows = rows.join(self._feed_choices(batch, cache))
        return read_scores(rows, batch.merged, requests, self.end_ids)

    def _begin(self, request: ScoringRequest, length: int) -> int:
        """Keeps the known part of a beginning, or feeds it; the number of its tokens with keys and values."""
        known, end = self.beginning, images_end(self.model, request)
        have = common_length(known.tokens, request.prompt[:length]) if known.images == request.images else 0
        if not length or have < max(end, length // 2, 1):
            self.beginning, have = PrefixCache(images=request.images), length
            if length:
                self.beginning.fill(self.head, request, length)
        elif have < len(known.tokens):
            known.keep(range(have), known.tokens[:have], None)
        return have

    def _copies(self, count: int, shared: int) -> DynamicCache:
        """A cache for a batch, with the beginning's keys and values in each row."""
        cache = DynamicCache()
        for number, layer in enumerate(self.beginning.cache.layers if shared else ()):
            cache.update(*(part.expand(count, -1, -1, -1) for part in (layer.keys, layer.values)), number)
        return cache

    def _feed_prompts(self, batch: "_Batch", cache: DynamicCache | None) -> Rows:
        """The last row of each prompt."""
        rests = [request.prompt[batch.shared :] for request in batch.requests]
        lasts = [number * batch.width + len(rest) - 1 for number, rest in enumerate(rests)]
        positions = torch.arange(batch.width).expand(len(rests), -1) + batch.shared + batch.offset
        return self._feed(rests, batch.width, lasts, positions, cache)

    def _feed_choices(self, batch: "_Batch", cache: DynamicCache | None) -> Rows:
        """The rows of choices' tokens that predict a token."""
        count = len(batch.requests)
        wanted = [column - count for column in batch.merged.columns() if column >= count]
        positions = padded([tree.depths for tree in batch.trees], batch.nodes) + batch.offset
        masks = layer_masks(self.model, lambda reach: batch.visibility(reach, self.model.device))
        tokens = [tree.tokens for tree in batch.trees]
        return self._feed(tokens, batch.nodes, wanted, positions, cache, attention_mask=masks)

    def _feed(
        self,
        tokens: Sequence[Sequence[int]],
        width: int,
        wanted: Sequence[int],
        positions: Tensor,
        cache: DynamicCache | None,
        **inputs: Tensor | dict[str, Tensor],
    ) -> Rows:
        """Feeds rows of tokens, padded on the right; rows `wanted` of the padded batch."""
        return self.head.rows(
            torch.tensor(wanted),
            padding=len(tokens) * width - sum(map(len, tokens)),
            input_ids=padded(tokens, width).to(self.model.device),
            position_ids=positions.to(self.model.device),
            past_key_values=cache,
            use_cache=cache is not None,
            **inputs,
        )


class _Batch:
    """Prompts after a common beginning, and a tree of choices for each.

    Attributes:
        requests: The requests.
        shared: Tokens of the common beginning.
        offset: Added to positions (M-RoPE).
        width: Columns of the prompts without the beginning, with padding.
        trees: The choices of each prompt, without the prompt.
        nodes: Columns of the choices, with padding.
        merged: The reads of all trees; column b is the last row of prompt b, then follow the padded choices.
    """

    def __init__(self, requests: Sequence[ScoringRequest], shared: int, offset: int) -> None:
        self.requests, self.shared, self.offset = requests, shared, offset
        self.width = max(len(request.prompt) for request in requests) - shared
        self.trees = [build_tree(each.prompt, [Branch(each.prompt, each.choices, each.ending)]) for each in requests]
        self.nodes = max(map(len, self.trees))
        self.merged = TokenTree(0)
        choice = 0
        for number, (request, tree) in enumerate(zip(requests, self.trees, strict=True)):
            first = len(requests) + number * self.nodes - tree.cached
            place = {column: number if column < tree.cached else first + column for column in tree.columns()}
            self.merged.reads += [(place[column], token, choice + index) for column, token, index in tree.reads]
            self.merged.closes += [(place[column], choice + index) for column, index in tree.closes]
            choice += len(request.choices)

    def visibility(self, window: int | None, device: torch.device) -> Tensor:
        """The columns that each row of choices sees: bool [requests, 1, nodes, shared + width + nodes].

        Args:
            window: Size of a sliding window, None for full attention.
            device: Device of the result.
        """
        before = self.shared + self.width
        seen = torch.zeros(len(self.trees), 1, self.nodes, before + self.nodes, dtype=torch.bool, device=device)
        for number, tree in enumerate(self.trees):
            own, prompt = tree.visibility(window, device), tree.cached
            seen[number, 0, : len(tree), :prompt] = own[:, :prompt]
            seen[number, 0, : len(tree), before : before + len(tree)] = own[:, prompt:]
            seen[number, 0, len(tree) :, 0] = True  # padding: a row that sees nothing would be NaN
        return seen


def padded(rows: Sequence[Sequence[int]], width: int) -> Tensor:
    """Rows of numbers as a tensor [rows, width], with zeros on the right."""
    return torch.tensor([[*row, *[0] * (width - len(row))] for row in rows])


def _size(request: ScoringRequest) -> tuple[bool, int]:
    """The order of requests in batches: labels of one token first, then by tokens."""
    nodes = request.tree_size()
    return nodes > 0, len(request.prompt) + nodes
