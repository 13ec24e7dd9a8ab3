"""Tasks of LightEval: its own prompt functions, few-shot examples and metrics on rows from the data root."""

import copy
import importlib
import inspect
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
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
from cultureval.runtime.errors import CulturevalError, SourceUnavailable, did_you_mean
from cultureval.tasks.harnesses.foreign import LIGHTEVAL, declare_metrics, harness_task, label_of, with_missing
from cultureval.tasks.harnesses.local_rows import HarnessConfig, LocalRows, local_rows, rows_report, with_place
from cultureval.tasks.suite import Task

HOST_CODE = re.compile(r"codegen|subprocess|\bexec\(")  # in a metric's module
LIKE = 3  # letters of a name that a module of its task has at least
_configs: dict[str, LightevalTaskConfig] = {}


def tasks_of(name: str) -> list[Task]:
    """The task of that name, or all tasks `NAME:...` of a group.

    Raises:
        SourceUnavailable: None of them has data.
        CulturevalError: LightEval has no such task, or it cannot run here.
    """
    _import_modules(name)
    members = [known for known in _configs if _is_of(known, name)]
    if not members:
        raise CulturevalError(f"LightEval has no task {name!r}.{did_you_mean(name, _configs)}")
    found, missing = [], {}
    for member in members:
        try:
            found.append(_found(member, name if member != name else ""))
        except SourceUnavailable as error:
            missing[f"{LIGHTEVAL}:{member}"] = error
    return with_missing(found, missing)


def _is_of(task: str, name: str) -> bool:
    return task == name or task.startswith(f"{name}:")


def _import_modules(name: str) -> None:
    """Imports the modules of LightEval whose text begins like the name, the likeliest first, until one defines it.

    LightEval's registry imports all of them, of which one needs the network.
    """

    def likeness(entry: tuple[Any, Path]) -> int:
        text = entry[1].read_text(encoding="utf-8")
        return max((size for size in range(1, len(name) + 1) if f'"{name[:size]}' in text), default=0)

    folders = [(package, Path(package.__path__[0])) for package in (multilingual, single_tasks)]
    files = [
        (package, file) for package, at in folders for file in sorted([*at.glob("[a-z]*.py"), *at.glob("*/main.py")])
    ]
    for package, file in sorted(files, key=likeness, reverse=True):
        if any(_is_of(known, name) for known in _configs) or likeness((package, file)) < min(LIKE, len(name)):
            return
        path = file.relative_to(package.__path__[0]).with_suffix("").parts
        with suppress(Exception):  # of packages that other tasks need and that are not installed
            module = importlib.import_module(".".join([package.__name__, *path]))
            _configs.update({config.name: config for config in getattr(module, "TASKS_TABLE", ())})


def _found(name: str, group: str) -> Task:
    config = _configs[name]
    metrics = _metrics(name, config)
    splits = [*config.evaluation_splits, *(config.hf_avail_splits or ()), *as_list(config.few_shots_split or [])]
    subset = None if config.hf_subset == "default" else config.hf_subset
    rows = local_rows(f"{LIGHTEVAL}:{name}", config.hf_repo, subset, splits, config.hf_filter)
    kinds = {metric.category for metric in metrics}
    return harness_task(
        f"{LIGHTEVAL}:{name}",
        _declared(metrics),
        " and ".join(sorted(kind.name.lower() for kind in kinds)),
        config.hf_repo,
        partial(_load, name, rows),
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


class _LocalTask(LightevalTask):
    """A task of LightEval over rows that are read already."""

    def __init__(self, config: HarnessConfig, rows: LocalRows) -> None:
        super().__init__(config)
        self.rows, self.dataset = rows, {split: rows.dataset(split) for split in rows.splits}
        self.examples = self.fewshot_split

    def _get_docs_from_split(self, splits: list[Any], few_shots: bool = False) -> list[Doc]:
        """Its Docs, which name their rows and ask for the tokens of LightEval's own backends."""
        docs = []
        for split in (name for each in splits for name in as_list(each)):
            docs += [
                with_place(doc, self.rows.places[split][int(doc.id)], {})
                for doc in super()._get_docs_from_split([split], few_shots)
            ]
        return docs


def _load(name: str, rows: LocalRows, shots: int) -> _LocalTask:
    """A task with that many examples, as LightEval's object.

    Raises:
        CulturevalError: It has images or several turns, lacks a split, or has too few examples.
    """
    own, called = _configs[name], f"{LIGHTEVAL}:{name}"
    values = {field: copy.copy(getattr(own, field)) for field in LightevalTaskConfig.__dataclass_fields__}
    config = HarnessConfig(**{**values, "name": called, "num_fewshots": shots})
    config.metrics = _metrics(name, own)
    config.full_name = f"{called}|{shots}"
    task = _LocalTask(config, rows)
    if absent := [split for split in task.evaluation_split if split not in rows.splits]:
        raise SourceUnavailable(f"{called}: {own.hf_repo} has no split {absent[0]!r}.")
    docs = task.eval_docs()
    if any(doc.images or (doc.specific or {}).get("multi_turn_queries") for doc in docs):
        raise CulturevalError(f"{called} has images or several turns: run it with `lighteval accelerate`.")
    pool = as_list(task.fewshot_split or task.evaluation_split)
    examples = sum(len(rows.splits.get(split, ())) for split in pool)
    if shots > examples:
        raise CulturevalError(f"{called} has {examples} few-shot examples: run it with |{examples}.")
    config.rows_report = rows_report(own.hf_repo, rows.revision, docs, examples, label_of("lighteval", {}))
    return task
