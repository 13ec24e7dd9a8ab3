"""The pool of bubblewrap jails that run generated code, each with a preloaded interpreter for one job at a time.

A job is one solution and one set of inputs. It runs in a process of its own, forked inside the jail from a worker
that has numpy loaded and holds nothing else. What a job sends back goes into a file, in bounded size and uninterpreted,
and nothing goes to the job but its code and inputs: it cannot see what becomes of its outputs, which are read later.
"""

import contextlib
import errno
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
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any, Literal, Self, TypeVar

from cultureval.runtime.errors import CulturevalError, described
from cultureval.runtime.sandbox.jail import (
    SandboxLimits,
    SandboxUnavailable,
    bare_command,
    jail_command,
    scratch_options,
)
from cultureval.runtime.sandbox.system_call_filter import export_filter

Item = TypeVar("Item")
Result = TypeVar("Result")

_START_SECONDS = 120.0
_REPORT_SECONDS = 20.0
_PREPARED = b"!"
_LOOK_BYTES = 1 << 22  # of outputs, after which the disk is looked at again
_MUCH_MEMORY = 1 << 30  # of a job that the kernel kills: then it has brought that about itself
_ROOM_BYTES = 64 << 20  # that outputs leave on the disk, for other jobs' and for what the judge itself keeps


class SandboxBroken(CulturevalError):
    """A jail ended unexpectedly or does not answer: the sandbox failed, which says nothing about the solution."""


class DiskFull(CulturevalError):
    """The disk has no room for what every job may send, as where it was full before, or is small for several jobs.

    It is an error of the run, which says nothing of any job.
    """

    def __init__(self, error: OSError) -> None:
        super().__init__(
            f"The outputs of generated code cannot be written to {tempfile.gettempdir()} ({described(error)}), where "
            "there is too little room for what the programs of all --workers may return: make room, set TMPDIR to "
            "another folder, or give fewer --workers. Verdicts so far are kept; the same command goes on from there."
        )


def is_full(error: OSError) -> bool:
    """Whether an error says that a disk, or what a user may store there, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class OutputSize:
    """How much a job may send.

    Args:
        most: Bytes; a job that sends more is ended.
        usual: Bytes up to which that is no flood: a disk that is full before has too little room for jobs.
    """

    most: int = 256 << 20
    usual: int = 256 << 20


@dataclass(frozen=True)
class JobEnd:
    """How a job ended.

    Args:
        outcome: `done`: its process ended; `wall`, `output`: it exceeded a limit; `disk`: its outputs left no room on
            the disk; `halted`: it stopped itself.
        signal: The signal that ended the job's process, or 0.
        exit: Its exit status otherwise.
        memory: The most that it had, in bytes.
    """

    outcome: Literal["done", "wall", "output", "disk", "halted"]
    signal: int = 0
    exit: int = 0
    memory: int = 0

    @property
    def is_kill(self) -> bool:
        """Whether the kernel killed it, as it does where the machine's memory is short, and not for what it took."""
        return self.outcome == "done" and self.signal == signal.SIGKILL and self.memory < _MUCH_MEMORY

    @property
    def is_interruption(self) -> bool:
        """Whether a signal or a limit of time ended it, so that it might go on elsewhere."""
        return self.outcome in ("wall", "halted") or self.signal != 0 and self.outcome == "done"

    @property
    def waits_for_the_machine(self) -> bool:
        """Whether a limit of wall time ended it, which a busy machine reaches sooner."""
        return self.outcome == "wall" or self.is_late_call

    @property
    def is_late_call(self) -> bool:
        """Whether the limit of wall time of a call ended it."""
        return self.outcome == "done" and self.signal == signal.SIGALRM

    def describe(self) -> str:
        """What ended the job, in a few words, for the reason of a verdict."""
        if self.outcome == "wall":
            return "limit of the wall time of all calls"
        if self.outcome != "done":
            return _OTHER_ENDS[self.outcome]
        if self.signal in _LIMIT_SIGNALS:
            return _LIMIT_SIGNALS[self.signal]
        return f"ended by {signal_name(self.signal)}" if self.signal else f"exited with status {self.exit}"


_OTHER_ENDS = {
    "output": "limit of the outputs' size",
    "disk": "its outputs fill the disk",
    "halted": "stopped itself by a signal",
}
_LIMIT_SIGNALS = {
    signal.SIGPROF: "CPU-time limit",
    signal.SIGALRM: "wall-time limit",
    signal.SIGXCPU: "limit of the CPU time of all calls",
    signal.SIGKILL: "killed by the kernel, as where the machine has too little memory",
}


