"""An orderly end at Ctrl-C, SIGTERM and SIGHUP: what is open is closed, and the user is told what is kept."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
MOST = 3  # counts that are named, the newest
_kept: dict[Path, list[Callable[[], str]]] = {}
_started_over: set[Path] = set()
_changed: set[int] = set()  # signals whose handler is ours


class Interrupted(KeyboardInterrupt):
    """SIGTERM or SIGHUP, which end a command as Ctrl-C does."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def kept_when_interrupted(place: Path, description: Callable[[], str], resumes: bool) -> None:
    """Notes what an interrupted command leaves behind in a file or folder, and whether the command reuses it.

    `description` is called at the interruption and returns a count, as in "12 of 40 docs (Generating)".
    """
    _kept.setdefault(place, []).append(description)
    if not resumes:
        _started_over.add(place)


def interruption_message(error: KeyboardInterrupt) -> str:
    """What ended the command, what is kept, and how it goes on; temporary folders that are gone keep nothing."""
    name = str(error) if isinstance(error, Interrupted) else "Ctrl-C"
    there = {place: texts[-MOST:] for place, texts in _kept.items() if place.exists()}
    kept = "; ".join(f"{', '.join(text() for text in texts)}, in {place}" for place, texts in there.items())
    if not kept:
        return f"stopped by {name}. Nothing was begun that could be kept: the same command starts anew."
    again = "The same command without --no-resume" if _started_over & there.keys() else "The same command"
    return f"stopped by {name}. Kept: {kept}. {again} goes on from there."


def exit_code(error: KeyboardInterrupt) -> int:
    """128 and the signal's number, as shells have it."""
    return 128 + (error.number if isinstance(error, Interrupted) else signal.SIGINT)


@contextmanager
def orderly_end() -> Iterator[None]:
    """A command's context: SIGTERM and SIGHUP raise `Interrupted`, or stay ignored (nohup); nothing is kept yet."""
    _kept.clear()
    _started_over.clear()
    before = {number: signal.getsignal(number) for number in ENDING}

    def end(number: int, frame: Any) -> None:
        for each in changed:
            signal.signal(each, signal.SIG_IGN)  # what is being closed is not interrupted again
        raise Interrupted(number)

    changed = [number for number, handler in before.items() if handler == signal.SIG_DFL]
    for number in changed:
        signal.signal(number, end)
    _changed.update(changed)
    try:
        yield
    finally:
        _changed.difference_update(changed)
        for number in changed:
            signal.signal(number, before[number])


def _end_at_once() -> None:
    """In a forked process: one that waits in C, as a pool's worker does, would never run a handler of Python's."""
    for number in _changed:
        signal.signal(number, signal.SIG_DFL)
    _changed.clear()


os.register_at_fork(after_in_child=_end_at_once)


class TimeLimitReached(Exception):
    """What ran in a `time_limit` took longer."""


@contextmanager
def time_limit(seconds: float, of_cpu: bool = False) -> Iterator[None]:
    """A context that ends with `TimeLimitReached` when the time is over; outside the main thread without a limit.

    Args:
        seconds: Of the clock on the wall, or with `of_cpu` of this process's CPU time.
        of_cpu: Whether waiting does not count, as where many processes share the CPUs.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: Any) -> None:
        raise TimeLimitReached

    timer, number = (signal.ITIMER_PROF, signal.SIGPROF) if of_cpu else (signal.ITIMER_REAL, signal.SIGALRM)
    handler = signal.signal(number, end)
    before = signal.setitimer(timer, seconds, seconds)  # again, since an error in a finaliser is lost
    try:
        yield
    finally:
        signal.setitimer(timer, *before)  # another limit goes on
        signal.signal(number, handler)
