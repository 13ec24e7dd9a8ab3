"""Control groups of version 2 through systemd, where this user may use them: they bound a jail's kernel memory too."""

import functools
import os
import shutil
import subprocess
from pathlib import Path

_CONTROLLERS = Path("/sys/fs/cgroup/cgroup.controllers")
_PROBE_SECONDS = 10


@functools.cache
def control_group_command(memory_mib: int, tasks: int) -> tuple[str, ...]:
    """The beginning of a command line that runs the rest in a control group of its own.

    Args:
        memory_mib: Memory of all processes together, of the kernel on their behalf, and of files in memory.
        tasks: Processes and threads.

    Returns:
        Arguments of `systemd-run`; none where this machine or this user has no such groups.
    """
    program = shutil.which("systemd-run")
    try:
        controllers = _CONTROLLERS.read_text(encoding="ascii").split()
    except OSError:
        return ()
    if program is None or "memory" not in controllers:
        return ()
    command = [program, *(["--user"] if os.geteuid() else []), "--scope", "--quiet", "--collect"]
    for limit in (f"MemoryMax={memory_mib}M", "MemorySwapMax=0", f"TasksMax={tasks}", "CPUWeight=100"):
        command += ["--property", limit]
    command.append("--")
    try:
        done = subprocess.run([*command, "true"], capture_output=True, timeout=_PROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(command) if done.returncode == 0 else ()
