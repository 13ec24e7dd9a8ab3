"""Progress of long work: a bar on a terminal, elsewhere a line now and then; how far a stopped command came."""

import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Self, TypeVar

from cultureval.runtime.interruption import kept_when_interrupted
from cultureval.runtime.processes import process_rank
from cultureval.runtime.settings import current_settings

Item = TypeVar("Item")

LONGEST_PAUSE = 30.0  # seconds between two lines
SHORTEST_PAUSE = 5.0  # seconds before a line at the next tenth
LIBRARIES = ("TQDM_DISABLE", "HF_HUB_DISABLE_PROGRESS_BARS", "HF_DATASETS_DISABLE_PROGRESS_BARS", "NO_COLOR")


class Progress:
    """The progress of one loop, on standard error; a context that closes it.

    Args:
        total: Number of items.
        description: What is done.
        unit: Name of an item.
        done: Items that are done already.
        silent: Whether nothing is shown; nor is it in all but the first of several processes.
        kept_in: The journal's folder, where finished items are in it: it is named when the command is interrupted.
    """

    def __init__(
        self,
        total: int,
        description: str,
        unit: str,
        done: int = 0,
        silent: bool = False,
        kept_in: Path | None = None,
    ) -> None:
        self.total, self.description, self.unit, self.done = total, description, unit, done
        silent = silent or process_rank() > 0
        self._kept_in = None if silent else kept_in
        self._bar: Any = None
        self._lines = not silent and not is_terminal()
        self._start = self._shown = time.monotonic()
        self._tenth = 10 * done // max(1, total)
        self._note = ""
        if self._kept_in is not None:
            kept_when_interrupted(self._kept_in, self._count, current_settings().resume)
        if not silent and not self._lines:
            from tqdm import tqdm

            self._bar = tqdm(total=total, initial=done, desc=description, unit=unit, dynamic_ncols=True)

    def update(self, count: int = 1, note: str = "") -> None:
        """Counts finished items; shows the note beside them."""
        self.done += count
        self._note = note or self._note
        if self._bar is not None:
            if note:
                self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(count)
        elif self._lines:
            tenth, pause = 10 * self.done // max(1, self.total), time.monotonic() - self._shown
            if self.done < self.total and (pause > LONGEST_PAUSE or (tenth > self._tenth and pause > SHORTEST_PAUSE)):
                self._tenth = tenth
                self._print()

    def close(self) -> None:
        """Ends the bar; a line about all items where there is none, unless they took no time."""
        if self._bar is not None:
            self._bar.close()
        elif self._lines and (self._kept_in is not None or time.monotonic() - self._start > SHORTEST_PAUSE):
            self._print()
        self._lines, self._bar = False, None

    def _count(self) -> str:
        return f"{self.done} of {self.total} {self.unit}s ({self.description})"

    def _print(self) -> None:
        self._shown = time.monotonic()
        share = f" ({100 * self.done // self.total} %)" if self.total else ""
        text = f"{self.description}: {self.done} of {self.total} {self.unit}s{share}, {self._shown - self._start:.0f} s"
        print(f"{text}, {self._note}" if self._note else text, file=sys.stderr)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def progressing(items: Iterable[Item], total: int, description: str, unit: str, silent: bool = False) -> Iterator[Item]:
    """The items, each counted when the next is asked for; arguments as those of `Progress`."""
    with Progress(total, description, unit, silent=silent) as progress:
        for item in items:
            yield item
            progress.update()


def is_terminal() -> bool:
    """Whether standard error is a terminal that can move its cursor back; one that was closed (`2>&-`) is none."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def plain_libraries() -> None:
    """Turns off bars and colours of other libraries where standard error is no terminal; before they are imported."""
    if not is_terminal():
        for name in LIBRARIES:
            os.environ.setdefault(name, "1")
