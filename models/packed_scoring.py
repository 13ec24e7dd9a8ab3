"""Log-probabilities of choices behind a prompt: the prompt is encoded once, all its choices in one packed sequence.

How one batch is scored:
1. Prompts of similar length, padded on the right, go through the model once under plain causal attention. Only the
   hidden state of each prompt's last token reaches the vocabulary head; it predicts every choice's first token.
   Choices of one token are done here.
2. What is left of the choices (see `token_tree`) follows in one sequence a prompt, on top of the prompt's keys and
   values, under a 4-D tree attention mask and with positions that restart behind the prompt. Models with
   sliding-window layers get one mask per kind of layer.

Logits exist only for the rows that predict a choice's token, and log-softmax is taken over those, in fp32. Choices
beyond the token budget are split over further sequences on top of the same keys and values.

Models that refuse custom masks are found by a numeric self-check on the first prompt with a longer choice: `packed`
must agree with plain forward passes, else `cached` (prompt once, one row a choice, no custom mask) must, else every
choice is scored by a plain forward pass of its own (`plain`).
"""

import copy
import inspect
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import DynamicCache, PreTrainedModel

from cultureval.models.token_tree import TokenTree, build_tree, visibility

logger = logging.getLogger(__name__)

TOKEN_BUDGET_CPU, TOKEN_BUDGET_ACCELERATOR = 1024, 8192
MAX_LOGITS = 2**28  # at most so many logits at once: 1 GiB in fp32


class ChoiceScore(NamedTuple):
    """Score of one choice.

    Attributes:
        logprob: Sum of the natural log-probabilities of the choice's tokens; 0.0 for a choice without tokens.
        tokens: Number of the choice's tokens.
        is_greedy: Whether every token is the model's most likely one.
        end_logprob: Log-probability that the text ends behind the choice (any end token), None unless asked for.
    """

    logprob: float
    tokens: int
    is_greedy: bool
    end_logprob: float | None = None


