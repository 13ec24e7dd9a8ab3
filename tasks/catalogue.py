"""The catalogue: all tasks of all registered suites, as plain data without LightEval or torch."""

import re
from collections.abc import Iterable, Mapping
from math import isnan, nan
from typing import Any

from cultureval.metrics.declared import Declared
from cultureval.metrics.judges.items import JUDGED, scales_of_judges
from cultureval.runtime.errors import CulturevalError, did_you_mean
from cultureval.tasks.registration import registered, unknown_name_hint
from cultureval.tasks.suite import Kind, Suite, Task

_PASS_AT_K = re.compile(r"pass@\d+$")

OVERALL = "all"  # LightEval's average over all tasks, whatever their kind


def all_tasks() -> dict[str, Task]:
    """Every task by its name, suite by suite, in the order of the papers' tables."""
    return registered().tasks


def all_suites() -> dict[str, Suite]:
    """Every registered suite by its name, in order."""
    return registered().suites


def suites() -> list[str]:
    """Names of the suites, in order."""
    return list(all_suites())


def require_suites(names: Iterable[str]) -> None:
    """Raises a CulturevalError, with the nearest name, for an unknown suite."""
    for name in names:
        if name not in suites():
            near, known = did_you_mean(name, suites()), ", ".join(suites())
            raise CulturevalError(f"There is no suite {name!r}.{near} The suites are {known}.{unknown_name_hint()}")


def known_task(name: str) -> Task | None:
    """The task of a name (with or without `|k`); None if the catalogue does not have it."""
    return all_tasks().get(name_and_shots(name)[0])


def name_and_shots(name: str) -> tuple[str, str]:
    """(name, shots) of `task|k`; shots is "" without `|k`."""
    bare, _, shots = name.partition("|")
    return bare, shots


def data_of(task: str) -> str:
    """The data of a task (with or without `|k`): its preferred source's repository, or its group if unknown."""
    found = known_task(task)
    return found.sources[0].repo if found and found.sources else name_and_shots(task)[0].partition(":")[0]


def group_of(task: str) -> str:
    """The group of a task (without `|k`): what the catalogue says, else the part before its colon."""
    known = all_tasks().get(task)
    return known.group if known else task.partition(":")[0]


def is_gated(task: str, source: str) -> bool:
    """Whether a task's rows may not be published, since users of the data accept terms.

    `source` is the rows' repository; "" if unknown: then the rows are gated if any source of the task is.
    """
    found = all_tasks().get(task)
    return found is not None and any(other.gated and source in ("", other.repo) for other in found.sources)


def groups(suite: str | None = None) -> dict[str, list[str]]:
    """Group -> names of its tasks, for one suite or all."""
    grouped: dict[str, list[str]] = {}
    for task in all_tasks().values():
        if suite in (None, task.suite):
            grouped.setdefault(task.group, []).append(task.task)
    return grouped


def task_names() -> set[str]:
    """All names that LightEval accepts for our tasks: tasks and groups."""
    return set(all_tasks()) | set(groups())


def means_of_subsets(results: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """The declared unweighted means besides those of groups (M2CQA's Dialect), if all parts were run.

    They are sums by the classes of `group_averages`, so counts are added, and standard errors use the items that parts
    share. A metric that is undefined (nan) in a part is undefined in the mean.

    Args:
        results: LightEval's task name (`m2cqa:tf_ajp|0`) -> metrics.

    Returns:
        Declared name with the parts' number of shots (`m2cqa:_dialect_tf|0`) -> means.
    """
    parts: dict[str, list[str]] = {}
    for task in all_tasks().values():
        if task.mean:
            parts.setdefault(task.mean, []).append(task.task)
    shots = dict.fromkeys(name_and_shots(name)[1] for name in results)
    rows = {}
    for mean, names in parts.items():
        for shot in shots:
            cells = [results[full] for name in names if results.get(full := f"{name}|{shot}")]
            if len(cells) == len(names):
                rows[f"{mean}|{shot}"] = {
                    metric: nan if any(map(isnan, values)) else sum(values) / len(cells)
                    for metric in cells[0]
                    if (values := [cell[metric] for cell in cells])
                }
    return rows


def mixed_averages(results: Mapping[str, Any]) -> list[str]:
    """LightEval's averages that mix different tasks: `all`, and groups with declared means."""
    mixed = {f"{task.group}:_average" for task in all_tasks().values() if task.mean}
    mixed |= {f"{task.suite}:_average" for task in all_tasks().values() if task.kind.load}
    return [name for name in results if name == OVERALL or name_and_shots(name)[0] in mixed]


def kind_of(name: str) -> Kind:
    """The kind of a task (with or without `|k`)."""
    return all_tasks()[name_and_shots(name)[0]].kind


def declared_metric(task: str, metric: str) -> Declared | None:
    """The declared range and direction of a task's metric; None if it is not declared.

    The task may be followed by `|k`; an unknown task of a known group has the group's metrics. The metric may also be
    `<metric>_<profile>` or a judge's criterion.
    """
    bare, _ = name_and_shots(task)
    of_group = (other for other in all_tasks().values() if other.group == bare.partition(":")[0])
    found = known_task(task) or next(of_group, None)
    if not found:
        return None
    if metric.startswith(JUDGED):
        scales = scales_of_judges(kind_of(found.task).judge_templates)
        return next((Declared(range=scale) for name, scale in scales.items() if metric.endswith(name)), None)
    metric = _PASS_AT_K.sub("pass@1", metric)  # k is the number of samples; only pass@1 is declared
    while metric and metric not in found.kind.declared:
        metric = metric.rpartition("_")[0]
    return found.kind.declared.get(metric)
