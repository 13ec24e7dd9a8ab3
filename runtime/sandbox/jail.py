"""The jail: bubblewrap around one solution, with the system's libraries, the interpreter and a few packages.

It has no network, no home, no project, no data, no /proc, and only four harmless devices. All files are read-only,
except in a small private /tmp and /dev/shm. It ends with the process that started it.
"""

import contextlib
import importlib.metadata
import marshal
import os
import select
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from cultureval.runtime.data.user_cache import user_cache
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.sandbox.system_call_filter import SandboxUnavailable, compiled_filter
from cultureval.runtime.sandbox.worker import REPORT
from cultureval.runtime.settings import current_settings, variable_of

TEST_SUITES = ("base", "plus")  # of a problem: its original tests, and EvalPlus's
_PACKAGES, _CODE = "/sandbox/packages", "/sandbox/code"
_OURS = ("runtime/sandbox/codec.py", "runtime/sandbox/worker.py")
_SYSTEM = "/usr/lib /usr/lib32 /usr/lib64 /lib /lib32 /lib64 /usr/share/zoneinfo".split()
_SYSTEM += ["/etc/localtime", "/etc/ld.so.cache", "/etc/alternatives"]
_DEVICES = ("null", "full", "random", "urandom")  # not zero, which would give shared memory without a file
_SCRATCH = "size=64m,nr_inodes=1024,mode=1777"
_START_SECONDS = 60.0
_REPORT_SECONDS = 20.0
_END_SECONDS = 10.0
_FIRST_USER, _USERS = 65000, 500  # users that no system has; root becomes one of them
_LIMITS: dict[int, str] = {
    signal.SIGALRM: "wall-time limit",
    signal.SIGPROF: "CPU-time limit",
    signal.SIGXCPU: "limit of the CPU time of all calls",
}
# Prefixes of variables with places of gated data and tokens of Hugging Face's libraries.
_CACHE_VARIABLES = ("HF_", "HUGGINGFACE_", "XDG_CACHE_HOME")
_START = f"import sys; sys.path += {[_CODE, _PACKAGES]}; from cultureval.runtime.sandbox import worker; worker.main()"


class SandboxBroken(CulturevalError):
    """A jail ended or did not answer; the solution may be right or wrong."""


@dataclass(frozen=True)
class JailPlan:
    """The command and the system-call filter of jails."""

    command: list[str]
    filter: bytes


@dataclass(frozen=True)
class JobEnd:
    """How the process of a suite ended.

    Attributes:
        status: Its exit status, or minus the signal that ended it (`worker.status_of`).
        is_kill: Whether the kernel killed it for lack of memory that it did not cause itself.
    """

    status: int
    is_kill: bool

    @property
    def waited(self) -> bool:
        """Whether a limit of wall time ended it; a busy or suspended machine reaches it sooner."""
        return self.status == -signal.SIGALRM

    def __str__(self) -> str:
        """The cause of its end, for the reason of a verdict."""
        if self.status >= 0:
            return f"it exited with status {self.status}"
        if -self.status in _LIMITS:
            return _LIMITS[-self.status]
        with contextlib.suppress(ValueError):
            return f"ended by {signal.Signals(-self.status).name}"
        return f"ended by signal {-self.status}"


