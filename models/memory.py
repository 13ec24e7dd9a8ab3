"""Memory: free bytes, the number of answers that fit, and recovery when memory is too small."""

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
# Messages of oneDNN (the whole message) and of PyTorch's allocators (parts of messages).
ONEDNN_MESSAGE = "could not create a primitive"
SIGNS = ("can't allocate memory", "not enough memory", "out of memory", "failed to allocate", "bad_alloc")
# More rows are hardly faster: products, not reading the weights, then take the time.
MOST_CPU, MOST_ACCELERATOR = 32, 256
LEAST_TOKENS, MOST_TOKENS = 4096, 65536  # of a batch of prompts whose choices are scored
SHARE = 0.5  # of the free memory; passes over prompts and other processes need the rest
COPIES_OF_LOGITS = 6  # in fp32 or wider, while a token is chosen


def tokens_that_fit(model: "PreTrainedModel") -> int:
    """Tokens of a batch on an accelerator by its free memory: `LEAST_TOKENS` to `MOST_TOKENS`.

    A token needs its keys and values in each layer, and the inner values of one layer.
    """
    config = model.config.get_text_config(decoder=True)
    heads = getattr(config, "num_attention_heads", 1)
    size = getattr(config, "head_dim", None) or config.hidden_size // heads
    heads = getattr(config, "num_key_value_heads", None) or heads
    inner = 4 * (getattr(config, "intermediate_size", None) or 4 * config.hidden_size) + 12 * config.hidden_size
    per_token = (2 * config.num_hidden_layers * heads * size + inner) * model.dtype.itemsize
    fitting = int(SHARE * available_bytes(model.device) / per_token)
    return min(max(fitting, LEAST_TOKENS), MOST_TOKENS)


class BatchSize:
    """The number of answers that are generated at once.

    Attributes:
        most: The largest number; halved if memory is too small.
        auto: Whether the setting is "auto".
    """

    def __init__(self, setting: int | Literal["auto"], model: "PreTrainedModel", name: str) -> None:
        """Starts with a number of rows, or "auto" for as many as fit; the model's name is for messages."""
        self.auto, self._device, self._name = setting == "auto", model.device, name
        on_cpu = model.device.type == "cpu"
        self.most = setting if setting != "auto" else MOST_CPU if on_cpu else MOST_ACCELERATOR
        self._logits = COPIES_OF_LOGITS * 4 * model.config.get_text_config(decoder=True).vocab_size
        self._warned = False

    def fits(self, rows: int, columns: int, bytes_per_column: int) -> bool:
        """Whether rows of `columns` tokens, answers included, fit the free memory; always True without "auto"."""
        needed = rows * (columns * bytes_per_column + self._logits)
        return not self.auto or needed <= SHARE * available_bytes(self._device)

    def halve(self, rows: int, error: BaseException) -> None:
        """Halves the number of rows and frees their memory; a CulturevalError for a single row."""
        if rows <= 1:
            raise too_little(self._name, self._device, "for one answer", error) from None
        self.most = max(rows // 2, 1)
        if not self._warned:
            logger.warning(
                "memory on %s is too small for %d answers at once: going on with %d or fewer",
                *(self._device, rows, self.most),
            )
        self._warned = True
        recover(self._device, error)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory of a device or of the machine is too small."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    message = str(error).lower()
    return isinstance(error, RuntimeError) and (message == ONEDNN_MESSAGE or any(sign in message for sign in SIGNS))


def too_little(name: str, device: torch.device, task: str, error: BaseException) -> CulturevalError:
    """The error if even the smallest batch does not fit; `task` is a phrase such as "for one answer"."""
    return CulturevalError(
        f"{name} has too little memory on {device} {task} ({str(error)[:200]}). Lower max_length or max_new_tokens, "
        f"set dtype: bfloat16, 8bit or 4bit, or device_map: auto. {GOES_ON}"
    )


@contextmanager
def failures_named(model: str, docs: Sequence["Doc"]) -> Iterator[None]:
    """A context that turns an error of the model's computation into a CulturevalError with a prompt and a remedy.

    Errors of too little memory pass through, since the caller can retry with a smaller batch.
    """
    try:
        yield
    except (RuntimeError, IndexError) as error:
        if is_out_of_memory(error):
            raise
        raise CulturevalError(
            f"{model} fails on a prompt of {docs[0].task_name} (item {docs[0].id}): {described(error)[:400]}. Its "
            "config.json may not fit its weights or tokenizer, or this device has no kernel: try dtype: float32, "
            f"attn_implementation: eager or device: cpu. {GOES_ON}"
        ) from error


def recover(device: torch.device, error: BaseException) -> None:
    """Frees unused memory, and the memory of the pass that ended with this error."""
    error.__traceback__ = None  # its frames hold the tensors
    gc.collect()
    if device.type != "cpu":
        torch.accelerator.empty_cache()
    elif str(error) == ONEDNN_MESSAGE:
        # oneDNN's code generator (Xbyak) keeps its first error: every new kernel of this thread would fail.
        torch.backends.mkldnn.set_flags(False)


def available_bytes(device: torch.device) -> int:
    """Free bytes on a device; on a CPU the share of this process of the run."""
    if device.type != "cpu":
        return torch.accelerator.get_memory_info(device)[0]
    limits = [psutil.virtual_memory().available]
    try:  # the limit of a container; its file cache counts as free
        most, used = (int((CGROUP / name).read_text(encoding="ascii")) for name in ("memory.max", "memory.current"))
        stat = dict(line.split() for line in (CGROUP / "memory.stat").read_text(encoding="ascii").splitlines())
        limits.append(most - used + int(stat.get("inactive_file", 0)))
    except (OSError, ValueError):  # no control group, or no limit ("max")
        pass
    return max(min(limits), 0) // int(os.environ.get("LOCAL_WORLD_SIZE", 1))
