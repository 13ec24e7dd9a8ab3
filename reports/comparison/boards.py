"""Kendall's distance between two leaderboards: how much two orders of the same models disagree."""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

from cultureval.reports.ranks import kendall_distance
from cultureval.reports.run_ranks import average_weights
from cultureval.reports.run_record import Run, TaskRecord
from cultureval.reports.saved_runs import load
from cultureval.runtime.csv_files import read_csv
from cultureval.runtime.errors import CulturevalError, counted, escaped, shown_names

LARGEST = 1_000_000  # bytes of a CSV file of a leaderboard
MOST_PAIRS = 10


def compare_boards(paths: Sequence[Path], metrics: Sequence[str]) -> str:
    """Kendall's distance of two leaderboards on the models that both have, and the pairs that they order differently.

    Args:
        paths: Two. A folder of results: a model's score is the average over benchmarks of the headlines of the tasks
            that all of its models have, lower-is-better ones negated. A CSV file: its first two columns are model and
            score, higher is better.
        metrics: Metrics of results instead of headlines; [] for these.

    Raises:
        CulturevalError: There are not two, one cannot be read, or they share fewer than two models.
    """
    if len(paths) != 2:
        raise CulturevalError(f"--leaderboards compares two leaderboards, and {len(paths)} were named.")
    boards = [_of_csv(path) if path.suffix == ".csv" else _of_results(path, metrics) for path in paths]
    models = [model for model in boards[0] if model in boards[1]]
    if len(models) < 2:
        there = " and ".join(shown_names(list(board), 3) or "no model" for board in boards)
        raise CulturevalError(
            f"the leaderboards share {counted(len(models), 'model')}, and a distance needs two: {there}."
        )
    first, second = ([board[model] for model in models] for board in boards)
    distance, tau = kendall_distance(first, second)
    lines = [
        f"Kendall distance {distance:.3f} of {len(models)} models: the share of pairs that {paths[0]} and {paths[1]}"
        f" order differently (a pair tied in one alone counts half). Kendall's tau-b {tau:.3f}."
    ]
    if left := [model for board in boards for model in board if model not in models]:
        lines.append(f"Only one of them has {shown_names(left)}.")
    turned = [
        (models[a], models[b])
        for a, b in combinations(range(len(models)), 2)
        if (first[a] - first[b]) * (second[a] - second[b]) < 0
    ]
    lines += [f"  ordered differently: {one} / {other}" for one, other in turned[:MOST_PAIRS]]
    if len(turned) > MOST_PAIRS:
        lines.append(f"  and {len(turned) - MOST_PAIRS} more pairs")
    return "\n".join(map(escaped, lines))


def _of_csv(path: Path) -> dict[str, float]:
    if not path.is_file():
        raise CulturevalError(f"{path} does not exist.")
    if path.stat().st_size > LARGEST:
        raise CulturevalError(f"{path} is larger than {LARGEST:,} bytes, and is no leaderboard.")
    try:
        rows = [list(row.values()) for _, row in read_csv(path)]
        scores = {row[0]: float(row[1]) for row in rows if row[1].strip()}
    except (ValueError, IndexError) as error:
        raise CulturevalError(
            f"{path}: a header, then a model and its score in each row, are needed ({error})."
        ) from error
    if not all(map(math.isfinite, scores.values())):
        raise CulturevalError(f"{path}: a score is not finite.")
    return scores


def _of_results(path: Path, metrics: Sequence[str]) -> dict[str, float]:
    scores: dict[str, dict[str, float]] = {}
    records: dict[str, TaskRecord] = {}
    for run in load(path):  # the newest first
        for name, record in run.record.tasks.items():
            for metric in metrics or record.metrics[:1]:
                value = run.value(name, metric)
                if value is not None:
                    records.setdefault(name, record)
                    signed = value if higher_is_better(run, name, metric) else -value
                    scores.setdefault(run.model, {}).setdefault(name, signed)
    shared = [task for task in records if all(task in of_model for of_model in scores.values())]
    if not shared:
        raise CulturevalError(f"{path}: its models share no task with a score.")
    weights = average_weights([records[task] for task in shared])
    return {model: math.fsum(weights[task] * of_model[task] for task in shared) for model, of_model in scores.items()}


def higher_is_better(run: Run, task: str, metric: str) -> bool:
    """Whether higher values of a metric are better, as the results file says it; True where it does not."""
    configs = run.content.get("config_tasks")
    config = configs.get(task) if isinstance(configs, Mapping) else None
    declared = config.get("metrics") if isinstance(config, Mapping) else None
    for one in declared if isinstance(declared, Sequence) else ():
        told = one.get("higher_is_better") if isinstance(one, Mapping) else None
        if isinstance(told, Mapping) and metric in told:
            return bool(told[metric])
        if isinstance(told, bool) and one.get("metric_name") == metric:
            return told
    return True
