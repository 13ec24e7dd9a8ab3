"""Log-probabilities of choices after prompts, with each shared token computed once.

On accelerators a batch is scored in two phases (see `two_phases`). On a CPU, prompts and choices are fed as one tree of
tokens (see `token_tree`), with a 4-D mask in which a token sees its prefix, and positions along the prefix. The keys
and values of the last prompt are kept, and the next tree reuses the common prefix: an instruction, few-shot examples,
an image, a dialogue's history. A long common prefix of a batch is fed first; so are images, with the model's own mask
and positions. The lm_head is applied only to rows that predict a choice's token (see `lm_head`).

A check on the first batch finds models that cannot be packed; these are scored plainly (see `plain`).
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from transformers import PreTrainedModel

from cultureval.models.memory import recover, tokens_that_fit, too_little
from cultureval.models.scoring.attention import BlockedAttention, layer_masks
from cultureval.models.scoring.choice_scores import ChoiceScore, ScoringRequest, read_scores
from cultureval.models.scoring.lm_head import LMHead, Rows
from cultureval.models.scoring.plain import PlainScorer, RouteCheck, choose_route
from cultureval.models.scoring.prefix_cache import PrefixCache, images_end, longest_reusable
from cultureval.models.scoring.token_tree import Branch, TokenTree, build_tree, common_length
from cultureval.models.scoring.two_phases import TwoPhaseScorer
from cultureval.runtime.onednn_products import fast_products

logger = logging.getLogger(__name__)

# Tokens of a batch beyond its shared prefix. On a CPU larger trees gain nothing once the processor is busy.
BUDGET_CPU, LEAST_BUDGET = 1024, 16
LONG_PREFIX = 256  # tokens; a shared prefix of at least this length is fed separately, with causal attention
MAX_LOGITS = 2**28  # most logits in memory: 1 GiB in fp32


class ChoiceScorer:
    """Scores requests with one model; the route (packed or plain) is chosen on the first batch.

    Attributes:
        token_budget: Tokens of a tree beyond its shared prefix.
        head: The model's lm_head.
        routes: The route of requests without (False) and with images (True), once chosen.
        checks: The check behind each route.
        longest_reusable: Longest sequence with reusable keys; None without a limit.
        prefix: The prefix cache.
        last_route: The route of the last batch.
        phases: The scorer in two phases; None on a CPU.
        alone: Tokens of one pass per choice, of all requests so far; `fed` is what was computed instead.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        end_ids: Sequence[int] = (),
        token_budget: int | None = None,
        two_phases: bool | None = None,
    ) -> None:
        """Prepares to score.

        Args:
            model: A causal or image-text-to-text model.
            end_ids: End-of-text tokens.
            token_budget: Tokens of a batch beyond its shared prefix; None for as many as suit the device.
            two_phases: Whether to score in two phases; None for on accelerators only.
        """
        on_cpu = model.device.type == "cpu"
        self.model = model
        self.head = LMHead(model)
        self.end_ids = list(end_ids)
        self.token_budget = token_budget or (BUDGET_CPU if on_cpu else tokens_that_fit(model))
        in_phases = not on_cpu if two_phases is None else two_phases
        self.phases = TwoPhaseScorer(self.head, self.end_ids) if in_phases else None
        self.alone = 0
        self.plain = PlainScorer(model, self.end_ids)
        self.routes: dict[bool, str] = {}
        self.checks: dict[bool, RouteCheck] = {}
        self.longest_reusable = longest_reusable(model)
        self.prefix = PrefixCache()
        self.last_route = ""

    def halve(self, name: str, error: BaseException) -> None:
        """Halves the budget after an error of too little memory; a CulturevalError at the least budget.

        Args:
            name: Of the model, for messages.
            error: The error; its memory is freed.
        """
        device = self.model.device
        if self.token_budget <= LEAST_BUDGET:
            raise too_little(name, device, "to score one prompt", error) from None
        self.token_budget //= 2
        logger.warning("memory on %s is too small: going on with batches of %d tokens", device, self.token_budget)
        self.clear_cache()
        recover(device, error)

    def clear_cache(self) -> None:
        """Free the memory of the prefix cache."""
        self.prefix = PrefixCache()
        if self.phases:
            self.phases.beginning = PrefixCache()

    @property
    def fed(self) -> int:
        """Tokens that the model computed for all requests so far, the check's included."""
        return self.head.fed + self.plain.fed

    def batches(self, requests: Sequence[ScoringRequest]) -> Iterator[list[int]]:
        """Groups requests for `score`: indices, with shared prefixes adjacent, within the token budget.

        Requests with images are grouped if they share the images and all text before them.
        """
        if self.phases:
            yield from self.phases.batches(requests, self.token_budget, self._row_limit())
            return
        batch: list[int] = []
        shared = size = rows = 0
        for index in sorted(range(len(requests)), key=lambda index: (requests[index].images, requests[index].prompt)):
            request, tree = requests[index], requests[index].tree_size()
            if batch:
                before = requests[batch[-1]]
                common = common_length(before.prompt, request.prompt)
                grown = size + max(shared - common, 0) + len(request.prompt) - common + tree
                fits = grown <= self.token_budget and rows + tree + 1 <= self._row_limit()
                if fits and before.images == request.images and common >= images_end(self.model, request):
                    batch, shared, size, rows = [*batch, index], min(shared, common), grown, rows + tree + 1
                    continue
                yield batch
            batch, shared, size, rows = [index], len(request.prompt), tree, tree + 1
        if batch:
            yield batch

    @torch.inference_mode()
    def score(self, requests: Sequence[ScoringRequest]) -> list[list[ChoiceScore]]:
        """Scores a batch of requests, a list of scores for each; a ValueError for a prompt without tokens."""
        if any(not request.prompt for request in requests):
            raise ValueError("a prompt needs at least one token: put a BOS token before an empty one")
        asked = [request for request in requests if request.needs_scoring()]
        scores = iter(self._scored(asked) if asked else ())
        return [
            next(scores) if request.needs_scoring() else [ChoiceScore(0.0, 0, True) for _ in request.choices]
            for request in requests
        ]

    def _scored(self, requests: Sequence[ScoringRequest]) -> list[list[ChoiceScore]]:
        with fast_products(self.model.device):
            self.last_route = self._route(requests)
            self.alone += sum(request.tokens_alone() for request in requests)
            return self._packed(requests) if self.last_route == "packed" else self.plain.score(requests)

    # --- the route ---

    def _route(self, requests: Sequence[ScoringRequest]) -> str:
        """The route of requests, chosen at the first batch without images, and at the first with images."""
        if self.longest_reusable and any(request.length() > self.longest_reusable for request in requests):
            return "plain"
        kind = bool(requests[0].vision)
        if kind not in self.routes:
            self.checks[kind] = choose_route(self.model, requests, self.plain, self._packed_afresh)
            self.routes[kind] = self.checks[kind].route
            self.clear_cache()
        return self.routes[kind]

    def _packed_afresh(self, probes: Sequence[ScoringRequest]) -> list[list[ChoiceScore]]:
        self.clear_cache()
        first, *others = probes
        if self.phases and not self._needs_tree(probes):
            beginning = max(images_end(self.model, first), len(first.prompt) // 2)
            found = self.phases.score([first], beginning)
            return found + [self.phases.score([probe, first])[0] for probe in others]
        self._packed([replace(probes[0], choices=probes[0].choices[-1:])])  # so that the probes begin in the cache
        return self._packed(probes)

    # --- packed ---

    def _packed(self, requests: Sequence[ScoringRequest]) -> list[list[ChoiceScore]]:
        """Scores a batch in two phases, with one tree, or a single request with several trees."""
        if self.phases and not self._needs_tree(requests):
            return self.phases.score(requests)
        if len(requests) > 1:
            return self._score_tree(requests)
        return [[score for run in self._split(requests[0]) for score in self._score_tree([run])[0]]]

    def _needs_tree(self, requests: Sequence[ScoringRequest]) -> bool:
        """Whether two phases cannot score a batch: a request beyond the budget, or a prompt that ends with an image."""
        first = requests[0]
        size = first.tree_size()
        too_large = len(requests) == 1 and (len(first.prompt) + size > self.token_budget or size >= self._row_limit())
        return too_large or any(images_end(self.model, request) == len(request.prompt) for request in requests)

    def _split(self, request: ScoringRequest) -> list[ScoringRequest]:
        """Splits the choices into requests within the budget; usually one."""
        limit = min(self.token_budget, self._row_limit())
        runs: list[list[Sequence[int]]] = [[]]
        size = 0
        for choice in request.choices:
            size += len(choice)
            if runs[-1] and size > limit:
                runs.append([])
                size = len(choice)
            runs[-1].append(choice)
        return [replace(request, choices=run) for run in runs] if len(runs) > 1 else [request]

    def _score_tree(self, requests: Sequence[ScoringRequest]) -> list[list[ChoiceScore]]:
        self._prepare_prefix(requests)
        tree = build_tree(self.prefix.tokens, requests)
        rows = self._feed_tree(tree, tree.columns(), requests[-1].prompt)
        return read_scores(rows, tree, requests, self.end_ids)

    def _prepare_prefix(self, requests: Sequence[ScoringRequest]) -> None:
        """Cuts the prefix cache to its common prefix with the requests; feeds a long common prefix of theirs."""
        first, end = requests[0], images_end(self.model, requests[0])
        if not self.prefix.cut_to([request.prompt for request in requests], first.images, end):
            self.prefix = PrefixCache(images=first.images)
        have = len(self.prefix.tokens)
        shared = min(common_length(first.prompt, request.prompt) for request in requests)
        prompt_only = len(requests) == 1 and not first.tree_size()
        if not have and (prompt_only or end or shared >= LONG_PREFIX):
            self.prefix.fill(self.head, first, shared)
        elif shared - have >= LONG_PREFIX:
            path = build_tree(self.prefix.tokens, [Branch(first.prompt[:shared], [])])
            self._feed_tree(path, [shared - 1], first.prompt[:shared])

    def _feed_tree(self, tree: TokenTree, columns: Sequence[int], prompt: Sequence[int]) -> Rows:
        """Feeds a tree after the cached prefix, and extends that to `prompt`, the tree's last prompt.

        Args:
            columns: Nodes, and maybe the last cached token; their rows are returned.
        """
        from_cache = self.prefix.last if columns[0] < tree.cached else None
        if not len(tree):
            return from_cache
        positions = torch.tensor([tree.depths], device=self.model.device) + self.prefix.offset
        masks = layer_masks(self.model, lambda window: tree.visibility(window, self.model.device)[None, None])
        wanted = [column - tree.cached for column in columns if column >= tree.cached]
        with BlockedAttention(masks):
            rows = self._rows(tree.tokens, wanted, attention_mask=masks, position_ids=positions)
        rows = from_cache.join(rows) if from_cache else rows
        last = rows[columns.index(tree.path[-1])] if tree.path[-1] in columns else None
        self.prefix.keep(tree.path, prompt, last)
        return rows

    def _rows(self, tokens: Sequence[int], wanted: Sequence[int], **inputs: Any) -> Rows:
        """Feeds tokens after the cached keys and values, and keeps the rows `wanted`."""
        return self.head.rows(
            torch.tensor(wanted),
            input_ids=torch.tensor([list(tokens)], device=self.model.device),
            past_key_values=self.prefix.cache,
            use_cache=True,
            **inputs,
        )

    def _row_limit(self) -> int:
        return self.token_budget if self.head.is_plain else max(MAX_LOGITS // self.head.size, 1)
