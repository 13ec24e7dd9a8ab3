"""The pool of bubblewrap jails that run generated code, each with a preloaded interpreter for one job at a time.

A job is one solution and one set of inputs. It runs in a process of its own, forked inside the jail from a worker
that has numpy loaded and holds nothing else; every process that it leaves is killed and reaped before the next job. A
job sends back bytes, which are not interpreted here.
"""

import contextlib
import json
import os
import queue
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any, Literal, Self, TypeVar

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.sandbox.jail import SandboxLimits, SandboxUnavailable, bare_command, jail_command
from cultureval.runtime.sandbox.system_call_filter import export_filter

__all__ = [
    "Job",
    "JobEnd",
    "Sandbox",
    "SandboxBroken",
    "SandboxLimits",
    "SandboxPair",
    "SandboxPool",
    "SandboxUnavailable",
]

Item = TypeVar("Item")
Result = TypeVar("Result")

_FRAME = struct.Struct("<dQ")
_START_SECONDS = 120.0
_REPORT_SECONDS = 20.0
_POLL_SECONDS = 0.1


class SandboxBroken(CulturevalError):
    """A jail ended unexpectedly or does not answer: the sandbox failed, which says nothing about the solution."""


@dataclass(frozen=True)
class JobEnd:
    """How a job ended.

    Args:
        outcome: `done`: it finished; `stopped`: the reader stopped it; `wall`, `memory`, `output`: it exceeded a limit.
        signal: The signal that ended the job's process, or 0.
        exit: Its exit status otherwise.
    """

    outcome: Literal["done", "stopped", "wall", "memory", "output"]
    signal: int = 0
    exit: int = 0

    def describe(self) -> str:
        """What ended the job, in a few words, for the reason of a verdict."""
        if self.outcome != "done":
            return self.outcome if self.outcome == "stopped" else f"{self.outcome} limit"
        if self.signal in (signal.SIGPROF, signal.SIGALRM, signal.SIGXCPU):
            return "time limit"
        if self.signal:
            return f"ended by {signal.Signals(self.signal).name}"
        return f"exited with status {self.exit}"


