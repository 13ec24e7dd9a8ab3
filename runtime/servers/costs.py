"""Costs of paid servers: token counts, prices, estimates, and a budget that stops the run."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.servers.settings import ServedModel

FRAME_TOKENS = 10  # of a chat template around a text
COUNTS = ("tokens_paid_in", "tokens_paid_out", "tokens_cached", "tokens_reasoning")


class BudgetSpent(CulturevalError):
    """The budget is spent."""


class Usage(NamedTuple):
    """The tokens of one answer, as its server counts them."""

    input: int = 0  # of the prompt
    output: int = 0  # of the reply, with the reasoning
    cached: int = 0  # of the prompt: tokens in the server's prefix cache
    reasoning: int = 0  # of the reply
    cost: float | None = None  # by the server (OpenRouter, in US dollars)


def read_usage(usage: Mapping[str, Any] | None) -> Usage | None:
    """The `usage` of an answer; None where the server gives no counts.

    Gemini leaves reasoning out of `completion_tokens` and counts it in `total_tokens` alone; DeepSeek names cached
    tokens `prompt_cache_hit_tokens`.
    """
    counts = usage or {}
    prompt, reply = (_count(counts.get(name)) for name in ("prompt_tokens", "completion_tokens"))
    if prompt is None or reply is None:
        return None
    beyond = max(0, (_count(counts.get("total_tokens")) or 0) - prompt - reply)
    cached = _inner(counts, "prompt_tokens_details", "cached_tokens")
    cached = _count(counts.get("prompt_cache_hit_tokens")) if cached is None else cached
    reasoning = _inner(counts, "completion_tokens_details", "reasoning_tokens")
    cost = counts.get("cost")
    known = isinstance(cost, int | float) and not isinstance(cost, bool) and cost >= 0
    reasoning = beyond if reasoning is None else reasoning
    return Usage(prompt, reply + beyond, min(cached or 0, prompt), reasoning, float(cost) if known else None)


def total_usage(usages: list[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    """The summed `usage` of several replies; None where a reply gives no counts."""
    known = [read_usage(usage) for usage in usages]
    if not known or None in known:
        return None
    prompts, replies, cached, _, costs = zip(*[usage for usage in known if usage], strict=True)
    counts = {"prompt_tokens": sum(prompts), "completion_tokens": sum(replies), "prompt_cache_hit_tokens": sum(cached)}
    return counts | ({} if None in costs else {"cost": sum(costs)})


def _inner(usage: Mapping[str, Any], part: str, name: str) -> int | None:
    details = usage.get(part)
    return _count(details.get(name)) if isinstance(details, Mapping) else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def estimate_tokens(text: str) -> int:
    """Approximate number of tokens of a text: a quarter of its ASCII characters and half of the others.

    A rule of thumb, too high for Arabic with current tokenizers. Costs use the server's counts where it gives them.
    """
    other = len(text) - len(text.encode("ascii", "ignore"))
    return (len(text) - other + 3) // 4 + (other + 1) // 2


def text_tokens(text: str) -> int:
    """Estimated tokens of a prompt's text, with the chat template around it."""
    return FRAME_TOKENS + estimate_tokens(text)


class RequestSize(NamedTuple):
    """The size of a request: estimated tokens of its text, number of images, limit of the answer's tokens."""

    text: int = 0
    images: int = 0
    output: int | None = None

    def input(self, image_tokens: int = 0) -> int:
        """Estimated tokens of the prompt, with `image_tokens` for each image."""
        return self.text + image_tokens * self.images


def price(settings: ServedModel, input_tokens: float, output_tokens: float, cached_tokens: float = 0) -> float:
    """Price of a call; `input_tokens` include the cached ones."""
    cached = settings.input_token_price if settings.cached_token_price is None else settings.cached_token_price
    prompt = settings.input_token_price * (input_tokens - cached_tokens) + cached * cached_tokens
    return prompt + settings.output_token_price * output_tokens


@dataclass
class Budget:
    """The cost so far of a judge's or model's answers, and the limit.

    All answers of a run count once, answers from the journal included. Requests in flight when the budget is spent are
    still answered and paid.
    """

    settings: ServedModel  # with prices and limit
    batch_price: float = 1.0  # of answers of a batch, as a share of the prices
    spent: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)  # of tokens, by field of a run's record
    unmetered: int = 0  # answers with estimated tokens, without a count of the server
    halted: str | None = None  # why no further call may be made
    _paid: dict[str, Usage] = field(default_factory=dict)

    def check(self) -> None:
        """Raises BudgetSpent where the limit is reached or the budget is halted; call it before each request."""
        if self.halted:
            raise BudgetSpent(self.halted)
        limit = self.settings.budget
        if limit is not None and self.spent >= limit:
            raise BudgetSpent(f"the budget of {limit:g} is spent ({self.spent:.4g})")

    def pay(self, key: str, answer: Mapping[str, Any], size: RequestSize) -> Usage:
        """Counts an answer, once for its key, and returns its tokens, estimated where the server gives no counts."""
        if key not in self._paid:
            self._paid[key] = self._count(answer, size)
        return self._paid[key]

    def _count(self, answer: Mapping[str, Any], size: RequestSize) -> Usage:
        tokens = read_usage(answer.get("usage"))
        if tokens is None:
            self.unmetered += 1
            texts = [
                f"{completion['text']}{completion.get('reasoning') or ''}"
                for completion in answer.get("completions", ())
            ]
            tokens = Usage(size.input(self.settings.image_tokens), sum(map(estimate_tokens, texts)))
        self.counts.update(dict(zip(COUNTS, tokens[:4], strict=True)))
        share = self.batch_price if answer.get("batch") else 1.0
        cost = share * price(self.settings, tokens.input, tokens.output, tokens.cached)
        self.spent += cost if tokens.cost is None else tokens.cost
        return tokens

    def totals(self) -> dict[str, int | float]:
        """All counts by field of a run's record, without zeros."""
        found = {**self.counts, "cost": self.spent, "missing_usage": self.unmetered}
        return {name: value for name, value in found.items() if value}

    def __str__(self) -> str:
        """Cost so far if prices are set, else tokens."""
        if self.spent or self.settings.has_prices:
            return f"cost {self.spent:.4f}"
        return f"{self.counts[COUNTS[0]] + self.counts[COUNTS[1]]:,} tokens"