class Jail:
    """A jail for one solution, a context: `start` begins a suite, `end` returns how it ended.

    Args:
        plan: From `plan_jail`.

    Raises:
        SandboxBroken: It did not start.
    """

    def __init__(self, plan: JailPlan) -> None:
        pipes = [os.pipe() for _ in TEST_SUITES]
        self._outputs = [reader for reader, _ in pipes]
        writers = [writer for _, writer in pipes]
        command = [*plan.command, *map(str, writers)]
        streams: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        try:
            self._process = subprocess.Popen(command, pass_fds=writers, bufsize=0, **streams)
        except OSError as error:
            raise SandboxBroken(f"the sandbox cannot be started ({error})") from error
        finally:
            for writer in writers:
                os.close(writer)
        try:
            # One user for each process that starts jails: the kernel counts threads by user, and does not limit root.
            user = 0 if os.geteuid() else _FIRST_USER + os.getpid() % _USERS
            self._send(marshal.dumps({"user": user, "scratch": _SCRATCH, "filter": plan.filter}))
            if not self._read(1, _START_SECONDS):
                raise SandboxBroken(f"the sandbox did not start in {_START_SECONDS:.0f} s")
        except SandboxBroken:
            self.close()
            raise

    def __enter__(self) -> "Jail":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends everything in the jail, also in the middle of a suite."""
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()  # closing standard input ends the first process
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for reader in self._outputs:
            os.close(reader)

    def start(self, job: dict[str, Any]) -> BinaryIO:
        """Begins a suite, after the previous one ended; returns a file of its untrusted frames, to be closed.

        `job` has the fields of `worker.call_entry_point`, and `cpu` and `wall`: its limits in seconds.
        """
        self._send(marshal.dumps(job, 2))
        return os.fdopen(self._outputs.pop(0), "rb", 1 << 16)

    def end(self) -> JobEnd:
        """How a suite ended, after its pipe was closed; without a report it has met its limit of wall time.

        Raises:
            SandboxBroken: The jail itself ended.
        """
        report = self._read(REPORT.size, _REPORT_SECONDS)
        return JobEnd(*REPORT.unpack(report)) if report else JobEnd(-signal.SIGALRM, False)

    def _send(self, data: bytes) -> None:
        assert self._process.stdin is not None
        left = memoryview(data)
        try:
            while left:
                left = left[self._process.stdin.write(left) :]
        except OSError as error:
            raise SandboxBroken(f"the sandbox ended ({self._error_output() or error})") from error

    def _read(self, size: int, seconds: float) -> bytes:
        """Output of the first process; b"" if there is none in time."""
        stream = self._process.stdout
        assert stream is not None
        if not select.select([stream], [], [], seconds)[0]:
            return b""
        if len(data := stream.read(size)) < size:  # reports are written in one piece
            raise SandboxBroken(f"the sandbox ended ({self._error_output()})")
        return data

    def _error_output(self) -> str:
        """The end of the standard error of bubblewrap and the first process."""
        self._process.kill()
        assert self._process.stderr is not None
        return self._process.stderr.read()[-500:].decode("utf-8", "replace").strip()


def check_jail() -> JailPlan:
    """The plan of jails, after a trial start on this machine.

    Raises:
        SandboxUnavailable: The start failed; the message says what to install or allow.
    """
    plan = plan_jail()
    try:
        Jail(plan).close()
    except SandboxBroken as error:
        raise SandboxUnavailable(
            f"Generated code runs only in a sandbox, and this machine cannot start it: {error}. bubblewrap needs "
            "user namespaces: allow them (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, "
            "kernel.apparmor_restrict_unprivileged_userns; a container needs --security-opt seccomp=unconfined)."
        ) from error
    return plan


def plan_jail() -> JailPlan:
    """The plan of jails by the current settings.

    Raises:
        SandboxUnavailable: bubblewrap, libseccomp or a package is missing, or the jail would show private files.
    """
    bubblewrap = shutil.which("bwrap")
    if bubblewrap is None:
        raise SandboxUnavailable(
            "bwrap is missing, and generated code never runs without it: install it "
            "(Debian, Ubuntu: apt-get install bubblewrap; Fedora: dnf install bubblewrap)."
        )
    words = [bubblewrap, "--unshare-ipc", "--unshare-net", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"]
    words += ["--as-pid-1", "--die-with-parent", "--new-session", "--clearenv", "--hostname", "sandbox"]
    words += ["--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN"]  # to mount the scratch folders, then dropped
    if os.geteuid() == 0:
        words += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        words += ["--unshare-user", "--disable-userns", "--uid", "1000", "--gid", "1000"]
    base = Path(sys.base_prefix).resolve()
    home = str(base) if base.is_relative_to("/usr") else "/sandbox/python"
    for name, value in _environment(home).items():
        words += ["--setenv", name, value]
    python = f"bin/python{sys.version_info.major}.{sys.version_info.minor}"
    words += _mounts(base, home, python)
    words += ["--", f"{home}/{python}", "-I", "-S", "-B", "-X", "utf8", "-c", _START]
    return JailPlan(words, compiled_filter())


def _environment(home: str) -> dict[str, str]:
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": "/tmp",
        "LANG": "C.UTF-8",
        "LD_LIBRARY_PATH": f"{home}/lib",
        "PYTHONHASHSEED": "0",  # sets of strings have the same order in every jail
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def _mounts(base: Path, home: str, python: str) -> list[str]:
    """Arguments of bubblewrap: the files in the jail, and its scratch folders."""
    binds = [(path, path) for path in _SYSTEM if Path(path).exists()]
    binds.append((f"{base}/{python}", f"{home}/{python}"))
    binds += [] if base.is_relative_to("/usr") else [(f"{base}/lib", f"{home}/lib")]
    binds += [(str(path), f"{_PACKAGES}/{path.name}") for path in _package_files()]
    room = Path(__file__).resolve().parents[2]
    binds += [(str(room / name), f"{_CODE}/cultureval/{name}") for name in _OURS]
    masks = [str(path) for root in (f"{base}/lib", "/usr/lib") for path in Path(root).glob("python*/*-packages")]
    _require_hidden([Path(source).resolve() for source, _ in binds], [Path(path).resolve() for path in masks])
    words = []
    for folder in sorted({str(parent) for _, target in binds for parent in Path(target).parents} - {"/"}):
        words += ["--perms", "0755", "--dir", folder]  # else bubblewrap makes parents for its user only
    for source, target in binds:
        words += ["--ro-bind", source, target]
    for path in masks:  # verdicts must not depend on other installed packages
        target = path if home == str(base) else path.replace(f"{base}/lib", f"{home}/lib", 1)
        words += ["--tmpfs", target, "--remount-ro", target]
    words += ["--perms", "0755", "--tmpfs", "/dev"]
    for name in _DEVICES:
        words += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    words += ["--perms", "0755", "--dir", "/dev/shm", "--perms", "0755", "--dir", "/tmp"]
    return [*words, "--remount-ro", "/dev", "--remount-ro", "/"]


def _require_hidden(shown: list[Path], masked: list[Path]) -> None:
    """Refuses to start where the jail would show the project, its data, or the user's caches and tokens."""
    variables = [value for name, value in os.environ.items() if name.startswith(_CACHE_VARIABLES)]
    names = [current_settings().data_root, current_settings().journal, *variables]
    private = {Path(os.path.expanduser(name)).resolve() for name in names if name}
    private |= {Path.home().resolve(), user_cache().resolve()}
    for path in sorted(private):
        if any(path.is_relative_to(folder) for folder in shown) and not any(
            path.is_relative_to(folder) for folder in masked
        ):
            raise SandboxUnavailable(
                f"Generated code would see {path}, which is in a folder of libraries: move it elsewhere."
            )


def _package_files() -> list[Path]:
    """The files and folders at the top of the packages that generated code may import, with their metadata."""
    found = []
    for name in current_settings().code_packages:
        try:
            distribution = importlib.metadata.distribution(name)
        except (importlib.metadata.PackageNotFoundError, ValueError) as error:
            raise SandboxUnavailable(
                f"The package {name} for generated code ({variable_of('code_packages')}) is not installed: pip install "
                f"{name}."
            ) from error
        tops = {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}
        found += [Path(str(distribution.locate_file(top))).resolve() for top in sorted(tops)]
    return [path for path in found if path.exists()]


def packages_and_versions() -> str:
    """The packages for generated code, for signatures: `numpy 2.4.6, sympy 1.14.0`."""
    found = []
    for name in current_settings().code_packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError, ValueError):
            found.append(f"{name} {importlib.metadata.version(name)}")
    return ", ".join(found) or "none"
