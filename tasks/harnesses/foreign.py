"""Tasks of other harnesses by their own names: `lm-eval:NAME` and `lighteval:NAME`, on our models.

The harness's own code makes prompts, examples, choices, metrics and averages; models, journal, servers and results are
ours. A task enters the catalogue when its name is selected, or when a results file with it is read.
"""

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

from cultureval.metrics.declared import SHARE, Metrics, Range, declare
from cultureval.prompts.preparation import PreparedRow
from cultureval.runtime.errors import CulturevalError, described
from cultureval.tasks.registration import registered
from cultureval.tasks.suite import HARNESSES, Kind, Source, Suite, Task

LM_EVAL, LIGHTEVAL = HARNESSES
MODULES = {LM_EVAL: "from_lm_eval", LIGHTEVAL: "from_lighteval"}
UNBOUNDED: Range = (float("-inf"), float("inf"))
SHARES = ("acc", "em", "exact_match", "f1", "loglikelihood_acc", "pem", "pqem", "qem", "prefix_exact_match")


def add_tasks(name: str) -> list[str]:
    """Adds the tasks that a name `lm-eval:NAME` or `lighteval:NAME` means to the catalogue; returns their names.

    Raises:
        CulturevalError: The harness is not installed or has no such name, or a task cannot run here.
    """
    harness, _, bare = name.partition(":")
    if not bare:
        raise CulturevalError(f"{harness} is a harness: name one of its tasks or groups, as {harness}:NAME.")
    module: Any = import_module(f"cultureval.tasks.harnesses.{MODULES[harness]}")
    found: list[Task] = module.tasks_of(bare)
    for task in found:
        _add(task, len(found))
    return [task.task for task in found]


def _add(task: Task, members: int) -> None:
    """Adds a task, in the largest of the named groups that have it."""
    known = registered()
    known.suites.setdefault(task.suite, Suite(task.suite, HARNESSES[task.suite], ()))
    old = known.tasks.get(task.task)
    if old and sum(other.group == old.group for other in known.tasks.values()) > members:
        task = replace(task, group=old.group, benchmark=old.benchmark, by_size=old.by_size)
    known.tasks[task.task] = task


def add_recorded(record: Any) -> None:
    """Adds the task of a results file (`runs.record.TaskRecord`) to the catalogue, so that reports know its metrics."""
    name = record.task.partition("|")[0]
    if record.suite not in HARNESSES or name in registered().tasks or not record.metrics:
        return
    task = harness_task(
        name,
        declare_metrics(record.metrics, record.lower),
        "generation" if record.generates else "log-likelihood",
        record.source,
        partial(_refuse, f"{name} was read from results"),
        group=record.benchmark,
        by_size=record.by_size,
        generation_size=1 if record.generates else -1,
    )
    _add(task, 0)


def declare_metrics(names: Collection[str], lower: Collection[str]) -> Metrics:
    """The declaration of a harness's metrics, the headline first; only well-known ones are shares.

    Args:
        names: As results have them, with lm-eval's filter or LightEval's parameters after `,` or `:`.
        lower: Those for which lower is better.
    """
    shares = {name for name in names if re.split("_norm|[,:]", name)[0] in SHARES}
    ranges = {name: SHARE if name in shares else UNBOUNDED for name in names}
    return declare(*names, lower=lower, ranges=ranges)


def harness_task(
    name: str,
    declared: Metrics,
    output: str,
    repo: str,
    load: Callable[[int], Any],
    *,
    group: str = "",
    by_size: bool = False,
    shots: int = 0,
    generation_size: int = -1,
) -> Task:
    """A task of another harness for the catalogue.

    Args:
        name: `HARNESS:NAME`.
        declared: Its metrics, the headline first.
        output: What the model does, in the harness's words.
        repo: The data set of its rows.
        load: From a number of few-shot examples to the task as LightEval's object.
        group: The harness's group that averages it, without the harness; "": none.
        by_size: Whether that average weights tasks by their rows.
        shots: Few-shot examples where `|k` names no number.
        generation_size: Maximum of new tokens; -1: nothing is generated.
    """
    harness, _, bare = name.partition(":")
    refuse = partial(_refuse, f"{name} is a task of {harness}")
    kind = Kind(f"{harness} {output}", output, declared, refuse, tuple, generation_size, load=load)
    return Task(
        task=name,
        suite=harness,
        benchmark=group or bare,
        group=f"{harness}:{group or bare}",
        subset=bare,
        domain="",
        kind=kind,
        template="",
        sources=(Source(repo, "original", refuse),),
        subset_names=(bare,),
        language="",
        register="",
        by_size=by_size,
        shots=shots,
    )


@contextmanager
def their_code(name: str) -> Iterator[None]:
    """A context in which errors of a harness's code, or of packages that it needs, are refusals of its task."""
    try:
        yield
    except CulturevalError:
        raise
    except Exception as error:
        raise CulturevalError(f"{name}: the harness's own code fails ({described(error)}).") from error


def _refuse(reason: str, *_: Any, **__: Any) -> PreparedRow:
    raise CulturevalError(f"{reason}: name it on the command line to read its rows.")
