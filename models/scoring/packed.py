"""Log-probabilities of choices behind prompts: a token is encoded once, however many choices and prompts share it.

Several prompts and their choices are fed as one tree of tokens (see `token_tree`) in one sequence, under a 4-D mask in
which every token sees its own beginning, at positions counted along that beginning. Models with sliding-window layers
get one mask per kind of layer. The keys and values of the last prompt are kept (of one prompt, never more), and the
next tree goes on from what it shares with them: an instruction, few-shot examples, an image and a dialogue's history.
A long beginning that a batch shares goes first, by itself; so do images, under the model's own mask and positions.
Choices beyond the token budget take several trees on the same prompt.

Only the rows that predict a choice's token reach the lm_head (see `lm_head`).

Models that refuse custom masks are found by a numeric self-check on the first batch that needs one: `packed` must
agree with plain forward passes, else `cached` must, else `plain` is taken (see `unmasked_scoring`).
"""

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from cultureval.models.scoring.choice_scores import ChoiceScore, read_scores
from cultureval.models.scoring.fallback import CROSS_MASK, PALIGEMMA, UnmaskedScorer
from cultureval.models.scoring.lm_head import LMHead, Rows
from cultureval.models.scoring.prefix_cache import PrefixCache, steady_length
from cultureval.models.scoring.token_tree import Branch, TokenTree, build_tree, common_length
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.onednn_products import onednn_products
from cultureval.runtime.transformers_patches import rope_offset

logger = logging.getLogger(__name__)

# In a tree, tokens of one prompt are also multiplied with (and masked from) those of the others, so larger trees gain
# nothing once the processor is busy.
TOKEN_BUDGET_CPU, TOKEN_BUDGET_ACCELERATOR = 384, 2048
TREE_BUDGET = 4096
LONG_PREFIX = 256  # a shared beginning of so many tokens is fed by itself, under causal attention
MAX_LOGITS = 2**28  # at most so many logits at once: 1 GiB in fp32
CHECKED_TOKENS = 4  # tokens of the choice that every check of a route adds
REFUSALS = (TypeError, ValueError, KeyError, IndexError, AttributeError, NotImplementedError, RuntimeError)


@dataclass(frozen=True)
class ScoringRequest(Branch):
    """One prompt and its choices.

    Attributes:
        vision: What the processor made of the images: `pixel_values`, `image_grid_thw`, ... and, of shape
            [1, len(prompt)], `mm_token_type_ids`, `token_type_ids` where the model has them. None for text alone.
    """

    vision: Mapping[str, Tensor] | None = None

    def length(self) -> int:
        """Tokens of the prompt and what is fed of the longest choice behind it."""
        return len(self.prompt) + max(map(len, self.choices), default=0) - (0 if self.ending else 1)

    def tree_size(self) -> int:
        """Tokens to feed behind the prompt, at most."""
        keep = 0 if self.ending else 1
        return sum(max(len(choice) - keep, 0) for choice in self.choices)

    @cached_property
    def images(self) -> str:
        """Tells images apart: a hash of what the processor made of them, "" for text alone."""
        if not self.vision:
            return ""
        digest = hashlib.sha256()
        for name, value in sorted(self.vision.items()):
            if not self.is_per_token(value):
                digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
                digest.update(value.cpu().contiguous().flatten().view(torch.uint8).numpy())
        return digest.hexdigest()

    def is_per_token(self, value: Tensor) -> bool:
        """Whether one of the processor's outputs has one number a token of the prompt."""
        return value.shape == (1, len(self.prompt))


def score_choices(
    model: PreTrainedModel,
    prompt_ids: Sequence[int],
    choices_ids: Sequence[Sequence[int]],
    *,
    vision: Mapping[str, Tensor] | None = None,
    end_ids: Sequence[int] = (),
    token_budget: int | None = None,
) -> list[ChoiceScore]:
    """Score the choices of one prompt.

    Args:
        model: A causal or image-text-to-text model of transformers.
        prompt_ids: Token ids of the prompt, at least one.
        choices_ids: Token ids of each choice.
        vision: The processor's outputs for the prompt's images; see ScoringRequest.
        end_ids: Tokens that end a text; where given, the log-probability of ending is scored too.
        token_budget: Choice tokens scored at once.

    Returns:
        One score a choice, in order.

    Raises:
        ValueError: An empty prompt.
    """
    request = ScoringRequest(prompt_ids, choices_ids, bool(end_ids), vision)
    return ChoiceScorer(model, end_ids, token_budget).score([request])[0]


