"""Memory: what is free, and how errors tell that there was too little; other errors of a model's computation."""

import gc
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from cultureval.runtime.errors import CulturevalError, described
from cultureval.runtime.settings import goes_on

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc

CGROUP = Path("/sys/fs/cgroup")
# What PyTorch's allocators say, and oneDNN, which says more where a product is impossible.
ONEDNN_SAYS = "could not create a primitive"
SIGNS = ("can't allocate memory", "not enough memory", "out of memory", "failed to allocate", "bad_alloc")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory, of a device or of the machine, did not suffice."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    said = str(error).lower()
    return isinstance(error, RuntimeError) and (said == ONEDNN_SAYS or any(sign in said for sign in SIGNS))


@contextmanager
def failures_named(model: str, docs: Sequence["Doc"]) -> Iterator[None]:
    """A context in which an error inside the model's own computation names the model, a prompt, and what may help.

    Memory that does not suffice is left to the caller, who can try with less.
    """
    try:
        yield
    except (RuntimeError, IndexError) as error:
        if is_out_of_memory(error):
            raise
        raise CulturevalError(
            f"{model} fails on a prompt of {docs[0].task_name} (item {docs[0].id}): {described(error)[:400]}. Its "
            "config.json may not fit its weights or tokenizer, or this device lacks a kernel: try dtype: float32, "
            f"attn_implementation: eager or device: cpu. {goes_on()}"
        ) from error


def recover(device: torch.device, error: BaseException) -> None:
    """Give back memory that nothing uses any more, and what a pass held that did not fit.

    Args:
        error: Which said so; it forgets where it was raised.
    """
    error.__traceback__ = None  # its frames hold what did not fit
    gc.collect()
    if device.type != "cpu":
        torch.accelerator.empty_cache()
    elif str(error) == ONEDNN_SAYS:
        # oneDNN's code generator (Xbyak) keeps its first error: in this thread, every new kernel would fail as well.
        torch.backends.mkldnn.set_flags(False)


def available_bytes(device: torch.device) -> int:
    """Bytes that this process may still take on a device: its share, if other processes of this run compute there."""
    if device.type != "cpu":
        free, _ = torch.accelerator.get_memory_info(device)
        return free
    return _main_memory() // int(os.environ.get("LOCAL_WORLD_SIZE", 1))


@contextmanager
def memory_limit(more: int) -> Iterator[None]:
    """A context in which what takes more than so many bytes besides raises MemoryError; on Linux only."""
    used = _field(Path("/proc/self/status"), "VmSize:")
    if used is None:
        yield
        return
    import resource

    most, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = used * 1024 + more
    resource.setrlimit(resource.RLIMIT_AS, (wanted if most == resource.RLIM_INFINITY else min(most, wanted), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def _main_memory() -> int:
    """The least of what the system, the control group and the process's own limit leave."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    if (found := _field(Path("/proc/meminfo"), "MemAvailable:")) is not None:
        limits.append(found * 1024)
    most, used = (_number(CGROUP / name) for name in ("memory.max", "memory.current"))
    if most is not None and used is not None:
        limits.append(most - used + (_field(CGROUP / "memory.stat", "inactive_file") or 0))  # can be given back
    limits.append(_address_space())
    return max(min(limits), 0)


def _address_space() -> int:
    try:
        import resource
    except ImportError:  # not on Windows
        return 2**62
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    used = _field(Path("/proc/self/status"), "VmSize:")
    return 2**62 if most == resource.RLIM_INFINITY or used is None else most - used * 1024


def _field(file: Path, name: str) -> int | None:
    try:
        lines = file.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith(name)), None)


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):  # no control group, or no limit ("max")
        return None
