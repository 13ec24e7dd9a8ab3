"""Which rows are read together: those that share a long beginning, which is then read once, and short ones."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cultureval.models.generation.rows import DecodingRow
from cultureval.models.scoring.token_tree import common_length

LEAST_SHARED = 32  # tokens; copying the keys of a shorter beginning saves nothing


@dataclass
class BatchGroup:
    """Rows that are read in one pass.

    Attributes:
        rows: In the order of the queue.
        shared: Tokens that all of them begin with and that are read once; 0 for none.
    """

    rows: list[DecodingRow]
    shared: int


def in_reading_order(rows: Sequence[DecodingRow]) -> list[DecodingRow]:
    """Rows with those that share a beginning next to each other, otherwise the longest first: batches pad little."""
    adjacent = sorted(rows, key=lambda row: (row.images, row.prompt))
    runs = [sorted(group.rows, key=len, reverse=True) for group in _runs(adjacent, None)]
    runs.sort(key=lambda run: -max(map(len, run)))
    return [row for run in runs for row in run]


def groups(
    rows: Sequence[DecodingRow], following: DecodingRow | None, held: Sequence[int], images: str, most: int
) -> Iterator[BatchGroup]:
    """Group rows for reading.

    Args:
        rows: In reading order.
        following: The next one in the queue, for whose sake a beginning is read separately.
        held: Tokens of the prefix that is held already.
        images: Hash of its images.
        most: Tokens of one pass, padding included, though one row is always read whole.
    """
    alone: list[DecodingRow] = []
    for run in _runs(rows, following):
        first = run.rows[0]
        kept = common_length(held, first.to_be_read()[:-1]) if first.images == images else 0
        if len(run.rows) == 1 and not run.shared and not first.images and kept < max(LEAST_SHARED, len(held) // 2):
            alone.append(first)
            continue
        shared = run.shared or max(kept, first.images_end)
        for part in _passes(run.rows, shared, most):
            yield BatchGroup(part, shared)
    for part in _passes(alone, 0, most):
        yield BatchGroup(part, 0)


def _runs(rows: Sequence[DecodingRow], following: DecodingRow | None) -> Iterator[BatchGroup]:
    """Runs of adjacent rows with a long common beginning; a row that shares none is a run of its own, of 0 tokens."""
    run: BatchGroup | None = None
    for row in [*rows, following] if following else rows:
        tokens = row.to_be_read()
        if run:
            first = run.rows[0].to_be_read()
            now = run.shared or min(len(first), len(tokens)) - 1
            found = min(common_length(first[:now], tokens), len(tokens) - 1)
            long_enough = found >= max(LEAST_SHARED, run.shared // 2, row.images_end)
            if long_enough and row.images == run.rows[0].images:
                run.shared = found
                run.rows += [row] if row is not following else []
                continue
            yield run
        run = BatchGroup([row], 0) if row is not following else None
    if run:
        yield run


def _passes(rows: Sequence[DecodingRow], shared: int, most: int) -> Iterator[list[DecodingRow]]:
    """As many rows at once as a pass may have tokens; those of about one length, which need little padding.

    A row that is shorter than the longest gets as many of the last shared tokens anew, and none of these may be an
    image's, whose pixels are in the shared beginning alone.
    """
    part: list[DecodingRow] = []
    for row in sorted(rows, key=len, reverse=True):
        longest = len((part or [row])[0])
        too_short = bool(row.images) and longest - len(row) > shared - row.images_end
        if part and (too_short or (longest - shared) * (len(part) + 1) > most):
            yield part
            part = []
        part.append(row)
    if part:
        yield part
