"""Samples that depend only on a seed and on ids, so that they are the same in every run."""

import hashlib
from collections.abc import Sequence


def sampled_rows(ids: Sequence[str], name: str, sample: int | None, seed: int) -> list[int]:
    """Indices of the rows of a random sample, in order.

    The sample depends only on the seed, the name and each row's id, so that all models are judged on the same items,
    and a larger sample contains a smaller one.

    Args:
        name: Of the task, or of what else the rows are of.
        sample: Number of rows; None: all.
        seed: Random seed.
    """
    if sample is None or sample >= len(ids):
        return list(range(len(ids)))
    order = sorted(range(len(ids)), key=lambda place: hashlib.sha256(f"{seed}|{name}|{ids[place]}".encode()).digest())
    return sorted(order[:sample])
