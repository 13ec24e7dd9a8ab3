"""Cost of judging: estimates, and a budget that is checked before each call."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cultureval.metrics.judges.settings import JudgeSettings
from cultureval.runtime.errors import CulturevalError

_POLL_S = 0.02
_FRAME_TOKENS = 10  # of the chat template around a text


class BudgetSpent(CulturevalError):
    """The next call could exceed the budget."""


def estimate_tokens(text: str) -> int:
    """Approximate number of tokens of a text: a quarter of its ASCII characters and half of the others.

    A rule of thumb, high for Arabic with current tokenizers; used for estimates and for reserving budget. Actual costs
    use the server's counts.
    """
    other = sum(not character.isascii() for character in text)
    return (len(text) - other + 3) // 4 + (other + 1) // 2


def price(settings: JudgeSettings, input_tokens: float, output_tokens: float) -> float:
    """Price of a call."""
    return settings.input_token_price * input_tokens + settings.output_token_price * output_tokens


@dataclass
class Budget:
    """The cost of one judge's verdicts so far, and the limit.

    A verdict reused from the journal counts once, with its original cost.

    Attributes:
        settings: The judge, its prices and its budget.
        spent: Cost so far of answered calls.
        input_tokens: Input tokens of these calls, as the servers count.
        output_tokens: Output tokens, likewise.
        unmetered: Answers without a token count; they are estimated.
        halted: Why no further call may be made; None while calls may go on.
        started: When the run began, in ns since 1970: what the journal holds from before is reused.
    """

    settings: JudgeSettings
    spent: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    unmetered: int = 0
    halted: str | None = None
    started: int = field(default_factory=time.time_ns)
    _reserved: float = 0.0
    _paid: set[str] = field(default_factory=set)

    async def reserve(self, amount: float) -> None:
        """Reserve the maximal cost of a call; waits while running calls may still release enough.

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

    def release(self, amount: float) -> None:
        """Release a reserved amount."""
        self._reserved = max(0.0, self._reserved - amount) if self._reserved - amount > 1e-12 else 0.0

    def pay(self, key: str, usage: Mapping[str, Any] | None, estimate: tuple[int, int]) -> None:
        """Count the cost of an answer, unless it was counted before.

        Args:
            key: The journal key of the answer.
            usage: The server's token counts, if any.
            estimate: Tokens of prompt and reply, for servers that give none.
        """
        if key in self._paid:
            return
        self._paid.add(key)
        tokens = _tokens(usage)
        if tokens is None:
            self.unmetered += 1
            tokens = estimate
        self.input_tokens += tokens[0]
        self.output_tokens += tokens[1]
        self.spent += price(self.settings, *tokens)

    def __str__(self) -> str:
        """Cost so far if prices are set, else tokens."""
        if self.settings.input_token_price or self.settings.output_token_price:
            return f"cost {self.spent:.4f}"
        return f"{self.input_tokens + self.output_tokens:,} tokens"


def prompt_tokens(settings: JudgeSettings, text: str, images: int) -> int:
    """Estimated tokens of a prompt."""
    return _FRAME_TOKENS + estimate_tokens(text) + settings.image_tokens * images


def _tokens(usage: Mapping[str, Any] | None) -> tuple[int, int] | None:
    counts = [(usage or {}).get(name) for name in ("prompt_tokens", "completion_tokens")]
    if any(isinstance(count, bool) or not isinstance(count, int) or count < 0 for count in counts):
        return None
    return counts[0], counts[1]
