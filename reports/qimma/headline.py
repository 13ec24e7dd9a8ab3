"""QIMMA's table of a run, as the paper's Tables 3 and 4: fourteen benchmarks, seven domains, the average.

Paper (arXiv 2604.03395), section 5 and Tables 3-4: a benchmark is the unweighted mean of its subsets, a domain that of
its benchmarks, the average that of the fourteen benchmarks (not of the domains); HumanEval+ and MBPP+ count as two.
Verified: all 14 averages and 98 domain scores of the paper follow from its benchmark scores.
Inferred: MedArabiQ is the mean of its five subsets (accuracy of three, BERTScore of two), as the others are of theirs.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from cultureval.reports.estimates import Estimate, as_written, mean_of, percentage
from cultureval.reports.published import published_scores
from cultureval.reports.run_record import Run, TaskRecord
from cultureval.reports.summary import Row, SummaryTable, cell_of
from cultureval.runtime.doc_specific import PAPER, SOUND
from cultureval.tasks.qimma.averages import SUITE, benchmark_of, benchmark_tasks

AVERAGE = "Average"
PUBLISHED = Path(__file__).with_name("published.csv")
COLUMNS = ("Domain", "benchmark", "score", "domain", "subsets")
PARITY = {
    PAPER: "prompt and label tokenised together, as by `lighteval vllm`",
    SOUND: "prompt and label tokenised apart, one BOS; the paper's numbers are of `--parity paper`",
}


def benchmark_scores(subsets: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """Scores of the benchmarks whose subsets all have one: their unweighted means.

    Args:
        subsets: By the name of the task without `|k`.
    """
    names = {benchmark: [task.task for task in tasks] for benchmark, tasks in benchmark_tasks().items()}
    return {
        benchmark: mean_of([subsets[task] for task in tasks])
        for benchmark, tasks in names.items()
        if all(task in subsets for task in tasks)
    }


def domain_scores(benchmarks: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """Scores of the domains whose benchmarks all have one: their unweighted means.

    Args:
        benchmarks: By the paper's names.
    """
    domains: dict[str, list[str]] = {}
    for benchmark, tasks in benchmark_tasks().items():
        domains.setdefault(tasks[0].domain, []).append(benchmark)
    return {
        domain: mean_of([benchmarks[name] for name in names])
        for domain, names in domains.items()
        if all(name in benchmarks for name in names)
    }


def average(benchmarks: Mapping[str, Estimate]) -> Estimate | None:
    """The unweighted mean of the fourteen benchmarks; None unless all have a score.

    Args:
        benchmarks: By the paper's names.
    """
    names = list(benchmark_tasks())
    return mean_of([benchmarks[name] for name in names]) if all(name in benchmarks for name in names) else None


def headline(run: Run) -> list[SummaryTable]:
    """One table for each number of few-shot examples in the run."""
    tasks = run.tasks_of(SUITE)
    shots = dict.fromkeys(task.shots for task in tasks)
    return [_table(run, [task for task in tasks if task.shots == count], count) for count in shots]


def _table(run: Run, tasks: Sequence[TaskRecord], shots: int) -> SummaryTable:
    found = {task.task.partition("|")[0]: percentage(run, task, task.metrics[0]) for task in tasks}
    subsets = {name: estimate for name, estimate in found.items() if estimate is not None}
    written = _written(run, tasks, subsets)
    benchmarks = benchmark_scores(subsets) | written
    domains, published = domain_scores(benchmarks), published_scores(PUBLISHED, run.model)
    rows, shown = [], ""
    for name, members in benchmark_tasks().items():
        present = [subsets[task.task] for task in members if task.task in subsets]
        if not any(task.task in found for task in members):
            continue
        domain = members[0].domain
        first = domain != shown
        cells = (
            name,
            cell_of(written.get(name) or (mean_of(present) if present else None), published.get(name)),
            cell_of(_uncounted(domains.get(domain)), published.get(domain)) if first else None,
            f"{len(present)}/{len(members)}",
        )
        rows.append(Row(domain if first else "", cells))
        shown = domain
    rows.append(_average_row(benchmarks, published.get(AVERAGE)))
    return SummaryTable(f"QIMMA, percent, {shots}-shot", COLUMNS, rows, [*_forms(tasks), *_parity(tasks)])


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
            found[name] = as_written(run, average, records[0].metrics[0], mean, 100)
    return found


def _average_row(benchmarks: Mapping[str, Estimate], published: float | None) -> Row:
    mean, coverage = average(benchmarks), f"{len(benchmarks)}/{len(benchmark_tasks())}"
    if mean is None:
        return Row(AVERAGE, (f"coverage {coverage}", "no average", None, None))
    return Row(AVERAGE, (coverage, cell_of(_uncounted(mean), published), None, None))


def _uncounted(estimate: Estimate | None) -> Estimate | None:
    """Without its count: a mean of benchmarks is not one of items."""
    return estimate and estimate._replace(n=None)


def _parity(tasks: Sequence[TaskRecord]) -> list[str]:
    """How prompts became tokens, where the run says it."""
    found = {task.parity for task in tasks}
    return [f"Parity: {name} ({PARITY[name]})." for name in PARITY if name in found]


def _forms(tasks: Sequence[TaskRecord]) -> list[str]:
    """Which benchmarks were run on curated, and which on original data; several forms are named with theirs."""
    forms: dict[str, dict[str, None]] = {}
    order = list(benchmark_tasks())
    found = {(benchmark_of(task.group, task.benchmark, task.subset), task.form or "form unknown") for task in tasks}
    for name, form in sorted(found, key=lambda pair: (order.index(pair[0]), pair[1])):
        forms.setdefault(form, {})[name] = None
    if len(forms) == 1:
        return [f"Data: {form}." for form in forms]
    fewest = min(forms, key=lambda form: len(forms[form]))
    others = [form for form in forms if form != fewest]
    return [f"Data: {fewest} for {', '.join(forms[fewest])}; {', '.join(others)} for the others."]
