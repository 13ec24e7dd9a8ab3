"""Memory: what is free, and how errors tell that there was too little; other errors of a model's computation."""

import gc
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import torch

from cultureval.runtime.errors import GOES_ON, CulturevalError, described

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
            f"attn_implementation: eager or device: cpu. {GOES_ON}"
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
        return torch.accelerator.get_memory_info(device)[0]
    limits = [psutil.virtual_memory().available]
    try:  # of a container; a file cache can be given back
        most, used = (int((CGROUP / name).read_text(encoding="ascii")) for name in ("memory.max", "memory.current"))
        stat = dict(line.split() for line in (CGROUP / "memory.stat").read_text(encoding="ascii").splitlines())
        limits.append(most - used + int(stat.get("inactive_file", 0)))
    except (OSError, ValueError):  # no control group, or no limit ("max")
        pass
    return max(min(limits), 0) // int(os.environ.get("LOCAL_WORLD_SIZE", 1))
