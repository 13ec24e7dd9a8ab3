"""QIMMA's table of a run, as the paper's Tables 3 and 4: fourteen benchmarks, seven domains, the average.

Paper (arXiv 2604.03395), section 5 and Tables 3-4: a benchmark is the unweighted mean of its subsets, a domain that of
its benchmarks, the average that of the fourteen benchmarks (not of the domains); HumanEval+ and MBPP+ count as two.
Verified: all 14 averages and 98 domain scores of the paper follow from its benchmark scores.
Inferred: MedArabiQ is the mean of its five subsets (accuracy of three, BERTScore of two), as the others are of theirs.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cultureval.reports.charts import Chart, Charted, Interval, Point, dots, interval_of_cell, scatter, without_size
from cultureval.reports.paper_numbers import published_rows, published_scores
from cultureval.reports.run_ranks import average_weights
from cultureval.runs.means import Estimate, as_written, mean_of, percentage
from cultureval.runs.record import Run, RunRecord, TaskRecord
from cultureval.runs.table import NO_AVERAGE, Cell, Column, Coverage, Row, SuiteTable, cell_of, one_row
from cultureval.runs.task_records import task_records
from cultureval.runtime.doc_fields import FIRST_TOKEN, PAPER, SOUND
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.qimma.averages import SUITE, benchmark_of, benchmark_tasks

AVERAGE = "Average"
MAIN, COVERAGE = Column(AVERAGE), Column("Coverage")
BENCHMARKS, DOMAINS = "Benchmarks", "Domains"
ORDER = (  # the columns of its published table
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
PUBLISHED = Path(__file__).with_name("published.csv")
COLUMNS = ("Domain", "benchmark", "score", "domain", "subsets")
PARITY = {
    PAPER: "prompt and label tokenised together, as by `lighteval vllm`",
    SOUND: "prompt and label tokenised apart, one BOS; the paper's numbers are of `--parity paper`",
}
OF_FIRST_TOKENS = (
    "Choices are scored by the log-probabilities of the first token: not comparable with scores of whole labels, such "
    "as the paper's."
)


def benchmark_scores(subsets: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """Scores of the benchmarks whose subsets (tasks without `|k`) all have one: their unweighted means."""
    return _means({name: [task.task for task in tasks] for name, tasks in benchmark_tasks().items()}, subsets)


def domain_scores(benchmarks: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """Scores of the domains whose benchmarks, by the paper's names, all have one: their unweighted means."""
    domains: dict[str, list[str]] = {}
    for benchmark, tasks in benchmark_tasks().items():
        domains.setdefault(tasks[0].domain, []).append(benchmark)
    return _means(domains, benchmarks)


def average(benchmarks: Mapping[str, Estimate]) -> Estimate | None:
    """The unweighted mean of the fourteen benchmarks, by the paper's names; None unless all have a score."""
    return _means({AVERAGE: list(benchmark_tasks())}, benchmarks).get(AVERAGE)


