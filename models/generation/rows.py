"""Rows of a batch of generations, one for each answer, and their grouping for reading."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from cultureval.models.scoring.token_tree import common_length

LEAST_SHARED = 32  # tokens; sharing a shorter beginning saves nothing


@dataclass(eq=False)
class AnswerRow:
    """An unfinished answer.

    Attributes:
        owner: The job of the answer.
        prompt: The prompt's tokens.
        limit: Most tokens of the answer.
        numbers: Random numbers for sampling, so that the answer does not depend on other rows.
        number: Index among the answers of its owner.
        stops: Stop strings.
        opened: The start tag of reasoning at the end of the prompt, or "".
        shared: Length of the beginning that it shares with other rows, which is read once.
        tokens: The answer so far.
        ended: Whether the answer is complete.
        processors: Logits processors that depend on its tokens; None before the first use.
    """

    owner: Any
    prompt: Sequence[int]
    limit: int
    numbers: Random
    number: int = 0
    stops: Sequence[str] = ()
    opened: str = ""
    shared: int = 0
    tokens: list[int] = field(default_factory=list)
    ended: bool = False
    processors: Any = None

    def __len__(self) -> int:
        """Number of tokens so far, with the prompt."""
        return len(self.prompt) + len(self.tokens)

    def last(self, count: int) -> list[int]:
        """The last `count` tokens so far, or all."""
        if count <= len(self.tokens):
            return self.tokens[len(self.tokens) - count :]
        return [*self.prompt[max(len(self) - count, 0) :], *self.tokens]


def in_reading_order(rows: Sequence[AnswerRow]) -> list[AnswerRow]:
    """Rows with shared beginnings adjacent, otherwise the longest first, so that batches have little padding.

    Sets `shared` of the rows.
    """
    runs: list[list[AnswerRow]] = []
    for row in sorted(rows, key=lambda row: row.prompt):
        if not runs or not _shares(runs[-1], row):
            runs.append([row])
    runs.sort(key=lambda run: -max(map(len, run)))
    return [row for run in runs for row in sorted(run, key=len, reverse=True)]


def _shares(run: list[AnswerRow], row: AnswerRow) -> bool:
    """Adds a row to a run if their common beginning is long, and at least half of the run's; returns whether."""
    first = run[0]
    now = first.shared or len(first.prompt) - 1
    found = common_length(first.prompt[:now], row.prompt[:-1])
    if found < max(LEAST_SHARED, first.shared // 2):
        return False
    run.append(row)
    for member in run:
        member.shared = found
    return True


def in_passes(rows: Sequence[AnswerRow], most: int) -> Iterator[list[AnswerRow]]:
    """Groups of rows to read in one pass: with the same shared beginning, and of similar length.

    Args:
        rows: In any order.
        most: Most tokens of a pass, padding included; a single row may be longer.
    """
    together: dict[tuple[int, ...], list[AnswerRow]] = {}
    for row in rows:
        together.setdefault(tuple(row.prompt[: row.shared]), []).append(row)
    for members in together.values():
        part: list[AnswerRow] = []
        for row in sorted(members, key=len, reverse=True):
            if part and (len(part[0]) - row.shared) * (len(part) + 1) > most:
                yield part
                part = []
            part.append(row)
        yield part