class Sandbox:
    """One jail, started at first use and restarted whenever a job has damaged it; used by one thread at a time."""

    def __init__(self, limits: SandboxLimits | None = None, safe: bool = True) -> None:
        self.limits = limits or SandboxLimits()
        self.safe = safe
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._errors: IO[bytes] | None = None
        self._ended = False

    def start(self) -> None:
        """Start the jail unless it is running.

        Raises:
            SandboxUnavailable: If this machine cannot run it.
        """
        if self._process is not None:
            return
        if self._ended:
            raise SandboxBroken("the sandbox was ended")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control, self._errors = ours, tempfile.TemporaryFile()
        with theirs:
            self._process = self._launch(theirs)
        ours.settimeout(_START_SECONDS)
        with contextlib.suppress(OSError):
            if ours.recv(1 << 10) and not self._ended:
                return
        self._errors.seek(0)
        message = self._errors.read().decode("utf-8", "replace").strip().splitlines() or ["no message"]
        self.close()
        if self._ended:
            raise SandboxBroken("the sandbox was ended")
        raise SandboxUnavailable(
            f"the sandbox does not start ({message[-1][:300]}): it needs bubblewrap 0.8 or newer and unprivileged user "
            "namespaces (sysctl user.max_user_namespaces above 0 and, on Ubuntu, "
            "kernel.apparmor_restrict_unprivileged_userns 0; in a container, one that allows them)"
        )

    def _launch(self, control: socket.socket) -> subprocess.Popen[bytes]:
        settings: dict[str, Any] = {"stdin": control, "stdout": subprocess.DEVNULL, "stderr": self._errors}
        settings["start_new_session"] = True  # Ctrl-C must not reach the jail
        if not self.safe:
            command, environment = bare_command(self.limits)
            return subprocess.Popen(command, env=environment, cwd=tempfile.gettempdir(), **settings)
        descriptor = export_filter()
        try:
            return subprocess.Popen(jail_command(self.limits, descriptor), pass_fds=(descriptor,), **settings)
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """End the jail and everything in it; returns when it is gone."""
        if self._control is not None:
            self._control.close()  # the worker ends at once, and with it its PID namespace
        if self._process is not None:
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._errors is not None:
            self._errors.close()
        self._process = self._control = self._errors = None

    def interrupt(self) -> None:
        """End the jail for good, from another thread, so that the thread that reads from it continues."""
        self._ended = True
        control = self._control
        if control is not None:
            with contextlib.suppress(OSError):
                control.shutdown(socket.SHUT_RDWR)

    @contextlib.contextmanager
    def job(self, kind: str, payload: bytes, wall_seconds: float, cpu_seconds: int) -> "Iterator[Job]":
        """Start a job; leaving the context ends it and cleans the jail.

        Args:
            kind: A key of `worker.KINDS`.
            payload: The function's argument, pickled.
            wall_seconds: Time after which all processes of the job are killed.
            cpu_seconds: CPU time of each of its processes.

        Raises:
            SandboxBroken: If the jail itself failed.
            SandboxUnavailable: If no jail can be started.
        """
        self.start()
        assert self._control is not None and self._process is not None
        ours, theirs = socket.socketpair()
        request = {"kind": kind, "wall": wall_seconds, "limits": self.limits.resource_limits(cpu_seconds)}
        job = Job(ours, self, time.monotonic() + wall_seconds + _REPORT_SECONDS)
        try:
            with theirs:
                socket.send_fds(self._control, [json.dumps(request).encode()], [theirs.fileno()])
            job.send(payload)
            yield job
            job.end = self._finish(job)
        except OSError as error:
            raise SandboxBroken(f"the sandbox failed ({error})") from error
        finally:
            ours.close()
            if job.end is None:
                self.close()

    def _finish(self, job: "Job") -> JobEnd:
        if job.over_limit is not None and job.over_limit != "output":
            self.close()
            return JobEnd(job.over_limit)
        assert self._control is not None
        job.connection.close()
        stopped = not job.exhausted
        if stopped:
            self._control.send(b'{"stop": true}')
        self._control.settimeout(max(_REPORT_SECONDS, job.deadline - time.monotonic()))
        message = self._control.recv(1 << 10)
        if not message:
            raise SandboxBroken("the sandbox's worker ended")
        report = json.loads(message)
        if not report["clean"]:
            self.close()
        if job.over_limit:
            return JobEnd(job.over_limit)
        outcome = "wall" if report["wall"] else "stopped" if stopped else "done"
        return JobEnd(outcome, report["signal"], report["exit"])

    def resident_mib(self) -> int:
        """Return the resident memory of all processes of the jail, shared pages counted in each."""
        pages, waiting = 0, [self._process.pid] if self._process else []
        while waiting:
            pid = waiting.pop()
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{pid}/statm") as file:
                    pages += int(file.read().split()[1])
                for thread in os.listdir(f"/proc/{pid}/task"):
                    with open(f"/proc/{pid}/task/{thread}/children") as file:
                        waiting += map(int, file.read().split())
        return pages * os.sysconf("SC_PAGE_SIZE") >> 20


class Job:
    """A running job: iterating gives its frames, `(seconds, content)`; `end` is set when its context is left."""

    def __init__(self, connection: socket.socket, sandbox: Sandbox, deadline: float) -> None:
        self.connection = connection
        self.sandbox = sandbox
        self.deadline = deadline
        self.end: JobEnd | None = None
        self.exhausted = False
        self.over_limit: Literal["wall", "memory", "output"] | None = None
        self._left = sandbox.limits.output_mib << 20
        self._next_glance = 0.0
        self._buffer = bytearray()

    def send(self, payload: bytes) -> None:
        """Send the job its payload; a job that dies first is no error here."""
        self.connection.settimeout(max(1.0, self.deadline - time.monotonic()))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.connection.sendall(struct.pack("<Q", len(payload)))
            self.connection.sendall(payload)
        self.connection.settimeout(_POLL_SECONDS)
        self._next_glance = time.monotonic() + _POLL_SECONDS

    def __iter__(self) -> Iterator[tuple[float, bytes]]:
        """Yield complete frames until the job ends or passes a limit; an incomplete last frame is dropped."""
        while (header := self._take(_FRAME.size)) is not None:
            seconds, size = _FRAME.unpack(header)
            self._left -= size + _FRAME.size
            if self._left < 0:
                self.over_limit = "output"
                return
            content = self._take(size)
            if content is None:
                return
            yield seconds, content

    def _take(self, size: int) -> bytes | None:
        buffer = self._buffer
        while len(buffer) < size:
            part = self._receive(max(1 << 16, min(size - len(buffer), 1 << 20)))
            if not part:
                return None
            buffer += part
        taken = bytes(memoryview(buffer)[:size])
        del buffer[:size]
        return taken

    def _receive(self, size: int) -> bytes:
        while True:
            # Poll by the clock, not when no data come: a trickle of bytes must not delay the check of limits.
            if time.monotonic() > self._next_glance:
                if not self._within_limits():
                    return b""
                self._next_glance = time.monotonic() + _POLL_SECONDS
            try:
                part = self.connection.recv(size)
                self.exhausted = not part
                return part
            except TimeoutError:
                continue
            except ConnectionResetError:
                self.exhausted = True
                return b""

    def _within_limits(self) -> bool:
        if time.monotonic() > self.deadline:
            raise SandboxBroken("the sandbox's worker does not end a job that has exceeded its time")
        if self.sandbox.resident_mib() > self.sandbox.limits.total_memory_mib:
            self.over_limit = "memory"
        return self.over_limit is None


