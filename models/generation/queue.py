"""Continuous batching of all answers of a run: rows of any task join the batch as others end.

A row is one answer. Prompts with a shared beginning (an instruction, few-shot examples, or the whole prompt of several
samples) get copies of its keys. On a CPU, transformers' continuous batching takes 2.5 times as long on prompts after
500 shared tokens: each of its rows reads the keys of all rows.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import Cache

from cultureval.models.generation.cache import Part, Reader, assembled, bytes_per_column, empty_cache
from cultureval.models.generation.generation import Generation, ends_with_stop, read_answer
from cultureval.models.generation.rows import AnswerRow, in_passes, in_reading_order
from cultureval.models.loading import LoadedModel
from cultureval.models.memory import BatchSize, is_out_of_memory
from cultureval.runtime.onednn_products import fast_products
from cultureval.runtime.reasoning import Tags

# Tokens read in one pass; more are no faster on a CPU, and take memory.
READ_AT_ONCE_CPU, READ_AT_ONCE_ACCELERATOR = 1024, 8192
MOST_ROOM = 256  # largest number of free columns of a batch


class GenerationQueue:
    """Answers rows in batches that rows join and leave.

    Attributes:
        reader: Feeds the model.
        count_tokens: Called with the number of new tokens.
    """

    def __init__(self, loaded: LoadedModel, chooser: Any, size: BatchSize, tags: Tags) -> None:
        """Prepares to answer `size` rows at once, with a `TokenChooser` and tags around reasoning."""
        self.loaded, self.chooser, self.size, self.tags = loaded, chooser, size, tags
        self.reader = Reader(loaded.model)
        self.count_tokens: Callable[[int], None] = lambda count: None
        self._ends = frozenset(loaded.end_ids())
        on_cpu = loaded.model.device.type == "cpu"
        self._read_at_once = READ_AT_ONCE_CPU if on_cpu else READ_AT_ONCE_ACCELERATOR
        self._waiting: deque[AnswerRow] = deque()
        self._column = 0  # bytes of a token's keys and values
        self._joining: list[AnswerRow] = []
        self._ended: list[tuple[AnswerRow, Generation]] = []
        self._leave()

    def _leave(self) -> None:
        """Empties the batch."""
        self._rows: list[AnswerRow] = []
        self._cache = empty_cache()
        self.reader.forget()

    @torch.inference_mode()
    def answer(
        self, windows: Iterator[Sequence[AnswerRow]], finished: Callable[[list[tuple[AnswerRow, Generation]]], None]
    ) -> None:
        """Answers all rows.

        Args:
            windows: Lists of rows; the next list is taken when the batch has room.
            finished: Called with the answers that ended at the same step.
        """
        with fast_products(self.loaded.model.device):
            while True:
                while len(self._waiting) <= self.size.most and (window := next(windows, None)) is not None:
                    self._waiting.extend(in_reading_order(window))
                if not self._waiting and not self._live():
                    break
                try:
                    self._next_tokens()
                except (RuntimeError, MemoryError) as error:
                    if not is_out_of_memory(error):
                        raise
                    self._shrink(error)
                if self._ended:
                    finished(self._ended)
                    self._ended = []
        self._leave()

    @property
    def rows(self) -> list[AnswerRow]:
        """The unfinished rows of the batch."""
        return [*self._live(), *(row for row in self._joining if not row.ended)]

    def _live(self) -> list[AnswerRow]:
        return [row for row in self._rows if not row.ended]

    def _next_tokens(self) -> None:
        """Gives every row of the batch its next token, or new rows their first."""
        live = len(self._live())
        free = self.size.most - live
        enough = not live or free * 4 >= self.size.most
        if self._waiting and enough and (count := self._admissible(free)):
            self._join([self._waiting.popleft() for _ in range(count)])
            return
        if live * 4 <= len(self._rows) * 3:
            self._assemble([])
        logits = self.reader.advance(self._cache, self._rows, self._cache.get_seq_length() + 1)
        places = [place for place, row in enumerate(self._rows) if not row.ended]
        self._take(self._live(), logits if len(places) == len(self._rows) else logits[places])

    def _admissible(self, free: int) -> int:
        """The number of waiting rows that may join."""
        coming = [self._waiting[place] for place in range(min(free, len(self._waiting)))]
        live = self._live()
        needs = [len(row) + min(row.limit, MOST_ROOM) for row in [*live, *coming]]
        self._column = bytes_per_column(self._cache) or self._column
        if not self._column and self.size.auto:
            return 1  # its keys show the memory of a token
        while coming and not self.size.fits(len(needs), max(needs), self._column):
            coming.pop()
            needs.pop()
        return len(coming) or int(not live)

    def _join(self, rows: list[AnswerRow]) -> None:
        """Reads new rows, chooses their first tokens, and adds them to the batch."""
        self._joining = rows
        parts: list[tuple[Cache, list[AnswerRow]]] = []
        for together in in_passes(rows, self._read_at_once):
            cache, logits = self.reader.read(together)
            self._take(together, logits)
            parts.append((cache, together))
        self._assemble(parts)
        self._joining = []

    def _assemble(self, joining: Sequence[tuple[Cache, list[AnswerRow]]]) -> None:
        """Rebuilds the batch from its unfinished rows and the joining rows."""
        parts, kept = [], []
        for cache, rows in [(self._cache, self._rows), *joining]:
            places = [place for place, row in enumerate(rows) if not row.ended]
            if places:
                going_on = [rows[place] for place in places]
                parts.append(Part(cache, places, max(map(len, going_on)) - 1))
                kept += going_on
        room = max((row.limit - len(row.tokens) for row in kept), default=0)
        self._cache = assembled(parts, min(room, MOST_ROOM)) if parts else empty_cache()
        self._rows = kept

    def _take(self, rows: Sequence[AnswerRow], logits: Tensor) -> None:
        """Adds the next token of each row, and collects the answers that end."""
        self.count_tokens(len(rows))
        for row, token in zip(rows, self.chooser.choose(rows, logits), strict=True):
            row.tokens.append(token)
            stopped = ends_with_stop(self.loaded.tokenizer, row.tokens, row.stops, row.opened, self.tags)
            if token in self._ends or len(row.tokens) >= row.limit or stopped:
                row.ended = True
                self._ended.append((row, read_answer(row.tokens, row.stops, row.opened, self.loaded, self.tags)))

    def _shrink(self, error: BaseException) -> None:
        """Puts all rows back into the queue, with their tokens so far, and halves the batch."""
        rows, self._joining = self.rows, []
        self._leave()
        self._waiting.extendleft(reversed(rows))
        self.size.halve(len(rows), error)
