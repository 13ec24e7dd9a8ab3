"""Several processes that share one run (`accelerate launch`, `torchrun`): who scores what, and who writes.

LightEval's custom launcher takes every process for the main one. So each process asks the model its share of the
prompts, all exchange their answers, and `leave` ends all but the first where LightEval hands over to the metrics.
"""

import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TypeVar

import torch.distributed as dist

Answer = TypeVar("Answer")


def process_count() -> int:
    """How many processes share this run."""
    return int(os.environ.get("WORLD_SIZE", 1))


def process_rank() -> int:
    """Which of them this is, from 0."""
    return int(os.environ.get("RANK", 0)) if process_count() > 1 else 0


def connect() -> None:
    """Meet the other processes, if there are any. Only answers travel, so the CPU's transport serves on GPUs too."""
    if process_count() > 1 and not dist.is_initialized():
        dist.init_process_group("gloo", timeout=timedelta(days=1))


def answer_together(
    count: int, order: Sequence[int], answer: Callable[[Sequence[int]], Sequence[Answer]]
) -> list[Answer]:
    """Let each process answer its share, and give every process all answers.

    Args:
        count: Number of questions.
        order: All their indices in the order of asking, longest first; every process must see the same order. Shares
            are taken in turns, so that they are about equally long.
        answer: From indices to the answers of these questions, in the same order.

    Returns:
        The answers of all questions by index.
    """
    mine = order[process_rank() :: process_count()]
    answered = list(zip(mine, answer(mine), strict=True))
    shares = [answered]
    if process_count() > 1:
        shares = [[] for _ in range(process_count())]
        dist.all_gather_object(shares, answered)
    by_index = dict(pair for share in shares for pair in share)
    return [by_index[index] for index in range(count)]


def leave() -> None:
    """Part from the other processes; all but the first one end here.

    Raises:
        SystemExit: With code 0, in every process but the first.
    """
    if process_count() == 1:
        return
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()
    if process_rank() > 0:
        raise SystemExit(0)