class ChoiceScorer:
    """Scores requests with one model; the route (packed, cached or plain) is settled at the first batch that matters.

    Attributes:
        token_budget: Tokens that a tree over several prompts adds to what they share.
        tree_budget: Choice tokens of one prompt in one forward pass.
        head: The model's lm_head.
        routes: The route of requests without (False) and with images (True), once settled.
        steady: Longest sequence whose keys may be kept; None without a limit.
        prefix: The prompt whose keys and values are kept.
    """

    def __init__(self, model: PreTrainedModel, end_ids: Sequence[int] = (), token_budget: int | None = None) -> None:
        """Prepare to score.

        Args:
            model: A causal or image-text-to-text model with a lm_head.
            end_ids: Tokens that end a text.
            token_budget: Sets both budgets; None takes the defaults above.
        """
        self.model = model
        self.head = LMHead(model)
        self.end_ids = list(end_ids)
        default = TOKEN_BUDGET_CPU if model.device.type == "cpu" else TOKEN_BUDGET_ACCELERATOR
        self.token_budget = token_budget or default
        self.tree_budget = token_budget or TREE_BUDGET
        self.unmasked = UnmaskedScorer(model, self.end_ids, self.token_budget)
        self.routes: dict[bool, str] = {}
        self.steady = steady_length(model)
        if self.steady:
            logger.info("prompts over %d tokens get a forward pass a choice: their length turns all keys", self.steady)
        self.prefix = PrefixCache()
        self._fed = 0

    @property
    def forwarded_tokens(self) -> int:
        """Tokens that the model was fed so far, padding and the self-check included."""
        return self._fed + self.unmasked.forwarded_tokens

    def forget(self) -> None:
        """Free the kept prompt's memory."""
        self.prefix = PrefixCache()

    def batches(self, requests: Sequence[ScoringRequest]) -> Iterator[list[int]]:
        """Group requests for `score`: indices, with common beginnings side by side, as many as fit the token budget.

        Requests with images are grouped where they share them and all text in front of them.
        """
        batch: list[int] = []
        shared = size = rows = 0
        for index in sorted(range(len(requests)), key=lambda index: (requests[index].images, requests[index].prompt)):
            request, tree = requests[index], requests[index].tree_size()
            if batch:
                before = requests[batch[-1]]
                common = common_length(before.prompt, request.prompt)
                grown = size + max(shared - common, 0) + len(request.prompt) - common + tree
                fits = grown <= self.token_budget and rows + tree + 1 <= self._row_limit()
                if fits and before.images == request.images and common >= self._images_end(request):
                    batch, shared, size, rows = [*batch, index], min(shared, common), grown, rows + tree + 1
                    continue
                yield batch
            batch, shared, size, rows = [index], len(request.prompt), tree, tree + 1
        if batch:
            yield batch

    @torch.inference_mode()
    def score(self, requests: Sequence[ScoringRequest]) -> list[list[ChoiceScore]]:
        """Score a batch of requests, one list of scores a request.

        Raises:
            ValueError: A prompt without tokens, or requests with images that `batches` would not put together.
        """
        if any(not request.prompt for request in requests):
            raise ValueError("a prompt needs at least one token: put a BOS token before an empty one")
        if not all(self._fit_together(requests[0], request) for request in requests[1:]):
            raise ValueError("requests are scored together only where they share their images and the text before them")
        asked = [request for request in requests if request.asks()]
        scores = iter(self._scored(asked) if asked else ())
        return [
            next(scores) if request.asks() else [ChoiceScore(0.0, 0, True) for _ in request.choices]
            for request in requests
        ]

    def _scored(self, requests: Sequence[ScoringRequest]) -> list[list[ChoiceScore]]:
        with onednn_products(self.model.device):
            route = self._route(requests)
            if route == "single_pass":
                return self._single_pass(requests[0])
            return self._packed(requests) if route == "packed" else self.unmasked.score(requests, route)

    # --- the route ---

    def _route(self, requests: Sequence[ScoringRequest]) -> str:
        """The route for these requests, settled by the first that need a mask; one prompt that needs none has none."""
        if self.steady and any(request.length() > self.steady for request in requests):
            return "plain"
        kind = bool(requests[0].vision)
        if kind not in self.routes:
            if len(requests) == 1 and not requests[0].tree_size():
                return "single_pass"
            self.routes[kind] = self._check_routes(requests)
            self.forget()
        return self.routes[kind]

    def _check_routes(self, requests: Sequence[ScoringRequest]) -> str:
        """The first route whose scores agree with plain forward passes on a few choices of two requests.

        Raises:
            CulturevalError: The model is not causal.
        """
        probes = [_probe(one) for one in sorted(requests, key=lambda request: -request.tree_size())[:2]]
        expected = [score for of_one in self.unmasked.score(probes, "plain") for score in of_one]
        for route in ("packed", "cached"):
            self.forget()
            try:
                got = self._packed(probes) if route == "packed" else self.unmasked.score(probes, route)
            except REFUSALS as error:
                if isinstance(error, torch.OutOfMemoryError):
                    raise
                logger.warning("%s refuses %s scoring: %s", type(self.model).__name__, route, error)
                continue
            own = [score for of_one in got for score in of_one]
            off = [abs(one.logprob - other.logprob) for one, other in zip(own, expected, strict=True)]
            if all(far <= self._allowed(score.tokens) for far, score in zip(off, expected, strict=True)):
                logger.info("%s scoring agrees with plain forward passes (largest difference %.1e)", route, max(off))
                return route
            logger.warning("%s scoring is off by %.1e on %s", route, max(off), type(self.model).__name__)
        if self.unmasked.looks_ahead(probes[0]) > self._allowed(1):
            raise CulturevalError(
                f"{type(self.model).__name__} is not causal: what it says behind a prompt changes with what follows, "
                "so that choices cannot be scored. Use a causal language model."
            )
        logger.warning("every choice gets a forward pass of its own: right, but slow")
        return "plain"

    def _allowed(self, tokens: int) -> float:
        """How far the sums over so many tokens may be apart, in nats, by the rounding of the model's products."""
        return max(1e-3, 32 * rounding(self.model) * tokens)

    def _single_pass(self, request: ScoringRequest) -> list[list[ChoiceScore]]:
        """Score a request whose prompt is all that must be fed: by a pass that asks nothing of masks or caches."""
        self._fed += len(request.prompt)
        rows = self.head.rows(
            torch.tensor([len(request.prompt) - 1]),
            input_ids=torch.tensor([list(request.prompt)], device=self.model.device),
            use_cache=False,
            **{name: value.to(self.model.device) for name, value in (request.vision or {}).items()},
        )
        return read_scores(rows, build_tree(request.prompt, [request]), [request], self.end_ids)

    # --- packed ---

    def _packed(self, requests: Sequence[ScoringRequest]) -> list[list[ChoiceScore]]:
        """Score a batch by one tree, or one request by several.

        Raises:
            ValueError: The prompt is no sequence of tokens that see what is before them.
        """
        if CROSS_MASK in (given := requests[0].vision or {}) or (given and self.unmasked.kind == PALIGEMMA):
            # In bfloat16 such prompts may be so little off that no check of numbers finds them.
            raise ValueError("prompts with images are read otherwise than by causal attention")
        if len(requests) > 1:
            return self._one_tree(requests)
        return [[score for run in self._split(requests[0]) for score in self._one_tree([run])[0]]]

    def _split(self, request: ScoringRequest) -> list[ScoringRequest]:
        """The choices in runs whose trees fit the budget; mostly one."""
        limit = min(self.tree_budget, self._row_limit())
        runs: list[list[Sequence[int]]] = [[]]
        size = 0
        for choice in request.choices:
            size += len(choice)
            if runs[-1] and size > limit:
                runs.append([])
                size = len(choice)
            runs[-1].append(choice)
        return [replace(request, choices=run) for run in runs] if len(runs) > 1 else [request]

    def _one_tree(self, requests: Sequence[ScoringRequest]) -> list[list[ChoiceScore]]:
        self._prepare_chain(requests)
        tree = build_tree(self.prefix.tokens, requests)
        rows = self._feed_tree(tree, tree.columns(), requests[-1].prompt)
        return read_scores(rows, tree, requests, self.end_ids)

    def _prepare_chain(self, requests: Sequence[ScoringRequest]) -> None:
        """Cut the kept prefix to what the requests can go on from, and feed what they share if that goes by itself."""
        first, images_end = requests[0], self._images_end(requests[0])
        if not self.prefix.cut_to([request.prompt for request in requests], first.images, images_end):
            self.prefix = PrefixCache(images=first.images)
        have = len(self.prefix.tokens)
        shared = min(common_length(first.prompt, request.prompt) for request in requests)
        whole = len(requests) == 1 and not first.tree_size()
        if not have and (whole or images_end or shared >= LONG_PREFIX):
            self._feed_beginning(first, shared)
        elif shared - have >= LONG_PREFIX:
            shared_part = build_tree(self.prefix.tokens, [Branch(first.prompt[:shared], [])])
            self._feed_tree(shared_part, [shared - 1], first.prompt[:shared])

    def _feed_beginning(self, request: ScoringRequest, length: int) -> None:
        """Start a prefix with the beginning of a prompt, images included, under the model's own mask and positions."""
        vision = {
            name: (value[:, :length] if request.is_per_token(value) else value).to(self.model.device)
            for name, value in (request.vision or {}).items()
        }
        tokens = request.prompt[:length]
        rows = self._rows(tokens, [length - 1], **vision)
        self.prefix.extend(tokens, rows, rope_offset(self.model) if vision else 0)

    def _feed_tree(self, tree: TokenTree, columns: Sequence[int], prompt: Sequence[int]) -> Rows:
        """Feed a tree on top of the prefix, which then goes on to the end of the tree's last prompt.

        Args:
            tree: Goes on from the prefix.
            columns: Which columns' rows are wanted: nodes, and the prefix's last token.
            prompt: Tokens of the tree's last prompt.

        Returns:
            One row a column.
        """
        from_prefix = self.prefix.last if columns[0] < tree.prefix else None
        if not len(tree):
            return from_prefix
        positions = torch.tensor([tree.depths], device=self.model.device) + self.prefix.offset
        rows = self._rows(
            tree.tokens,
            [column - tree.prefix for column in columns if column >= tree.prefix],
            attention_mask=tree_masks(self.model, tree),
            position_ids=positions,
        )
        rows = from_prefix.join(rows) if from_prefix else rows
        last = rows[columns.index(tree.path[-1])] if tree.path[-1] in columns else None
        self.prefix.follow(tree.path, prompt, last)
        return rows

    def _rows(self, tokens: Sequence[int], wanted: Sequence[int], **inputs: Any) -> Rows:
        """Feed tokens on top of the prefix's keys and values, and keep some rows."""
        self._fed += len(tokens)
        return self.head.rows(
            torch.tensor(wanted),
            input_ids=torch.tensor([list(tokens)], device=self.model.device),
            past_key_values=self.prefix.cache,
            use_cache=True,
            **inputs,
        )

    def _row_limit(self) -> int:
        return self.tree_budget if self.head.is_plain else max(MAX_LOGITS // self.head.size, 1)

    # --- images ---

    def _images_end(self, request: ScoringRequest) -> int:
        """How many of a prompt's tokens reach to the end of its last image: 0 for text alone."""
        if not request.vision:
            return 0
        config = self.model.config
        token = getattr(config, "image_token_id", None) or getattr(config, "image_token_index", None)
        places = [place for place, one in enumerate(request.prompt, start=1) if one == token]
        return places[-1] if places else len(request.prompt)  # an image that is not told apart may be anywhere

    def _fit_together(self, first: ScoringRequest, other: ScoringRequest) -> bool:
        """Whether one prefix can begin both: the same images, and the same tokens up to their end."""
        same = first.images == other.images
        return same and common_length(first.prompt, other.prompt) >= self._images_end(first)


def _probe(request: ScoringRequest) -> ScoringRequest:
    """Three choices of a request and one of several tokens, so that a route is never settled by single tokens alone."""
    longest = sorted(request.choices, key=len, reverse=True)[:3]
    tokens = [token for choice in longest for token in choice] or list(request.prompt[-1:])
    return replace(request, choices=[*longest, (tokens * CHECKED_TOKENS)[:CHECKED_TOKENS]])


def rounding(model: PreTrainedModel) -> float:
    """How coarsely a model's products are rounded, relative to 1."""
    # LLM.int8 rounds inputs to 8 bits, on scales that depend on what else is in the batch.
    return 2**-8 if getattr(model, "is_loaded_in_8bit", False) else torch.finfo(model.dtype).eps


def tree_masks(model: PreTrainedModel, tree: TokenTree) -> Tensor | dict[str, Tensor]:
    """Additive masks [1, 1, nodes, prefix + nodes]: one, or one per kind of layer for models that mix kinds.

    Args:
        model: Tells kinds of layers, window and dtype.
        tree: What is fed.

    Raises:
        ValueError: A kind of layer that has no such mask (recurrent, chunked, windows of its own).
    """
    config = model.config.get_text_config(decoder=True)
    window = getattr(config, "sliding_window", None)
    kinds = set(getattr(config, "layer_types", None) or [])
    if kinds - {"full_attention", "sliding_attention"}:
        raise ValueError(f"no tree mask for layers of kind {', '.join(sorted(kinds))}")

    if "local" in getattr(config, "attention_layers", ()):
        # GPT-Neo cuts its window itself, by columns: a check on prompts that are shorter finds no difference.
        raise ValueError("no tree mask for local attention by columns")

    def additive(reach: int | None) -> Tensor:
        hidden = torch.full((), torch.finfo(model.dtype).min, dtype=model.dtype, device=model.device)
        seen = tree.visibility(reach, model.device)
        return torch.where(seen[None, None], hidden.new_zeros(()), hidden)

    if not kinds:
        return additive(window)
    if "sliding_attention" not in kinds:
        return additive(None)
    return {kind: additive(window if kind == "sliding_attention" else None) for kind in kinds}
