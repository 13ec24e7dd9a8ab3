"""Where the answers of a run came from: by which route they were scored, or from which earlier run."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from cultureval.runtime.journal import Journal
from cultureval.runtime.servers.costs import Budget


@dataclass
class AnswerLog:
    """Counts of answers by task.

    Attributes:
        routes: Task -> route of scoring -> docs.
        reused: Task -> times in ns at which its reused answers were written.
        tokens_in: Tokens of prompts, as a server counts them.
        tokens_out: Tokens of its answers, reasoning included.
        tokens_cached: Those of prompts that the server had cached.
        tokens_reasoning: Those of answers that are reasoning.
        cost: What all answers cost, those of earlier runs included; 0 without prices.
    """

    routes: dict[str, Counter[str]] = field(default_factory=dict)
    reused: dict[str, list[int]] = field(default_factory=dict)
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    tokens_reasoning: int = 0
    cost: float = 0.0

    def count(self, budget: Budget) -> None:
        """Takes over what a model's answers cost so far."""
        self.tokens_in, self.tokens_out, self.cost = budget.input_tokens, budget.output_tokens, budget.spent
        self.tokens_cached, self.tokens_reasoning = budget.cached_tokens, budget.reasoning_tokens

    def spent(self) -> dict[str, int | float]:
        """The tokens and the cost by the names of the record; what is 0 is left out, but for the first two."""
        always = {"tokens_in": self.tokens_in, "tokens_out": self.tokens_out}
        more = {"tokens_cached": self.tokens_cached, "tokens_reasoning": self.tokens_reasoning, "cost": self.cost}
        return always | {name: value for name, value in more.items() if value}

    def answered(self, task: str, route: str) -> None:
        """Counts a doc that the model answered."""
        self.routes.setdefault(task, Counter())[route] += 1

    def look_up(self, task: str, journal: Journal, keys: Iterable[str]) -> bool:
        """Counts a doc as reused if all its answers are from an earlier run; returns whether they are."""
        times = [journal.earlier(key) for key in keys]
        reused = bool(times) and None not in times
        if reused:
            self.reused.setdefault(task, []).append(min(time for time in times if time is not None))
        return reused

    def add(self, other: "AnswerLog") -> None:
        """Adds the counts of another process."""
        for task, routes in other.routes.items():
            self.routes.setdefault(task, Counter()).update(routes)
        for task, times in other.reused.items():
            self.reused.setdefault(task, []).extend(times)
        self.tokens_in += other.tokens_in
        self.tokens_out += other.tokens_out
        self.tokens_cached += other.tokens_cached
        self.tokens_reasoning += other.tokens_reasoning
        self.cost += other.cost

    def tasks(self) -> dict[str, dict[str, Any]]:
        """Task with `|k` -> fields of its record: `routes`, `reused`, `reused_since`."""
        found: dict[str, dict[str, Any]] = {task: {"routes": dict(routes)} for task, routes in self.routes.items()}
        for task, times in self.reused.items():
            oldest = datetime.fromtimestamp(min(times) / 1e9, UTC).isoformat(timespec="seconds")
            found.setdefault(task, {}).update(reused=len(times), reused_since=oldest)
        return found
