"""Runs made of the catalogue, for tests of summaries: every task of a suite with given or invented scores."""

import math
from collections.abc import Callable, Iterable
from pathlib import Path

from cultureval.runs.record import Run, RunRecord, TaskRecord
from cultureval.tasks.catalogue import all_tasks, groups
from cultureval.tasks.suite import Task

Score = Callable[[Task, str], float | None]


def invented_score(task: Task, metric: str) -> float:
    """A number between 0 and 1 that depends on the names alone."""
    return sum(f"{task.task}{metric}".encode()) % 1000 / 1000


def run_of(names: Iterable[str], score: Score = invented_score, model: str = "my-lab/my-model", **record) -> Run:
    """A run of tasks, with the averages of their groups.

    Args:
        names: Tasks, or suites for all of their tasks.
        score: A task's value of a metric; standard errors are 0.01.
        model: The model's name.
        record: Fields of every task's record that differ.
    """
    wanted = set(names)
    tasks = [task for task in all_tasks().values() if {task.task, task.suite} & wanted]
    scores: dict[str, dict[str, float | None]] = {}
    for task in tasks:
        values = {metric: score(task, metric) for metric in task.metrics}
        scores[f"{task.task}|0"] = values | {f"{metric}_stderr": 0.01 for metric in values}
    for group in {task.group for task in tasks if ":" in task.task}:
        members = [scores[f"{task.task}|0"] for task in tasks if task.group == group]
        average = {name: _mean([member[name] for member in members]) for name in members[0]}
        errors = {name: 0.01 / math.sqrt(len(members)) for name in average if name.endswith("_stderr")}
        scores[f"{group}:_average|0"] = average | errors
    records = {f"{task.task}|0": _record(task, record) for task in tasks}
    return Run(Path("results/results_1.json"), model, "2026-01-01T00-00-00", scores, RunRecord(tasks=records))


def _mean(values: list[float | None]) -> float | None:
    return None if None in values else sum(values) / len(values)


def published_count(task: Task) -> int:
    """How many rows the task has; of a group of which the sum alone is published, its share of that."""
    members, total = groups()[task.group], task.group_rows.get("original", 0)
    rest = total % len(members) if task.task == members[0] else 0
    return task.expected("original") or total // len(members) + rest or 100


def _record(task: Task, changed: dict) -> TaskRecord:
    fields = task.as_record()
    kept = ("suite", "benchmark", "group", "subset", "domain", "task_type", "language", "register", "expected_rows")
    known = {name: fields[name] for name in kept} | {"task": f"{task.task}|0", "metrics": task.metrics}
    known |= {"rows": published_count(task), "items": published_count(task), "form": "original"}
    return TaskRecord(**known | changed)
