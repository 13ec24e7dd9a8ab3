"""The first process of a jail: it forks a process for each suite of a solution, and reports how each ended.

It mounts a small /tmp and /dev/shm, drops all rights, and then forks. The forked process limits itself, installs the
system-call filter, and only then runs the generated code. It cannot signal, trace or limit the first process, nor start
another. Only the standard library is imported here.

Standard input has orders (marshal): the set-up, then one for each suite. Standard output gets `R` once, then a `REPORT`
for each suite. Each suite has a pipe for the frames of its outputs; the arguments are the pipes' numbers.
"""

import _signal as signal  # type: ignore[import-not-found]  # `signal` imports many modules
import builtins
import ctypes
import io
import marshal
import os
import resource
import select
import struct
import sys
import time
from typing import Any

from cultureval.runtime.sandbox import codec

REPORT = struct.Struct("<i?")  # of a suite, by `status_of`
MUCH_MEMORY = 1 << 30  # a program that used this much caused its own kill
CONFINED, LOADED = b"P", b"L"  # kinds of frames: the process is confined, the code is loaded
VALUE, RAISED = b"V", b"E"  # the result of a call, an exception of loading or of a call
WALL_FACTOR = 10  # limit of wall time of a call, as a multiple of its limit of CPU time
LOADING_SECONDS = 10.0
MIB = 1 << 20
LIMITS = {
    "AS": 4096 * MIB,  # EvalPlus's own default
    "STACK": 512 * MIB,
    "FSIZE": 64 * MIB,
    "NPROC": 64,
    "NOFILE": 128,
    "SIGPENDING": 256,
    "CORE": 0,
    "MSGQUEUE": 0,
}
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, MOUNT_FLAGS = 0x20000, 2 | 4 | 1024  # no set-user-id programs, devices, times of access
CAPABILITY_VERSION_3, FILTER_MODE = 0x20080522, 2
PARENT_DEATH, DUMPABLE, SECCOMP, NO_NEW_PRIVILEGES, AMBIENT = 1, 4, 22, 38, 47  # of prctl
FORMS = {
    "": lambda value: value,
    "set": set,
    "is not None": lambda value: value is not None,
    "bool or is not None": lambda value: value if isinstance(value, bool) else value is not None,
}


def main() -> None:
    """Serves the orders of one solution."""
    pipes = [int(number) for number in sys.argv[1:]]
    with open(0, "rb", closefd=False) as orders:
        setup = marshal.load(orders)
        _become_harmless(setup["user"], setup["scratch"])
        os.write(1, b"R")
        for outputs in pipes:
            job = marshal.load(orders)
            pid = os.fork()
            if pid == 0:
                _run_and_leave(job, setup["filter"], outputs)
            os.write(1, REPORT.pack(*status_of(pid, job)))
            os.close(outputs)


def _become_harmless(user: int, scratch: str) -> None:
    """Mounts the scratch folders, then drops all rights; root becomes another user."""
    _checked(LIBC.unshare(CLONE_NEWNS))
    for folder in (b"/tmp", b"/dev/shm"):
        _checked(LIBC.mount(b"tmpfs", folder, b"tmpfs", MOUNT_FLAGS, scratch.encode()))
    os.chdir("/tmp")
    if user:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    _checked(LIBC.prctl(AMBIENT, 4, 0, 0, 0))
    _checked(LIBC.capset((ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)()))
    _checked(LIBC.prctl(DUMPABLE, 0, 0, 0, 0))
    _checked(LIBC.prctl(PARENT_DEATH, signal.SIGKILL, 0, 0, 0))
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)  # the first process of a namespace never gets them from inside


def _checked(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def status_of(pid: int, job: dict[str, Any]) -> tuple[int, bool]:
    """Waits for the end of a suite's process; exits if the judge has ended.

    Returns:
        The exit status, or minus the signal that ended it: SIGALRM at its limit of wall time, SIGXCPU at that of CPU
        time; and whether the kernel killed it although it used little memory.
    """
    ended = os.pidfd_open(pid)
    ready, _, _ = select.select([ended, 0], [], [], job["wall"])
    if 0 in ready:
        os._exit(1)
    os.close(ended)
    if not ready:
        os.kill(pid, signal.SIGKILL)
    _, waited, usage = os.wait4(pid, 0)
    status = os.waitstatus_to_exitcode(waited)
    if status != -signal.SIGKILL:
        return status, False
    if not ready:
        return -signal.SIGALRM, False
    if usage.ru_utime + usage.ru_stime >= job["cpu"] / 2:
        return -signal.SIGXCPU, False
    return status, usage.ru_maxrss << 10 < MUCH_MEMORY


def _run_and_leave(job: dict[str, Any], program: bytes, outputs: int) -> None:
    """Runs a suite in the forked process; it never returns."""
    try:
        os.setsid()
        out = os.dup2(outputs, 3)
        os.closerange(4, 1 << 20)
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        os.close(null)
        for name, value in [*LIMITS.items(), ("CPU", job["cpu"])]:
            kind = getattr(resource, f"RLIMIT_{name}")
            _, hard = resource.getrlimit(kind)
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(
                kind, (value, value + (name == "CPU"))
            )  # SIGXCPU comes first; SIGKILL would not show the cause
        code = ctypes.create_string_buffer(program, len(program))
        header = struct.pack("HP", len(program) // 8, ctypes.addressof(code))
        _checked(LIBC.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        _checked(LIBC.prctl(SECCOMP, FILTER_MODE, header, 0, 0))
        call_entry_point(job, out)
    finally:
        os._exit(0)  # does not wait for threads


def call_entry_point(job: dict[str, Any], out: int) -> None:
    """Loads a solution, calls its entry point on each input, and sends each result as a frame.

    Args:
        job: `code`, `entry_point` and `inputs` (a list of argument lists); `limits` (seconds of CPU time of each call)
            and `all` (of all calls together); `form`, a key of `FORMS`, for the results.
        out: A pipe. An exception ends the suite.
    """
    # Names that the code cannot replace.
    now, spent, printed = time.time, time.process_time, io.StringIO
    write, pack, encode = os.write, codec.FRAME.pack, codec.encode

    def send(kind: bytes, seconds: float = 0.0, content: bytes = b"") -> None:
        left = memoryview(pack(kind, seconds, len(content)) + content)
        while left:
            left = left[write(out, left) :]

    send(CONFINED)
    form, left = FORMS[job["form"]], job["all"]
    sys.stdin = open(os.devnull)
    sys.stdout = sys.stderr = printed()  # as EvalPlus does, a new one for each call
    builtins.__dict__.update(exit=None, quit=None, help=None)
    try:
        names: dict[str, Any] = {}
        _limit_call(LOADING_SECONDS)
        exec(job["code"].removeprefix("\ufeff"), names)  # noqa: S102  # this is what the jail is for
        function = names[job["entry_point"]]
        send(LOADED)
        for arguments, limit in zip(job["inputs"], job["limits"], strict=True):
            sys.stdout = sys.stderr = printed()
            _limit_call(min(limit, max(left, 0.01)))
            start, before = now(), spent()
            result = function(*arguments)
            seconds = now() - start
            _limit_call(0)
            left -= spent() - before
            send(VALUE, seconds, encode(form(result)))
            del result
    except BaseException as error:
        _limit_call(0)
        send(RAISED, 0.0, codec.type_name(error))


def _limit_call(seconds: float) -> None:
    """Sets timers whose signals end the process at a limit, whatever exceptions the code catches; 0 removes them."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, WALL_FACTOR * seconds)
