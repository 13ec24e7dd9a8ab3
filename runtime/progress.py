"""Progress of long work: a bar on a terminal, elsewhere one line a phase; how far a stopped command came.

A thread shows that the work goes on while nothing ends: on a terminal within 3 seconds and every 10, elsewhere (a file,
a pipe) by a line a minute.
"""

import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self, TypeVar

from cultureval.runtime.interruption import kept_when_interrupted
from cultureval.runtime.processes import process_rank
from cultureval.runtime.settings import current_settings

Item = TypeVar("Item")

FIRST_SIGN = 3.0  # seconds before the first sign of life on a terminal, where nothing has ended
LONGEST_PAUSE = 10.0  # seconds between two signs on a terminal
LINE_PAUSE = 60.0  # seconds between two lines where there is no terminal
FEW_TOKENS = 100  # before which the pace is that of the prompts
SHORT_PHASE = 5.0  # seconds of a phase without a line of its own
_speaking: list[object] = []  # who tells of work, the innermost last
_WAITS: dict[str, float] = {}  # who asked to be left alone -> until when (time.monotonic)
LIBRARIES = ("TQDM_DISABLE", "HF_HUB_DISABLE_PROGRESS_BARS", "HF_DATASETS_DISABLE_PROGRESS_BARS", "NO_COLOR")


def note_wait(whose: str, until: float) -> None:
    """Notes that nothing is asked of a server until a time (time.monotonic), which signs of life then name."""
    _WAITS[whose] = until


def _waits() -> list[str]:
    left = {whose: until - time.monotonic() for whose, until in _WAITS.items()}
    return [f"{whose} asks to wait: {_duration(each)} more" for whose, each in left.items() if each > 0]


