"""Log-probabilities of choices behind a prompt: the prompt is encoded once, all its choices in one packed sequence.

What is fed of a prompt's choices is a tree of tokens (see `token_tree`), under a 4-D mask in which every token sees its
prompt and its own beginning, with positions that restart behind the prompt. Models with sliding-window layers get one
mask per kind of layer. A batch is scored in one of three ways:
- Choices of one token: nothing but the prompts is fed, padded on the right under plain causal attention.
- Short prompts: prompt and tree in one sequence, several such sequences at once.
- Long prompts, and prompts with images: the prompts first, under the model's own mask and positions, then the trees on
  top of their keys and values; choices beyond the token budget take several such turns.

Only the rows that predict a choice's token reach the vocabulary head (see `vocabulary`).

Models that refuse custom masks are found by a numeric self-check on the first prompt with a longer choice: `packed`
must agree with plain forward passes, else `cached` (prompt once, one row a choice, no custom mask) must, else every
choice is scored by a plain forward pass of its own (`plain`).
"""

import copy
import inspect
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import DynamicCache, PreTrainedModel

from cultureval.models.token_tree import TokenTree, build_tree, prompt_visibility, visibility
from cultureval.models.vocabulary import Rows, VocabularyHead

logger = logging.getLogger(__name__)

# Batches of prompts are kept small on a CPU: larger ones gain nothing there and pad more.
TOKEN_BUDGET_CPU, TOKEN_BUDGET_ACCELERATOR = 512, 8192
TREE_BUDGET = 4096
ONE_SEQUENCE = 512  # prompt and tree up to so many tokens go in one sequence
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
        token_budget: Tokens in one forward pass over several prompts.
        tree_budget: Choice tokens of one prompt in one forward pass.
        head: The model's vocabulary head.
        routes: The route of requests without (False) and with images (True), once settled.
    """

    def __init__(self, model: PreTrainedModel, end_ids: Sequence[int] = (), token_budget: int | None = None) -> None:
        """Prepare to score.

        Args:
            model: A causal or image-text-to-text model with a vocabulary head.
            end_ids: Tokens that end a text.
            token_budget: Sets both budgets; None takes the defaults above.
        """
        self.model = model
        self.head = VocabularyHead(model)
        self.end_ids = list(end_ids)
        default = TOKEN_BUDGET_CPU if model.device.type == "cpu" else TOKEN_BUDGET_ACCELERATOR
        self.token_budget = token_budget or default
        self.tree_budget = token_budget or TREE_BUDGET
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
        """Score a batch by trees of choices."""
        runs = [self._split(request) for request in requests]
        trees = [of_one[0][1] for of_one in runs]
        lengths = [len(request.prompt) for request in requests]
        at_once = max(map(len, runs)) == 1
        short = max(lengths) + max(map(len, trees)) <= ONE_SEQUENCE and not requests[0].vision
        if at_once and short and any(map(len, trees)):
            rows = self._one_sequence(requests, trees, lengths)
            return read_scores(rows, [request.choices for request in requests], trees, self.end_ids)
        prompts, cache, offset = self._prompts(requests, keep=any(len(tree) for run in runs for _, tree in run))
        if at_once:
            rows = self._on_top(prompts, trees, cache, lengths, offset)
            return read_scores(rows, [request.choices for request in requests], trees, self.end_ids)
        scores: list[ChoiceScore] = []
        for choices, tree in runs[0]:
            rows = self._on_top(prompts, [tree], cache, lengths, offset)
            scores += read_scores(rows, [choices], [tree], self.end_ids)[0]
        return [scores]

    def _split(self, request: ScoringRequest) -> list[tuple[list[Sequence[int]], TokenTree]]:
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
        return [(run, build_tree(run, request.ending)) for run in runs]

    def _one_sequence(
        self, requests: Sequence[ScoringRequest], trees: Sequence[TokenTree], lengths: Sequence[int]
    ) -> Rows:
        """Prompts and trees in one pass: the prompts' last rows, then the nodes of all trees."""
        prompts, (nodes, depths) = padded([request.prompt for request in requests]), _columns(trees)
        start, total = prompts.shape[1], prompts.shape[1] + nodes.shape[1]
        behind = depths + torch.tensor(lengths)[:, None]
        positions = torch.cat([torch.arange(start).expand(len(trees), -1), behind], 1)
        first = torch.arange(len(trees)) * total
        lasts = first + torch.tensor(lengths) - 1
        at = torch.cat(
            [lasts, *(torch.arange(len(tree)) + begin + start for tree, begin in zip(trees, first, strict=True))]
        )
        device = self.model.device
        return self.head.rows(
            at.to(device),
            input_ids=torch.cat([prompts, nodes], 1).to(device),
            attention_mask=tree_masks(self.model, trees, lengths, start, with_prompts=True),
            position_ids=positions.to(device),
            use_cache=False,
        )

    def _prompts(self, requests: Sequence[ScoringRequest], keep: bool) -> tuple[Rows, DynamicCache | None, int]:
        """Prompts alone: their last rows, their keys and values if they are to be kept, their M-RoPE offset."""
        device = self.model.device
        ids = padded([request.prompt for request in requests])
        last = torch.arange(len(requests)) * ids.shape[1] + torch.tensor([len(r.prompt) - 1 for r in requests])
        # Full layers also for sliding-window models: the choices' masks address every token of the prompt.
        cache = DynamicCache() if keep else None
        vision = requests[0].vision or {}
        rows = self.head.rows(
            last.to(device), input_ids=ids.to(device), past_key_values=cache, use_cache=keep, **vision
        )
        return rows, cache, rope_offset(self.model) if vision else 0

    def _on_top(
        self,
        prompts: Rows,
        trees: Sequence[TokenTree],
        cache: DynamicCache | None,
        lengths: Sequence[int],
        offset: int,
    ) -> Rows:
        """One tree a prompt on top of the cache, which is left as it was: the prompts' rows, then all nodes."""
        nodes, depths = _columns(trees)
        width = nodes.shape[1]
        if not width:
            return prompts
        at = torch.cat([torch.arange(len(tree)) + number * width for number, tree in enumerate(trees)])
        positions = depths + torch.tensor(lengths)[:, None] + offset
        device = self.model.device
        rows = self.head.rows(
            at.to(device),
            input_ids=nodes.to(device),
            attention_mask=tree_masks(self.model, trees, lengths, cache.get_seq_length()),
            position_ids=positions.to(device),
            past_key_values=cache,
            use_cache=True,
        )
        cache.crop(-width)
        return prompts.join(rows)

    def _row_limit(self) -> int:
        return self.tree_budget if self.head.is_plain else max(MAX_LOGITS // self.head.size, 1)

    # --- one row a choice ---

    def _row_by_row(self, request: ScoringRequest, route: str) -> list[ChoiceScore]:
        """Score without custom masks, one request at a time."""
        rows = self._cached_rows(request) if route == "cached" else self._plain_rows(request)
        scores = []
        for choice, logits in zip(request.choices, rows, strict=True):
            tree = build_tree([choice], request.ending)
            scores += read_scores(Rows(logits), [[choice]], [tree], self.end_ids)[0]
        return scores

    def _plain_rows(self, request: ScoringRequest) -> Iterator[Tensor]:
        """For each choice the logits of the prompt's last row and of the rows behind it, by a pass of its own."""
        for choice in request.choices:
            count = len(choice) + 1
            ids = torch.tensor([[*request.prompt, *choice]], device=self.model.device)
            vision = {name: lengthen(name, value, len(choice)) for name, value in (request.vision or {}).items()}
            yield self.model(input_ids=ids, use_cache=False, **vision, **self._last_logits(count)).logits[0, -count:]

    def _last_logits(self, count: int) -> dict[str, int]:
        """The argument that keeps a model from making more than the last logits, where it has one."""
        trims = "logits_to_keep" in inspect.signature(self.model.forward).parameters
        return {"logits_to_keep": count} if trims else {}

    def _cached_rows(self, request: ScoringRequest) -> Iterator[Tensor]:
        """The same rows from one pass over the prompt and copies of the cache that the model itself made."""
        device, length = self.model.device, len(request.prompt)
        prompt = torch.tensor([list(request.prompt)], device=device)
        out = self.model(input_ids=prompt, use_cache=True, **self._last_logits(1), **(request.vision or {}))
        first, cache = out.logits[0, -1:], out.past_key_values
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


def tree_masks(
    model: PreTrainedModel,
    trees: Sequence[TokenTree],
    lengths: Sequence[int],
    width: int,
    with_prompts: bool = False,
) -> Tensor | dict[str, Tensor]:
    """Additive masks [batch, 1, nodes, width + nodes]: one, or one per kind of layer for models that mix kinds.

    Args:
        model: Tells kinds of layers, window and dtype.
        trees: One a prompt.
        lengths: Of the prompts.
        width: Number of columns that the padded prompts take.
        with_prompts: Whether the prompts' own rows stand above those of the nodes.

    Raises:
        ValueError: A kind of layer that has no such mask (recurrent, chunked).
    """
    config = model.config.get_text_config(decoder=True)
    window = getattr(config, "sliding_window", None)
    kinds = set(getattr(config, "layer_types", None) or [])
    if kinds - {"full_attention", "sliding_attention"}:
        raise ValueError(f"no tree mask for layers of kind {', '.join(sorted(kinds))}")

    def additive(reach: int | None) -> Tensor:
        seen = visibility(trees, lengths, width, reach)
        if with_prompts:
            seen = torch.cat([prompt_visibility(len(trees), width, seen.shape[2], reach), seen], 1)
        hidden = torch.full((), torch.finfo(model.dtype).min, dtype=model.dtype)
        return torch.where(seen[:, None], hidden.new_zeros(()), hidden).to(model.device)

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


def padded(sequences: Sequence[Sequence[int]]) -> Tensor:
    """Integers [sequences, longest], padded with 0 on the right."""
    return pad_sequence([torch.tensor(sequence, dtype=torch.long) for sequence in sequences], batch_first=True)


def _columns(trees: Sequence[TokenTree]) -> tuple[Tensor, Tensor]:
    return padded([tree.tokens for tree in trees]), padded([tree.depths for tree in trees])


def read_scores(
    rows: Rows, choices: Sequence[Sequence[Sequence[int]]], trees: Sequence[TokenTree], end_ids: Sequence[int]
) -> list[list[ChoiceScore]]:
    """Scores of the choices of a batch of prompts.

    Args:
        rows: The last row of each prompt, then the nodes of tree after tree.
        choices: Of each prompt.
        trees: Of each prompt, over the same choices.
        end_ids: Tokens that end a text.
    """
    pairs: list[tuple[int, int]] = []  # (row, token) of every read, then those of the ends
    owners: list[int] = []
    ends: list[tuple[int, int]] = []
    start, first = len(trees), 0
    for prompt, (tree, of_one) in enumerate(zip(trees, choices, strict=True)):
        place = [prompt, *range(start, start + len(tree))]  # PROMPT_ROW + 1 is the prompt's own row
        pairs += [(place[row + 1], token) for row, token, _ in tree.reads]
        owners += [first + choice for _, _, choice in tree.reads]
        ends += [(place[row + 1], token) for row in tree.ends for token in end_ids]
        start, first = start + len(tree), first + len(of_one)
    at, tokens = torch.tensor([*pairs, *ends], dtype=torch.long, device=rows.values.device).reshape(-1, 2).T
    logprobs, is_best = (values.cpu() for values in rows.log_probs(at, tokens))
    owner = torch.tensor(owners, dtype=torch.long)
    sums = torch.zeros(first, dtype=torch.double).index_add_(0, owner, logprobs[: len(pairs)].double()).tolist()
    misses = torch.zeros(first).index_add_(0, owner, (~is_best[: len(pairs)]).float()).tolist()
    ending = iter(logprobs[len(pairs) :].reshape(-1, max(len(end_ids), 1)).logsumexp(1).tolist())
    scores = iter(zip(sums, misses, strict=True))
    return [
        [
            ChoiceScore(total, len(choice), not wrong, next(ending) if tree.ends else None)
            for choice, (total, wrong) in zip(of_one, scores, strict=False)
        ]
        for tree, of_one in zip(trees, choices, strict=True)
    ]
