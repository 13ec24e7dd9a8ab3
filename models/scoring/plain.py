"""Scoring by plain forward passes, for models that cannot be packed, and as the reference of other routes.

On a few probes, packed scores and the logits of the generation queue must equal plain passes. Models that cannot be
packed by design (no positions, recurrent states) are not tried.
"""

import inspect
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedModel

from cultureval.models.memory import is_out_of_memory
from cultureval.models.scoring.choice_scores import ChoiceScore, ScoringRequest, read_scores
from cultureval.models.scoring.lm_head import Rows
from cultureval.models.scoring.token_tree import Branch, build_tree
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.transformers import keeps_states

logger = logging.getLogger(__name__)

CROSS_MASK, PALIGEMMA = "cross_attention_mask", "paligemma"
# Largest difference of a route in nats (root mean square; for packed scores of sums over up to four tokens). On SmolLM2
# sound scores differ by 2e-5 (fp32), 0.02 and 0.2 (16 bits), wrong masks and positions by 0.08 to 25.
TOLERANCE = {torch.float64: 5e-3, torch.float32: 5e-3, torch.float16: 0.05, torch.bfloat16: 0.4}
LONGEST = 24  # probed tokens of a prompt: its first and its last ones
FED = 3  # tokens that are fed after a probe's prompt
LAST_TOKENS = 6  # of each probe's beginning of a choice; last tokens cost nothing
ROUTE_ERRORS = (TypeError, ValueError, KeyError, IndexError, AttributeError, NotImplementedError, RuntimeError)


class PlainScorer:
    """Scores choices by one forward pass each, with the model's own causal attention.

    Attributes:
        fed: Tokens that the model has computed.
    """

    def __init__(self, model: PreTrainedModel, end_ids: Sequence[int] = ()) -> None:
        """Prepares to score with a causal or image-text-to-text model; `end_ids` are end-of-text tokens."""
        self.model, self.end_ids, self.fed = model, end_ids, 0
        self.kind = model.config.model_type
        self._taken = inspect.signature(model.forward).parameters

    def score(self, requests: Sequence[ScoringRequest]) -> list[list[ChoiceScore]]:
        """Scores requests, a list of scores for each."""
        return [
            [
                self._read(rows, choice, request.ending)
                for choice, rows in zip(request.choices, self.rows(request), strict=True)
            ]
            for request in requests
        ]

    def rows(self, request: ScoringRequest) -> Iterator[Tensor]:
        """For each choice the logits [tokens + 1, vocabulary] of the prompt's last row and of the following rows.

        Consecutive choices with the same input, such as choices of one token, share a pass.
        """
        rows, before = torch.empty(0), None
        for choice in request.choices:
            fed = list(choice if request.ending else choice[:-1])
            if fed != before:
                rows, before = self._pass(request, fed), fed
            yield rows

    def looks_ahead(self, request: ScoringRequest) -> float:
        """Mean change of the log-probabilities after the prompt if its last choice follows; 0 for causal models."""
        alone, followed = self.rows(replace(request, choices=[[], request.choices[-1]], ending=False))
        return (alone[0].log_softmax(-1) - followed[0].log_softmax(-1)).abs().mean().item()

    def _pass(self, request: ScoringRequest, fed: Sequence[int]) -> Tensor:
        device, count = self.model.device, len(fed) + 1
        ids = torch.tensor([[*request.prompt, *fed]], device=device)
        self.fed += ids.numel()
        vision = request.vision or {}
        inputs = {name: _lengthened(name, value.to(device), len(fed), self.kind) for name, value in vision.items()}
        more = {"use_cache": False, "logits_to_keep": count}
        inputs |= {name: value for name, value in more.items() if name in self._taken}
        return self.model(input_ids=ids, **inputs).logits[0, -count:]

    def _read(self, logits: Tensor, choice: Sequence[int], ending: bool) -> ChoiceScore:
        branch = Branch([0], [choice], ending)
        tree = build_tree([0], [branch])
        return read_scores(Rows(logits[tree.columns()]), tree, [branch], self.end_ids)[0][0]


def _lengthened(name: str, value: Tensor, more: int, kind: str) -> Tensor:
    """A processor's output, extended for `more` tokens of text after the prompt if it is per token."""
    if name == CROSS_MASK:  # Mllama's [1, tokens, images, tiles]: text sees the images before it
        return torch.cat([value, value[:, -1:].expand(-1, more, -1, -1)], 1)
    if name not in ("token_type_ids", "mm_token_type_ids"):
        return value
    # Type 0 is text, but in PaliGemma the prompt (bidirectional attention); later text is 1.
    return torch.nn.functional.pad(value, (0, more), value=int(kind == PALIGEMMA))


