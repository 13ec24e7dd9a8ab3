"""CPU seconds and memory of the leaderboard of planted runs: all of QIMMA for so many models and rows a subset.

Run `python -m benchmarks.leaderboard FOLDER [MODELS] [ROWS]` from the repository; 30 and 300 are the default.
The first call plants the runs, the second measures.
"""

import hashlib
import resource
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from planted import plant, text_row

from cultureval.metrics.declared import SUMS
from cultureval.runs.frame import ends
from cultureval.tasks.catalogue import all_tasks

FAMILIES = ("Invented", "Imagined", "Fictitious", "Pretended", "مختلق")  # taken for nobody's real models
SIZES = (1, 3, 7, 9, 14, 27, 32, 70)


def invented_models(count: int) -> dict[str, float]:
    """Names of models, and how able they are, between 0.3 and 0.8."""
    names = [f"lab/{FAMILIES[place % 5]}-{SIZES[(place * 3) % 8]}B-v{place // 8 + 1}" for place in range(count)]
    return {name: 0.3 + 0.5 * ((place * 7) % count) / max(count, 1) for place, name in enumerate(names)}


def plant_suite(root: Path, suite: str, models: int, rows: int) -> None:
    """Runs of invented models in all tasks of a suite; what is hard is hard for all models."""
    tasks = [task for task in all_tasks().values() if task.suite == suite]
    for place, (model, ability) in enumerate(invented_models(models).items()):
        answers = {}
        for task in tasks:
            own = np.random.default_rng(int(hashlib.sha256(f"{task.task}{model}".encode()).hexdigest()[:8], 16))
            hard = np.random.default_rng(int(hashlib.sha256(task.task.encode()).hexdigest()[:8], 16)).random(rows)
            right = (0.5 * hard + 0.5 * own.random(rows)) < ability
            ranges = {metric: np.clip(ends(task.task, metric), -100, 100) for metric in task.metrics}
            f1 = [name + SUMS for name in ranges if name.startswith("f1")]  # M2CQA's: both of its accuracies
            answers[f"{task.task}|0"] = [
                text_row(
                    number,
                    {name: float(limits[int(one)]) for name, limits in ranges.items()}
                    | {name: [float(one), 1.0, 2.0 * one, 2.0] for name in f1},
                )
                for number, one in enumerate(right)
            ]
        plant(root, answers, model, f"2026-11-01T10-00-{place % 60:02d}.000000")


def main() -> None:
    """Plants the runs and writes their page."""
    folder = Path(sys.argv[1])
    models, rows = (int(text) for text in [*sys.argv[2:], *("30", "300")[len(sys.argv) - 2 :]])
    if not (folder / "results").is_dir():
        plant_suite(folder, "qimma", models, rows)
        raise SystemExit("The runs are planted: repeat the command, so that planting is not measured.")
    from cultureval.reports.leaderboard.board import read_board
    from cultureval.reports.leaderboard.site import write_site
    from cultureval.runtime.settings import current_settings, use_settings

    started = time.perf_counter()
    with use_settings(current_settings()):
        board = read_board([folder])
        read = time.process_time()
        write_site(board, folder / "site", "Invented models and scores", ("svg",))
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(f"read {read:.1f} s CPU; all {used.ru_utime + used.ru_stime:.1f} s CPU", end="; ")
    print(f"wall {time.perf_counter() - started:.1f} s; peak memory {used.ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
