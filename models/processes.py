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


def in_turns(order: Sequence[int]) -> list[Sequence[int]]:
    """Shares of a list sorted by length: the processes take the next one in turn, so that all get about the same."""
    return [order[rank :: process_count()] for rank in range(process_count())]


def in_runs(order: Sequence[int], sizes: Sequence[float]) -> list[Sequence[int]]:
    """Shares whose members are neighbours in a list, cut where the sum of their sizes is about the same.

    Args:
        order: All indices.
        sizes: Of each question, by index.
    """
    count, total = process_count(), sum(sizes[index] for index in order) or 1
    shares: list[list[int]] = [[] for _ in range(count)]
    done = 0.0
    for index in order:
        middle = done + sizes[index] / 2
        shares[min(int(middle * count / total), count - 1)].append(index)
        done += sizes[index]
    return shares


def answer_together(
    shares: Sequence[Sequence[int]], answer: Callable[[Sequence[int]], Sequence[Answer]]
) -> list[Answer]:
    """Let each process answer its share, and give every process all answers.

    Args:
        shares: Indices of the questions of each process, in the order of asking; every process must see the same.
        answer: From indices to the answers of these questions, in the same order.

    Returns:
        The answers of all questions by index.
    """
    mine = shares[process_rank()]
    answered = list(zip(mine, answer(mine), strict=True))
    gathered = [answered]
    if process_count() > 1:
        gathered = [[] for _ in range(process_count())]
        dist.all_gather_object(gathered, answered)
    by_index = dict(pair for share in gathered for pair in share)
    return [by_index[index] for index in range(len(by_index))]


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
