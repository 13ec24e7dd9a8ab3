"""What answers of paid servers cost: token counts, prices, estimates, and a budget that stops the run."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.servers.settings import ServedModel

FRAME_TOKENS = 10  # of the chat template around a text
COUNTS = ("tokens_paid_in", "tokens_paid_out", "tokens_cached", "tokens_reasoning")


class BudgetSpent(CulturevalError):
    """The budget is spent."""


class Usage(NamedTuple):
    """The tokens of one answer, as its server counts them."""

    input: int = 0  # of the prompt
    output: int = 0  # of the reply, with the reasoning
    cached: int = 0  # of the prompt, which the server had cached
    reasoning: int = 0  # of the reply
    cost: float | None = None  # what the server says that the answer cost (OpenRouter, in US dollars)


def read_usage(usage: Mapping[str, Any] | None) -> Usage | None:
    """The `usage` of an answer; None where the server gives no counts.

    Gemini leaves reasoning out of `completion_tokens` and counts it in `total_tokens` alone; DeepSeek names cached
    tokens `prompt_cache_hit_tokens`.
    """
    given = usage or {}
    prompt, reply = (_count(given.get(name)) for name in ("prompt_tokens", "completion_tokens"))
    if prompt is None or reply is None:
        return None
    beyond = max(0, (_count(given.get("total_tokens")) or 0) - prompt - reply)
    cached = _inner(given, "prompt_tokens_details", "cached_tokens")
    cached = _count(given.get("prompt_cache_hit_tokens")) if cached is None else cached
    reasoning = _inner(given, "completion_tokens_details", "reasoning_tokens")
    cost = given.get("cost")
    known = isinstance(cost, int | float) and not isinstance(cost, bool) and cost >= 0
    reasoning = beyond if reasoning is None else reasoning
    return Usage(prompt, reply + beyond, min(cached or 0, prompt), reasoning, float(cost) if known else None)


def total_usage(usages: list[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    """The `usage` of several replies together; None where one of them gives no counts."""
    known = [read_usage(usage) for usage in usages]
    if not known or None in known:
        return None
    given, replied, cached, _, costs = zip(*[one for one in known if one], strict=True)
    counts = {"prompt_tokens": sum(given), "completion_tokens": sum(replied), "prompt_cache_hit_tokens": sum(cached)}
    return counts | ({} if None in costs else {"cost": sum(costs)})


def _inner(usage: Mapping[str, Any], part: str, name: str) -> int | None:
    details = usage.get(part)
    return _count(details.get(name)) if isinstance(details, Mapping) else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def estimate_tokens(text: str) -> int:
    """Approximate number of tokens of a text: a quarter of its ASCII characters and half of the others.

    A rule of thumb, high for Arabic with current tokenizers; costs use the server's counts where it gives them.
    """
    other = len(text) - len(text.encode("ascii", "ignore"))
    return (len(text) - other + 3) // 4 + (other + 1) // 2


def text_tokens(text: str) -> int:
    """Estimated tokens of a prompt's text, with the chat template around it."""
    return FRAME_TOKENS + estimate_tokens(text)


class RequestSize(NamedTuple):
    """What a request holds: estimated tokens of its text, images, and the limit of the answer's tokens, if any."""

    text: int = 0
    images: int = 0
    output: int | None = None

    def input(self, image_tokens: int = 0) -> int:
        """Estimated tokens of the prompt, of which each image has so many."""
        return self.text + image_tokens * self.images


def price(settings: ServedModel, input_tokens: float, output_tokens: float, cached_tokens: float = 0) -> float:
    """Price of a call; cached tokens are among those of the input."""
    cached = settings.input_token_price if settings.cached_token_price is None else settings.cached_token_price
    prompt = settings.input_token_price * (input_tokens - cached_tokens) + cached * cached_tokens
    return prompt + settings.output_token_price * output_tokens


@dataclass
class Budget:
    """The cost of the answers of one judge or model so far, and the limit.

    The answers are those that a run uses, also those that its journal had: each counts once, with its usage. Requests
    in flight when the budget is spent are still answered and paid.
    """

    settings: ServedModel  # with the prices and the limit
    batch_price: float = 1.0  # of answers of a batch, as a share of these
    spent: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)  # of tokens, by their names in a run's record
    unmetered: int = 0  # answers without a token count, which are estimated
    halted: str | None = None  # why no further call may be made
    _paid: dict[str, Usage] = field(default_factory=dict)

    def check(self) -> None:
        """Called before each request; raises BudgetSpent where the limit is reached, or the budget is halted."""
        if self.halted:
            raise BudgetSpent(self.halted)
        limit = self.settings.budget
        if limit is not None and self.spent >= limit:
            raise BudgetSpent(f"the budget of {limit:g} is spent ({self.spent:.4g})")

    def pay(self, key: str, answer: Mapping[str, Any], size: RequestSize) -> Usage:
        """Counts an answer, once for its key, and returns its tokens: estimated where the server gives no counts."""
        if key not in self._paid:
            self._paid[key] = self._count(answer, size)
        return self._paid[key]

    def _count(self, answer: Mapping[str, Any], size: RequestSize) -> Usage:
        tokens = read_usage(answer.get("usage"))
        if tokens is None:
            self.unmetered += 1
            texts = [f"{one['text']}{one.get('reasoning') or ''}" for one in answer.get("completions", ())]
            tokens = Usage(size.input(self.settings.image_tokens), sum(map(estimate_tokens, texts)))
        self.counts.update(dict(zip(COUNTS, tokens[:4], strict=True)))
        share = self.batch_price if answer.get("batch") else 1.0
        ours = share * price(self.settings, tokens.input, tokens.output, tokens.cached)
        self.spent += ours if tokens.cost is None else tokens.cost
        return tokens

    def totals(self) -> dict[str, int | float]:
        """All counts by their names in a run's record; those that are 0 are left out."""
        found = {**self.counts, "cost": self.spent, "missing_usage": self.unmetered}
        return {name: value for name, value in found.items() if value}

    def __str__(self) -> str:
        """Cost so far if prices are set, else tokens."""
        if self.spent or self.settings.has_prices:
            return f"cost {self.spent:.4f}"
        return f"{self.counts[COUNTS[0]] + self.counts[COUNTS[1]]:,} tokens"
