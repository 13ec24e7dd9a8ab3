"""An orderly end at Ctrl-C, SIGTERM and SIGHUP: files are closed, and finished answers are kept."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cultureval.runtime.errors import GOES_ON

ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class Interrupted(KeyboardInterrupt):
    """SIGTERM or SIGHUP, which end a command as Ctrl-C does."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def interruption_message(error: KeyboardInterrupt) -> tuple[str, int]:
    """A message about what ended the command, and its exit code as in shells: 128 plus the signal's number."""
    name, number = (str(error), error.number) if isinstance(error, Interrupted) else ("Ctrl-C", int(signal.SIGINT))
    return f"stopped by {name}. {GOES_ON}", 128 + number


@contextmanager
def orderly_end() -> Iterator[None]:
    """A context of a command: SIGTERM and SIGHUP raise `Interrupted`, or stay ignored (nohup)."""
    changed = [number for number in ENDING if signal.getsignal(number) == signal.SIG_DFL]
    for number in changed:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, frame: Any) -> None:
    signal.signal(number, signal.SIG_IGN)  # nothing interrupts the closing
    raise Interrupted(number)


def _end_at_once() -> None:
    """Restores signals in a forked process: a pool's worker that waits in C would never run a Python handler."""
    for number in ENDING:
        if signal.getsignal(number) is _end:
            signal.signal(number, signal.SIG_DFL)


os.register_at_fork(after_in_child=_end_at_once)
