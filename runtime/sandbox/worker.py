"""The program inside the jail: it forks one fresh process per job and removes everything that a job leaves.

It is the first process of its PID namespace: no process inside can kill it, and it is not dumpable, so none can trace
it or read its memory. It runs no untrusted code itself and never reads a job's data: the job's socket goes to the
forked process alone. After each job it kills and reaps every other process; if files are left it ends, and the pool
starts another jail. Only the standard library, numpy and EvalPlus are imported here.

Control messages (JSON, one per packet on standard input): `{"kind", "wall", "limits"}` with the job's socket
attached, or `{"stop": true}`; answers: `{"ready": true}` once, then per job `{"exit", "signal", "wall", "clean"}`.
"""

import ctypes
import errno
import gc
import json
import marshal
import os
import pickle
import resource
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

from cultureval.runtime.sandbox import codec

FRAME = struct.Struct("<dQ")
FLUSH_BYTES = 1 << 16
FLUSH_SECONDS = 0.02
SCRATCH = ("/tmp", "/dev/shm")
PR_SET_DUMPABLE = 4
# Share of a CPU below which a process counts as waiting, even on a busy machine.
IDLE_SHARE = 0.02


def main() -> None:
    """Serve jobs until the other end of standard input is closed."""
    jailed = os.getpid() == 1
    control = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    _preload()
    control.send(b'{"ready": true}')
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 1 << 16, 1)
        if not message:
            return
        if not descriptors:  # a late request to stop a job that has ended
            continue
        report = _serve(json.loads(message), descriptors[0], control, jailed)
        control.send(json.dumps(report).encode())
        if not report["clean"]:
            return


def _preload() -> None:
    """Import once what jobs need, so that no fork has to."""
    import collections  # noqa: F401
    import math  # noqa: F401
    import typing  # noqa: F401

    import evalplus.eval  # noqa: F401
    import numpy  # noqa: F401

    gc.collect()
    gc.freeze()


def _serve(job: dict[str, Any], descriptor: int, control: socket.socket, jailed: bool) -> dict[str, Any]:
    pid = os.fork()
    if pid == 0:
        control.close()
        os.dup2(0, 2)
        _run_and_leave(job, descriptor)
    os.close(descriptor)
    in_time = _wait(pid, control, time.monotonic() + job["wall"])
    status = _clear(pid, jailed)
    code = os.waitstatus_to_exitcode(status)
    clean = not jailed or not any(os.listdir(folder) for folder in SCRATCH)
    return {"exit": max(code, 0), "signal": max(-code, 0), "wall": not in_time, "clean": clean}


