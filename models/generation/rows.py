"""Rows of a batch of generations, each one answer in the making, and which of them are read together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from cultureval.models.scoring.token_tree import common_length

LEAST_SHARED = 32  # tokens; copying the keys of a shorter beginning saves nothing


@dataclass(eq=False)
class AnswerRow:
    """One answer in the making.

    Attributes:
        owner: What it is an answer of.
        prompt: The prompt's tokens.
        limit: Most tokens of the answer.
        numbers: Random numbers for sampling, its own, so that its answer does not depend on the rows beside it.
        number: Which of its owner's answers this is.
        stops: Stop strings.
        opened: The start tag of reasoning that the prompt ends with, "" for none.
        shared: Tokens that it begins with as other rows do, which are read once; 0 for none.
        tokens: The answer so far.
        ended: Whether the answer is complete.
        processors: What changes its scores before a token is chosen, where that depends on its tokens.
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
        """Tokens so far, the prompt's included."""
        return len(self.prompt) + len(self.tokens)

    def last(self, count: int) -> list[int]:
        """The last tokens so far, fewer where there are fewer."""
        if count <= len(self.tokens):
            return self.tokens[len(self.tokens) - count :]
        return [*self.prompt[max(len(self) - count, 0) :], *self.tokens]


def in_reading_order(rows: Sequence[AnswerRow]) -> list[AnswerRow]:
    """Rows with those that share a beginning next to each other, otherwise the longest first: batches pad little.

    What rows share is noted in them.
    """
    runs: list[list[AnswerRow]] = []
    for row in sorted(rows, key=lambda row: row.prompt):
        if not runs or not _shares(runs[-1], row):
            runs.append([row])
    runs.sort(key=lambda run: -max(map(len, run)))
    return [row for run in runs for row in sorted(run, key=len, reverse=True)]


def _shares(run: list[AnswerRow], row: AnswerRow) -> bool:
    """Adds a row to a run with which it shares a long beginning, at least half of what the run shares so far."""
    first = run[0]
    now = first.shared or len(first.prompt) - 1
    found = common_length(first.prompt[:now], row.prompt[:-1])
    if found < max(LEAST_SHARED, first.shared // 2):
        return False
    run.append(row)
    for one in run:
        one.shared = found
    return True


def in_passes(rows: Sequence[AnswerRow], most: int) -> Iterator[list[AnswerRow]]:
    """Rows that are read in one pass: they share one beginning, or none, and are of about one length.

    Args:
        rows: In any order.
        most: Tokens of one pass, padding included, though one row is always read whole.
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
