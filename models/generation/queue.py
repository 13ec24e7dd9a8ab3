"""All answers of a run from one queue: rows join the batch as others end, whatever tasks they are of.

A row is one answer. Prompts that share a beginning (an instruction, few-shot examples, an image, or all of a prompt of
which several answers are sampled) are read after copies of the keys of that beginning. An answer that has ended leaves
the batch with the next ones that do, and rows from the queue take the places.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor
from transformers import Cache

from cultureval.models.generation.batch_size import BatchSize
from cultureval.models.generation.choosing import TokenChooser
from cultureval.models.generation.forward import Reader
from cultureval.models.generation.generation import Generation, ends_with_stop, read_answer
from cultureval.models.generation.groups import groups, in_reading_order
from cultureval.models.generation.growing_cache import Part, assembled, bytes_per_column, empty_cache
from cultureval.models.generation.rows import DecodingRow
from cultureval.models.loading import LoadedModel
from cultureval.models.memory import is_out_of_memory, recover
from cultureval.runtime.onednn_products import fast_products
from cultureval.runtime.reasoning import Tags

logger = logging.getLogger(__name__)

# Tokens read in one pass; more are no faster on a CPU, and take memory.
READ_AT_ONCE_CPU, READ_AT_ONCE_ACCELERATOR = 1024, 8192
MOST_ROOM = 256  # columns for answers that a batch gets at once


class GenerationQueue:
    """Answers rows in batches that they join and leave.

    Attributes:
        size: How many rows are answered at once.
        reader: Feeds the model.
        count_tokens: Is told how many tokens were generated.
    """

    def __init__(self, loaded: LoadedModel, chooser: TokenChooser, size: BatchSize, tags: Tags) -> None:
        """Prepare to answer.

        Args:
            loaded: The model.
            chooser: Chooses tokens.
            size: How many rows are answered at once.
            tags: Pairs of tags around reasoning.
        """
        self.loaded, self.chooser, self.size, self.tags = loaded, chooser, size, tags
        self.reader = Reader(loaded.model)
        self.count_tokens: Callable[[int], None] = lambda count: None
        self._ends = frozenset(loaded.end_ids())
        on_cpu = loaded.model.device.type == "cpu"
        self._read_at_once = READ_AT_ONCE_CPU if on_cpu else READ_AT_ONCE_ACCELERATOR
        self._waiting: deque[DecodingRow] = deque()
        self._column = 0  # bytes of a token's keys and values
        self._joining: list[DecodingRow] = []
        self._ended: list[tuple[DecodingRow, Generation]] = []
        self._leave()

    def _leave(self) -> None:
        """Empties the batch."""
        self._rows: list[DecodingRow] = []
        self._cache = empty_cache()

    @torch.inference_mode()
    def answer(
        self,
        windows: Iterator[Sequence[DecodingRow]],
        load: Callable[[DecodingRow], bool],
        finished: Callable[[list[tuple[DecodingRow, Generation]]], None],
    ) -> None:
        """Answer all rows.

        Args:
            windows: The rows, some at a time; the next are taken when the batch has room for them.
            load: Called before a row is read; tells whether it can be answered.
            finished: Called with the answers that ended with one token.

        Raises:
            CulturevalError: A logit is not a number, or one row alone does not fit the memory.
        """
        with fast_products(self.loaded.model.device):
            while True:
                while len(self._waiting) <= self.size.most and (window := next(windows, None)) is not None:
                    self._waiting.extend(in_reading_order(window))
                if not self._waiting and not self._live():
                    break
                try:
                    self._next_tokens(load)
                except (RuntimeError, MemoryError) as error:
                    if not is_out_of_memory(error):
                        raise
                    self._shrink(error)
                if self._ended:
                    finished(self._ended)
                    self._ended = []
        self._leave()
        self.reader.forget()

    @property
    def rows(self) -> list[DecodingRow]:
        """The rows that are being answered."""
        return [*self._live(), *self._joining]

    def _live(self) -> list[DecodingRow]:
        return [row for row in self._rows if not row.ended]

    def _next_tokens(self, load: Callable[[DecodingRow], bool]) -> None:
        """Gives every row of the batch its next token, or new rows their first."""
        live = len(self._live())
        free = self.size.most - live
        enough = not live or free * 4 >= self.size.most
        if self._waiting and enough and (count := self._admissible(free)):
            self._join([self._waiting.popleft() for _ in range(count)], load)
            return
        if live * 4 <= len(self._rows) * 3:
            self._assemble([])
        width = self._cache.get_seq_length() + 1
        logits = self.reader.advance(self._cache, self._rows, width)
        places = [place for place, row in enumerate(self._rows) if not row.ended]
        self._take(self._live(), logits if len(places) == len(self._rows) else logits[places])

    def _admissible(self, free: int) -> int:
        """How many waiting rows may join."""
        coming = [self._waiting[place] for place in range(min(free, len(self._waiting)))]
        live = self._live()
        needs = [len(row) + min(row.limit, MOST_ROOM) for row in [*live, *coming]]
        self._column = bytes_per_column(self._cache) or self._column
        if not self._column and self.size.auto:
            return 1  # whose keys tell how much memory the others need
        while coming and not self.size.fits(len(needs), max(needs), self._column):
            coming.pop()
            needs.pop()
        return len(coming) or int(not live)

    def _join(self, rows: list[DecodingRow], load: Callable[[DecodingRow], bool]) -> None:
        """Reads new rows, chooses their first tokens, and puts them after those of the batch."""
        self._joining = rows
        loaded = [row for row in rows if load(row)]
        following = self._waiting[0] if self._waiting else None
        parts: list[tuple[Cache, list[DecodingRow]]] = []
        reader = self.reader
        for group in groups(loaded, following, reader.prefix, reader.images, self._read_at_once):
            if group.shared:
                reader.hold(group.rows[0], group.shared)
            cache, logits = reader.read(group.rows, group.shared)
            self._take(group.rows, logits)
            parts.append((cache, group.rows))
            for row in group.rows:
                row.vision = None  # megabytes an image, while the answer is written
        self._assemble(parts)
        self._joining = []

    def _assemble(self, joining: Sequence[tuple[Cache, list[DecodingRow]]]) -> None:
        """Makes the batch anew of its rows that go on and of those that join."""
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

    def _take(self, rows: Sequence[DecodingRow], logits: Tensor) -> None:
        """Adds the next token of each row, and notes the answers that end with it."""
        self.count_tokens(len(rows))
        for row, token in zip(rows, self.chooser.choose(rows, logits), strict=True):
            row.tokens.append(token)
            stopped = ends_with_stop(self.loaded.tokenizer, row.tokens, row.stops, row.opened, self.tags)
            if token in self._ends or len(row.tokens) >= row.limit or stopped:
                row.ended = True
                answer = read_answer(row.tokens, row.stops, row.opened, self.loaded, self._ends, self.tags)
                self._ended.append((row, answer))

    def _shrink(self, error: BaseException) -> None:
        """Puts all rows back into the queue, with their tokens so far, to go on with half as many at once."""
        rows = [*self._live(), *(row for row in self._joining if not row.ended)]
        self.size.halve(len(rows), error)
        self._waiting.extendleft(reversed(rows))
        self._joining = []
        self._leave()
        self.reader.forget()
        recover(self.loaded.model.device, error)
