"""Which questions are being asked just now: two runs with one journal ask each question once.

Each has a lock: one byte of the file `claims` in the journal's folder, at a place that the question's key decides.
The system lets go of it when its process ends, however that happens, so nothing is left to clean up. Nodes that share a
folder see each other's locks where its file system passes locks on (NFS does), but each other's answers only at their
next start; where there are no locks, each run asks for itself.
"""

import fcntl
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

NAME = "claims"
_POLL_S = 0.2
# Open files by process and folder, never closed: closing one would let go of all locks of the process.
_files: dict[tuple[int, Path], int] = {}


class QuestionLocks:
    """The locks of this process in one journal's folder."""

    def __init__(self, folder: Path) -> None:
        """No file is made before the first lock."""
        self._folder = folder

    def take(self, key: str) -> bool:
        """Locks a key, a hash in hexadecimal digits; False where another process has it."""
        try:
            fcntl.lockf(self._file(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(key))
        except (BlockingIOError, PermissionError):
            return False
        except OSError:  # a file system without locks
            return True
        return True

    def wait_for(self, key: str, tell: Callable[[], None], gives_up: Callable[[], bool] = lambda: False) -> None:
        """Locks a key as soon as it is free; where it is not at once, `tell` is called first.

        It goes on without the lock where `gives_up` says so, which is asked several times a second.
        """
        if not self.take(key):
            tell()
            while not (gives_up() or self.take(key)):
                time.sleep(_POLL_S)

    def give_back(self, key: str) -> None:
        """Lets go of a key."""
        with suppress(OSError):
            fcntl.lockf(self._file(), fcntl.LOCK_UN, 1, _place(key))

    def _file(self) -> int:
        known = (os.getpid(), self._folder)
        if known not in _files:
            self._folder.mkdir(parents=True, exist_ok=True)
            _files[known] = os.open(self._folder / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return _files[known]


def _place(key: str) -> int:
    return int(key[:15], 16)  # 60 bits: what a file's offset holds
