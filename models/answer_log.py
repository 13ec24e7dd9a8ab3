"""The origin of a run's answers: the route of scoring, or an earlier run."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from cultureval.runtime.journal import Journal
from cultureval.runtime.servers.costs import Usage


@dataclass
class AnswerLog:
    """Counts of answers by task.

    Attributes:
        routes: Task -> route of scoring -> docs.
        reused: Task -> times in ns at which its reused answers were written.
        short: Task -> docs with a lower limit of answer tokens than requested, to fit the context.
        spent: Tokens and cost of all answers, answers of earlier runs included (`Budget.totals`).
        tokens: Task -> tokens of its prompts and of its answers; each answer counts in one task.
    """

    routes: dict[str, Counter[str]] = field(default_factory=dict)
    reused: dict[str, list[int]] = field(default_factory=dict)
    short: Counter[str] = field(default_factory=Counter)
    spent: Counter[str] = field(default_factory=Counter)
    tokens: dict[str, tuple[int, int]] = field(default_factory=dict)

    def used(self, task: str, usage: Usage) -> None:
        """Counts the tokens of an answer to a task's prompt."""
        before = self.tokens.get(task, (0, 0))
        self.tokens[task] = (before[0] + usage.input, before[1] + usage.output)

    def answered(self, task: str, route: str) -> None:
        """Counts a doc that the model answered."""
        self.routes.setdefault(task, Counter())[route] += 1

    def look_up(self, task: str, journal: Journal, keys: Iterable[str]) -> bool:
        """Counts a doc as reused if all its answers are from an earlier run; returns whether it is."""
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
        self.short.update(other.short)
        self.spent.update(other.spent)
        for task, used in other.tokens.items():
            self.used(task, Usage(*used))

    def tasks(self) -> dict[str, dict[str, Any]]:
        """Task with `|k` -> fields of its record: routes, tokens, reused answers, limits."""
        found: dict[str, dict[str, Any]] = {task: {"routes": dict(routes)} for task, routes in self.routes.items()}
        for task, times in self.reused.items():
            oldest = datetime.fromtimestamp(min(times) / 1e9, UTC).isoformat(timespec="seconds")
            found.setdefault(task, {}).update(reused=len(times), reused_since=oldest)
        for task, (read, generated) in self.tokens.items():
            if read or generated:
                found.setdefault(task, {}).update(tokens_in=read, tokens_out=generated)
        for task, count in self.short.items():
            found.setdefault(task, {}).update(short_limits=count)
        return found
