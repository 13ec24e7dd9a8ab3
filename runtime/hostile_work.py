"""Worker processes for hostile texts: a text that kills its worker costs no other text its result."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from socket import socketpair
from typing import Any

_PARENT_DEATH = 1  # of prctl
_END_SECONDS = 10.0  # that a process gets to end after its connection is lost
_PROGRAM = "import sys; from cultureval.runtime.hostile_work import serve; serve(int(sys.argv[1]))"


@dataclass(frozen=True)
class Ended:
    """In place of the result of an item that ended its process: the exit status, or minus the signal."""

    status: int

    def __str__(self) -> str:
        return f"its process ended with status {self.status}"


@dataclass
class _Process:
    process: subprocess.Popen[bytes]
    connection: Connection

    @classmethod
    def started(cls) -> "_Process":
        parent_end, child_end = socketpair()
        with child_end:
            command = [sys.executable, "-P", "-c", _PROGRAM, str(child_end.fileno())]
            environment = os.environ | {
                "OPENBLAS_NUM_THREADS": "1",
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            }
            process = subprocess.Popen(
                command,
                pass_fds=[child_end.fileno()],
                env=environment,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        return cls(process, Connection(parent_end.detach()))

    def end(self, patience: float = 0.0) -> int:
        """Kills the process unless it ends within `patience` seconds; returns the exit status."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(patience)
        self.process.kill()
        self.connection.close()
        return self.process.wait()


def results(
    function: Callable[[Any], Any], items: Sequence[Any], count: int | None = None
) -> Iterator[tuple[int, Any]]:
    """Applies a function to items in several processes, with one thread each.

    Args:
        function: A function of a module; an exception ends its process.
        items: Objects that can be pickled.
        count: Number of processes; default: one for each CPU.

    Yields:
        The place of an item and its result, as they come; `Ended` where the process ended.
    """
    waiting = list(range(len(items)))[::-1]
    busy: dict[Connection, tuple[_Process, int]] = {}
    idle: list[_Process] = []
    try:
        while waiting or busy:
            while waiting and len(busy) < (count or len(os.sched_getaffinity(0))):
                worker = idle.pop() if idle else _Process.started()
                place = waiting.pop()
                busy[worker.connection] = worker, place
                with suppress(BrokenPipeError, ConnectionResetError):  # it has ended; `wait` below finds it
                    worker.connection.send((function, items[place]))
            for connection in wait(list(busy)):
                worker, place = busy.pop(connection)  # type: ignore[call-overload]
                try:
                    found = worker.connection.recv()
                    idle.append(worker)
                except (EOFError, ConnectionResetError):
                    found = Ended(worker.end(_END_SECONDS))
                yield place, found
    finally:
        for worker in [*idle, *(worker for worker, _ in busy.values())]:
            worker.end()


def serve(descriptor: int) -> None:
    """Serves one parent until it ends."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal; the parent ends this process
    connection = Connection(descriptor)
    with suppress(EOFError):
        while True:
            function, item = connection.recv()
            connection.send(function(item))


def end_with_parent() -> None:
    """Lets the kernel kill this process when the thread that started it ends."""
    ctypes.CDLL(None).prctl(_PARENT_DEATH, signal.SIGKILL, 0, 0, 0)
