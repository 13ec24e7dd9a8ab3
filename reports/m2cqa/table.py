"""The tables of M2CQA, as the paper's Table 2, and of AynVQA, in its organisers' order; shares between 0 and 1.

Papers: arXiv 2602.05437, Tables 2 and 10: a table for each prompt, with the accuracies beside CFHR. A low CFHR with a
low accuracy on Q+ is rejection, not grounding. Overview of ImageEval 2026, arXiv 2608.30475: models are ranked by
contrastive instability. Ours: standard errors, the share of invalid outputs, and the mean over rows.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from cultureval.metrics.m2cqa.names import (
    AYNVQA_JOINT,
    CFHR,
    COMBINED_ACC,
    CONTRASTIVE_INSTABILITY,
    F1,
    INVALID_RATE,
    JOINT_ACC,
    JOINT_INVALID_RATE,
    PROFILE_NAMES,
    Q_MINUS_ACC,
    Q_PLUS_ACC,
)
from cultureval.runs.loading import Run
from cultureval.runs.table import Mean, Numbers, Place, ScoreNames, Table, mean_of_cells, mean_row, published_rows
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.m2cqa.benchmarks import PROMPTS
from cultureval.tasks.suite import Task

PUBLISHED = Path(__file__).with_name("published.csv")
COLUMNS = {CFHR: "CFHR", Q_PLUS_ACC: "Q+", F1: "F1", INVALID_RATE: "invalid"}
AYNVQA_COLUMNS = {
    CONTRASTIVE_INSTABILITY: "instability",
    COMBINED_ACC: "combined",
    CFHR: "CFHR",
    Q_PLUS_ACC: "Q+",
    Q_MINUS_ACC: "Q-",
    INVALID_RATE: "invalid",
}
JOINT_COLUMNS = {JOINT_ACC: "accuracy", JOINT_INVALID_RATE: "invalid"}
LOWER = frozenset({"instability", "CFHR", "invalid"})
UNIT = "0 to 1; invalid: outputs that the strict reading cannot read"
AYNVQA_UNIT = f"{UNIT}, under One word the organisers'"
JOINT_UNIT = "0 to 1; the true one of three (chance 0.333), not comparable with the other forms"
VARIETIES = {"en": "English", "msa": "MSA", "ajp": "Levantine", "arz": "Egyptian"}
DIALECT, DIALECTS = "Dialect", ("Levantine", "Egyptian")  # the paper's Dialect is the mean of their metrics
GAP = 0.02  # of a headline between two profiles
MOST = 3  # tasks that a note names


def tables(score_names: ScoreNames) -> list[Table]:
    """A table for each prompt: its varieties, and the paper's Dialect if both dialects were run."""
    found = []
    for key, prompt in PROMPTS.items():
        tasks = {VARIETIES[task.subset]: task for task in _tasks("m2cqa", score_names) if task.domain == prompt}
        table = _table(f"M2CQA, {prompt}", UNIT, tasks, COLUMNS, len(VARIETIES))
        cells = dict(table.cells)
        if all(name in tasks for name in DIALECTS):
            means = {place: cells.pop(place) for place in table.cells if place[0] not in tasks}  # they come last
            columns = COLUMNS.values()
            dialect = {(DIALECT, name): mean_of_cells(cells[part, name] for part in DIALECTS) for name in columns}
            cells |= dialect | means
        found.append(replace(table, cells=cells, published=_published(key)))
    return found


def aynvqa_tables(score_names: ScoreNames) -> list[Table]:
    """A table with a row for each form and language, and one of the joint form."""
    tasks = {f"{task.domain}, {VARIETIES[task.subset]}": task for task in _tasks("aynvqa", score_names)}
    joint = {VARIETIES[task.subset]: task for task in tasks.values() if task.group == AYNVQA_JOINT}
    forms = {label: task for label, task in tasks.items() if task.group != AYNVQA_JOINT}
    every = [task for task in all_tasks().values() if task.suite == "aynvqa" and task.group != AYNVQA_JOINT]
    return [
        _table("AynVQA", AYNVQA_UNIT, forms, AYNVQA_COLUMNS, len(every)),
        _table("AynVQA, joint form", JOINT_UNIT, joint, JOINT_COLUMNS, 2),
    ]


def _tasks(suite: str, score_names: ScoreNames) -> list[Task]:
    """The tasks of a suite that a run has, variety by variety."""
    order = list(VARIETIES)
    tasks = [task for task in all_tasks().values() if task.suite == suite and task.task in score_names]
    return sorted(tasks, key=lambda task: order.index(task.subset)) if suite == "m2cqa" else tasks


def _table(name: str, unit: str, tasks: Mapping[str, Task], columns: Mapping[str, str], every: int) -> Table:
    """A row for each task and their mean, which the papers do not have; the mean's first column ranks runs."""
    cells: dict[Place, Mean] = {
        (label, column): Mean({(task.task, metric): 1.0}, digits=3)
        for label, task in tasks.items()
        for metric, column in columns.items()
    }
    means = mean_row(cells, list(tasks), every) if tasks else {}
    metric, column = next(iter(columns.items()))
    notes = _notes_on_reading(tasks, metric, column)
    return Table(name, cells | means, unit, next(iter(means), None), LOWER, notes=notes)


def _notes_on_reading(tasks: Mapping[str, Task], metric: str, column: str) -> Callable[[Run, int], list[str]]:
    """A note with the rows whose headline another profile changes by more than `GAP`."""

    def notes(run: Run, shots: int) -> list[str]:
        lines = []
        for label, task in tasks.items():
            scores = run.scores.get(f"{task.task}|{shots}", {})
            by_profile = {name: scores[key].value for name in PROFILE_NAMES if (key := f"{metric}_{name}") in scores}
            if metric in scores and by_profile:
                value = scores[metric].value
                profile = max(by_profile, key=lambda name: abs(by_profile[name] - value))
                if abs(by_profile[profile] - value) > GAP:
                    lines.append(f"{label} {value:.3f}, {profile} {by_profile[profile]:.3f}")
        more = [f"{len(lines) - MOST} more"] if len(lines) > MOST else []
        return [f"{column} depends on how outputs are read: {'; '.join([*lines[:MOST], *more])}."] if lines else []

    return notes


def _published(prompt: str) -> dict[str, Numbers]:
    """Model -> the paper's numbers under a prompt (`tf`), by row and column."""
    labels = VARIETIES | {"dialect": DIALECT}
    found: dict[str, dict[tuple[str, str], float]] = {}
    for row in published_rows(PUBLISHED):
        if row["prompt"] == prompt:
            places = {(labels[row["variety"]], column): row.get(metric) for metric, column in COLUMNS.items()}
            found.setdefault(row["model"], {}).update({at: float(cell) for at, cell in places.items() if cell})
    return dict(found)
