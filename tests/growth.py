"""How the time of an operation grows with its input, whatever the machine: a ratio within one process."""

import time
from collections.abc import Callable

SMALLEST = 0.02  # seconds of processor time below which a clock's steps and garbage collection count for more


def grows_slowly(act: Callable[[int], object], size: int, times: int = 4) -> bool:
    """Whether `times` as large an input takes less than `times` squared as long, as every quadratic one would.

    Args:
        act: Does the work on an input of a size.
        size: The small size.
    """
    small = max(SMALLEST, min(_seconds(act, size) for _ in range(3)))
    return min(_seconds(act, times * size) for _ in range(2)) < 0.75 * times**2 * small


def _seconds(act: Callable[[int], object], size: int) -> float:
    began = time.process_time()
    act(size)
    return time.process_time() - began
