"""Memory: how much is free, how many answers it holds, and what is done where it did not suffice."""

import gc
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import psutil
import torch

from cultureval.runtime.errors import GOES_ON, CulturevalError, described

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc
    from transformers import PreTrainedModel

logger = logging.getLogger(__name__)

CGROUP = Path("/sys/fs/cgroup")
# What PyTorch's allocators say, and oneDNN, which says more where a product is impossible.
ONEDNN_SAYS = "could not create a primitive"
SIGNS = ("can't allocate memory", "not enough memory", "out of memory", "failed to allocate", "bad_alloc")
# More rows are hardly faster: by then the products, not the reading of the weights, take the time.
MOST_CPU, MOST_ACCELERATOR = 32, 256
SHARE = 0.5  # of the free memory; the rest is for passes over prompts, and for other processes
COPIES_OF_LOGITS = 6  # fp32 or wider, while a token is chosen


class BatchSize:
    """How many answers are generated at once.

    Attributes:
        most: At most so many; halved where memory does not suffice.
        auto: Whether no number was set.
    """

    def __init__(self, setting: int | Literal["auto"], model: "PreTrainedModel", name: str) -> None:
        """Start with a number of rows, or "auto" for as many as fit; the model's name is for messages."""
        self.auto, self._device, self._name = setting == "auto", model.device, name
        on_cpu = model.device.type == "cpu"
        self.most = setting if setting != "auto" else MOST_CPU if on_cpu else MOST_ACCELERATOR
        self._logits = COPIES_OF_LOGITS * 4 * model.config.get_text_config(decoder=True).vocab_size
        self._said = False

    def fits(self, rows: int, columns: int, bytes_per_column: int) -> bool:
        """Whether rows of so many tokens, answers included, fit the memory that is free; a set number always does."""
        needed = rows * (columns * bytes_per_column + self._logits)
        return not self.auto or needed <= SHARE * available_bytes(self._device)

    def halve(self, rows: int, error: BaseException) -> None:
        """Allow half as many rows as did not fit, and free what they held; a CulturevalError where it was one."""
        if rows <= 1:
            raise too_little(self._name, self._device, "for one answer", error) from None
        self.most = max(rows // 2, 1)
        if not self._said:
            logger.warning(
                "memory on %s did not suffice for %d answers at once: going on with %d, fewer if need be",
                *(self._device, rows, self.most),
            )
        self._said = True
        recover(self._device, error)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory, of a device or of the machine, did not suffice."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    said = str(error).lower()
    return isinstance(error, RuntimeError) and (said == ONEDNN_SAYS or any(sign in said for sign in SIGNS))


def too_little(name: str, device: torch.device, task: str, error: BaseException) -> CulturevalError:
    """The error where even the smallest batch of a task (such as "for one answer") does not fit."""
    return CulturevalError(
        f"{name} has too little memory on {device} {task} ({str(error)[:200]}). Lower max_length or max_new_tokens, "
        f"set dtype: bfloat16, 8bit or 4bit, or device_map: auto. {GOES_ON}"
    )


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
    """Give back memory that nothing uses any more, and what the pass held that ended with this error."""
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
