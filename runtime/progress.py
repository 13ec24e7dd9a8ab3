"""Progress of long work: a bar on a terminal, elsewhere (a file, a pipe) a line a phase, and one a minute within it."""

import io
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Self, TypeVar

from cultureval.runtime.processes import process_rank

Item = TypeVar("Item")

SIGN_PAUSE, LINE_PAUSE = 10.0, 60.0  # seconds between two signs of life on a terminal, and between two lines elsewhere
SHORT_PHASE = 5.0  # seconds of a phase without a line of its own
LIBRARIES = ("TQDM_DISABLE", "HF_HUB_DISABLE_PROGRESS_BARS", "HF_DATASETS_DISABLE_PROGRESS_BARS", "NO_COLOR")


class Progress:
    """The progress of one loop of which `done` items are done already, on standard error; a context that closes it.

    `silent`, and in all but the first of several processes, nothing is shown.
    """

    def __init__(self, total: int, description: str, unit: str, done: int = 0, silent: bool = False) -> None:
        from tqdm import tqdm

        self.tokens, self._note, self._phase, self._start = 0, "", "", time.monotonic()
        self._shown, self._terminal = not silent and process_rank() == 0, is_terminal()
        where = {"dynamic_ncols": True} if self._terminal else {"file": io.StringIO(), "ncols": 0, "mininterval": 1e9}
        how = {"desc": description, "unit": unit, "smoothing": 0} | where  # the pace is that of all items
        self._bar = tqdm(total=total, initial=done, disable=not self._shown, **how)
        self._signs = _signs(self._say) if self._shown else None

    def _say(self) -> None:
        self._bar.set_postfix_str(self._said(), refresh=self._terminal)
        if not self._terminal:
            print(self._bar, file=sys.stderr)

    def _said(self) -> str:
        return ", ".join(filter(None, (self._phase, f"{self.tokens:,} tokens" if self.tokens else "", self._note)))

    def count_tokens(self, count: int) -> None:
        """Counts generated tokens."""
        self.tokens += count

    def reuse(self, count: int = 1) -> None:
        """Counts items that took no time, since an earlier run has them: they say nothing of the pace."""
        if self._shown:  # tqdm has nothing of a bar that it does not show
            self._bar.initial += count
        self.update(count)

    @contextmanager
    def phase(self, description: str) -> Iterator[None]:
        """A context in which other work is done than that of the items: signs of life name it."""
        self._phase = description
        try:
            yield
        finally:
            self._phase = ""

    def update(self, count: int = 1, note: str = "") -> None:
        """Counts finished items; shows the note beside them."""
        self._note = note or self._note
        self._bar.set_postfix_str(self._said(), refresh=False)
        self._bar.update(count)

    def close(self, failed: bool = False) -> None:
        """Ends the bar; a line about all items where there is none, unless they took no time or the work has failed."""
        if self._signs is not None:
            self._signs.set()
            if not self._terminal and not failed and time.monotonic() - self._start > SHORT_PHASE:
                self._say()
        self._signs = None
        self._bar.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(failed=kind is not None)


def _signs(say: Callable[[], None]) -> threading.Event:
    """Calls a function every so often until the event is set."""
    ended = threading.Event()
    pause = SIGN_PAUSE if is_terminal() else LINE_PAUSE

    def tell() -> None:
        while not ended.wait(pause):
            say()

    threading.Thread(target=tell, name="progress", daemon=True).start()
    return ended


@contextmanager
def working(description: str) -> Iterator[None]:
    """A context whose work has no items, such as loading a model: signs of life while it lasts."""
    started = time.monotonic()
    ended = _signs(lambda: print(f"{description}, {time.monotonic() - started:.0f} s", file=sys.stderr))
    try:
        yield
    finally:
        ended.set()


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
