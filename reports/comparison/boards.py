"""Kendall's distance between two leaderboards: how much two orders of the same models disagree."""

import math
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from cultureval.reports.leaderboard.entries import divisions
from cultureval.reports.ranks import kendall_distance
from cultureval.reports.run_ranks import average_weights
from cultureval.runs.load_runs import load_all
from cultureval.runs.record import TaskRecord
from cultureval.runs.table import higher_is_better
from cultureval.runtime.csv_files import read_csv
from cultureval.runtime.errors import CulturevalError, counted, escaped, shown_names

LARGEST = 1_000_000  # bytes of a CSV file of a leaderboard
MOST_PAIRS = 10


def compare_boards(paths: Sequence[Path], metrics: Sequence[str]) -> str:
    """Kendall's distance of two leaderboards on the models that both have, and the pairs that they order differently.

    Args:
        paths: Two. A folder of results: a model's score is the average over benchmarks of the headlines of the tasks
            that all of its models have, lower-is-better ones negated; models that may not be compared with most others
            are left out with a sentence. A CSV file: its first two columns are model and score, higher is better.
        metrics: Metrics of results instead of headlines; [] for these.

    Raises:
        CulturevalError: There are not two, one cannot be read, or they share fewer than two models.
    """
    if len(paths) != 2:
        raise CulturevalError(f"--leaderboards compares two leaderboards, and {len(paths)} were named.")
    read = [(_of_csv(path), []) if path.suffix == ".csv" else _of_results(path, metrics) for path in paths]
    boards, left_out = [board for board, _ in read], [sentence for _, told in read for sentence in told]
    models = [model for model in boards[0] if model in boards[1]]
    if len(models) < 2:
        there = " and ".join(shown_names(list(board), 3) or "no model" for board in boards)
        few = f"the leaderboards share {counted(len(models), 'model')}, and a distance needs two: {there}."
        raise CulturevalError("\n".join([few, *left_out]))
    first, second = ([board[model] for model in models] for board in boards)
    distance, tau = kendall_distance(first, second)
    lines = [
        f"Kendall distance {distance:.3f} of {len(models)} models: the share of pairs that {paths[0]} and {paths[1]}"
        f" order differently (a pair tied in one alone counts half). Kendall's tau-b {tau:.3f}."
    ]
    lines += left_out
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


def _of_results(path: Path, metrics: Sequence[str]) -> tuple[dict[str, float], list[str]]:
    """The models' averages on the tasks that all of them have, and who is left out and why.

    Models stand in one order where the leaderboard has them in one group: the largest of each suite.
    """
    scores: dict[str, dict[str, float]] = {}
    records: dict[str, TaskRecord] = {}
    left: dict[str, list[str]] = {}
    for division in divisions(load_all([path])):
        first, *others = division.groups
        for group in others:
            why = "; ".join(group.differences)
            if models := [entry.model for entry in group.entries if entry not in first.entries]:
                left.setdefault(f"{division.suite}: {why}", []).extend(models)
        for entry in first.entries:
            if why := entry.unranked or next(iter(entry.run.unchecked.values()), ""):
                left.setdefault(f"{division.suite}: {why}", []).append(entry.model)
                continue
            name = entry.model if [one.model for one in first.entries].count(entry.model) == 1 else entry.label
            for task, record in entry.run.record.tasks.items():
                for metric in metrics or record.metrics[:1]:
                    value = entry.run.value(task, metric)
                    if value is not None:
                        records.setdefault(task, record)
                        signed = value if higher_is_better(entry.sources[task], task, metric) else -value
                        scores.setdefault(name, {}).setdefault(task, signed)
    told = [f"{path}: without {shown_names(models)}: {why.rstrip('.')}." for why, models in left.items()]
    shared = [task for task in records if all(task in of_model for of_model in scores.values())]
    if not shared:
        raise CulturevalError("\n".join([f"{path}: its models share no task with a score.", *told]))
    weights = average_weights([records[task] for task in shared])
    averages = {
        model: math.fsum(weights[task] * of_model[task] for task in shared) for model, of_model in scores.items()
    }
    return averages, told
