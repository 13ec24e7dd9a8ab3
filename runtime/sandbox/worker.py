"""The program inside the jail: it forks one fresh process per job and removes everything that a job leaves.

It is the first process of its PID namespace: no process inside can kill it, and it is not dumpable, so none can trace
it or read its memory. It runs no untrusted code itself and never looks at a job's data: what an ended job has not sent
yet, it passes on as it is. A job's process gives up all rights, installs the system-call filter, and only then runs the
code.
It can start no other process. Each finds an empty /tmp and /dev/shm, mounted anew if the last one has touched them.
Only the standard library and numpy are imported here.

Control messages (JSON, one per packet on standard input): first `{"scratch"}` with the filter's descriptor attached,
then `{"wall", "limits"}` with the job's socket attached, or `{"stop": true}`; answers: `{"ready": true}` once, then per
job `{"exit", "signal", "end", "cpu", "memory"}`.
"""

import builtins
import contextlib
import ctypes
import errno
import gc
import io
import json
import mmap
import os
import pickle
import resource
import select
import signal
import socket
import struct
import sys
import time
from typing import Any

from cultureval.runtime.sandbox import codec

WAITING_BYTES = 1 << 16
LOOK_SECONDS = 0.5
TICK = 0.01  # seconds; of a timer
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS = 0x20000
MS_NOSUID, MS_NODEV, MS_NOATIME, MS_NODIRATIME, MNT_DETACH = 2, 4, 1024, 2048, 2
CLOCK_REALTIME_COARSE = 5  # from which file systems take their times
CAPABILITY_VERSION_3 = 0x20080522
PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 4, 22, 38, 47, 4
SECCOMP_MODE_FILTER = 2
# Share of a CPU below which a process counts as waiting, even on a busy machine.
IDLE_SHARE = 0.02
OF_SITE = {"exit": None, "quit": None, "help": None}  # as EvalPlus leaves these names of the module `site`
_SIZE = struct.Struct("<Q")


def main() -> None:
    """Serve jobs until the other end of standard input is closed."""
    control = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)  # nohup and shells ignore some of them, which jobs would inherit
    LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    message, descriptors, _, _ = socket.recv_fds(control, 1 << 16, 1)
    confine = None
    if descriptors:
        with os.fdopen(descriptors[0], "rb") as file:
            confine = _Confinement(json.loads(message)["scratch"], file.read())
    _preload()
    control.send(b'{"ready": true}')
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 1 << 16, 1)
        if not message:
            return
        if descriptors:  # else it is a late request to stop a job that has ended
            report = _serve(json.loads(message), descriptors[0], control, confine)
            control.send(json.dumps(report).encode())


def _preload() -> None:
    """Import once what jobs need, so that no fork has to."""
    import bisect  # noqa: F401
    import collections  # noqa: F401
    import functools  # noqa: F401
    import heapq  # noqa: F401
    import math  # noqa: F401
    import operator  # noqa: F401
    import re  # noqa: F401
    import site
    import typing  # noqa: F401

    import numpy  # noqa: F401

    site.setcopyright()  # the names `copyright`, `credits` and `license`, which EvalPlus leaves as they are
    gc.collect()
    gc.freeze()


