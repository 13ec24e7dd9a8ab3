"""The jail: the bubblewrap command line that a sandbox's worker program is started with.

The jail holds the system's programs and libraries, the interpreter, a few packages and the worker's two files, all
read-only. It has no network, no home, no project, no data, no /proc, and of devices only four that hold nothing.
"""

import contextlib
import csv
import functools
import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cultureval.runtime.data.user_cache import user_cache
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.settings import current_settings, variable_of

_ROOT = "/sandbox"
_PACKAGES = f"{_ROOT}/packages"
_CODE = f"{_ROOT}/code/cultureval/runtime/sandbox"
_WORKER_FILES = ("codec.py", "worker.py")
_SYSTEM_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime")
_DEVICES = ("null", "full", "random", "urandom")  # not zero: a mapping of it is shared memory without a file
_WORKER_MIB, _WORKER_TASKS = 256, 8  # of bubblewrap and the worker, beside a job
_NOBODY = 65534
_CONTROLLERS = Path("/sys/fs/cgroup/cgroup.controllers")
_PROBE_SECONDS = 10
# Beginnings of names. Hugging Face's libraries keep gated data and tokens where HF_HUB_CACHE and the like point.
_CACHE_VARIABLES = ("HF_", "HUGGINGFACE_", "XDG_CACHE_HOME")
# The interpreter's own folders come first in sys.path, as outside.
_START = (
    "import sys, runpy; sys.path += sys.argv[1:]; del sys.argv[1:]; "
    "runpy.run_module('cultureval.runtime.sandbox.worker', run_name='__main__')"
)
_OPTIONS = ("-S", "-s", "-P", "-B", "-X", "utf8", "-c", _START)


class SandboxUnavailable(CulturevalError):
    """This machine cannot run the sandbox; the message says what to install or allow."""


@dataclass(frozen=True)
class SandboxLimits:
    """What one job may use.

    Args:
        memory_mib: Address space of the process; EvalPlus's own default.
        threads: Threads of the process.
        open_files: File descriptors; with those of a connected pair of sockets, 208 KiB each, 26 MiB of the kernel's.
        file_mib: Size of one file.
        scratch_mib: Size of /tmp and of /dev/shm, each.
        scratch_files: Files in each of the two, 1 to 5 KiB of the kernel's memory.
        stack_mib: Stack of the main thread.
    """

    memory_mib: int = 4096
    threads: int = 64
    open_files: int = 128
    file_mib: int = 64
    scratch_mib: int = 64
    scratch_files: int = 1024
    stack_mib: int = 512

    def resource_limits(self, cpu_seconds: int) -> dict[str, int]:
        """Return limits by their name in the module `resource`."""
        mib = 1 << 20
        return {
            "RLIMIT_AS": self.memory_mib * mib,
            "RLIMIT_NPROC": self.threads,
            "RLIMIT_NOFILE": self.open_files,
            "RLIMIT_FSIZE": self.file_mib * mib,
            "RLIMIT_STACK": self.stack_mib * mib,
            "RLIMIT_CPU": cpu_seconds,
            "RLIMIT_CORE": 0,
            "RLIMIT_MSGQUEUE": 0,
            "RLIMIT_SIGPENDING": 256,
        }


def scratch_options(limits: SandboxLimits) -> dict[str, str]:
    """By folder, the mount options of the tmpfs that each job finds there, empty."""
    options = f"size={limits.scratch_mib}m,nr_inodes={limits.scratch_files},mode=1777"
    return {folder: options for folder in ("/tmp", "/dev/shm")}


