"""The seccomp filter of the sandbox: the system calls that generated code may use; all others are refused with EPERM.

Written with libseccomp (through pyseccomp, its ctypes binding on PyPI) and compiled to BPF, which the process of a job
installs in itself before it runs any generated code. The list is what the interpreter, numpy, sympy and threads need.
There is no call for new processes or programs, other CPUs than the jail's, sockets other than a connected pair, locks,
timers, message queues, shared memory segments, extended attributes to write, or the state of the page cache: what is
left takes no more than 64 MiB of kernel memory with the limits of `jail.SandboxLimits`.
"""

import errno
import mmap
import os
import resource
import signal
from typing import Any

from cultureval.runtime.errors import CulturevalError

_ALLOWED = (
    # memory
    "brk mremap munmap mprotect msync "
    # files, which are in the job's own small /tmp and /dev/shm or read-only
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
# Calls that are allowed with some values of one argument: name -> position, values.
# So that SIGKILL is the kernel's alone: no job sends it, or sets a limit of CPU time at which it comes.
_SIGNALS = tuple(number for number in range(65) if number != signal.SIGKILL)
_RESOURCES = tuple(number for number in range(16) if number != resource.RLIMIT_CPU)
_WITH_VALUES = {
    "kill": (1, _SIGNALS),
    "tkill": (1, _SIGNALS),
    "tgkill": (2, _SIGNALS),
    "fcntl": (1, (0, 1, 2, 3, 4, 1030, 1032)),  # F_DUPFD, flags of descriptors and files, F_GETPIPE_SZ: neither locks
    "fcntl64": (1, (0, 1, 2, 3, 4, 1030, 1032)),  # nor leases, nor larger pipes
    "ioctl": (1, (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)),  # TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIO*CLEX
    "madvise": (2, (0, 4, 8, 14, 15)),  # not those that tell or change what is in the page cache
    "preadv2": (5, (0,)),  # without flags, of which one tells what is in the page cache
    "pwritev2": (5, (0,)),
    "prctl": (0, (15, 16)),  # PR_SET_NAME and PR_GET_NAME, of a thread
    "setrlimit": (0, _RESOURCES),
    "socketpair": (0, (1,)),  # AF_UNIX
}
_CLONE_THREAD = 0x10000
# Calls whose flags, in this argument, must not ask for a file without a name: it would leave no trace in its folder.
_OPENING = {"open": 1, "openat": 2}
_WITHOUT_A_NAME = os.O_TMPFILE & ~os.O_DIRECTORY
# Shared memory without a file stays when its pages are given back, and is then in nobody's resident size, by which a
# job that the kernel kills is judged.
_ANONYMOUS_OR_SHARED, _FLAGS_OF_MMAP = mmap.MAP_ANONYMOUS | mmap.MAP_SHARED, 3


class SystemCallFilterUnavailable(CulturevalError):
    """libseccomp or its binding is missing."""


def export_filter() -> int:
    """Compile the filter.

    Returns:
        An open file descriptor of the BPF program, at its start; the caller closes it.

    Raises:
        SystemCallFilterUnavailable: If pyseccomp or libseccomp cannot be loaded.
    """
    try:
        import pyseccomp
    except (ImportError, RuntimeError) as error:
        raise SystemCallFilterUnavailable(
            f"the sandbox's seccomp filter cannot be built ({error}): install libseccomp (Debian, Ubuntu: "
            "apt-get install libseccomp2; Fedora: dnf install libseccomp) and pip install pyseccomp"
        ) from error
    rules = pyseccomp.SyscallFilter(pyseccomp.ERRNO(errno.EPERM))
    for name in _ALLOWED:
        _add(pyseccomp, rules, pyseccomp.ALLOW, name)
    for name, (position, values) in _WITH_VALUES.items():
        for value in values:
            # The kernel reads the lower 32 bits of these arguments, so the others must not matter here either.
            _add(
                pyseccomp, rules, pyseccomp.ALLOW, name, pyseccomp.Arg(position, pyseccomp.MASKED_EQ, 0xFFFFFFFF, value)
            )
    for name, position in _OPENING.items():
        named = pyseccomp.Arg(position, pyseccomp.MASKED_EQ, _WITHOUT_A_NAME, 0)
        _add(pyseccomp, rules, pyseccomp.ALLOW, name, named)
    for kind in (0, mmap.MAP_ANONYMOUS, mmap.MAP_SHARED):  # all but both
        not_both = pyseccomp.Arg(_FLAGS_OF_MMAP, pyseccomp.MASKED_EQ, _ANONYMOUS_OR_SHARED, kind)
        _add(pyseccomp, rules, pyseccomp.ALLOW, "mmap", not_both)
    own, reading = pyseccomp.Arg(0, pyseccomp.EQ, 0), pyseccomp.Arg(2, pyseccomp.EQ, 0)
    _add(pyseccomp, rules, pyseccomp.ALLOW, "prlimit64", own, reading)
    for number in _RESOURCES:
        limit = pyseccomp.Arg(1, pyseccomp.MASKED_EQ, 0xFFFFFFFF, number)
        _add(pyseccomp, rules, pyseccomp.ALLOW, "prlimit64", own, limit)
    thread = pyseccomp.Arg(0, pyseccomp.MASKED_EQ, _CLONE_THREAD, _CLONE_THREAD)
    _add(pyseccomp, rules, pyseccomp.ALLOW, "clone", thread)
    # Its flags are in memory, which a filter cannot read; libc falls back to clone.
    _add(pyseccomp, rules, pyseccomp.ERRNO(errno.ENOSYS), "clone3")
    descriptor = os.memfd_create("seccomp")
    with os.fdopen(os.dup(descriptor), "wb") as file:
        rules.export_bpf(file)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _add(pyseccomp: Any, rules: Any, action: int, name: str, *arguments: Any) -> None:
    try:
        number = pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name)
    except (ValueError, OSError):
        return  # this libseccomp is older than the call
    if number >= 0:  # negative: the call does not exist on this machine
        rules.add_rule(action, name, *arguments)
