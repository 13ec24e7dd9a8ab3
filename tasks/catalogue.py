"""The catalogue: every task of every registered suite, as plain data; it loads neither LightEval nor torch."""

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

OVERALL = "all"  # LightEval's average over all tasks and metrics, which differ in kind


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
    """The task of a name, which `|k` may follow; None of one that the catalogue does not know."""
    return all_tasks().get(name_and_shots(name)[0])


def name_and_shots(name: str) -> tuple[str, str]:
    """A task's name and its number of few-shot examples, of `task|k`; "" where none is told."""
    bare, _, shots = name.partition("|")
    return bare, shots


def data_of(task: str) -> str:
    """What a task's items are items of: its preferred source, which others of the suite may share; else its group.

    `|k` may follow the name.
    """
    known = known_task(task)
    return known.sources[0].repo if known and known.sources else name_and_shots(task)[0].partition(":")[0]


def is_gated(task: str, source: str) -> bool:
    """Whether a task's rows may not be passed on, since who gets its data accepts terms.

    `source` is the repository that they are from; "" where unknown, which counts as gated if one of the task's is.
    """
    known = all_tasks().get(task)
    return known is not None and any(one.gated and source in ("", one.repo) for one in known.sources)


def groups(suite: str | None = None) -> dict[str, list[str]]:
    """Names of the tasks of each group, of one suite or of all."""
    grouped: dict[str, list[str]] = {}
    for task in all_tasks().values():
        if suite in (None, task.suite):
            grouped.setdefault(task.group, []).append(task.task)
    return grouped


def task_names() -> set[str]:
    """Every name that LightEval accepts for one of our tasks: the tasks and the groups."""
    return set(all_tasks()) | set(groups())


def means_of_subsets(results: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """The unweighted means that tables declare besides those of groups (M2CQA's Dialect), where all parts were run.

    They are LightEval's own sums, by the classes of `group_averages`: counts are added; a metric that is undefined
    (nan) in a part, or does not apply to it, is undefined here. Standard errors know of the items that parts share.

    Args:
        results: Metrics by LightEval's names of tasks (`m2cqa:tf_ajp|0`).

    Returns:
        The means by the declared names, with the parts' number of shots (`m2cqa:_dialect_tf|0`).
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
    """The averages of LightEval's over tasks that differ in kind: `all`, and groups with declared means instead."""
    mixed = {f"{task.group}:_average" for task in all_tasks().values() if task.mean}
    return [name for name in results if name == OVERALL or name_and_shots(name)[0] in mixed]


def kind_of(name: str) -> Kind:
    """The kind of a task, whose name may end in `|k` for few-shot examples."""
    return all_tasks()[name_and_shots(name)[0]].kind


def declared_metric(task: str, metric: str) -> Declared | None:
    """What is declared of a task's metric: the range of its scores, and whether higher is better; None if nobody says.

    `|k` may follow the task; one that the catalogue does not know is scored as the others of its group. The metric may
    be `<metric>_<profile>` of a declared one, or a criterion of a judge's.
    """
    bare, _ = name_and_shots(task)
    of_group = (one for one in all_tasks().values() if one.group == bare.partition(":")[0])
    known = known_task(task) or next(of_group, None)
    if not known:
        return None
    if metric.startswith(JUDGED):
        scales = scales_of_judges(kind_of(known.task).judge_templates)
        return next((Declared(range=scale) for name, scale in scales.items() if metric.endswith(name)), None)
    metric = _PASS_AT_K.sub("pass@1", metric)  # of which only the first is declared: k is the number of samples
    while metric and metric not in known.kind.declared:
        metric = metric.rpartition("_")[0]
    return known.kind.declared.get(metric)
