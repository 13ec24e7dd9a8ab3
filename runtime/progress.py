"""Progress of long work: a bar on a terminal; in a file or pipe a line a phase, and one a minute within it."""

import io
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Self, TypeVar

from cultureval.runtime.processes import process_rank

Item = TypeVar("Item")

SIGN_PAUSE, LINE_PAUSE = 10.0, 60.0  # seconds between two signs of life on a terminal, and between two lines elsewhere
SHORT_PHASE = 5.0  # seconds of a phase without a line of its own
LIBRARIES = ("TQDM_DISABLE", "HF_HUB_DISABLE_PROGRESS_BARS", "HF_DATASETS_DISABLE_PROGRESS_BARS", "NO_COLOR")


class Progress:
    """The progress of a loop on standard error, a context; `done` items are done at the start.

    Nothing is shown where it is `silent`, nor by any but the first of several processes.
    """

    def __init__(self, total: int, description: str, unit: str, done: int = 0, silent: bool = False) -> None:
        from tqdm import tqdm

        self.tokens, self._note, self._start, self._printed = 0, "", time.monotonic(), time.monotonic()
        self._shown, self._terminal = not silent and process_rank() == 0, is_terminal()
        where = {"dynamic_ncols": True} if self._terminal else {"file": io.StringIO(), "ncols": 0, "mininterval": 1e9}
        how = {"desc": description, "unit": unit, "smoothing": 0} | where  # the pace is the mean over all items
        self._bar = tqdm(total=total, initial=done, disable=not self._shown, **how)

    def count_tokens(self, count: int) -> None:
        """Counts generated tokens."""
        self.tokens += count

    def reuse(self, count: int = 1) -> None:
        """Counts items of an earlier run, which took no time and do not count in the pace."""
        if self._shown:  # a hidden bar of tqdm has no `initial`
            self._bar.initial += count
        self.update(count)

    def update(self, count: int = 1, note: str = "") -> None:
        """Counts finished items; shows the note beside them."""
        self._note = note or self._note
        tokens = f"{self.tokens:,} tokens" if self.tokens else ""
        self._bar.set_postfix_str(", ".join(filter(None, (tokens, self._note))), refresh=False)
        self._bar.update(count)
        if time.monotonic() - self._printed > LINE_PAUSE:
            self._print_line()

    def _print_line(self) -> None:
        self._printed = time.monotonic()
        if self._shown and not self._terminal:
            print(self._bar, file=sys.stderr)

    def close(self, failed: bool = False) -> None:
        """Ends the bar; without a terminal prints a last line, unless the work was short or has failed."""
        if not failed and time.monotonic() - self._start > SHORT_PHASE:
            self._print_line()
        self._bar.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(failed=kind is not None)


@contextmanager
def working(description: str) -> Iterator[None]:
    """A context for work without items, such as loading a model: prints signs of life while it lasts."""
    started, ended = time.monotonic(), threading.Event()

    def report() -> None:
        while not ended.wait(SIGN_PAUSE if is_terminal() else LINE_PAUSE):
            print(f"{description}, {time.monotonic() - started:.0f} s", file=sys.stderr)

    threading.Thread(target=report, name="progress", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def progressing(items: Iterable[Item], total: int, description: str, unit: str, silent: bool = False) -> Iterator[Item]:
    """The items, each counted when the next one is requested; arguments as of `Progress`."""
    with Progress(total, description, unit, silent=silent) as progress:
        for item in items:
            yield item
            progress.update()


def is_terminal() -> bool:
    """Whether standard error is open, and a terminal that can move its cursor back."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def plain_libraries() -> None:
    """Turns off bars and colours of other libraries without a terminal; call it before they are imported."""
    if not is_terminal():
        for name in LIBRARIES:
            os.environ.setdefault(name, "1")