def _means(members: Mapping[str, Sequence[str]], scores: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """The unweighted means of those whose members all have a score."""
    return {
        name: mean_of([scores[one] for one in own])
        for name, own in members.items()
        if all(one in scores for one in own)
    }


def tables(run: Run) -> list[SuiteTable]:
    """One table for each number of few-shot examples in the run."""
    tasks = run.tasks_of(SUITE)
    shots = dict.fromkeys(task.shots for task in tasks)
    return [_table(run, [task for task in tasks if task.shots == count], count) for count in shots]


def _table(run: Run, tasks: Sequence[TaskRecord], shots: int) -> SuiteTable:
    found = {task.task.partition("|")[0]: percentage(run, task, task.headline) for task in tasks}
    subsets = {name: estimate for name, estimate in found.items() if estimate is not None}
    written = _written(run, tasks, subsets)
    benchmarks = benchmark_scores(subsets) | written
    domains, published = domain_scores(benchmarks), published_scores(PUBLISHED, run.model)
    rows, shown = [], ""
    for name, members in benchmark_tasks().items():
        present = [subsets[task.task] for task in members if task.task in subsets]
        if not any(task.task in found for task in members):
            continue
        domain, coverage = members[0].domain, Coverage(len(present), len(members))
        first = domain != shown
        score = cell_of(written.get(name) or (mean_of(present) if present else None), published.get(name))
        of_domain = cell_of(domains.get(domain), published.get(domain))
        cells = (
            name,
            replace(score, column=Column(name, BENCHMARKS), coverage=coverage),
            replace(of_domain, column=Column(domain, DOMAINS), spans=True) if first else None,
            coverage,
        )
        rows.append(Row(domain if first else "", cells))
        shown = domain
    weights = average_weights(tasks)
    parts = {(task.task, task.headline): weights[task.task] for task in tasks}
    rows.append(_average_row(benchmarks, published.get(AVERAGE), parts))
    notes = [*_forms(tasks), *_parity(tasks)]
    heading = f"QIMMA, percent, {shots}-shot"
    return SuiteTable("QIMMA", "percent", COLUMNS, rows, notes, heading, main=MAIN, order=_order())


def _order() -> list[Column]:
    domains = dict.fromkeys(members[0].domain for members in benchmark_tasks().values())
    of_benchmarks = (Column(name, BENCHMARKS) for name in ORDER)
    return [MAIN, COVERAGE, *of_benchmarks, *(Column(name, DOMAINS) for name in domains)]


def _written(run: Run, tasks: Sequence[TaskRecord], subsets: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """The benchmarks whose subsets are one whole group of the results file, which has their mean."""
    groups: dict[str, list[TaskRecord]] = {}
    for task in tasks:
        groups.setdefault(task.group, []).append(task)
    found = {}
    for name, members in benchmark_tasks().items():
        names = [task.task for task in members]
        records = groups.get(members[0].group, [])
        if len(names) > 1 and {record.task.partition("|")[0] for record in records} == {*names} <= subsets.keys():
            mean = mean_of([subsets[one] for one in names])
            average = f"{members[0].group}:_average|{records[0].shots}"
            found[name] = as_written(run, average, records[0].headline, mean, 100)
    return found


def _average_row(
    benchmarks: Mapping[str, Estimate], published: float | None, parts: Mapping[tuple[str, str], float]
) -> Row:
    mean, words = average(benchmarks), "coverage "
    coverage = Coverage(len(benchmarks), len(benchmark_tasks()), COVERAGE, words if mean is None else "")
    if mean is None:
        return Row(AVERAGE, (coverage, Cell(None, column=MAIN, words=NO_AVERAGE), None, None))
    cell = replace(cell_of(mean, published), column=MAIN, parts=parts)
    return Row(AVERAGE, (coverage, cell, None, None))


def _parity(tasks: Sequence[TaskRecord]) -> list[str]:
    """How prompts became tokens, where the run says it."""
    found = {task.parity for task in tasks}
    notes = [f"Parity: {name} ({PARITY[name]})." for name in PARITY if name in found]
    return [*notes, OF_FIRST_TOKENS] if FIRST_TOKEN in found else notes


def _forms(tasks: Sequence[TaskRecord]) -> list[str]:
    """Which benchmarks were run on curated, and which on original data; several forms are named with theirs."""
    found: dict[str, Counter[str]] = {name: Counter() for name in benchmark_tasks()}
    for task in tasks:
        found[benchmark_of(task.group, task.benchmark, task.subset)][task.form or "form unknown"] += 1
    benchmarks: dict[str, list[str]] = {}
    for name, forms in found.items():
        counts = [f"{form} ({count} subsets)" if len(forms) > 1 else form for form, count in sorted(forms.items())]
        benchmarks.setdefault(" and ".join(counts), []).append(name)
    benchmarks.pop("", None)
    *fewer, most = sorted(benchmarks, key=lambda forms: len(benchmarks[forms]))
    named = [f"{forms} for {', '.join(benchmarks[forms])}" for forms in fewer]
    return [f"Data: {'; '.join([*named, f'{most} for the others' if named else most])}."]


def published_tables() -> dict[str, list[SuiteTable]]:
    """The rows of the paper's Table 3, whose averages and domains are computed as for other runs."""
    return {run.model: tables(run) for run in published_runs()}


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


def charts(models: Sequence[Charted]) -> list[Chart]:
    """The charts that the models' scores allow.

    Args:
        models: Comparable ones, the best first.
    """
    rows = [(model, row.cells) for model in models for row in map(one_row, tables(model.run))]
    found = []
    averages = [
        (model, cell) for model, cells in rows if isinstance(cell := cells[MAIN], Cell) and cell.value is not None
    ]
    points = [
        Point(model.label, model.billions, cell.value, y_error=cell.stderr, group=model.family)
        for model, cell in averages
        if model.billions
    ]
    if len(points) > 1:
        axes = ("parameters", "QIMMA's average, percent")
        note = without_size([model.label for model, _ in averages if not model.billions])
        found.append(scatter("qimma_size", "Average and size", axes, points, sizes=True, note=note))
    domains = {model.label: known for model, cells in rows if (known := _domains(cells))}
    if domains:
        found.append(dots("qimma_domains", "Domains, percent", domains))
    return found


def _domains(cells: Mapping[Column, object]) -> dict[str, Interval]:
    """The domains' scores that are there."""
    found = {column.name: interval_of_cell(cell) for column, cell in cells.items() if column.above == DOMAINS}
    return {name: interval for name, interval in found.items() if interval}
