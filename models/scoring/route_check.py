"""Which route scores a model's choices: the first whose scores differ from plain passes by no more than rounding does.

What rounding does is measured, within the model's own precision: the plain passes are repeated with the last bit of
the hidden states changed at random after every layer, as other kernels and other shapes of the same products change
it. A wrong mask or wrong positions change more than that, a sound route does not, whatever the size of the weights.
Models that cannot be packed by what they are (they take no positions, or keep recurrent states) are not tried.
"""

import inspect
import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from cultureval.models.memory import is_out_of_memory
from cultureval.models.scoring.choice_scores import ChoiceScore
from cultureval.models.scoring.fallback import Request, UnmaskedScorer
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.transformers import keeps_states

logger = logging.getLogger(__name__)

# Sound routes differed by at most 3.7 of the measured rounding in fp32, wrong ones by over 1,000 (docs/speed.md).
FACTOR_FP32 = 16.0
FACTOR = 2.0  # sound routes of 19 families differed by at most 0.9 of the measured rounding in 16 bits
LEAST = 1e-5  # nats; differences below are rounding in any case
LONGEST = 64  # probed tokens of a prompt: its first and its last ones
LONGEST_FP32 = 24  # in fp32, where the smallest error is 1,000 times the rounding
FINE = 2**-20  # steps of rounding that are those of fp32
FED = 3  # tokens that are fed after a probe's prompt, for choices of one token too
BEYOND_WINDOW = 32  # tokens
MOST_STARTS = 2  # beginnings of choices
LAST_TOKENS = 6  # of each probed beginning; they cost nothing, since a last token is only predicted
ROUTE_ERRORS = (TypeError, ValueError, KeyError, IndexError, AttributeError, NotImplementedError, RuntimeError)

Probe = TypeVar("Probe", bound=Any)
Score = Callable[[Sequence[Any]], list[list[ChoiceScore]]]


@dataclass(frozen=True)
class RouteCheck:
    """A chosen route, and why.

    Attributes:
        route: `packed`, `cached` or `plain`.
        difference: Of its scores from plain passes: root mean square in nats, of sums over up to four tokens.
        rounding: What rounding alone changes, measured in the same way; twice as much is allowed.
        reason: Why the routes before it were not taken; "" for the first.
        seconds: That the check took, without what a model's first pass takes more than the same later (its weights
            are read, threads are started), which a run pays in any case; 0 where it is an earlier run's.
        reused: Whether it is an earlier run's, of the same model, versions and machine.
    """

    route: str
    difference: float
    rounding: float
    reason: str = ""
    seconds: float = 0.0
    reused: bool = False


Checked = Callable[[bool, Callable[[], RouteCheck]], RouteCheck]  # for prompts with images or not: an earlier one or it


def as_is(images: bool, check: Callable[[], RouteCheck]) -> RouteCheck:
    """A `Checked` that knows no earlier check."""
    return check()


def choose_route(
    model: PreTrainedModel, requests: Sequence[Request], plain: UnmaskedScorer, packed: Score
) -> RouteCheck:
    """The first route whose scores agree with plain forward passes on choices of two requests.

    Args:
        model: To be scored with.
        requests: At least one.
        plain: Scores without masks, by its routes `plain` and `cached`.
        packed: Scores by packing, from an empty cache.

    Raises:
        CulturevalError: The model is not causal.
    """
    started = time.perf_counter()
    probes = [_probe(one, model) for one in sorted(requests, key=lambda one: -sum(map(len, one.choices)))[:2]]
    expected = _values(plain.score(probes[:1], "plain"))
    first = time.perf_counter() - started
    with last_bits_changed(model):
        changed = _values(plain.score(probes[:1], "plain"))
    started += max(0.0, first - (time.perf_counter() - started - first))
    expected += _values(plain.score(probes[1:], "plain"))
    rounding = _distance(changed, expected[: len(changed)])
    allowed = allowed_difference(rounding, model)
    tried = {"packed": packed, "cached": lambda probes: plain.score(probes, "cached")}
    refused = {"packed": never_packed(model), "cached": never_cached(model)}
    refusals = list(dict.fromkeys(filter(None, refused.values())))
    for route in (route for route in tried if not refused[route]):
        try:
            off = _distance(_values(tried[route](probes)), expected)
        except ROUTE_ERRORS as error:
            if is_out_of_memory(error):
                raise
            refusals.append(f"{type(model).__name__} rejects {route} scoring: {' '.join(str(error).split())}")
        else:
            if off <= allowed:
                return RouteCheck(route, off, rounding, "; ".join(refusals), seconds_since(started))
            refusals.append(f"{route} scoring is off by {off:.1e} nats, rounding by {rounding:.1e}")
    if plain.looks_ahead(probes[0]) > allowed:
        raise CulturevalError(
            f"{type(model).__name__} is not causal: its output after a prompt depends on what follows, "
            "so that choices cannot be scored. Use a causal language model."
        )
    return RouteCheck("plain", 0.0, rounding, "; ".join(refusals), seconds_since(started))


def seconds_since(started: float) -> float:
    """Seconds since a `time.perf_counter()`."""
    return round(time.perf_counter() - started, 3)


def allowed_difference(rounding: float, model: PreTrainedModel) -> float:
    """How far a route may be off, in nats; where rounding alone gives what is not a number, it says nothing."""
    factor = FACTOR_FP32 if is_fine(model) else FACTOR
    return max(LEAST, factor * rounding) if math.isfinite(rounding) else LEAST


