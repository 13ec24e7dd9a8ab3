"""Tasks of LightEval: its own prompt functions, few-shot examples and metrics on rows from the data root."""

import copy
import importlib
import inspect
import re
from collections.abc import Sequence
from functools import partial, wraps
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from lighteval.metrics.metrics_sample import SamplingMetric
from lighteval.metrics.normalizations import LogProbPMINorm
from lighteval.metrics.utils.metric_utils import Metric
from lighteval.tasks import tasks as single_tasks
from lighteval.tasks.lighteval_task import LightevalTask, LightevalTaskConfig
from lighteval.tasks.multilingual import tasks as multilingual
from lighteval.tasks.requests import Doc, SamplingMethod
from lighteval.utils.utils import as_list

from cultureval.metrics.declared import Metrics
from cultureval.runtime.errors import CulturevalError, SourceUnavailable, described, did_you_mean
from cultureval.tasks.harnesses.foreign import LIGHTEVAL, declare_metrics, harness_task, their_code
from cultureval.tasks.harnesses.local_rows import (
    PLACE,
    FinishedDocs,
    HarnessConfig,
    local_rows,
    rows_report,
    with_place,
)
from cultureval.tasks.suite import Task

HOST_CODE = re.compile(r"codegen|subprocess|\bexec\(")  # in a metric's module
LIKE = 3  # letters of a name that a module of its task has at least
_configs: dict[str, LightevalTaskConfig] = {}


def tasks_of(name: str) -> list[Task]:
    """The task of that name, or all tasks `NAME:...` of a group.

    Raises:
        CulturevalError: LightEval has no such task, or it cannot run here.
    """
    failure = _import_modules(name)
    members = [known for known in _configs if _is_of(known, name)]
    if not members:
        raise CulturevalError(f"LightEval has no task {name!r}.{failure or did_you_mean(name, _configs)}")
    return [_task(member, name if member != name else "") for member in members]


def _is_of(task: str, name: str) -> bool:
    return task == name or task.startswith(f"{name}:")


def _import_modules(name: str) -> str:
    """Imports the modules of LightEval whose text begins like the name, the likeliest first, until one defines it.

    LightEval's registry imports all of them, of which one needs the network. It returns why the likeliest failed.
    """
    failures: list[str] = []
    likeness: dict[str, int] = {}
    for package in (multilingual, single_tasks):
        folder = Path(package.__path__[0])
        for file in sorted([*folder.glob("[a-z]*.py"), *folder.glob("*/main.py")]):
            module, text = file.relative_to(folder).with_suffix("").parts, file.read_text(encoding="utf-8")
            sizes = [size for size in range(len(name) + 1) if f'"{name[:size]}' in text]
            likeness[".".join([package.__name__, *module])] = max(sizes, default=0)
    for place in sorted(likeness, key=likeness.__getitem__, reverse=True):
        if any(_is_of(known, name) for known in _configs) or likeness[place] < min(LIKE, len(name)):
            break
        try:
            table = getattr(importlib.import_module(place), "TASKS_TABLE", ())
            _configs.update({config.name: config for config in table})
        except Exception as error:  # of packages that the module's tasks need and that are not installed
            failures.append(f" Its module {place} cannot be imported ({described(error)}).")
    return "".join(failures[:1])


def _task(name: str, group: str) -> Task:
    config = _configs[name]
    metrics = _metrics(name, config)
    kinds = {metric.category for metric in metrics}
    return harness_task(
        f"{LIGHTEVAL}:{name}",
        _declared(metrics),
        " and ".join(sorted(kind.name.lower() for kind in kinds)),
        config.hf_repo,
        partial(_load, name),
        group=group,
        shots=config.num_fewshots,
        generation_size=(config.generation_size or -1) if SamplingMethod.GENERATIVE in kinds else -1,
    )


def _metrics(name: str, config: LightevalTaskConfig) -> list[Metric]:
    """The metrics that our models can serve.

    Raises:
        CulturevalError: There is none.
    """
    every: list[Metric] = [getattr(metric, "value", metric) for metric in config.metrics]
    reasons = {id(metric): _unserved(metric) for metric in every}
    if all(reasons.values()):
        reason = next(iter(reasons.values()), "has no metric")
        raise CulturevalError(f"{LIGHTEVAL}:{name} {reason}: run it with `lighteval accelerate`.")
    return [metric for metric in every if not reasons[id(metric)]]


def _unserved(metric: Metric) -> str:
    """Why a metric is not computed here, as the end of a sentence; "" if it is."""
    score: Any = metric.sample_level_fn
    source = inspect.getsource(inspect.getmodule(type(score)) or type(score))
    means = metric.corpus_level_fn.values() if isinstance(metric.corpus_level_fn, dict) else [metric.corpus_level_fn]
    if isinstance(getattr(score, "logprob_normalization", None), LogProbPMINorm):
        return "needs log-probabilities without the question (PMI)"
    if "judge" in type(score).__name__.lower():
        return "needs a judge"
    if isinstance(score, SamplingMetric):
        return "samples several answers"
    if HOST_CODE.search(source):
        return "runs the model's programs outside a sandbox"
    if metric.category == SamplingMethod.PERPLEXITY:
        return "asks for perplexity"
    return "" if all(mean is np.mean for mean in means) else "has no metric that is a mean of its items"


def _declared(metrics: Sequence[Metric]) -> Metrics:
    better: dict[str, bool] = {}
    for metric in metrics:
        names, higher = as_list(metric.metric_name), metric.higher_is_better
        better |= higher if isinstance(higher, dict) else dict.fromkeys(names, bool(higher))
    return declare_metrics([*better], [name for name, higher in better.items() if not higher])


def _load(name: str, shots: int) -> FinishedDocs:
    """A task with that many examples, as LightEval's object.

    Raises:
        SourceUnavailable: Its rows are not there.
        CulturevalError: It has images or several turns, or its code fails on these rows.
    """
    own, called = _configs[name], f"{LIGHTEVAL}:{name}"
    examples = as_list(own.few_shots_split or [])  # OALL's tasks list one split
    names = [*own.evaluation_splits, *(own.hf_avail_splits or ()), *examples]
    subset = None if own.hf_subset == "default" else own.hf_subset
    splits, revision = local_rows(called, own.hf_repo, subset, names, own.hf_filter)
    if absent := [split for split in own.evaluation_splits if split not in splits]:
        raise SourceUnavailable(f"{called}: {own.hf_repo} has no split {absent[0]!r}.")

    @wraps(own.prompt_function)
    def prompt(row: dict[str, Any], _: str) -> Doc | None:
        doc = own.prompt_function(row, name)
        return with_place(doc, row[PLACE]) if doc else None

    values = {field: copy.copy(getattr(own, field)) for field in LightevalTaskConfig.__dataclass_fields__}
    values |= {"name": called, "prompt_function": prompt, "num_fewshots": shots, "metrics": _metrics(name, own)}
    config = HarnessConfig(**{**values, "few_shots_split": examples[0] if examples else None})
    task = LightevalTask(config)
    task.dataset = splits
    with their_code(called):
        docs = task.get_docs()
    if any(doc.images or (doc.specific or {}).get("multi_turn_queries") for doc in docs):
        raise CulturevalError(f"{called} has images or several turns: run it with `lighteval accelerate`.")
    pool: list[Any] = as_list(task.fewshot_split or task.evaluation_split)
    there = sum(len(splits[split]) for split in pool if split in splits)
    config.rows_report = rows_report(own.hf_repo, revision, docs, there, f"lighteval {version('lighteval')}")
    return FinishedDocs(config, docs)