def signal_name(number: int) -> str:
    """The name of any signal of Linux, also of those without one in Python, such as `SIGRTMIN+6`."""
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    first = signal.SIGRTMIN
    return f"SIGRTMIN+{number - first}" if first < number < signal.SIGRTMAX else f"signal {number}"


@contextlib.contextmanager
def _on(cpus: Collection[int]) -> Iterator[None]:
    """A context in which this thread, and what it starts, runs on some CPUs alone."""
    earlier = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, earlier)


def shares_of_cpus(workers: int) -> list[list[int]]:
    """The CPUs of each of several jails: as many for each, and none for two as long as there are enough."""
    cpus = sorted(os.sched_getaffinity(0))
    return [cpus[number % len(cpus) :: workers] for number in range(workers)]


class Sandbox:
    """One jail, started at first use; used by one thread at a time.

    Args:
        safe: False runs the worker without any jail.
        cpus: The CPUs that it may use; default: those of this process.
    """

    def __init__(self, safe: bool = True, cpus: Collection[int] = ()) -> None:
        self.limits = SandboxLimits()
        self.safe = safe
        self._cpus = cpus or os.sched_getaffinity(0)
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
        with theirs, _on(self._cpus):
            self._launch(ours, theirs)
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

    def _launch(self, ours: socket.socket, control: socket.socket) -> None:
        settings: dict[str, Any] = {"stdin": control, "stdout": subprocess.DEVNULL, "stderr": self._errors}
        settings["start_new_session"] = True  # Ctrl-C must not reach the jail
        if not self.safe:
            command, environment = bare_command()
            self._process = subprocess.Popen(command, env=environment, cwd=tempfile.gettempdir(), **settings)
            ours.send(b"{}")
            return
        descriptor = export_filter()
        try:
            self._process = subprocess.Popen(jail_command(self.limits), **settings)
            request = json.dumps({"scratch": scratch_options(self.limits)}).encode()
            with contextlib.suppress(OSError):  # it may have ended already, with a message
                socket.send_fds(ours, [request], [descriptor])
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

    @property
    def is_interrupted(self) -> bool:
        """Whether it has been ended for good."""
        return self._ended

    def interrupt(self) -> None:
        """End the jail for good, from another thread, so that the thread that reads from it continues."""
        self._ended = True
        control = self._control
        if control is not None:
            with contextlib.suppress(OSError):
                control.shutdown(socket.SHUT_RDWR)

    def run(
        self,
        payload: bytes,
        wall_seconds: float,
        cpu_seconds: int,
        outputs: IO[bytes],
        size: OutputSize = OutputSize(),  # it cannot change
    ) -> JobEnd:
        """Run one job to its end.

        Args:
            payload: The argument of `worker.call_entry_point`, pickled.
            wall_seconds: Time after which the job is killed.
            cpu_seconds: CPU time of its process.
            outputs: An empty file, for the frames that the job sends; untrusted.
            size: How large it may become.

        Raises:
            SandboxBroken: If the jail itself failed.
            SandboxUnavailable: If no jail can be started.
            DiskFull: If `outputs` cannot be written, for no fault of the job.
        """
        self.start()
        assert self._control is not None
        ours, theirs = socket.socketpair()
        request = {"wall": wall_seconds, "limits": self.limits.resource_limits(cpu_seconds)}
        try:
            with ours:
                with theirs:
                    socket.send_fds(self._control, [json.dumps(request).encode()], [theirs.fileno()])
                stopped = self._receive(ours, payload, wall_seconds + _REPORT_SECONDS, outputs, size)
            if stopped:
                self._control.send(b'{"stop": true}')
            self._control.settimeout(wall_seconds + _REPORT_SECONDS)
            message = self._control.recv(1 << 10)
            if not message:
                raise OSError("its worker ended")
        except OSError as error:
            self.close()
            raise SandboxBroken(f"the sandbox failed ({error})") from error
        report = json.loads(message)
        number = report["signal"]
        if number == signal.SIGKILL and report["cpu"] > cpu_seconds / 2:
            number = signal.SIGXCPU  # that it has ignored; on a busy machine the limit counts more than was used
        return JobEnd(stopped or report["end"], number, report["exit"], report["memory"])

    def _receive(
        self, connection: socket.socket, payload: bytes, seconds: float, outputs: IO[bytes], size: OutputSize
    ) -> Literal["output", "disk", ""]:
        """Send the job its payload and receive all that it sends; which limit of its outputs it met, or ""."""
        connection.settimeout(seconds)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(struct.pack("<Q", len(payload)))
            connection.sendall(payload)
        deadline, sent = time.monotonic() + seconds, 0
        prepared = False
        while True:
            connection.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                part = connection.recv(1 << 18)
            except ConnectionResetError:
                part = b""
            if prepared and not part:
                return ""
            if not prepared and part[:1] != _PREPARED:
                raise OSError("a job could not be prepared")
            part, prepared = part if prepared else part[1:], True
            looks, sent = sent // _LOOK_BYTES, sent + len(part)
            if sent > size.most:
                return "output"
            if sent > size.usual and sent // _LOOK_BYTES > looks and _room(outputs) < _ROOM_BYTES:
                return "disk"
            try:
                outputs.write(part)
                outputs.flush()
            except OSError as error:
                if sent > size.usual and is_full(error):
                    return "disk"
                self.close()
                raise DiskFull(error) from error


