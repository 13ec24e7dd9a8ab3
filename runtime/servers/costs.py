"""What answers of paid servers cost: token counts, prices, estimates, and a budget that is checked before each call."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from cultureval.runtime.errors import CulturevalError

_POLL_S = 0.02
_FRAME_TOKENS = 10  # of the chat template around a text
_MOST_TOKENS = 2**40  # what a server counts of one answer; more is no count
_OF_TEMPLATES = 4096  # tokens that a server may put around a prompt
_OF_AN_IMAGE = 65_536  # tokens; the largest that a provider documents is 48,169
_AT_THE_END = 16  # tokens of an answer that its limit may not count
_REASONING_BEYOND = 2**17  # tokens of reasoning that a provider may not count in the limit (DashScope)
_BYTES_OF_ESTIMATE = 8  # at most, for one estimated token; a token has one byte at least
_DEAREST_TOKEN = 0.01  # what one can cost where no prices are known; the dearest of November 2026 cost 0.0006 dollars
_DEARER = 10.0  # times the known price that a server may say an answer cost


class Priced(Protocol):
    """What a budget needs of the settings of a judge or of a model on a server."""

    @property
    def input_token_price(self) -> float:
        """Price of one token of a prompt."""

    @property
    def cached_token_price(self) -> float | None:
        """Price of one that the server had cached; None: as the others."""

    @property
    def output_token_price(self) -> float:
        """Price of one token of a reply, reasoning included."""

    @property
    def image_tokens(self) -> int:
        """Tokens per image in estimates."""

    @property
    def budget(self) -> float | None:
        """Maximal cost of all answers; None: no limit."""


class BudgetSpent(CulturevalError):
    """The next call could exceed the budget."""


class Usage(NamedTuple):
    """The tokens of one answer, as its server counts them.

    Attributes:
        input: Of the prompt.
        output: Of the reply, with the reasoning.
        cached: Those of the prompt that the server says it had cached.
        reasoning: Those of the reply that are reasoning.
        cost: What the server says that the answer cost (OpenRouter, in US dollars); None where it does not.
    """

    input: int
    output: int
    cached: int = 0
    reasoning: int = 0
    cost: float | None = None


def read_usage(usage: Mapping[str, Any] | None) -> Usage | None:
    """The `usage` of an answer; None where the server gives no counts.

    Gemini leaves reasoning out of `completion_tokens` and counts it in `total_tokens` alone; DeepSeek names cached
    tokens `prompt_cache_hit_tokens`.
    """
    given = usage or {}
    prompt, reply = (_count(given.get(name)) for name in ("prompt_tokens", "completion_tokens"))
    if prompt is None or reply is None:
        return None
    total = _count(given.get("total_tokens")) or 0
    beyond = max(0, total - prompt - reply)
    cached = _inner(given, "prompt_tokens_details", "cached_tokens")
    if cached is None:
        cached = _count(given.get("prompt_cache_hit_tokens")) or 0
    reasoning = _inner(given, "completion_tokens_details", "reasoning_tokens")
    output = reply + beyond
    cost = given.get("cost")
    told = isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < _MOST_TOKENS
    known = min(beyond if reasoning is None else reasoning, output)
    return Usage(prompt, output, cached, known, float(cost) if told else None)


class SpendingLimits(NamedTuple):
    """What an answer can have used at most.

    Attributes:
        text: Estimated tokens of the prompt without images.
        images: Images of the prompt.
        output: Limit of the reply; None: none.
        reasons: Whether reasoning may not be counted in that.
    """

    text: int
    images: int
    output: int | None
    reasons: bool = False

    def hold(self, usage: Usage) -> bool:
        """Whether a server's counts are possible."""
        most = _BYTES_OF_ESTIMATE * self.text + _OF_AN_IMAGE * self.images + _OF_TEMPLATES
        if usage.input > most:
            return False
        beyond = min(usage.reasoning, _REASONING_BEYOND) if self.reasons else 0
        return self.output is None or usage.output - beyond <= self.output + _AT_THE_END


def _could_be(usage: Usage, estimate: tuple[int, int]) -> bool:
    """Whether texts have tokens at all, and no more of the prompt was cached than it has."""
    counted = all(count or not estimated for count, estimated in zip(usage[:2], estimate, strict=True))
    return counted and usage.cached <= usage.input


def _inner(usage: Mapping[str, Any], part: str, name: str) -> int | None:
    details = usage.get(part)
    return _count(details.get(name)) if isinstance(details, Mapping) else None


def _count(value: Any) -> int | None:
    known = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_TOKENS
    return value if known else None