class Progress:
    """The progress of one loop, on standard error; a context that closes it.

    Args:
        description: What is done.
        done: Items that are done already.
        silent: Whether nothing is shown; nor is it in all but the first of several processes.
        kept_in: The journal's folder, where finished items are in it: it is named when the command is interrupted.

    Attributes:
        tokens: That were generated so far, where they are counted.
        most_tokens: That all items can have at most; 0 where that is not known.
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
        self._start = time.monotonic()
        self._note, self._first, self._phase, self._apart = "", done, "", 0.0
        self.tokens = self.most_tokens = 0
        self._closed = threading.Event()
        if self._kept_in is not None:
            kept_when_interrupted(self._kept_in, self._count, current_settings().resume)
        if not silent and not self._lines:
            from tqdm import tqdm

            # The time left is ours: tqdm takes the pace of the last items for that of all.
            form = f"{{l_bar}}{{bar}}| {{n_fmt}}/{{total_fmt}} {unit}s [{{elapsed}}{{postfix}}]"
            self._bar = tqdm(total=total, initial=done, desc=description, bar_format=form, dynamic_ncols=True)
        if not silent:
            _speaking.append(self)
            threading.Thread(target=self._signs, name="progress", daemon=True).start()

    def _signs(self) -> None:
        """Shows that the work goes on, while no item ends."""
        first, pause = _pauses()
        while not self._closed.wait(first):
            first = pause
            if self._bar is not None:
                self._bar.set_postfix_str(", ".join(self._said()), refresh=True)
            elif self._lines:
                self._print()

    def count_tokens(self, count: int) -> None:
        """Counts generated tokens."""
        self.tokens += count

    def reuse(self, count: int = 1) -> None:
        """Counts items that took no time, since an earlier run has them: they say nothing of the pace."""
        self._first += count
        self.update(count)

    def lose(self, count: int) -> None:
        """Takes back items that are not kept after all: an interrupted command then does not name them as kept."""
        self.done -= count

    @contextmanager
    def phase(self, description: str) -> Iterator[None]:
        """A context in which other work is done than that of the items: it is what signs of life name."""
        started, self._phase = time.monotonic(), description
        try:
            yield
        finally:
            self._phase = ""
            self._apart += time.monotonic() - started

    def update(self, count: int = 1, note: str = "") -> None:
        """Counts finished items; shows the note beside them."""
        self.done += count
        self._note = note or self._note
        if self._bar is not None:
            self._bar.set_postfix_str(", ".join(self._said()), refresh=False)
            self._bar.update(count)

    def close(self, failed: bool = False) -> None:
        """Ends the bar; a line about all items where there is none, unless they took no time or the work has failed."""
        self._closed.set()
        _fall_silent(self)
        told = not failed and (self._kept_in is not None or time.monotonic() - self._start > SHORT_PHASE)
        if self._bar is not None:
            self._bar.close()
        elif self._lines and told:
            self._print()
        self._lines, self._bar = False, None

    def _count(self) -> str:
        return f"{self.done} of {self.total} {self.unit}s ({self.description})"

    def _print(self) -> None:
        share = f" ({100 * self.done // self.total} %)" if self.total else ""
        counts = self._phase or f"{self.description}: {self.done} of {self.total} {self.unit}s{share}"
        text = f"{counts}, {time.monotonic() - self._start:.0f} s"
        with suppress(OSError, ValueError):  # a stream that was closed meanwhile
            print(", ".join([text, *self._said()]), file=sys.stderr)

    def _said(self) -> list[str]:
        """The tokens so far, the time that is left at the pace of this process, and the note; or the phase.

        Answers that grow side by side end late: where all tokens that there can be take less time than the items that
        are not done, at the pace of those that are, that is told.
        """
        if self._phase:
            return [*([self._phase] if self._bar is not None else []), *_waits()]
        took, ended = time.monotonic() - self._start - self._apart, self.done - self._first
        parts = [f"{self.tokens:,} token{'s' * (self.tokens != 1)}"] if self.tokens else []
        left = []
        if ended and self.done < self.total:
            left.append((took * (self.total - self.done) / ended, "about"))
        if FEW_TOKENS <= self.tokens < self.most_tokens and self.done < self.total:
            left.append((took * (self.most_tokens - self.tokens) / self.tokens, "at most"))
        parts += [f"{kind} {_duration(seconds)} left" for seconds, kind in sorted(left)[:1]]
        return [*parts, *([self._note] if self._note else []), *_waits()]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(failed=kind is not None)


def _duration(seconds: float) -> str:
    minutes = seconds / 60
    return f"{seconds:.0f} s" if minutes < 2 else f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.0f} h"


@contextmanager
def working(description: str) -> Iterator[None]:
    """A context whose work has no items, such as loading a model: signs of life while it lasts.

    Within it the progress of a part speaks for the whole.
    """
    closed = threading.Event()
    started = time.monotonic()

    def signs() -> None:
        first, pause = _pauses()
        while not closed.wait(first):
            first = pause
            with suppress(OSError, ValueError):
                if _speaking[-1:] == [closed]:
                    told = f"{description}, {time.monotonic() - started:.0f} s"
                    print(", ".join([told, *_waits()]), file=sys.stderr)

    if process_rank() == 0:
        _speaking.append(closed)
        threading.Thread(target=signs, name="progress", daemon=True).start()
    try:
        yield
    finally:
        closed.set()
        _fall_silent(closed)


def _fall_silent(whose: object) -> None:
    with suppress(ValueError):
        _speaking.remove(whose)


def progressing(
    items: Iterable[Item], total: int, description: str, unit: str, silent: bool = False, kept_in: Path | None = None
) -> Iterator[Item]:
    """The items, each counted when the next is asked for; arguments as those of `Progress`."""
    with Progress(total, description, unit, silent=silent, kept_in=kept_in) as progress:
        for item in items:
            yield item
            progress.update()


def _pauses() -> tuple[float, float]:
    """Seconds before the first sign of life, and between two."""
    return (FIRST_SIGN, LONGEST_PAUSE) if is_terminal() else (LINE_PAUSE, LINE_PAUSE)


def is_terminal() -> bool:
    """Whether standard error is a terminal that can move its cursor back; one that was closed (`2>&-`) is none."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def plain_libraries() -> None:
    """Turns off bars and colours of other libraries where standard error is no terminal; before they are imported."""
    if not is_terminal():
        for name in LIBRARIES:
            os.environ.setdefault(name, "1")
