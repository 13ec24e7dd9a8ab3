"""The seccomp filter of the jail: a list of allowed system calls; all others fail with EPERM.

libseccomp compiles it (through pyseccomp, its binding on PyPI). The list is what the interpreter, numpy, sympy and
threads need. It has no calls for new processes or programs, locks, timers, queues or other processes, sockets only as a
connected pair, and shared memory only as files. With the limits of `worker` a suite takes at most 64 MiB of kernel
memory.
"""

import errno
import mmap
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import suppress

from cultureval.runtime.errors import CulturevalError

_ALLOWED = (
    # memory
    "brk mremap munmap mprotect msync "
    # files: read-only, or in the jail's /tmp and /dev/shm
    "access faccessat faccessat2 chdir fchdir getcwd chmod fchmod fchmodat fchmodat2 close close_range creat "
    "read pread64 readv preadv write pwrite64 writev pwritev lseek truncate ftruncate fsync fdatasync fallocate stat "
    "lstat fstat newfstatat fstatat64 statx getdents getdents64 readlink readlinkat umask link linkat symlink "
    "symlinkat mkdir mkdirat rmdir rename renameat renameat2 unlink unlinkat copy_file_range sendfile utime "
    "utimes utimensat futimesat getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr "
    # descriptors
    "dup dup2 dup3 pipe pipe2 select _newselect pselect6 poll ppoll eventfd eventfd2 epoll_create epoll_create1 "
    "epoll_ctl epoll_wait epoll_pwait recvfrom sendto recv send shutdown getsockopt getsockname getpeername "
    # signals and threads
    "rt_sigaction rt_sigprocmask rt_sigpending rt_sigreturn rt_sigsuspend rt_sigtimedwait sigaltstack sigreturn "
    "pause alarm setitimer getitimer wait4 waitid waitpid restart_syscall exit exit_group futex "
    "futex_waitv set_robust_list get_robust_list set_tid_address rseq membarrier arch_prctl set_tls "
    # time and identity
    "clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time times getrusage getrandom uname "
    "sched_yield getpid getppid gettid getuid geteuid getgid getegid getresuid getresgid getgroups getpgid "
    "getpgrp getsid getpriority getrlimit ugetrlimit sched_getaffinity sched_getparam "
    "sched_getscheduler sched_rr_get_interval sched_get_priority_max sched_get_priority_min getcpu "
).split()
# SIGKILL is a sign that the kernel is short of memory, so a program may not send it; SIGSTOP would cost time.
_SIGNALS = tuple(number for number in range(65) if number not in (signal.SIGKILL, signal.SIGSTOP))
_LIMITS = tuple(number for number in range(16) if number != resource.RLIMIT_CPU)  # its hard limit sends SIGKILL
_FCNTL = (0, 1, 2, 3, 4, 1030, 1032)  # F_DUPFD, flags, F_GETPIPE_SZ: no locks, leases or larger pipes
# Calls that are allowed with some values of an argument: the call, the argument's position, values.
_WITH_VALUES = (
    ("kill", 1, _SIGNALS),
    ("tkill", 1, _SIGNALS),
    ("tgkill", 2, _SIGNALS),
    ("fcntl", 1, _FCNTL),
    ("fcntl64", 1, _FCNTL),
    ("ioctl", 1, (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)),  # TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIO*CLEX
    ("madvise", 2, (0, 4, 8, 14, 15)),  # none that reads or changes the page cache
    ("preadv2", 5, (0,)),  # without flags: one of them reads the page cache
    ("pwritev2", 5, (0,)),
    ("setrlimit", 0, _LIMITS),
    ("socketpair", 0, (1,)),  # AF_UNIX
)
_CLONE_THREAD = 0x10000
_WITHOUT_A_NAME = os.O_TMPFILE & ~os.O_DIRECTORY


class SandboxUnavailable(CulturevalError):
    """This machine cannot run the sandbox; the message says what to install or allow."""


def compiled_filter() -> bytes:
    """The filter as a BPF program.

    Raises:
        SandboxUnavailable: pyseccomp or libseccomp cannot be loaded.
    """
    try:
        import pyseccomp  # type: ignore[import-untyped]
    except (ImportError, RuntimeError) as error:
        raise SandboxUnavailable(
            f"The sandbox's seccomp filter cannot be built ({error}): install libseccomp (Debian, Ubuntu: "
            "apt-get install libseccomp2; Fedora: dnf install libseccomp) and pip install pyseccomp."
        ) from error
    rules = pyseccomp.SyscallFilter(pyseccomp.ERRNO(errno.EPERM))
    for name, conditions in _allowed():
        with suppress(ValueError, OSError):  # an unknown call of this machine or libseccomp is refused
            equal = [pyseccomp.Arg(place, pyseccomp.MASKED_EQ, mask, value) for place, mask, value in conditions]
            rules.add_rule(pyseccomp.ALLOW, name, *equal)
    with suppress(ValueError, OSError):  # a filter cannot read its flags; libc then calls clone
        rules.add_rule(pyseccomp.ERRNO(errno.ENOSYS), "clone3")
    with os.fdopen(os.memfd_create("seccomp"), "rb") as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read()


def _allowed() -> Iterator[tuple[str, list[tuple[int, int, int]]]]:
    """Allowed calls, each with conditions: an argument's position, a bit mask, and the value of these bits."""
    every = 0xFFFFFFFF  # bits that the kernel reads
    yield from ((name, []) for name in _ALLOWED)
    for name, place, values in _WITH_VALUES:
        yield from ((name, [(place, every, value)]) for value in values)
    yield from (("open", [(1, _WITHOUT_A_NAME, 0)]), ("openat", [(2, _WITHOUT_A_NAME, 0)]))
    # Shared memory without a file is not counted for the process: `worker.status_of` would misjudge a kill.
    for kind in (0, mmap.MAP_ANONYMOUS, mmap.MAP_SHARED):
        yield "mmap", [(3, mmap.MAP_ANONYMOUS | mmap.MAP_SHARED, kind)]
    this_process = (0, every, 0)  # limits of no other process
    yield "prlimit64", [this_process, (2, (1 << 64) - 1, 0)]  # to read them
    yield from (("prlimit64", [this_process, (1, every, number)]) for number in _LIMITS)
    yield "clone", [(0, _CLONE_THREAD, _CLONE_THREAD)]
