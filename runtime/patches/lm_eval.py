"""What we use of lm-eval that is not public, and where we change it: pairs' tokens, and averages of groups."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

from cultureval.runtime.patches.table import expect, patched, source_of

if TYPE_CHECKING:
    from lm_eval.api.group import Group

Metrics = Mapping[str, Mapping[str, Any]]


def encode_pair(harness: Any, prompt: str, choice: str) -> tuple[list[int], list[int]]:
    """The tokens of a prompt and of a choice, as lm-eval's `HFLM` scores them."""
    return harness._encode_pair(prompt, choice)


def average_groups_by(mark: str, average: "Callable[[Group, Metrics], dict[str, Any]]") -> None:
    """Lets a function average the groups of tasks whose metadata hold a mark; all others stay as they are.

    `average` takes the group and the results of all tasks and of the groups below it, and returns what lm-eval writes.
    """
    from lm_eval.api.group import Group

    plain = Group.aggregate
    if getattr(plain, "of_cultureval", False):
        return

    @wraps(plain)
    def aggregate(self: Group, task_metrics: Metrics) -> dict[str, Any]:
        ours = mark in (self.metadata or {})
        return average(self, task_metrics) if ours else plain(self, task_metrics)  # type: ignore[arg-type, return-value]

    aggregate.of_cultureval = True  # type: ignore[attr-defined]
    Group.aggregate = aggregate  # type: ignore[method-assign, assignment]


@patched(
    "lm_eval",
    "lm_eval.api.model.TemplateLM._encode_pair",
    "lm-eval encodes prompt and choice together: scores are compared only where the tokens are the same.",
)
def _pairs_are_encoded_so() -> None:
    import inspect

    from lm_eval.models.huggingface import HFLM

    method = getattr(HFLM, "_encode_pair", None)
    taken = list(inspect.signature(method).parameters) if method else []
    expect(taken == ["self", "context", "continuation"], f"lm-eval's _encode_pair takes {', '.join(taken)} now")
    expect("self._encode_pair(" in source_of("lm_eval.api.model"), "lm-eval encodes what it scores elsewhere")


@patched(
    "lm_eval",
    "lm_eval.api.group.Group.aggregate",
    "It averages the tasks below a group, never groups, and ignores the functions that a group names for it.",
)
def _groups_average_leaves() -> None:
    from lm_eval.api.group import Group
    from lm_eval.api.metrics import aggregate_subtask_metrics

    calls = source_of("lm_eval.evaluator_utils")
    expect(
        "results.metrics[group.name] = group.aggregate(results.metrics)" in calls, "lm-eval averages groups elsewhere"
    )
    expect(
        ".aggregation(" not in source_of("lm_eval.api.group"), "lm-eval's groups call functions now: name ours there"
    )
    expect(hasattr(Group, "aggregate") and aggregate_subtask_metrics([1.0, 0.0], [1, 3], False) == 0.5, "means differ")


@patched(
    "lm_eval",
    "lm_eval.evaluator_utils._compute_task_aggregations",
    "It takes no standard errors of a task's own: a metric `NAME_stderr` after `NAME` replaces lm-eval's.",
)
def _errors_can_follow_scores() -> None:
    written = source_of("lm_eval.evaluator_utils")
    expect('agg_metrics[f"{metric}_stderr,{filter_key}"]' in written, "lm-eval writes standard errors elsewhere")
