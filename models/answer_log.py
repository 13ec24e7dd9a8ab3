"""Where the answers of a run came from: by which route they were scored, or from which earlier run."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from cultureval.runtime.journal import Journal
from cultureval.runtime.servers.costs import Budget, Usage


@dataclass
class AnswerLog:
    """Counts of answers by task.

    Attributes:
        routes: Task -> route of scoring -> docs.
        reused: Task -> times in ns at which its reused answers were written.
        others: Task -> docs that another model than the run's answered, or may have.
        tokens_in: Tokens of prompts, as a server counts them.
        tokens_out: Tokens of its answers, reasoning included.
        tokens_cached: Those of prompts that the server had cached.
        tokens_reasoning: Those of answers that are reasoning.
        cost: What all answers cost, those of earlier runs included; 0 without prices.
        impossible: Answers whose token counts could not be, and were estimated.
        tokens: Task -> tokens of its prompts and of its answers, each answer in one task.
    """

    routes: dict[str, Counter[str]] = field(default_factory=dict)
    reused: dict[str, list[int]] = field(default_factory=dict)
    others: Counter[str] = field(default_factory=Counter)
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    tokens_reasoning: int = 0
    cost: float = 0.0
    impossible: int = 0
    tokens: dict[str, tuple[int, int]] = field(default_factory=dict)

    def count(self, budget: Budget) -> None:
        """Takes over what a model's answers cost so far."""
        self.tokens_in, self.tokens_out, self.cost = budget.input_tokens, budget.output_tokens, budget.spent
        self.tokens_cached, self.tokens_reasoning = budget.cached_tokens, budget.reasoning_tokens
        self.impossible = budget.impossible

    def used(self, task: str, usage: Usage) -> None:
        """Counts the tokens of an answer to a task's prompt."""
        before = self.tokens.get(task, (0, 0))
        self.tokens[task] = (before[0] + usage.input, before[1] + usage.output)

    def spent(self) -> dict[str, int | float]:
        """The tokens and the cost by the names of the record; what is 0 is left out, but for the first two."""
        always = {"tokens_in": self.tokens_in, "tokens_out": self.tokens_out}
        more = {"tokens_cached": self.tokens_cached, "tokens_reasoning": self.tokens_reasoning, "cost": self.cost}
        more["impossible_usage"] = self.impossible
        return always | {name: value for name, value in more.items() if value}

    def answered(self, task: str, route: str) -> None:
        """Counts a doc that the model answered."""
        self.routes.setdefault(task, Counter())[route] += 1

    def answered_by_another(self, task: str) -> None:
        """Counts a doc whose answer is not, or not surely, of the run's model."""
        self.others[task] += 1

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
        self.others.update(other.others)
        self.tokens_in += other.tokens_in
        self.tokens_out += other.tokens_out
        self.tokens_cached += other.tokens_cached
        self.tokens_reasoning += other.tokens_reasoning
        self.cost += other.cost
        self.impossible += other.impossible
        for task, used in other.tokens.items():
            self.used(task, Usage(*used))

    def tasks(self) -> dict[str, dict[str, Any]]:
        """Task with `|k` -> fields of its record: routes, tokens, what was reused, what others answered."""
        found: dict[str, dict[str, Any]] = {task: {"routes": dict(routes)} for task, routes in self.routes.items()}
        for task, times in self.reused.items():
            oldest = datetime.fromtimestamp(min(times) / 1e9, UTC).isoformat(timespec="seconds")
            found.setdefault(task, {}).update(reused=len(times), reused_since=oldest)
        for task, (given, answered) in self.tokens.items():
            if given or answered:  # of scores of choices, the run's own tokens are known better
                found.setdefault(task, {}).update(tokens_in=given, tokens_out=answered)
        for task, count in self.others.items():
            found.setdefault(task, {}).update(of_other_models=count)
        return found