class RouteCheck(NamedTuple):
    """A chosen route, and the reason.

    Attributes:
        route: `packed` or `plain`.
        difference: Between packed scores and plain passes, root mean square in nats; 0 without packed scores.
        reason: Why choices are scored plainly; "" for `packed`.
    """

    route: str
    difference: float
    reason: str = ""


def choose_route(
    model: PreTrainedModel,
    requests: Sequence[ScoringRequest],
    plain: PlainScorer,
    packed: Callable[[Sequence[ScoringRequest]], list[list[ChoiceScore]]],
) -> RouteCheck:
    """`packed` if its scores (from an empty cache) agree with plain ones on two probes, else `plain`.

    Raises:
        CulturevalError: The model is not causal.
    """

    def difference() -> float:
        found = (packed(probes), plain.score(probes))
        first, second = (torch.tensor([score.logprob for part in scores for score in part]) for scores in found)
        return root_mean_square(first, second)

    longest = sorted(requests, key=lambda request: -sum(map(len, request.choices)))[:2]
    probes = [_probe(request, model) for request in longest]
    reason = why_never_packed(model, requests[0])
    off, reason = (0.0, reason) if reason else compared(model, "packed scoring", difference)
    if reason:
        if plain.looks_ahead(probes[0]) > tolerance(model):
            raise CulturevalError(
                f"{type(model).__name__} is not causal: its output after a prompt depends on what follows, so that "
                "choices cannot be scored. Use a causal language model."
            )
        logger.warning("%s; every choice gets its own forward pass: correct, but slow", reason)
    return RouteCheck("plain" if reason else "packed", off, reason)


def compared(model: PreTrainedModel, route: str, difference: Callable[[], float]) -> tuple[float, str]:
    """The difference of a route in nats, and a clause on why it cannot be used; "" if it can."""
    try:
        off = difference()
    except ROUTE_ERRORS as error:
        if is_out_of_memory(error):
            raise
        return 0.0, f"{type(model).__name__} rejects {route}: {' '.join(str(error).split())[:200]}"
    allowed = tolerance(model)
    return off, "" if off <= allowed else f"{route} is off by {off:.1e} nats, not {allowed}"


def tolerance(model: PreTrainedModel) -> float:
    """The largest allowed difference of a route, in nats."""
    in_8_bits = getattr(model, "is_loaded_in_8bit", False)  # LLM.int8 rounds the inputs of its products to 8 bits
    return TOLERANCE[torch.bfloat16 if in_8_bits else model.dtype]


def root_mean_square(first: Tensor, second: Tensor) -> float:
    """The root mean square of differences; equal infinities have difference 0, NaN an infinite one."""
    mean = torch.where(first == second, 0.0, first - second).square().mean().item()
    return math.inf if math.isnan(mean) else math.sqrt(mean)


def why_never_packed(model: PreTrainedModel, request: ScoringRequest) -> str:
    """A clause on why a model cannot be packed by design; "" if it may be.

    Probes would not find it in 16 bits or with small weights, where the errors are small.
    """
    name, config = type(model).__name__, model.config.get_text_config(decoder=True)
    if "position_ids" not in inspect.signature(type(model).forward).parameters:
        return f"{name} takes no positions, which packed scoring needs"
    if getattr(config, "alibi", False):
        return f"{name} counts distances by columns (ALiBi), not by positions, which packed scoring needs"
    if "local" in getattr(config, "attention_layers", ()):  # GPT-Neo
        return f"{name} applies its window by columns, not by positions, which packed scoring needs"
    if keeps_states(model):
        return f"{name} keeps recurrent states, which packed choices would share"
    if CROSS_MASK in (vision := request.vision or {}) or (vision and model.config.model_type == PALIGEMMA):
        return f"{name} does not read prompts with images by causal attention"
    return ""


def _probe(request: ScoringRequest, model: PreTrainedModel) -> ScoringRequest:
    """A probe from a request's tokens: choices with two beginnings, each with several last tokens."""
    tokens = [token for choice in request.choices for token in choice] or list(request.prompt[-1:])
    made_up = (tokens * FED)[:FED]
    size = model.config.get_text_config(decoder=True).vocab_size
    lasts = range(size // (2 * LAST_TOKENS), size, max(1, size // LAST_TOKENS))
    starts = dict.fromkeys([tuple(made_up), (*made_up[:1], *made_up[::-1])])
    choices = [[*start, last] for start in starts for last in lasts]
    prompt, half = list(request.prompt), LONGEST // 2
    if not request.vision and len(prompt) > LONGEST:
        prompt = prompt[:half] + prompt[-half:]
    return replace(request, prompt=prompt, choices=choices, ending=False)
