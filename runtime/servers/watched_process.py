"""Runs a command that ends with the process that wanted it, however that ends: `python watched_process.py PID COMMAND`.

A process that is killed by SIGKILL cannot end what it started, so this one, which stands between the two, does: when
its parent PID is gone, or at SIGTERM, it ends the command with all that the command started, in whatever process group.
It is run as a script and uses the standard library only, so that it starts at once and needs little memory.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

POLL_S = 0.2
GRACE_S = 15.0  # from SIGTERM to SIGKILL
SET_PARENT_DEATH_SIGNAL, SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h


def run_watched(parent: int, command: Sequence[str]) -> int:
    """Runs a command until it ends, the process `parent` ends, or a signal asks for its end; leaves none of it behind.

    Returns:
        The command's exit status; 128 and the signal's number where a signal ended it.
    """
    asked: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda received, _: asked.append(received))
    control = process_control()
    control(SET_CHILD_SUBREAPER, 1)  # processes whose parents end become children of this one
    child = subprocess.Popen(
        command, start_new_session=True, preexec_fn=lambda: control(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    )
    while child.poll() is None and not asked and os.getppid() == parent:
        time.sleep(POLL_S)
    end(child)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def process_control() -> Callable[[int, int], object]:
    """Linux's `prctl`; elsewhere a function that does nothing."""
    if not sys.platform.startswith("linux"):
        return lambda *_: None
    return ctypes.CDLL(None, use_errno=True).prctl


def end(child: "subprocess.Popen[bytes]") -> None:
    """Ends a process, its group, and all that they left to this process."""
    signal_group(child.pid, signal.SIGTERM)
    try:
        child.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        pass
    signal_group(child.pid, signal.SIGKILL)
    child.wait()
    while left := children():
        for pid in left:
            os.kill(pid, signal.SIGKILL)  # a child keeps its number until it is waited for
            os.waitpid(pid, 0)


def signal_group(group: int, number: int) -> None:
    """Sends a signal to a process group, if there is one left."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):  # the second on macOS, where only zombies are left
        pass


def children() -> list[int]:
    """The processes whose parent is this one; [] where the system does not list them as Linux does."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:  # ended meanwhile
            continue
        if int(fields[1]) == os.getpid():
            found.append(int(path.parent.name))
    return found


if __name__ == "__main__":
    raise SystemExit(run_watched(int(sys.argv[1]), sys.argv[2:]))