class _Confinement:
    """What a job's process does to itself in a jail; without one (`--unsafe-no-sandbox`) there is none.

    Args:
        scratch: By folder, the options of the tmpfs that is mounted there.
        program: The compiled system-call filter.
    """

    def __init__(self, scratch: dict[str, str], program: bytes) -> None:
        self.scratch = scratch
        self.program = program
        self.untouched: dict[str, int] = {}  # by folder, when it last changed: when it was mounted
        _checked(LIBC.unshare(CLONE_NEWNS))  # mounts can be added to namespaces of one's own alone

    def renew_scratch(self) -> None:
        """Mount new empty folders, between two jobs, in place of those that the last job has touched.

        Whatever a job does to a folder, or makes and deletes in it, changes the folder's ctime, which nobody can set;
        the filter refuses files that never had a name, and looking leaves no trace.
        """
        flags = MS_NOSUID | MS_NODEV | MS_NOATIME | MS_NODIRATIME
        for folder, options in self.scratch.items():
            earlier = self.untouched.pop(folder, None)
            if earlier is None or os.stat(folder).st_ctime_ns != earlier:
                if earlier is not None:
                    _checked(LIBC.umount2(folder.encode(), MNT_DETACH))
                _checked(LIBC.mount(b"tmpfs", folder.encode(), b"tmpfs", flags, options.encode()))
            self.untouched[folder] = os.stat(folder).st_ctime_ns
        while time.clock_gettime_ns(CLOCK_REALTIME_COARSE) <= max(self.untouched.values()):
            time.sleep(0.001)  # so that each change gives another ctime

    def give_up_rights(self) -> None:
        """Give up the right to mount."""
        os.chdir("/tmp")
        _checked(LIBC.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
        _checked(LIBC.capset((ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)()))

    def filter_system_calls(self) -> None:
        """Install the filter, which no later code can remove."""
        code = ctypes.create_string_buffer(self.program, len(self.program))
        header = struct.pack("HP", len(self.program) // 8, ctypes.addressof(code))
        _checked(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _checked(LIBC.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, header, 0, 0))


def _checked(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _serve(
    job: dict[str, Any], descriptor: int, control: socket.socket, confine: _Confinement | None
) -> dict[str, Any]:
    if confine:
        confine.renew_scratch()
    with socket.socket(fileno=descriptor) as data, _Frames(data) as frames:
        pid = os.fork()
        if pid == 0:
            control.close()
            os.dup2(0, 2)
            _run_and_leave(job, frames, confine)
        end = _wait(pid, control, time.monotonic() + job["wall"])
        status, cpu, memory = _clear(pid, confine is not None)
        with contextlib.suppress(OSError):  # the judge reads no more
            frames.flush()
    code = os.waitstatus_to_exitcode(status)
    return {"exit": max(code, 0), "signal": max(-code, 0), "end": end, "cpu": cpu, "memory": memory}


def _wait(pid: int, control: socket.socket, deadline: float) -> str:
    """Wait for the end of the job's process: `done`, `stopped` on request, `halted` by a signal, or `wall`."""
    handle = os.pidfd_open(pid)
    try:
        while (left := deadline - time.monotonic()) > 0:
            ready, _, _ = select.select([handle, control], [], [], min(left, LOOK_SECONDS))
            if handle in ready:
                return "done"
            if control in ready:
                if not control.recv(1 << 16):
                    sys.exit(0)
                return "stopped"
            with contextlib.suppress(ChildProcessError):  # it has ended in this moment
                if os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT):
                    return "halted"
        return "wall"
    finally:
        os.close(handle)


def _clear(pid: int, jailed: bool) -> tuple[int, float, int]:
    """Kill and reap the job and, without a jail, the processes that it started.

    Returns:
        The job's wait status, its CPU time in seconds, and the most memory that it had, in bytes.
    """
    status, cpu, memory = 0, 0.0, 0
    while True:
        try:
            os.kill(-1 if jailed else pid, signal.SIGKILL)
            if not jailed:
                os.killpg(pid, signal.SIGKILL)
        except OSError as error:
            if error.errno not in (errno.ESRCH, errno.EPERM):
                raise
        try:
            reaped, result, usage = os.wait4(-1, 0)
        except ChildProcessError:
            return status, cpu, memory
        if reaped == pid:
            status, cpu, memory = result, usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10


def _run_and_leave(job: dict[str, Any], frames: "_Frames", confine: _Confinement | None) -> None:
    """Run a job in the forked process; never returns. Status 99 means that its preparation failed."""
    try:
        os.setsid()
        if confine:
            confine.give_up_rights()
        payload = pickle.loads(_receive(frames.data))  # noqa: S301  # written by the trusted side
        _limit(job["limits"])
        if confine:
            confine.filter_system_calls()
        frames.data.send(b"!")
        call_entry_point(payload, frames)
        os._exit(0)
    finally:
        os._exit(99)


def _receive(data: socket.socket) -> bytes:
    size = _SIZE.unpack(data.recv(_SIZE.size, socket.MSG_WAITALL))[0]
    parts = bytearray()
    while len(parts) < size:
        parts += data.recv(min(1 << 20, size - len(parts)))
    return bytes(parts)


def _limit(limits: dict[str, int]) -> None:
    for name, value in limits.items():
        number = getattr(resource, name)
        _, hard = resource.getrlimit(number)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        # SIGXCPU comes at the first limit of CPU time, and SIGKILL, which says less, at the second.
        resource.setrlimit(number, (value, value + 1 if name == "RLIMIT_CPU" else value))


class _Frames:
    """Sends frames, a few at a time: a system call per output would cost more than most solutions.

    Those that wait are in memory shared with the process that forks the job's, which sends them when the job has ended:
    so a call that meets a limit takes none of those before it along. A job can write anything there, as it can send it.
    """

    def __init__(self, data: socket.socket) -> None:
        self.data = data
        self._waiting = mmap.mmap(-1, _SIZE.size + WAITING_BYTES)  # new for each job: none sees another's

    def __enter__(self) -> "_Frames":
        return self

    def __exit__(self, *_: object) -> None:
        self._waiting.close()

    def add(self, seconds: float, content: bytes) -> None:
        frame = codec.FRAME.pack(seconds, len(content)) + content
        start = _SIZE.size + self._size()
        if start + len(frame) > len(self._waiting):
            self.flush()
            start = _SIZE.size
        if len(frame) > WAITING_BYTES:
            self.data.sendall(frame)
            return
        self._waiting[start : start + len(frame)] = frame
        _SIZE.pack_into(self._waiting, 0, start - _SIZE.size + len(frame))

    def flush(self) -> None:
        waiting = self._waiting[_SIZE.size : _SIZE.size + self._size()]
        _SIZE.pack_into(self._waiting, 0, 0)
        self.data.sendall(waiting)

    def _size(self) -> int:
        return _SIZE.unpack_from(self._waiting)[0]


class _CallClock:
    """Ends the process, by a signal, when a call takes too long: SIGPROF for its CPU time, SIGALRM for its wall time.

    Args:
        idle_factor: A call that only waits ends after this many times its CPU-time limit.
        wall_factor: Any call ends after this many times its CPU-time limit.
        seconds: CPU time of all calls together; what their results take to be sent is no part of it.
    """

    def __init__(self, idle_factor: float, wall_factor: float, seconds: float) -> None:
        self.idle_factor = idle_factor
        self.wall_factor = wall_factor
        self.left = seconds
        self.limit = self.began = self.computed = 0.0
        signal.signal(signal.SIGALRM, self._look)

    def start(self, limit: float) -> None:
        limit = min(limit, max(self.left, TICK))
        self.limit, self.began, self.computed = limit, time.monotonic(), time.process_time()
        interval = limit * self.idle_factor
        signal.setitimer(signal.ITIMER_PROF, limit)
        signal.setitimer(signal.ITIMER_REAL, interval, interval)

    def stop(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.left -= time.process_time() - self.computed

    def _look(self, *_: object) -> None:
        elapsed, computed = time.monotonic() - self.began, time.process_time() - self.computed
        if computed < IDLE_SHARE * elapsed or elapsed > self.limit * self.wall_factor:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.raise_signal(signal.SIGALRM)


def call_entry_point(payload: dict[str, Any], frames: _Frames) -> None:
    """Execute a solution's code, call its entry point on every input, and send each result as one frame.

    Args:
        payload: `code`, `entry_point`, `inputs` (a list of argument lists), `seconds` (one CPU-time limit per input, or
            None), `idle_factor`, `wall_factor` and `all_seconds` (see `_CallClock`), `as_set` (results are compared as
            sets).
        frames: Take wall seconds of the call, and content. First `L`: the code is loaded; then the encoded results; `E`
            and a type's name for an exception, which ends the job.
    """
    clock = _CallClock(payload["idle_factor"], payload["wall_factor"], payload["all_seconds"])
    seconds = payload["seconds"] or [0.0] * len(payload["inputs"])
    now, printed = time.time, io.StringIO  # before the code can replace them
    try:
        sys.stdin = open(os.devnull)
        sys.stdout = sys.stderr = printed()  # as under EvalPlus; a new one for each call
        builtins.__dict__.update(OF_SITE)
        names: dict[str, Any] = {}
        exec(payload["code"].removeprefix("\ufeff"), names)  # noqa: S102  # this is what the jail is for
        function = names[payload["entry_point"]]
        frames.add(0.0, b"L")
        for arguments, limit in zip(payload["inputs"], seconds, strict=True):
            sys.stdout = sys.stderr = printed()
            clock.start(limit)
            start = now()
            result = function(*arguments)
            spent = now() - start
            clock.stop()
            frames.add(spent, (encode_as_set if payload["as_set"] else codec.encode)(result))
            del result
    except BaseException as error:
        frames.add(0.0, b"E" + type(error).__name__[:80].encode("utf-8", "replace"))


def encode_as_set(result: Any) -> bytes:
    """Encode what EvalPlus makes of a result where it compares sets; None where it cannot, which is no set either.

    EvalPlus compares the result itself with the expected value first: the mark of objects that it asks is of that, and
    an array stays one, since its length matters.
    """
    import numpy

    asked = codec.encode(result)[:1] == codec.ASKS
    try:
        made = result if isinstance(result, numpy.ndarray) else set(result)
    except Exception:
        made = None
    return codec.encode(made, asked)


if __name__ == "__main__":
    main()