@dataclass(frozen=True)
class ScoringRequest:
    """One prompt and its choices.

    Attributes:
        prompt: Token ids, at least one; image tokens included.
        choices: Token ids of each choice.
        ending: Whether the log-probability of ending behind each choice is wanted.
        vision: What the processor made of the images: `pixel_values`, `image_grid_thw`, ... and, of shape
            [1, len(prompt)], `mm_token_type_ids`, `token_type_ids` where the model has them. None for text alone.
    """

    prompt: Sequence[int]
    choices: Sequence[Sequence[int]]
    ending: bool = False
    vision: Mapping[str, Tensor] | None = None

    def size(self) -> tuple[int, int]:
        """Tokens of the prompt and, at most, of the tree."""
        keep = 0 if self.ending else 1
        return len(self.prompt), sum(max(len(choice) - keep, 0) for choice in self.choices)


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
    """Scores requests with one model; the route (packed, cached or plain) is settled at the first longer choice.

    Attributes:
        token_budget: Tokens in one forward pass.
        routes: The route of requests without (False) and with images (True), once settled.
    """

    def __init__(self, model: PreTrainedModel, end_ids: Sequence[int] = (), token_budget: int | None = None) -> None:
        """Prepare to score.

        Args:
            model: A causal or image-text-to-text model with a vocabulary head.
            end_ids: Tokens that end a text.
            token_budget: None takes TOKEN_BUDGET_CPU or TOKEN_BUDGET_ACCELERATOR.
        """
        self.model = model
        self.end_ids = list(end_ids)
        default = TOKEN_BUDGET_CPU if model.device.type == "cpu" else TOKEN_BUDGET_ACCELERATOR
        self.token_budget = token_budget or default
        self.routes: dict[bool, str] = {}

    def batches(self, requests: Sequence[ScoringRequest]) -> Iterator[list[int]]:
        """Group requests for `score`: indices of neighbours that fit the token budget together.

        Requests should come sorted by length. One with images or beyond the budget stays alone.
        """
        batch: list[int] = []
        width = nodes = 0
        for index, request in enumerate(requests):
            prompt, tree = request.size()
            wide, high = max(width, prompt), max(nodes, tree)
            count = len(batch) + 1
            fits = count * (wide + high) <= self.token_budget and count * max(high, 1) <= self._row_limit()
            if batch and (not fits or request.vision or requests[batch[0]].vision):
                yield batch
                batch, wide, high = [], prompt, tree
            batch, width, nodes = [*batch, index], wide, high
        if batch:
            yield batch

    @torch.inference_mode()
    def score(self, requests: Sequence[ScoringRequest]) -> list[list[ChoiceScore]]:
        """Score a batch of requests, one list of scores a request.

        Raises:
            ValueError: A prompt without tokens, or several requests with images at once.
        """
        if any(not request.prompt for request in requests):
            raise ValueError("a prompt needs at least one token: put a BOS token before an empty one")
        if len(requests) > 1 and any(request.vision for request in requests):
            raise ValueError("requests with images are scored one by one")
        route = self._route(requests)
        if route == "packed":
            return self._packed(requests)
        return [self._row_by_row(request, route) for request in requests]

    def _route(self, requests: Sequence[ScoringRequest]) -> str:
        """The route for these requests; without longer choices nothing needs a mask and packed is right."""
        longer = max(requests, key=lambda request: request.size()[1])
        if not longer.size()[1]:
            return "packed"
        kind = bool(longer.vision)
        if kind not in self.routes:
            self.routes[kind] = self._check_routes(longer)
        return self.routes[kind]

    def _check_routes(self, request: ScoringRequest) -> str:
        """The first route whose scores agree with plain forward passes on a few choices of one request."""
        some = sorted(request.choices, key=len, reverse=True)[:3]
        probe = ScoringRequest(request.prompt, some, request.ending, request.vision)
        expected = self._row_by_row(probe, "plain")
        eps = torch.finfo(self.model.dtype).eps
        for route in ("packed", "cached"):
            try:
                got = self._packed([probe])[0] if route == "packed" else self._row_by_row(probe, route)
            except (
                TypeError,
                ValueError,
                KeyError,
                IndexError,
                AttributeError,
                NotImplementedError,
                RuntimeError,
            ) as e:
                if isinstance(e, torch.OutOfMemoryError):
                    raise
                logger.warning("%s refuses %s scoring: %s", type(self.model).__name__, route, e)
                continue
            pairs = list(zip(got, expected, strict=True))
            worst = max(abs(a.logprob - b.logprob) for a, b in pairs)
            allowed = max(1e-3, 32 * eps * max(b.tokens for _, b in pairs) if eps > 1e-6 else 0.0)
            if worst <= allowed:
                logger.info("%s scoring agrees with plain forward passes (largest difference %.1e)", route, worst)
                return route
            logger.warning("%s scoring is off by %.1e on %s", route, worst, type(self.model).__name__)
        logger.warning("every choice gets a forward pass of its own: right, but slow")
        return "plain"

    # --- packed ---

    def _packed(self, requests: Sequence[ScoringRequest]) -> list[list[ChoiceScore]]:
        """Score a batch by prompts first, then trees of choices on top of their keys and values."""
        parts = [self._split(request) for request in requests]
        trees = [trees_of_one[0][1] for trees_of_one in parts]
        lengths = [len(request.prompt) for request in requests]
        deeper = any(len(tree) for chunks in parts for _, tree in chunks)
        logits, cache, offset = self._prompts(requests, keep=deeper)
        results: list[list[ChoiceScore]] = []
        if len(parts) == 1:
            results.append([])
            for choices, tree in parts[0]:
                results[0] += self._trees([choices], [tree], [requests[0].ending], logits, cache, lengths, offset)[0]
            return results
        choices = [request.choices for request in requests]
        return self._trees(choices, trees, [r.ending for r in requests], logits, cache, lengths, offset)

    def _split(self, request: ScoringRequest) -> list[tuple[list[Sequence[int]], TokenTree]]:
        """The choices in runs whose trees fit the budget; mostly one."""
        limit = min(self.token_budget, self._row_limit())
        runs: list[list[Sequence[int]]] = [[]]
        size = 0
        for choice in request.choices:
            size += len(choice)
            if runs[-1] and size > limit:
                runs.append([])
                size = len(choice)
            runs[-1].append(choice)
        return [(run, build_tree(run, request.ending)) for run in runs]

    def _prompts(self, requests: Sequence[ScoringRequest], keep: bool) -> tuple[Tensor, DynamicCache | None, int]:
        """Encode prompts once: logits of their last rows [batch, vocabulary], keys and values, M-RoPE offset."""
        device = self.model.device
        ids = pad_sequence([torch.tensor(request.prompt) for request in requests], batch_first=True).to(device)
        lengths = torch.tensor([len(request.prompt) for request in requests], device=device)
        rows = torch.arange(len(requests), device=device) * ids.shape[1] + lengths - 1
        # Full layers also for sliding-window models: the choices' masks address every token of the prompt.
        cache = DynamicCache() if keep else None
        vision = requests[0].vision or {}
        with only_rows(self.model, rows):
            logits = self.model(input_ids=ids, past_key_values=cache, use_cache=keep, **vision).logits[0]
        return logits, cache, rope_offset(self.model) if vision else 0

    def _trees(
        self,
        choices: Sequence[Sequence[Sequence[int]]],
        trees: Sequence[TokenTree],
        endings: Sequence[bool],
        prompt_logits: Tensor,
        cache: DynamicCache | None,
        lengths: Sequence[int],
        offset: int,
    ) -> list[list[ChoiceScore]]:
        """Feed one tree a prompt on top of the cache, read the scores, and leave the cache as it was."""
        logits = prompt_logits
        width = max(len(tree) for tree in trees)
        if width:
            logits = torch.cat([prompt_logits, self._tree_logits(trees, cache, lengths, offset)])
            cache.crop(-width)
        return read_scores(logits, choices, trees, self.end_ids)

    def _tree_logits(
        self, trees: Sequence[TokenTree], cache: DynamicCache, lengths: Sequence[int], offset: int
    ) -> Tensor:
        """Logits of the nodes of all trees, one tree after the other: [nodes, vocabulary]."""
        device = self.model.device
        ids = pad_sequence([torch.tensor(tree.tokens, dtype=torch.long) for tree in trees], batch_first=True)
        depths = pad_sequence([torch.tensor(tree.depths, dtype=torch.long) for tree in trees], batch_first=True)
        positions = depths + torch.tensor(lengths)[:, None] + offset
        rows = torch.cat([torch.arange(len(tree)) + row * ids.shape[1] for row, tree in enumerate(trees)])
        with only_rows(self.model, rows.to(device)):
            return self.model(
                input_ids=ids.to(device),
                attention_mask=tree_masks(self.model, trees, lengths, cache.get_seq_length()),
                position_ids=positions.to(device),
                past_key_values=cache,
                use_cache=True,
            ).logits[0]

    def _row_limit(self) -> int:
        return max(MAX_LOGITS // self.model.get_output_embeddings().weight.shape[0], 1)

    # --- one row a choice ---

    def _row_by_row(self, request: ScoringRequest, route: str) -> list[ChoiceScore]:
        """Score without custom masks, one request at a time."""
        rows = self._cached_rows(request) if route == "cached" else self._plain_rows(request)
        scores = []
        for choice, logits in zip(request.choices, rows, strict=True):
            tree = build_tree([choice], request.ending)
            scores += read_scores(logits, [[choice]], [tree], self.end_ids)[0]
        return scores

    def _plain_rows(self, request: ScoringRequest) -> Iterator[Tensor]:
        """For each choice the logits of the prompt's last row and of the rows behind it, by a pass of its own."""
        trims = "logits_to_keep" in inspect.signature(self.model.forward).parameters
        for choice in request.choices:
            count = len(choice) + 1
            ids = torch.tensor([[*request.prompt, *choice]], device=self.model.device)
            extra = {"logits_to_keep": count} if trims else {}
            vision = {name: lengthen(name, value, len(choice)) for name, value in (request.vision or {}).items()}
            yield self.model(input_ids=ids, use_cache=False, **vision, **extra).logits[0, -count:]

    def _cached_rows(self, request: ScoringRequest) -> Iterator[Tensor]:
        """The same rows from one pass over the prompt and copies of the cache that the model itself made."""
        device, length = self.model.device, len(request.prompt)
        prompt = torch.tensor([list(request.prompt)], device=device)
        with only_rows(self.model, torch.tensor([length - 1], device=device)):
            out = self.model(input_ids=prompt, use_cache=True, **(request.vision or {}))
        first, cache = out.logits[0], out.past_key_values
        offset = rope_offset(self.model) if request.vision else 0
        longest = max(map(len, request.choices))
        at_once = max(1, min(self.token_budget, self._row_limit()) // max(longest, 1))
        for start in range(0, len(request.choices), at_once):
            run = request.choices[start : start + at_once]
            ids = pad_sequence([torch.tensor(choice, dtype=torch.long) for choice in run], batch_first=True).to(device)
            if not ids.shape[1]:
                yield from (first for _ in run)
                continue
            copied = copy.deepcopy(cache)
            copied.batch_repeat_interleave(len(run))
            positions = (torch.arange(ids.shape[1], device=device) + length + offset).expand(len(run), -1)
            logits = self.model(input_ids=ids, past_key_values=copied, position_ids=positions, use_cache=True).logits
            for choice, rows in zip(run, logits, strict=True):
                yield torch.cat([first, rows[: len(choice)]])


@contextmanager
def only_rows(model: PreTrainedModel, rows: Tensor) -> Iterator[None]:
    """Let only some hidden states reach the vocabulary head, whatever the model does around it.

    Args:
        model: Any model with output embeddings; its logits become [1, len(rows), vocabulary].
        rows: Indices into the batch's tokens, row by row: batch index * width + column.
    """
    head = model.get_output_embeddings()
    hook = head.register_forward_pre_hook(lambda _, args: (args[0].flatten(0, 1)[rows][None], *args[1:]))
    try:
        yield
    finally:
        hook.remove()


def tree_masks(
    model: PreTrainedModel, trees: Sequence[TokenTree], lengths: Sequence[int], width: int
) -> Tensor | dict[str, Tensor]:
    """Additive masks [batch, 1, nodes, width + nodes]: one, or one per kind of layer for models that mix kinds.

    Raises:
        ValueError: A kind of layer that has no such mask (recurrent, chunked).
    """
    config = model.config.get_text_config(decoder=True)
    window = getattr(config, "sliding_window", None)
    kinds = set(getattr(config, "layer_types", None) or [])
    if kinds - {"full_attention", "sliding_attention"}:
        raise ValueError(f"no tree mask for layers of kind {', '.join(sorted(kinds))}")

    def additive(reach: int | None) -> Tensor:
        seen = visibility(trees, lengths, width, reach)[:, None]
        mask = torch.zeros(seen.shape, dtype=model.dtype).masked_fill_(~seen, torch.finfo(model.dtype).min)
        return mask.to(model.device)

    if not kinds:
        return additive(window)
    if "sliding_attention" not in kinds:
        return additive(None)
    return {kind: additive(window if kind == "sliding_attention" else None) for kind in kinds}


def rope_offset(model: PreTrainedModel) -> int:
    """How far M-RoPE positions behind the images lag behind the token count, after a pass over one prompt."""
    # Qwen-VL and its kin leave the number in `rope_deltas`; others count tokens.
    deltas = getattr(getattr(model, "model", model), "rope_deltas", None)
    return 0 if deltas is None else int(deltas.flatten()[0])


def lengthen(name: str, value: Tensor, more: int) -> Tensor:
    """A processor's output for a prompt with `more` tokens of text behind it: per-token types go on as text (0)."""
    return torch.nn.functional.pad(value, (0, more)) if name in ("token_type_ids", "mm_token_type_ids") else value


def read_scores(
    logits: Tensor,
    choices: Sequence[Sequence[Sequence[int]]],
    trees: Sequence[TokenTree],
    end_ids: Sequence[int],
) -> list[list[ChoiceScore]]:
    """Scores of the choices of a batch of prompts.

    Args:
        logits: [prompts + nodes, vocabulary]: the last row of each prompt, then the nodes of tree after tree.
        choices: Of each prompt.
        trees: Of each prompt, over the same choices.
        end_ids: Tokens that end a text.
    """
    rows, tokens, owners, ends = [], [], [], []
    start = len(trees)
    counts = [len(of_one) for of_one in choices]
    firsts = torch.tensor([0, *counts]).cumsum(0).tolist()
    for prompt, tree in enumerate(trees):
        place = [prompt, *range(start, start + len(tree))]
        rows += [place[row + 1] for row, _, _ in tree.reads]
        tokens += [token for _, token, _ in tree.reads]
        owners += [firsts[prompt] + choice for _, _, choice in tree.reads]
        ends += [place[row + 1] for row in tree.ends] or [None] * counts[prompt]
        start += len(tree)
    normaliser, best = normalise(logits)
    at, token = (torch.tensor(ids, dtype=torch.long, device=logits.device) for ids in (rows, tokens))
    picked = (logits[at, token].float() - normaliser[at]).double().cpu()
    owner = torch.tensor(owners, dtype=torch.long)
    sums = torch.zeros(firsts[-1], dtype=torch.double).index_add_(0, owner, picked).tolist()
    missed = torch.zeros(firsts[-1]).index_add_(0, owner, (best[at] != token).float().cpu()).tolist()
    ending = [None if row is None else _ending(logits[row], normaliser[row], end_ids) for row in ends]
    flat = [choice for of_one in choices for choice in of_one]
    scores = [
        ChoiceScore(total, len(choice), not wrong, end)
        for total, choice, wrong, end in zip(sums, flat, missed, ending, strict=True)
    ]
    return [scores[first : first + count] for first, count in zip(firsts, counts, strict=False)]


def normalise(logits: Tensor, at_once: int = 2**24) -> tuple[Tensor, Tensor]:
    """Log-sum-exp in fp32 and most likely token of each row of [rows, vocabulary], a few rows at a time."""
    step = max(1, at_once // logits.shape[1])
    sums, best = [], []
    for part in logits.split(step):
        sums.append(torch.logsumexp(part.float(), -1))
        best.append(part.argmax(-1))
    return torch.cat(sums), torch.cat(best)


def _ending(row: Tensor, normaliser: Tensor, end_ids: Iterable[int]) -> float:
    return float(torch.logsumexp(row[list(end_ids)].float(), 0) - normaliser)
