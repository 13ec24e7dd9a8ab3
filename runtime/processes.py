"""Several processes that share one run (`accelerate launch`, `torchrun`).

Each process answers its share of the prompts, and all exchange their answers. `finish` then ends every process but the
first, which computes the metrics and writes the results.
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from cultureval.runtime.errors import GOES_ON, CulturevalError

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc

Answer = TypeVar("Answer")


def process_count() -> int:
    """How many processes share this run."""
    return int(os.environ.get("WORLD_SIZE", 1))


def process_rank() -> int:
    """The rank of this process, from 0."""
    return int(os.environ.get("RANK", 0)) if process_count() > 1 else 0


def connect() -> None:
    """Connect to the other processes, if any. Only answers are exchanged, so gloo is enough on GPUs too."""
    if process_count() > 1:
        import torch.distributed as dist

        if not dist.is_initialized():
            dist.init_process_group("gloo", timeout=timedelta(days=1))


def split_contiguous(order: Sequence[int], sizes: Sequence[float]) -> list[Sequence[int]]:
    """Contiguous shares of a list of indices, of about the same sum of their sizes."""
    count, total = process_count(), sum(sizes[index] for index in order) or 1
    shares: list[list[int]] = [[] for _ in range(count)]
    done = 0.0
    for index in order:
        middle = done + sizes[index] / 2
        shares[min(int(middle * count / total), count - 1)].append(index)
        done += sizes[index]
    return shares


def answer_and_gather(
    docs: Sequence["Doc"], shares: Sequence[Sequence[int]], answer: Callable[[list["Doc"]], Sequence[Answer]]
) -> list[Answer]:
    """Answers the share of this process, and returns the answers of all processes, in the order of the questions.

    `shares` are the indices of each process's questions, in the order of asking. Raises a CulturevalError where the
    processes have different questions, or another order.
    """
    order = hashlib.sha256(repr([(doc.task_name, doc.id, doc.query) for doc in docs]).encode()).digest()
    if len(set(gather(order))) > 1:
        raise CulturevalError("The processes have different rows, or in another order: start all with one command.")
    mine = shares[process_rank()]
    answered = list(zip(mine, answer([docs[place] for place in mine]), strict=True))
    by_place = dict(pair for share in gather(answered) for pair in share)
    return [by_place[place] for place in range(len(by_place))]


def gather(mine: Answer) -> list[Answer]:
    """The values of all processes, by rank; raises a CulturevalError where another process has ended."""
    gathered = [mine] * process_count()
    if process_count() > 1:
        import torch.distributed as dist

        try:
            dist.all_gather_object(gathered, mine)
        except RuntimeError as error:
            reason = str(error).partition("\n")[0][:200]
            raise CulturevalError(f"Another process of this run has ended ({reason}). {GOES_ON}") from error
    return gathered


def finish() -> None:
    """Disconnects the processes: the first goes on, all others end by a SystemExit of code 0."""
    if process_count() > 1:
        import torch.distributed as dist

        if dist.is_initialized():
            dist.barrier()
            dist.destroy_process_group()
    if process_rank() > 0:
        raise SystemExit(0)
