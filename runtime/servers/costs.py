"""What answers of paid servers cost: token counts, prices, estimates, and a budget that is checked before each call."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.servers.settings import ServedModel

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
# Model and address -> `usage` of replies to short questions, not counted yet.
_ASIDE: dict[tuple[str, str], list[Mapping[str, Any]]] = {}


def note_aside(model: str, url: str, usage: Mapping[str, Any] | None) -> None:
    """Notes what a reply took to a question that is none of a run's, for the next budget of the model.

    Such ask who a server is and what it can do, also before there is a budget.
    """
    if usage:
        _ASIDE.setdefault((model, url), []).append(usage)


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


def total_usage(usages: Sequence[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    """The `usage` of several replies together; None where one of them gives no counts."""
    known = [usage for given in usages if (usage := read_usage(given)) is not None]
    if not known or len(known) < len(usages):
        return None
    given, replied, cached, _, costs = zip(*known, strict=True)
    counts = {"prompt_tokens": sum(given), "completion_tokens": sum(replied), "prompt_cache_hit_tokens": sum(cached)}
    return counts | ({} if None in costs else {"cost": sum(costs)})


class RequestSize(NamedTuple):
    """What a request holds, and what its answer can use at most.

    Attributes:
        text: Estimated tokens of the prompt without images; 0: nothing is known of the request.
        images: Images of the prompt.
        output: Limit of the answer's tokens; None: none.
        reasons: Whether reasoning may not be counted in that.
        requests: How many such requests its answer may need, whose counts are added up.
    """

    text: int = 0
    images: int = 0
    output: int | None = None
    reasons: bool = False
    requests: int = 1

    def input(self, image_tokens: int = 0) -> int:
        """Estimated tokens of the prompt, of which each image has so many."""
        return self.text + image_tokens * self.images

    def hold(self, usage: Usage) -> bool:
        """Whether a server's counts are possible."""
        most = _BYTES_OF_ESTIMATE * self.text + _OF_AN_IMAGE * self.images + _OF_TEMPLATES
        if not self.text:
            return True
        if usage.input > most * self.requests:
            return False
        beyond = min(usage.reasoning, _REASONING_BEYOND) if self.reasons else 0
        return self.output is None or usage.output - beyond <= (self.output + _AT_THE_END) * self.requests


_SHORT = RequestSize(text=64, output=64, reasons=True)  # of the questions that are none of a run's: they are shorter


class Counted(NamedTuple):
    """The tokens of an answer, and what is wrong with its server's counts, in place of which they are estimated."""

    tokens: Usage
    wrong: Literal["", "missing", "impossible"] = ""


def counted(answer: Mapping[str, Any], size: RequestSize, image_tokens: int = 0) -> Counted:
    """The tokens of a journalled answer to a request of this size: as its server counts them, if that can be."""
    texts = [
        f"{completion['text']}{completion.get('reasoning') or ''}"
        for completion in answer.get("completions", ())
        if completion.get("finish_reason") != "content_filter"
    ]
    estimate = Usage(size.input(image_tokens), sum(map(estimate_tokens, texts)))
    usage = read_usage(answer.get("usage"))
    if usage is None:
        return Counted(estimate, "missing")
    some = all(count or not expected for count, expected in zip(usage[:2], estimate[:2], strict=True))
    if some and usage.cached <= usage.input and size.hold(usage):
        return Counted(usage)
    return Counted(estimate, "impossible")


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


def price(settings: ServedModel, input_tokens: float, output_tokens: float, cached_tokens: float = 0) -> float:
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
        batch_price: Price of answers of a batch as a share of these.
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

    settings: ServedModel
    batch_price: float = 1.0
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
        if self.halted:
            raise BudgetSpent(self.halted)
        self._pay_aside()
        await self._has_room(amount)
        self._reserved += amount
        try:
            yield
        finally:
            self._release(amount)

    async def again(self, amount: float) -> None:
        """Waits, while a call's cost is reserved, for room for the same call once more: its reply was of no use.

        Raises:
            BudgetSpent: As `reserved`.
        """
        self._release(amount)
        try:
            await self._has_room(amount)
        finally:
            self._reserved += amount

    async def _has_room(self, amount: float) -> None:
        budget = self.settings.budget
        while budget is not None and self.spent + self._reserved + amount > budget:
            if not self._reserved:
                raise BudgetSpent(f"the budget of {budget:g} has no room for another call ({self.spent:.4g} spent)")
            await asyncio.sleep(_POLL_S)

    def _release(self, amount: float) -> None:
        left = self._reserved - amount
        self._reserved = left if left > 1e-12 else 0.0  # rounding is no call that still runs

    def pay(self, answers: Mapping[str, Mapping[str, Any]], size: RequestSize) -> Usage:
        """Counts the cost of answers to one question, each once, however often it comes.

        Args:
            answers: Name of the payment (`Journal.paid`) -> answer.
            size: Of the request.

        Returns:
            The tokens of the last of them; none without answers.
        """
        for name, answer in answers.items():
            if name not in self._paid:
                self._paid[name] = self._count(answer, size)
        return self._paid[name] if answers else Usage(0, 0)

    def _pay_aside(self) -> None:
        for url in self.settings.base_url:
            for usage in _ASIDE.pop((self.settings.model, url), ()):
                self._count({"usage": usage}, _SHORT)

    def _count(self, answer: Mapping[str, Any], size: RequestSize) -> Usage:
        tokens, wrong = counted(answer, size, self.settings.image_tokens)
        if tokens.cost is not None and tokens.cost > self._most(tokens):
            tokens, wrong = tokens._replace(cost=None), "impossible"
        self.unmetered += wrong == "missing"
        self.impossible += wrong == "impossible"
        self.input_tokens += tokens.input
        self.output_tokens += tokens.output
        self.cached_tokens += tokens.cached
        self.reasoning_tokens += tokens.reasoning
        share = self.batch_price if answer.get("batch") else 1.0
        ours = share * price(self.settings, tokens.input, tokens.output, tokens.cached)
        self.spent += ours if tokens.cost is None else tokens.cost
        return tokens

    def totals(self) -> dict[str, int | float]:
        """All counts by their names in a run's record; those that are 0 are left out."""
        self._pay_aside()
        found = {
            "tokens_paid_in": self.input_tokens,
            "tokens_paid_out": self.output_tokens,
            "tokens_cached": self.cached_tokens,
            "tokens_reasoning": self.reasoning_tokens,
            "cost": self.spent,
            "missing_usage": self.unmetered,
            "impossible_usage": self.impossible,
        }
        return {name: value for name, value in found.items() if value}

    def _most(self, tokens: Usage) -> float:
        """What an answer can have cost: its server's own number is not taken where it is larger."""
        if self.settings.has_prices:
            return _DEARER * price(self.settings, tokens.input, tokens.output)
        return _DEAREST_TOKEN * (tokens.input + tokens.output)

    def __str__(self) -> str:
        """Cost so far if prices are set, else tokens."""
        if self.spent or self.settings.has_prices:
            return f"cost {self.spent:.4f}"
        return f"{self.input_tokens + self.output_tokens:,} tokens"


def text_tokens(text: str) -> int:
    """Estimated tokens of a prompt's text, with the chat template around it."""
    return _FRAME_TOKENS + estimate_tokens(text)
