"""QIMMA's averages: benchmarks, domains and the average of its paper (arXiv 2604.03395, section 5, Tables 3 and 4)."""

from cultureval.tasks.catalogue import all_tasks, groups
from cultureval.tasks.suite import SCORE, Average, Task

SUITE, CODE = "qimma", "qimma_code"


def benchmark_tasks() -> dict[str, list[Task]]:
    """The subsets of each of the fourteen benchmarks, in the paper's order of domains and benchmarks."""
    found: dict[str, list[Task]] = {}
    for task in all_tasks().values():
        if task.suite == SUITE:
            found.setdefault(benchmark_of(task.group, task.benchmark, task.subset), []).append(task)
    return found


def benchmark_of(group: str, benchmark: str, subset: str) -> str:
    """The paper's benchmark of a subset: MedArabiQ's two groups are one, the two code tasks are two."""
    return subset if group == CODE else benchmark


def averages() -> list[Average]:
    """The benchmarks that are no single group, the domains, and the average of the fourteen benchmarks."""
    found: list[Average] = []
    members: dict[str, str] = {}
    domains: dict[str, dict[str, str]] = {}
    for benchmark, tasks in benchmark_tasks().items():
        first, names = tasks[0], [task.task for task in tasks]
        if len(tasks) == 1:
            member = {first.task: first.metrics[0]}
        elif names == groups(SUITE)[first.group]:
            member = {first.group: first.metrics[0]}
        else:
            own = f"{SUITE}_{benchmark.lower()}"
            parts = tuple(dict.fromkeys(task.group for task in tasks))
            found.append(Average(own, benchmark, {task.task: task.metrics[0] for task in tasks}, parts))
            member = {own: SCORE}
        members |= member
        domains.setdefault(first.domain, {}).update(member)
    of_domains = [
        Average(f"{SUITE}_{domain.lower()}", domain, inside, tuple(inside)) for domain, inside in domains.items()
    ]
    return [*found, *of_domains, Average(SUITE, "QIMMA", members, tuple(one.name for one in of_domains))]
