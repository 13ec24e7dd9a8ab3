"""The seccomp filter of the sandbox: system calls that generated code never needs, refused with EPERM.

Written with libseccomp (through pyseccomp, its ctypes binding on PyPI) and handed to bubblewrap as compiled BPF. A
deny-list, because numpy and the interpreter may use any harmless call.
"""

import errno
import os
from typing import Any

from cultureval.runtime.errors import CulturevalError

# System calls that a jailed process never needs.
_REFUSED = (
    "acct add_key bpf chroot clock_adjtime clock_settime delete_module fanotify_init finit_module fsconfig "
    "fsmount fsopen fspick init_module io_uring_enter io_uring_register io_uring_setup kcmp kexec_file_load "
    "kexec_load keyctl lookup_dcookie mbind mount mount_setattr move_mount move_pages migrate_pages "
    "name_to_handle_at open_by_handle_at open_tree perf_event_open personality pidfd_getfd pivot_root "
    "process_madvise process_vm_readv process_vm_writev ptrace quotactl reboot request_key set_mempolicy "
    "setdomainname sethostname setns settimeofday swapoff swapon syslog umount2 unshare userfaultfd vhangup "
    "vmsplice "
    # Memory that no process limit counts, and objects that outlive their process.
    "memfd_create memfd_secret shmget shmat shmctl semget semop semctl semtimedop msgget msgsnd msgrcv msgctl "
    "mq_open mq_unlink ioprio_set "
).split()
# Changing another process's limits or priority; 0 means the calling process.
_ONLY_ON_ONESELF = ("prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler")
_NAMESPACE_FLAGS = 0x7E020080  # CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_SOCKET_FAMILIES = (1, 2, 10)  # AF_UNIX, AF_INET, AF_INET6
_LAST_FAMILY = 45


class SystemCallFilterUnavailable(CulturevalError):
    """libseccomp or its binding is missing."""


def export_filter() -> int:
    """Compile the filter.

    Returns:
        An open file descriptor, at its start, for bubblewrap's `--seccomp`; the caller closes it.

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
    rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    refuse = pyseccomp.ERRNO(errno.EPERM)
    for name in _REFUSED:
        _add(pyseccomp, rules, refuse, name)
    for name in _ONLY_ON_ONESELF:
        _add(pyseccomp, rules, refuse, name, pyseccomp.Arg(0, pyseccomp.NE, 0))
    for position in (0, 1):
        _add(pyseccomp, rules, refuse, "setpriority", pyseccomp.Arg(position, pyseccomp.NE, 0))
    for bit in range(32):
        if _NAMESPACE_FLAGS >> bit & 1:
            flag = 1 << bit
            _add(pyseccomp, rules, refuse, "clone", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, flag, flag))
    # Its flags are in memory, which a filter cannot read; libc falls back to clone.
    _add(pyseccomp, rules, pyseccomp.ERRNO(errno.ENOSYS), "clone3")
    for family in set(range(_LAST_FAMILY + 1)) - set(_SOCKET_FAMILIES):
        _add(pyseccomp, rules, refuse, "socket", pyseccomp.Arg(0, pyseccomp.EQ, family))
    _add(pyseccomp, rules, refuse, "socket", pyseccomp.Arg(0, pyseccomp.GT, _LAST_FAMILY))
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
