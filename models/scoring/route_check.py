"""The check before a model's choices are packed: on two probes the scores must be those of plain forward passes.

Models that cannot be packed by what they are (no positions, recurrent states) are not tried.
"""

import inspect
import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from transformers import PreTrainedModel

from cultureval.models.memory import is_out_of_memory
from cultureval.models.scoring.choice_scores import ChoiceScore
from cultureval.models.scoring.plain import CROSS_MASK, PALIGEMMA, PlainScorer, Request
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.transformers import keeps_states

logger = logging.getLogger(__name__)

# How far packed scores may be off, in nats (root mean square of sums over up to four tokens). On SmolLM2 sound ones are
# by 2e-5, 0.02 and 0.2, wrong masks and positions by 0.08 to 25 in every dtype.
TOLERANCE = {torch.float64: 5e-3, torch.float32: 5e-3, torch.float16: 0.05, torch.bfloat16: 0.4}
LONGEST = 24  # probed tokens of a prompt: its first and its last ones
FED = 3  # tokens that are fed after a probe's prompt
LAST_TOKENS = 6  # of each probed beginning of a choice; they cost nothing, since a last token is only predicted
ROUTE_ERRORS = (TypeError, ValueError, KeyError, IndexError, AttributeError, NotImplementedError, RuntimeError)

Probe = TypeVar("Probe", bound=Any)


@dataclass(frozen=True)
class RouteCheck:
    """A chosen route, and why.

    Attributes:
        route: `packed` or `plain`.
        difference: Of the packed scores from plain passes, root mean square in nats; 0 where there are none.
        reason: Why choices are scored plainly; "" where they are packed.
        seconds: That the check took.
    """

    route: str
    difference: float
    reason: str = ""
    seconds: float = 0.0


def choose_route(
    model: PreTrainedModel,
    requests: Sequence[Request],
    plain: PlainScorer,
    packed: Callable[[Sequence[Any]], list[list[ChoiceScore]]],
) -> RouteCheck:
    """`packed` where its scores agree with plain forward passes on probes of two requests, else `plain`.

    Args:
        model: To be scored with.
        requests: At least one.
        plain: Scores by plain passes.
        packed: Scores by packing, from an empty cache.

    Raises:
        CulturevalError: The model is not causal.
    """
    started, name = time.perf_counter(), type(model).__name__
    probes = [_probe(one, model) for one in sorted(requests, key=lambda one: -sum(map(len, one.choices)))[:2]]
    reason, difference = why_never_packed(model, requests[0]), 0.0
    if not reason:
        try:
            difference = _distance(packed(probes), plain.score(probes))
        except ROUTE_ERRORS as error:
            if is_out_of_memory(error):
                raise
            reason = f"{name} rejects packed scoring: {' '.join(str(error).split())}"
        else:
            allowed = tolerance(model)
            reason = "" if difference <= allowed else f"packed scoring is off by {difference:.1e} nats, not {allowed}"
    if reason:
        if plain.looks_ahead(probes[0]) > tolerance(model):
            raise CulturevalError(
                f"{name} is not causal: its output after a prompt depends on what follows, so that choices cannot be "
                "scored. Use a causal language model."
            )
        logger.warning("%s; every choice gets a forward pass of its own, correct, but slow", reason)
    return RouteCheck("plain" if reason else "packed", difference, reason, round(time.perf_counter() - started, 3))


def tolerance(model: PreTrainedModel) -> float:
    """How far a route may be off, in nats."""
    in_8_bits = getattr(model, "is_loaded_in_8bit", False)  # LLM.int8 rounds the inputs of its products to 8 bits
    return TOLERANCE[torch.bfloat16 if in_8_bits else model.dtype]


def why_never_packed(model: PreTrainedModel, request: Request) -> str:
    """Why a model cannot be packed whatever its scores are on some prompts, as a clause; "" where it may be.

    In 16 bits, and with small weights, the errors that follow are too small to be found by numbers.
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


def _probe(request: Probe, model: PreTrainedModel) -> Probe:
    """A request with two beginnings of choices, made up of its own tokens, each with several last tokens."""
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


def _distance(some: Sequence[Sequence[ChoiceScore]], others: Sequence[Sequence[ChoiceScore]]) -> float:
    """Root mean square of differences; equal infinities do not differ, and what is not a number always does."""
    pairs = [pair for both in zip(some, others, strict=True) for pair in zip(*both, strict=True)]
    squares = [0.0 if one.logprob == other.logprob else (one.logprob - other.logprob) ** 2 for one, other in pairs]
    mean = sum(squares) / len(squares)
    return math.inf if math.isnan(mean) else math.sqrt(mean)