def _room(file: IO[bytes]) -> int:
    """Bytes that the disk of a file has left."""
    disk = os.fstatvfs(file.fileno())
    return disk.f_bavail * disk.f_frsize


class SandboxPool:
    """Several sandboxes, each driven by its own thread; leaving the context ends all processes.

    Each has its own part of the CPUs, which no job can leave, so that no job takes CPU time from another's.

    Args:
        workers: Number of sandboxes; by default one for each CPU that this process may use.
        safe: False runs the same workers without any jail, with a warning.

    Raises:
        SandboxUnavailable: On entering, if this machine cannot run the sandbox.
    """

    def __init__(self, workers: int | None = None, safe: bool = True) -> None:
        if workers is not None and workers < 1:
            raise CulturevalError(f"the number of workers must be at least 1, not {workers}")
        self.workers = workers or len(os.sched_getaffinity(0))
        self.safe = safe
        self._sandboxes: list[Sandbox] = []
        self._threads: list[threading.Thread] = []
        self._tasks: queue.SimpleQueue[Callable[[Sandbox], None] | None] = queue.SimpleQueue()
        self._stopping = False

    def __enter__(self) -> Self:
        """Start one thread per sandbox, and the first sandbox to see whether this machine can."""
        if not self.safe:
            warnings.warn(
                "UNSAFE: generated code runs without a sandbox, with your rights, on this machine", stacklevel=2
            )
        started: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        for number, cpus in enumerate(shares_of_cpus(self.workers)):
            sandbox = Sandbox(self.safe, cpus)
            thread = threading.Thread(target=self._drive, args=(sandbox, started if number == 0 else None), daemon=True)
            self._sandboxes.append(sandbox)
            self._threads.append(thread)
            thread.start()
        problem = started.get()
        if problem is not None:
            self.__exit__()
            raise problem
        return self

    def __exit__(self, *_: object) -> None:
        """End all sandboxes, also in the middle of a job."""
        self._stopping = True
        for _ in self._threads:
            self._tasks.put(None)
        for sandbox in self._sandboxes:
            sandbox.interrupt()
        for thread in self._threads:
            thread.join()

    def _drive(self, sandbox: Sandbox, started: "queue.SimpleQueue[BaseException | None] | None") -> None:
        # The thread that starts a jail must outlive it: bubblewrap dies with its parent thread.
        with contextlib.closing(sandbox):
            if started is not None:
                try:
                    sandbox.start()
                    started.put(None)
                except BaseException as error:
                    started.put(error)
            while not self._stopping and (task := self._tasks.get()) is not None:
                task(sandbox)

    def run(self, function: Callable[[Sandbox, Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Apply a function to items, each with exclusive use of a sandbox; yield results as they come.

        Raises:
            Exception: The first one that the function raises; remaining items are not started.
        """
        done: queue.SimpleQueue[tuple[Result | None, BaseException | None]] = queue.SimpleQueue()

        def attempt(item: Item, sandbox: Sandbox) -> None:
            try:
                done.put((function(sandbox, item), None))
            except BaseException as error:
                done.put((None, error))

        count = 0
        for item in items:
            self._tasks.put(lambda sandbox, item=item: attempt(item, sandbox))
            count += 1
        for _ in range(count):
            result, error = done.get()
            if error is not None:
                raise error
            yield result  # type: ignore[misc]
