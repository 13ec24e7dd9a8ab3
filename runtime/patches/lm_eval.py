"""lm-eval: our change of averages of groups."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lm_eval.api.group import Group

Metrics = Mapping[str, Mapping[str, Any]]


def average_groups_by(mark: str, average: "Callable[[Group, Metrics], dict[str, Any]]") -> None:
    """Replaces the average of groups of tasks that have `mark` in their metadata.

    `average` takes the group and the results of all tasks and of the groups below it, and returns the group's results.
    """
    from lm_eval.api.group import Group

    plain = Group.aggregate
    if getattr(plain, "of_cultureval", False):
        return

    @wraps(plain)
    def aggregate(self: Group, task_metrics: Metrics) -> dict[str, Any]:
        is_marked = mark in (self.metadata or {})
        return average(self, task_metrics) if is_marked else plain(self, task_metrics)  # type: ignore[arg-type, return-value]

    aggregate.of_cultureval = True  # type: ignore[attr-defined]
    Group.aggregate = aggregate  # type: ignore[method-assign, assignment]
