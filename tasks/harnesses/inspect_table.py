"""LightEval's TASKS_TABLE for `lighteval eval`, which runs tasks in Inspect: with what it asks and scores there."""

import copy
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NoReturn

from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import kind_of

if TYPE_CHECKING:
    from inspect_ai.dataset import Sample

    from cultureval.tasks.harnesses.inspect_scoring import AskedTask
    from cultureval.tasks.task_table import SourcedTaskConfig


def __getattr__(name: str) -> Any:
    if name != "TASKS_TABLE":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cultureval.tasks.task_table import tasks_table

    return [_for_inspect(config) for config in tasks_table()]


def _for_inspect(config: "SourcedTaskConfig") -> "SourcedTaskConfig":
    """A configuration with what `lighteval eval` reads; LightEval refuses tasks without, which score choices."""
    if kind_of(config.name).generation_size <= 0:
        return config
    from cultureval.tasks.harnesses.inspect_tasks import ask, suite_scores

    config = copy.copy(config)
    config.sample_fields = partial(_sample, config.name)
    config.sample_to_fewshot = partial(_refuse_examples, config.name)
    config.solver, config.scorer = [ask()], suite_scores(task=config.name)
    return config


def _sample(name: str, record: dict[str, Any]) -> "Sample":
    """A prepared row as a sample of Inspect."""
    from cultureval.tasks.harnesses.inspect_tasks import sample_of

    return sample_of(name, _checked(name).doc_of(record))


@cache
def _checked(name: str) -> "AskedTask":
    """A task with its rows, once what scores it has been tried."""
    from cultureval.tasks.harnesses.inspect_scoring import asked_task
    from cultureval.tasks.preflight import check_scorers

    check_scorers([f"{name}|0"])
    return asked_task(name, 0, "{}")


def _refuse_examples(name: str, sample: "Sample") -> NoReturn:
    raise CulturevalError(
        f"{name}: `lighteval eval` takes few-shot examples from the rows that it evaluates. Leave |k out, or use "
        "`inspect eval` with -T shots=k."
    )