def estimate_tokens(text: str) -> int:
    """Approximate number of tokens of a text: a quarter of its ASCII characters and half of the others.

    A rule of thumb, high for Arabic with current tokenizers; used for estimates and for reserving budget. Actual costs
    use the server's counts.
    """
    other = len(text) - len(text.encode("ascii", "ignore"))
    return (len(text) - other + 3) // 4 + (other + 1) // 2


def has_prices(settings: Priced) -> bool:
    """Whether any price is known."""
    return bool(settings.input_token_price or settings.output_token_price)


def price(settings: Priced, input_tokens: float, output_tokens: float, cached_tokens: float = 0) -> float:
    """Price of a call; cached tokens are among those of the input."""
    cached = settings.input_token_price if settings.cached_token_price is None else settings.cached_token_price
    prompt = settings.input_token_price * (input_tokens - cached_tokens) + cached * cached_tokens
    return prompt + settings.output_token_price * output_tokens


@dataclass
class Budget:
    """The cost of the answers of one judge or model so far, and the limit.

    An answer reused from the journal counts once, with its original cost.

    Attributes:
        settings: The prices and the limit.
        spent: Cost so far of answered calls.
        input_tokens: Input tokens of these calls, as the servers count.
        output_tokens: Output tokens, likewise, reasoning included.
        cached_tokens: Those of the input that the servers had cached.
        reasoning_tokens: Those of the output that are reasoning.
        unmetered: Answers without a token count; they are estimated.
        impossible: Answers whose token counts cannot be; they are estimated too.
        halted: Why no further call may be made; None while calls may go on.
        started: When the run began, in ns since 1970: what the journal holds from before is reused.
    """

    settings: Priced
    spent: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    unmetered: int = 0
    impossible: int = 0
    halted: str | None = None
    started: int = field(default_factory=time.time_ns)
    _reserved: float = 0.0
    _paid: dict[str, Usage] = field(default_factory=dict)

    @asynccontextmanager
    async def reserved(self, amount: float) -> AsyncIterator[None]:
        """Reserves the maximal cost of a call while it runs; waits as long as others may still leave enough.

        Raises:
            BudgetSpent: The budget would be exceeded, or is halted.
        """
        budget = self.settings.budget
        if self.halted:
            raise BudgetSpent(self.halted)
        while budget is not None and self.spent + self._reserved + amount > budget:
            if not self._reserved:
                raise BudgetSpent(f"the budget of {budget:g} has no room for another call ({self.spent:.4g} spent)")
            await asyncio.sleep(_POLL_S)
        self._reserved += amount
        try:
            yield
        finally:
            left = self._reserved - amount
            self._reserved = left if left > 1e-12 else 0.0  # rounding is no call that still runs

    def pay(
        self,
        key: str,
        usage: Mapping[str, Any] | None,
        estimate: tuple[int, int],
        share: float = 1.0,
        limits: SpendingLimits | None = None,
    ) -> None:
        """Count the cost of an answer, unless it was counted before.

        Args:
            key: The journal key of the answer.
            usage: The server's token counts, if any.
            estimate: Tokens of prompt and reply, for servers that give none.
            share: Of the price, such as 0.5 for answers of a batch.
            limits: What it can have used; None: anything.
        """
        if key in self._paid:
            return
        tokens = read_usage(usage)
        if tokens is None:
            self.unmetered += 1
            tokens = Usage(*estimate)
        elif not _could_be(tokens, estimate) or (limits is not None and not limits.hold(tokens)):
            self.impossible += 1
            tokens = Usage(*estimate)
        elif tokens.cost is not None and tokens.cost > self._most(tokens):
            self.impossible += 1
            tokens = tokens._replace(cost=None)
        self._paid[key] = tokens
        self.input_tokens += tokens.input
        self.output_tokens += tokens.output
        self.cached_tokens += tokens.cached
        self.reasoning_tokens += tokens.reasoning
        ours = share * price(self.settings, tokens.input, tokens.output, tokens.cached)
        self.spent += ours if tokens.cost is None else tokens.cost

    def _most(self, tokens: Usage) -> float:
        """What an answer can have cost: its server's own number is not taken where it is larger."""
        if has_prices(self.settings):
            return _DEARER * price(self.settings, tokens.input, tokens.output)
        return _DEAREST_TOKEN * (tokens.input + tokens.output)

    def used(self, key: str) -> Usage:
        """The tokens of an answer that was counted."""
        return self._paid.get(key, Usage(0, 0))

    def __str__(self) -> str:
        """Cost so far if prices are set, else tokens."""
        if self.spent or has_prices(self.settings):
            return f"cost {self.spent:.4f}"
        return f"{self.input_tokens + self.output_tokens:,} tokens"


def prompt_tokens(settings: Priced, text: str, images: int) -> int:
    """Estimated tokens of a prompt."""
    return _FRAME_TOKENS + estimate_tokens(text) + settings.image_tokens * images
