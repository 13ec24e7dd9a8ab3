"""A run's row in QIMMA's leaderboard: the average, fourteen benchmarks, seven domains, coverage.

Paper (arXiv 2604.03395), Tables 3 and 4; the columns' order is that of its published table.
"""

from collections.abc import Mapping

from cultureval.reports.published import published_rows
from cultureval.reports.qimma.headline import AVERAGE, PUBLISHED, headline
from cultureval.reports.run_record import Run, RunRecord
from cultureval.reports.standings import INCOMPLETE, Column, Standing
from cultureval.reports.summary import Cell
from cultureval.reports.task_records import task_records
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.qimma.averages import SUITE, benchmark_tasks

ORDER = (
    "AraDiCE-Culture",
    "ArabicMMLU",
    "ArabCulture",
    "PalmX",
    "3LM STEM",
    "AraTrust",
    "MizanQA",
    "MedArabiQ",
    "ArabLegalQA",
    "GAT",
    "MedAraBench",
    "HumanEval+",
    "MBPP+",
    "FannOrFlop",
)
MAIN = Column(AVERAGE)
COVERAGE = Column("Coverage")
BENCHMARKS, DOMAINS = "Benchmarks", "Domains"


def standings(run: Run) -> list[Standing]:
    """One row: what the summary has in lines, side by side.

    Args:
        run: With one number of few-shot examples.
    """
    if not run.tasks_of(SUITE):
        return []
    (table,) = headline(run)
    found: dict[str, Cell] = {}
    domains: dict[str, Cell] = {}
    average, coverage = None, ""
    for row in table.rows:
        name, score, domain, _ = row.cells
        if row.label == AVERAGE:
            average = score if isinstance(score, Cell) else None
            coverage = str(name).removeprefix("coverage ")
            continue
        found[str(name)] = _shown(score)
        if isinstance(domain, Cell):
            domains[row.label] = domain
    cells: dict[Column, Cell | str | None] = {MAIN: average or INCOMPLETE, COVERAGE: coverage}
    cells |= {Column(name, BENCHMARKS): found.get(name) for name in ORDER}
    partial = _partial(run)
    for name in partial:
        cells[Column(name, BENCHMARKS)] = partial[name]
    cells |= {Column(name, DOMAINS): domains.get(name) for name in _domain_names()}
    return [Standing("QIMMA", cells, "percent", MAIN, _parts(run) if average else {}, table.notes)]


def _shown(cell: Cell | str | None) -> Cell:
    return cell if isinstance(cell, Cell) else Cell(None)


def _partial(run: Run) -> Mapping[str, str]:
    """The benchmarks of which some subsets are missing: how many are there. Their mean is of other subsets."""
    scored = [one for one in run.tasks_of(SUITE) if run.value(one.task, one.metrics[0]) is not None]
    there = {one.task.partition("|")[0] for one in scored}
    counts = {
        name: (sum(task.task in there for task in tasks), len(tasks)) for name, tasks in benchmark_tasks().items()
    }
    return {name: f"{found}/{all_}" for name, (found, all_) in counts.items() if 0 < found < all_}


def _parts(run: Run) -> dict[tuple[str, str], float]:
    """Every subset with its headline metric and its weight in the average."""
    records = {record.task.partition("|")[0]: record for record in run.tasks_of(SUITE)}
    benchmarks = benchmark_tasks()
    return {
        (records[task.task].task, records[task.task].metrics[0]): 1 / len(benchmarks) / len(tasks)
        for tasks in benchmarks.values()
        for task in tasks
    }


def _domain_names() -> list[str]:
    return list(dict.fromkeys(tasks[0].domain for tasks in benchmark_tasks().values()))


def published_standings() -> dict[str, list[Standing]]:
    """The rows of the paper's Table 3, whose averages and domains are computed as for other runs."""
    return {run.model: standings(run) for run in published_runs()}


def published_runs() -> list[Run]:
    """The paper's Table 3 as runs: every subset of a benchmark has the benchmark's score, whose mean it is.

    Averages and domains follow from them, as they do for other runs.
    """
    names = [task.task for task in all_tasks().values() if task.suite == SUITE]
    records = task_records({f"{name}|0": {} for name in names}, None)
    runs = []
    for row in published_rows(PUBLISHED):
        scores: dict[str, dict[str, float | None]] = {}
        for benchmark, tasks in benchmark_tasks().items():
            if row[benchmark]:
                scores |= {f"{task.task}|0": {task.metrics[0]: float(row[benchmark]) / 100} for task in tasks}
        known = {name: record for name, record in records.items() if name in scores}
        runs.append(Run(PUBLISHED, row["model"], "", scores, RunRecord(schema=0, tasks=known)))
    return runs