@dataclass(frozen=True)
class SandboxPair:
    """The two sandboxes of one worker: expected outputs given to one must never reach the solution in the other.

    Args:
        blind: Never sees an expected output; the solutions that are scored run here.
        informed: May be given expected outputs; nothing that is scored runs here.
    """

    blind: Sandbox
    informed: Sandbox


class SandboxPool:
    """Several pairs of sandboxes, each driven by its own thread; leaving the context ends all processes.

    Args:
        workers: Number of pairs; by default one for each CPU that this process may use.
        limits: Resources that one job may use.
        safe: False runs the same workers without any jail, with a warning.

    Raises:
        SandboxUnavailable: On entering, if this machine cannot run the sandbox.
    """

    def __init__(self, workers: int | None = None, limits: SandboxLimits | None = None, safe: bool = True) -> None:
        if workers is not None and workers < 1:
            raise CulturevalError(f"the number of workers must be at least 1, not {workers}")
        self.workers = workers or len(os.sched_getaffinity(0))
        self.limits = limits or SandboxLimits()
        self.safe = safe
        self._pairs: list[SandboxPair] = []
        self._threads: list[threading.Thread] = []
        self._tasks: queue.SimpleQueue[Callable[[SandboxPair], None] | None] = queue.SimpleQueue()
        self._stopping = False

    def __enter__(self) -> Self:
        """Start one thread per pair, and the first sandbox to see whether this machine can."""
        if not self.safe:
            warnings.warn(
                "UNSAFE: generated code runs without a sandbox, with your rights, on this machine", stacklevel=2
            )
        with contextlib.closing(Sandbox(self.limits, self.safe)) as probe:
            probe.start()
        for _ in range(self.workers):
            pair = SandboxPair(Sandbox(self.limits, self.safe), Sandbox(self.limits, self.safe))
            thread = threading.Thread(target=self._drive, args=(pair,), daemon=True)
            self._pairs.append(pair)
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End all sandboxes, also in the middle of a job."""
        self._stopping = True
        for _ in self._threads:
            self._tasks.put(None)
        for pair in self._pairs:
            pair.blind.interrupt()
            pair.informed.interrupt()
        for thread in self._threads:
            thread.join()

    def _drive(self, pair: SandboxPair) -> None:
        # The thread that starts a jail must outlive it: bubblewrap dies with its parent thread.
        with contextlib.closing(pair.blind), contextlib.closing(pair.informed):
            while not self._stopping and (task := self._tasks.get()) is not None:
                task(pair)

    def run(self, function: Callable[[SandboxPair, Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Apply a function to items, each with exclusive use of a pair of sandboxes; yield results as they come.

        Raises:
            Exception: The first one that the function raises; remaining items are not started.
        """
        done: queue.SimpleQueue[tuple[Result | None, BaseException | None]] = queue.SimpleQueue()

        def attempt(item: Item, pair: SandboxPair) -> None:
            try:
                done.put((function(pair, item), None))
            except BaseException as error:
                done.put((None, error))

        count = 0
        for item in items:
            self._tasks.put(lambda pair, item=item: attempt(item, pair))
            count += 1
        for _ in range(count):
            result, error = done.get()
            if error is not None:
                raise error
            yield result  # type: ignore[misc]