@functools.cache
def control_group(limits: SandboxLimits) -> tuple[str, ...]:
    """The command, before a jail's own, that puts it into a control group of version 2, which counts kernel memory too.

    Returns:
        Arguments of `systemd-run`; none where this machine or this user has no such groups: there the filter bounds a
        job.
    """
    memory, tasks = limits.memory_mib + 2 * limits.scratch_mib + _WORKER_MIB, limits.threads + _WORKER_TASKS
    program = shutil.which("systemd-run")
    try:
        controllers = _CONTROLLERS.read_text(encoding="ascii").split()
    except OSError:
        return ()
    if program is None or "memory" not in controllers:
        return ()
    command = [program, *(["--user"] if os.geteuid() else []), "--scope", "--quiet", "--collect"]
    for limit in (
        f"MemoryMax={memory}M",
        "MemorySwapMax=0",
        f"TasksMax={tasks}",
        "CPUWeight=100",
    ):
        command += ["--property", limit]
    command.append("--")
    try:
        done = subprocess.run([*command, "true"], capture_output=True, timeout=_PROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(command) if done.returncode == 0 else ()


def jail_command(limits: SandboxLimits) -> list[str]:
    """Return the command that starts a worker inside a jail.

    Started by root, bubblewrap first lays out the file tree and becomes nobody: the kernel does not limit root's
    threads. The worker keeps one right in its own user namespace, to mount the jobs' folders, which no job has.

    Args:
        limits: What a jail may use, where control groups can be used.

    Raises:
        SandboxUnavailable: If bubblewrap is missing, or root cannot become nobody.
    """
    program = _program("bwrap", "bubblewrap")
    if os.geteuid() == 0:
        require_user(_NOBODY, Path("/proc/self/uid_map").read_text(encoding="ascii"))
    files = _read_only_files()
    group = list(control_group(limits))
    inner = [program, "--unshare-user", "--unshare-all", "--disable-userns", "--uid", "1000", "--gid", "1000"]
    inner += ["--hostname", "sandbox", "--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN", "--die-with-parent"]
    inner += ["--new-session", "--as-pid-1", "--clearenv"]
    for name, value in _environment().items():
        inner += ["--setenv", name, value]
    if os.geteuid() != 0:
        return group + inner + _mounts(files) + _empty_folders() + ["--", *_interpreter()]
    outer = [program, *_mounts(files), "--dev-bind", "/dev", "/dev", "--proc", "/proc", "--dir", "/tmp"]
    outer += ["--die-with-parent", "--"]
    outer += [
        _program("setpriv", "util-linux"),
        "--reuid",
        str(_NOBODY),
        "--regid",
        str(_NOBODY),
        "--clear-groups",
        "--",
    ]
    again = [(target, target) for _, target in files]
    return group + outer + inner + _mounts(again) + _empty_folders() + ["--", *_interpreter()]


def require_user(user: int, uid_map: str) -> None:
    """Check that root can become another user here.

    Args:
        uid_map: Lines of a first number inside a user namespace, the first outside, and how many, as Linux gives them.

    Raises:
        SandboxUnavailable: The user namespace has no such user.
    """
    ranges = [[int(number) for number in line.split()] for line in uid_map.splitlines()]
    if not any(first <= user < first + count for first, _, count in ranges):
        raise SandboxUnavailable(
            "generated code is never run as root, and the user namespace of this shell or container has no user "
            f"{user} (nobody): it maps too few (/proc/self/uid_map). Start as an ordinary user, or map more "
            "(`unshare -r` with --map-auto; in a container's settings, a range of 65,536 users)"
        )


def bare_command() -> tuple[list[str], dict[str, str]]:
    """Return the command and the environment that start a worker without any jail (`--unsafe-no-sandbox`)."""
    start = "import cultureval.runtime.sandbox.worker as worker; worker.main()"
    return [sys.executable, "-X", "utf8", "-c", f"import sys; sys.path[:] = {sys.path!r}; {start}"], _environment() | {
        "PATH": os.environ.get("PATH", "")
    }


def _program(name: str, package: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise SandboxUnavailable(
            f"{name} is missing, and generated code is never run without it: install it "
            f"(Debian, Ubuntu: apt-get install {package}; Fedora: dnf install {package})"
        )
    return path


def shown_packages() -> tuple[str, ...]:
    """Names of the distributions that generated code may import, beside the standard library.

    Raises:
        SandboxUnavailable: One is not installed.
    """
    names = current_settings().code_packages
    if missing := [name for name in names if not _installed(name)]:
        raise SandboxUnavailable(
            f"generated code is to see the packages {', '.join(names)} ({variable_of('code_packages')}), but "
            f"{', '.join(missing)} is not installed: pip install {' '.join(missing)}"
        )
    return names


def packages_and_versions() -> str:
    """What generated code may import, for signatures, such as `numpy 2.4.6, sympy 1.14.0`."""
    names = current_settings().code_packages
    return ", ".join(f"{name} {_installed(name) or 'not installed'}" for name in names) or "none"


def _installed(name: str) -> str:
    """The installed version of a distribution, or ""."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError, ValueError):
        return _version(name)
    return ""


@functools.cache  # asked for each problem of a run; an error is not kept, so that a package can be installed meanwhile
def _version(name: str) -> str:
    return importlib.metadata.version(name)


def _package_files() -> list[Path]:
    """The files and folders at the top of the shown packages, in the folder of packages."""
    found = []
    for name in shown_packages():
        distribution = importlib.metadata.distribution(name)
        record = distribution.read_text("RECORD")  # `files` would make thousands of paths of it
        files = [row[0] for row in csv.reader(record.splitlines())] if record else map(str, distribution.files or ())
        tops = {file.partition("/")[0] for file in files} - {"..", "__pycache__"}
        found += [Path(str(distribution.locate_file(top))).resolve() for top in sorted(tops)]
    return [path for path in found if path.exists()]


def _base_prefix() -> str:
    return str(Path(sys.base_prefix).resolve())


def _interpreter() -> list[str]:
    base = _base_prefix()
    name = f"bin/python{sys.version_info.major}.{sys.version_info.minor}"
    prefix = base if base.startswith("/usr") else f"{_ROOT}/python"
    return [f"{prefix}/{name}", *_OPTIONS, f"{_ROOT}/code", _PACKAGES]


def _environment() -> dict[str, str]:
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": "/tmp",
        "LANG": "C.UTF-8",
        "LD_LIBRARY_PATH": f"{_ROOT}/python/lib",
        # Sets of strings iterate in the same order for the canonical solutions and all others.
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def _read_only_files() -> list[tuple[str, str]]:
    """Pairs of a path outside and the path inside."""
    pairs = [("/usr", "/usr")]
    pairs += [(f"/{name}", f"/{name}") for name in _SYSTEM_LINKS if Path(f"/{name}").exists()]
    pairs += [(path, path) for path in _SYSTEM_FILES if Path(path).exists()]
    if not _base_prefix().startswith("/usr"):
        pairs.append((_base_prefix(), f"{_ROOT}/python"))
    pairs += [(str(path), f"{_PACKAGES}/{path.name}") for path in _package_files()]
    here = Path(__file__).resolve().parent
    return pairs + [(str(here / name), f"{_CODE}/{name}") for name in _WORKER_FILES]


def _mounts(files: Sequence[tuple[str, str]]) -> list[str]:
    arguments = []
    for folder in ("/etc", _ROOT, _PACKAGES, *(str(folder) for folder in [*reversed(Path(_CODE).parents)][2:]), _CODE):
        arguments += ["--perms", "0755", "--dir", folder]
    for source, target in files:
        arguments += ["--ro-bind", source, target]
    return arguments + _masks(files)


def _masks(files: Sequence[tuple[str, str]]) -> list[str]:
    """Empty, read-only mounts over what the bound folders contain of this project, its data and the user's files.

    All paths are resolved first: bubblewrap binds what a link points to (/lib is /usr/lib) and cannot mount on a link,
    and a link to a hidden folder shows the empty mount.
    """
    hidden = _hidden_paths()
    arguments, masked = [], []
    for source, target in files:
        inside = Path(source).resolve()
        for path in sorted(hidden | {inside / "cultureval"}):
            if path == inside or not path.is_relative_to(inside) or not os.path.exists(path):
                continue
            masked.append(str(Path(target) / path.relative_to(inside)))
            arguments += ["--tmpfs", masked[-1]] if path.is_dir() else ["--ro-bind", "/dev/null", masked[-1]]
    for path in masked:  # after all mounts: a hidden folder may contain another
        arguments += ["--remount-ro", path]
    return arguments


def _hidden_paths() -> set[Path]:
    """Resolved folders and files that code in the sandbox must not read."""
    data = current_settings().data_root
    caches = [value for name, value in os.environ.items() if name.startswith(_CACHE_VARIABLES)]
    paths = {Path(__file__).resolve().parents[2], Path.home(), user_cache()}
    paths |= {Path(os.path.expanduser(name)) for name in (data, *caches) if name}
    paths |= _folders_of_packages()
    if token := os.environ.get("HF_TOKEN_PATH"):
        paths.add(Path(os.path.expanduser(token)).with_name("stored_tokens"))  # huggingface_hub's file of all tokens
    return {path.resolve() for path in paths}


def _folders_of_packages() -> set[Path]:
    """Packages of the interpreter and of the system: code must not pass or fail by what happens to be there."""
    places = [Path(prefix, "lib").glob("python*") for prefix in (_base_prefix(), "/usr", "/usr/local")]
    names = ("site-packages", "dist-packages")
    return {folder / name for place in places for folder in place for name in names if (folder / name).is_dir()}


def _empty_folders() -> list[str]:
    """A /dev of a few devices, and the places where each job mounts its own /tmp and /dev/shm."""
    arguments = ["--perms", "0755", "--tmpfs", "/dev"]
    for name in _DEVICES:
        arguments += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    arguments += ["--dir", "/dev/shm", "--dir", "/tmp", "--chdir", "/tmp"]
    return arguments + ["--remount-ro", "/dev", "--remount-ro", "/"]
