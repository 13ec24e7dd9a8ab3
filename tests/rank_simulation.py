"""How often rank intervals, and the set of models called best, hold what they should: the figures of docs/comparing.md.

`python tests/rank_simulation.py [REPEATS]`; 1,000 take about ten minutes.
"""

import sys
from collections.abc import Iterator, Sequence

import numpy as np

from cultureval.reports.ranks import SubsetScores, rank_models, resample

NUMBERS = (2, 3, 5, 10, 20)


def skills_of(kind: str, models: int) -> np.ndarray:
    """How able models are, the best first, on the scale of items' difficulties (standard normal)."""
    if kind == "equal":
        return np.zeros(models)
    if kind == "half of them better":
        return np.where(np.arange(models) < (models + 1) // 2, 0.3, 0.0)
    return -0.1 * np.arange(models)  # each a step of about two points behind the one before


def answers(generator: np.random.Generator, skills: np.ndarray, items: int, size: int) -> np.ndarray:
    """Right answers [items, models]; what is hard is hard for all models, and alike in a cluster of `size`."""
    hardness = np.repeat(generator.normal(size=(items // size, 1)), size, axis=0)
    own = np.repeat(generator.normal(size=(items // size, len(skills))), size, axis=0)
    return (skills + hardness + own + generator.normal(size=(items, len(skills))) > 0).astype(float)


def simulate(kind: str, models: int, items: int, size: int, repeats: int, draws: int = 1000) -> tuple[float, ...]:
    """Shares of repeats in which all the best are called best, and in which all rank intervals hold; how many are best.

    Returns:
        The two shares, and the mean number of models that are called best.
    """
    skills = skills_of(kind, models)
    first = np.array([1 + (skills > skill).sum() for skill in skills])  # a true rank is any from here
    last = np.array([(skills >= skill).sum() for skill in skills])  # to here
    found = []
    for seed in range(repeats):
        scores = answers(np.random.default_rng([seed, models, items]), skills, items, size)
        subset = SubsetScores(scores, [place // size for place in range(items)])
        rows = rank_models([f"{place:02}" for place in range(models)], resample([subset], draws, seed)).rows
        low, high = np.array([(row.low, row.high) for row in sorted(rows, key=lambda row: row.model)]).T
        best = skills == skills.max()
        found.append(((low[best] == 1).all(), ((low <= first) & (last <= high)).all(), (low == 1).sum()))
    return tuple(np.mean(found, axis=0).tolist())


def table(repeats: int, kinds: Sequence[str] = ("equal", "half of them better", "each a step behind")) -> Iterator[str]:
    """The table of the docs, line by line."""
    yield "| models | items | " + " | ".join(str(number) for number in NUMBERS) + " |"
    for kind in kinds:
        for items, size in ((300, 1), (300, 5)):
            cells = [simulate(kind, number, items, size, repeats) for number in NUMBERS]
            shown = " | ".join(f"{best:.3f}, {ranks:.3f}, {count:.1f}" for best, ranks, count in cells)
            yield f"| {kind} | {items}{f' in clusters of {size}' if size > 1 else ''} | {shown} |"


if __name__ == "__main__":
    for line in table(int((sys.argv[1:] or ["1000"])[0])):
        print(line, flush=True)