def is_fine(model: PreTrainedModel) -> bool:
    """Whether a model computes with the rounding of fp32."""
    return model.dtype.itemsize >= 4 and rounding_step(model) <= FINE


def told(found: RouteCheck) -> RouteCheck:
    """The check, once it is said why a slower route scores choices, if one does."""
    if found.reason:
        cost = ": every choice gets a separate forward pass, correct, but slow" if found.route == "plain" else ""
        logger.warning("%s; choices are scored by the route %s%s", found.reason, found.route, cost)
    if found.route != "plain":
        logger.info(
            "%s scoring differs from plain forward passes by %.1e nats, rounding alone by %.1e",
            *(found.route, found.difference, found.rounding),
        )
    return found


def never_packed(model: PreTrainedModel) -> str:
    """Why a model cannot be packed whatever its scores are on some prompts, as a clause; "" where it may be.

    In 16 bits, and with small weights, the errors that follow are too small to be found by numbers.
    """
    name = type(model).__name__
    if "position_ids" not in inspect.signature(type(model).forward).parameters:
        return f"{name} takes no positions, which packed scoring needs"
    if getattr(model.config.get_text_config(decoder=True), "alibi", False):
        return f"{name} counts distances by columns (ALiBi), not by positions, which packed scoring needs"
    if keeps_states(model):
        return f"{name} keeps recurrent states, which packed choices would share"
    return ""


def never_cached(model: PreTrainedModel) -> str:
    """Why choices are not scored after a model's own cache, as a clause; "" where they may be."""
    # Jamba begins with empty states after a cached prompt; in 16 bits this is less than rounding on some weights.
    if keeps_states(model) and model.dtype.itemsize < 4:
        return f"{type(model).__name__} keeps recurrent states, whose errors 16 bits hide"
    return ""


def _probe(request: Probe, model: PreTrainedModel) -> Probe:
    """A request with choices of several tokens, whatever its own: a few beginnings, each with many last tokens.

    In fp32, two that are made up of its own tokens.
    """
    longest = sorted(request.choices, key=len, reverse=True)[: 0 if is_fine(model) else MOST_STARTS]
    tokens = [token for choice in request.choices for token in choice] or list(request.prompt[-1:])
    made_up = (tokens * FED)[:FED]
    starts = [tuple(choice[:-1]) for choice in longest] + [tuple(made_up), (*made_up[:1], *made_up[::-1])]
    size = model.config.get_text_config(decoder=True).vocab_size
    lasts = range(size // (2 * LAST_TOKENS), size, max(1, size // LAST_TOKENS))
    prompt = request.prompt if request.vision else shortened(request.prompt, model)
    return replace(
        request,
        prompt=prompt,
        choices=[[*start, last] for start in dict.fromkeys(starts) for last in lasts],
        ending=False,
    )


def shortened(prompt: Sequence[int], model: PreTrainedModel) -> list[int]:
    """The first and the last tokens of a prompt; more than a sliding window, where the prompt has more."""
    window = getattr(model.config.get_text_config(decoder=True), "sliding_window", None)
    longest = LONGEST_FP32 if is_fine(model) else LONGEST
    most = max(longest, window + BEYOND_WINDOW) if window and window < len(prompt) else longest
    head = most // 2
    return list(prompt) if len(prompt) <= most else [*prompt[:head], *prompt[head - most :]]


def _values(scores: Sequence[Sequence[ChoiceScore]]) -> list[float]:
    return [score.logprob for of_one in scores for score in of_one]


def _distance(some: Sequence[float], others: Sequence[float]) -> float:
    """Root mean square of differences; equal infinities do not differ, and what is not a number always does."""
    squares = [0.0 if one == other else (one - other) ** 2 for one, other in zip(some, others, strict=True)]
    mean = sum(squares) / len(squares)
    return math.inf if math.isnan(mean) else math.sqrt(mean)


@contextmanager
def last_bits_changed(model: PreTrainedModel) -> Iterator[None]:
    """Changes the last bit of about half of all hidden states, after the embeddings and after every layer."""
    step = rounding_step(model)
    generators: dict[torch.device, torch.Generator] = {}

    def changed(states: Tensor) -> Tensor:
        device = states.device
        numbers = generators.setdefault(device, torch.Generator(device).manual_seed(0))
        noise = torch.rand(states.shape, generator=numbers, device=device) * 2 - 1
        return (states.float() * (1 + step * noise)).to(states.dtype)

    def change(_: nn.Module, __: Any, output: Any) -> Any:
        if isinstance(output, tuple | list):
            return type(output)([changed(output[0]), *output[1:]])
        return changed(output)

    handles = [part.register_forward_hook(change) for part in _rounded_parts(model)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _rounded_parts(model: PreTrainedModel) -> list[nn.Module]:
    count = getattr(model.config.get_text_config(decoder=True), "num_hidden_layers", None)
    lists = (part for part in model.get_decoder().modules() if isinstance(part, nn.ModuleList) and len(part) == count)
    return [model.get_input_embeddings(), *next(lists, [])]


def rounding_step(model: PreTrainedModel) -> float:
    """How coarsely a model's products are rounded, relative to 1."""
    if getattr(model, "is_loaded_in_8bit", False):
        return 2**-8  # LLM.int8 rounds inputs to 8 bits, on scales that depend on what else is in the batch
    lower = {"high": 2**-10, "medium": 2**-7}.get(torch.get_float32_matmul_precision(), 0.0)  # TF32, bfloat16
    return max(torch.finfo(model.dtype).eps, lower)