def _wait(pid: int, control: socket.socket, deadline: float) -> bool:
    """Wait until the job's process ends or a stop is requested; returns False when the deadline passed first."""
    handle = os.pidfd_open(pid)
    try:
        while True:
            ready, _, _ = select.select([handle, control], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return False
            if control in ready and not control.recv(1 << 16, socket.MSG_PEEK):
                sys.exit(0)
            if control in ready:
                control.recv(1 << 16)
            return True
    finally:
        os.close(handle)


def _clear(pid: int, jailed: bool) -> int:
    """Kill and reap the job and every process that it left; returns the job's wait status."""
    status = 0
    while True:
        _kill_all(pid, jailed)
        try:
            reaped, result = os.waitpid(-1, 0)
        except ChildProcessError:
            return status
        if reaped == pid:
            status = result


def _kill_all(pid: int, jailed: bool) -> None:
    try:
        if jailed:
            os.kill(-1, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)
            os.killpg(pid, signal.SIGKILL)
    except OSError as error:
        if error.errno not in (errno.ESRCH, errno.EPERM):
            raise


def _run_and_leave(job: dict[str, Any], descriptor: int) -> None:
    """Run a job in the forked process; never returns."""
    try:
        os.setsid()
        data = socket.socket(fileno=descriptor)
        payload = pickle.loads(_receive(data))  # noqa: S301  # written by the trusted side
        _limit(job["limits"])
        KINDS[job["kind"]](payload, data)
        os._exit(0)
    finally:
        os._exit(99)


def _receive(data: socket.socket) -> bytes:
    size = struct.unpack("<Q", data.recv(8, socket.MSG_WAITALL))[0]
    parts = bytearray()
    while len(parts) < size:
        parts += data.recv(min(1 << 20, size - len(parts)))
    return bytes(parts)


def _limit(limits: dict[str, int]) -> None:
    for name, value in limits.items():
        number = getattr(resource, name)
        _, hard = resource.getrlimit(number)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        # EvalPlus raises the stack's limit for its children; the others hold for good.
        resource.setrlimit(number, (value, hard if name == "RLIMIT_STACK" else value))


class _Frames:
    """Sends frames, a few at a time: a system call per output would cost more than most solutions."""

    def __init__(self, data: socket.socket) -> None:
        self.data = data
        self.waiting: list[bytes] = []
        self.size = 0
        self.flushed = time.monotonic()

    def add(self, seconds: float, content: bytes) -> None:
        self.waiting += (FRAME.pack(seconds, len(content)), content)
        self.size += len(content)
        if self.size > FLUSH_BYTES or time.monotonic() - self.flushed > FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        self.data.sendall(b"".join(self.waiting))
        self.waiting, self.size, self.flushed = [], 0, time.monotonic()


class _CallClock:
    """Ends the process, by a signal, when a call takes too long.

    Args:
        idle_factor: A call that only waits ends after this many times its CPU-time limit.
        wall_factor: Any call ends after this many times its CPU-time limit.
    """

    def __init__(self, idle_factor: float, wall_factor: float) -> None:
        self.idle_factor = idle_factor
        self.wall_factor = wall_factor
        self.limit = self.began = self.computed = 0.0
        signal.signal(signal.SIGALRM, self._look)

    def start(self, limit: float) -> None:
        self.limit, self.began, self.computed = limit, time.monotonic(), time.process_time()
        interval = limit * self.idle_factor
        signal.setitimer(signal.ITIMER_PROF, limit)
        signal.setitimer(signal.ITIMER_REAL, interval, interval)

    def stop(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _look(self, *_: object) -> None:
        elapsed, computed = time.monotonic() - self.began, time.process_time() - self.computed
        if computed < IDLE_SHARE * elapsed or elapsed > self.limit * self.wall_factor:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.raise_signal(signal.SIGALRM)


def call_entry_point(payload: dict[str, Any], data: socket.socket) -> None:
    """Execute a solution's code, call its entry point on every input, and send each result as one frame.

    Args:
        payload: `code`, `entry_point`, `inputs` (a list of argument lists), `seconds` (one CPU-time limit per input, or
            None), `idle_factor` and `wall_factor` (see `_CallClock`), `consume_iterators`.
        data: Where the frames go: wall seconds of the call, size, and content. First `L`: the code is loaded; then the
            encoded results; `E` and a type's name for an exception, which ends the job.
    """
    frames = _Frames(data)
    clock = _CallClock(payload["idle_factor"], payload["wall_factor"])
    seconds = payload["seconds"] or [0.0] * len(payload["inputs"])
    try:
        sys.stdin, sys.stdout, sys.stderr = open(os.devnull), open(os.devnull, "w"), open(os.devnull, "w")
        names: dict[str, Any] = {}
        exec(payload["code"], names)  # noqa: S102  # this is what the jail is for
        function = names[payload["entry_point"]]
        frames.add(0.0, b"L")
        encode = codec.encode
        for arguments, limit in zip(payload["inputs"], seconds, strict=True):
            clock.start(limit)
            start = time.time()
            result = function(*arguments)
            spent = time.time() - start
            clock.stop()
            frames.add(spent, encode(result, payload["consume_iterators"]))
            del result
    except BaseException as error:
        frames.add(0.0, b"E" + type(error).__name__[:80].encode("utf-8", "replace"))
    frames.flush()


def judge_with_evalplus(payload: dict[str, Any], data: socket.socket) -> None:
    """Let EvalPlus's own machinery judge a solution, as `evalplus.evaluate` does, and send its verdicts as one frame.

    Args:
        payload: `dataset`, `code`, `entry_point`, `atol` and `suites`: by name `inputs`, `expected` (encoded),
            `seconds` (of the canonical solution).
        data: Where the frame goes: JSON, by suite `[status, details]`.
    """
    from evalplus.eval import untrusted_check

    verdicts = {}
    for name, suite in payload["suites"].items():
        status, details = untrusted_check(
            payload["dataset"],
            payload["code"],
            suite["inputs"],
            payload["entry_point"],
            [_expected(content) for content in suite["expected"]],
            payload["atol"],
            suite["seconds"],
            fast_check=True,
        )
        verdicts[name] = [status, [bool(detail) for detail in details]]
    frames = _Frames(data)
    frames.add(0.0, json.dumps(verdicts).encode())
    frames.flush()


def _expected(content: bytes) -> Any:
    """Read an expected output: of the canonical solution, so the fast reader may be used."""
    return marshal.loads(content[1:]) if content[:1] == b"P" else codec.decode(content)


KINDS: dict[str, Callable[[dict[str, Any], socket.socket], None]] = {
    "call": call_entry_point,
    "evalplus": judge_with_evalplus,
}


if __name__ == "__main__":
    main()
