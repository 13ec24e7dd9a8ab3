"""The table of QIMMA's choices with generated answers: a line a benchmark, and their unweighted mean."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cultureval.reports.run_ranks import average_weights
from cultureval.runs.means import Estimate, mean_of, percentage
from cultureval.runs.record import Run, TaskRecord
from cultureval.runs.table import NO_AVERAGE, Cell, Column, Coverage, Row, SuiteTable, cell_of
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.suite import Task

SUITE, AVERAGE = "qimma_gen", "Average"
COLUMNS = {"strict": "acc_strict", "lenient": "acc_lenient", "invalid": "invalid_strict"}
HEADER = ("", "strict", "lenient", Column("invalid", lower=True), "subsets")
MAIN, COVERAGE = Column("strict", AVERAGE), Column("Coverage")
NOTE = "Labels in generated replies, not log-probabilities: not comparable with QIMMA's own table."


def generative_benchmarks() -> dict[str, list[Task]]:
    """The subsets of each benchmark, in the order of the table."""
    found: dict[str, list[Task]] = {}
    for task in all_tasks().values():
        if task.suite == SUITE:
            found.setdefault(task.benchmark, []).append(task)
    return found


def tables(run: Run) -> list[SuiteTable]:
    """One table for each number of few-shot examples in the run."""
    tasks = run.tasks_of(SUITE)
    counts = dict.fromkeys(task.shots for task in tasks)
    return [_table(run, [task for task in tasks if task.shots == shots], shots) for shots in counts]


def _table(run: Run, tasks: Sequence[TaskRecord], shots: int) -> SuiteTable:
    records = {task.task.partition("|")[0]: task for task in tasks}
    rows, whole = [], []
    for name, members in generative_benchmarks().items():
        present = [records[task.task] for task in members if task.task in records]
        if not present:
            continue
        scores = {column: _mean(run, present, metric) for column, metric in COLUMNS.items()}
        subsets = Coverage(len(present), len(members))
        cells = (replace(cell_of(mean), coverage=subsets) for mean in scores.values())
        rows.append(Row(name, (*cells, subsets)))
        whole += [scores] if len(present) == len(members) and None not in scores.values() else []
    coverage = Coverage(len(whole), len(generative_benchmarks()), COVERAGE)
    rows.append(Row(AVERAGE, (*_average(whole, tasks), coverage)))
    return SuiteTable("QIMMA, generated answers", f"percent, {shots}-shot", HEADER, rows, [NOTE], main=MAIN)


def _average(whole: Sequence[Mapping[str, Estimate | None]], tasks: Sequence[TaskRecord]) -> list[Cell | None]:
    if len(whole) < len(generative_benchmarks()):
        return [Cell(None, words=NO_AVERAGE), None, None]
    means = [mean_of([one[column] for one in whole if one[column]]) for column in COLUMNS]
    first, *others = (cell_of(mean) for mean in means)
    parts = {(task, COLUMNS["strict"]): weight for task, weight in average_weights(tasks).items()}
    return [replace(first, parts=parts), *others]


def _mean(run: Run, tasks: Sequence[TaskRecord], metric: str) -> Estimate | None:
    found = [percentage(run, task, metric) for task in tasks]
    return mean_of([one for one in found if one]) if all(found) else None
