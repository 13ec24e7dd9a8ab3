"""Tasks of LightEval: its own prompt functions, few-shot examples and metrics on rows from the data root."""

import copy
import importlib
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from lighteval.metrics.normalizations import LogProbPMINorm
from lighteval.metrics.utils.metric_utils import Metric
from lighteval.tasks import tasks as single_tasks
from lighteval.tasks.lighteval_task import LightevalTask, LightevalTaskConfig
from lighteval.tasks.multilingual import tasks as multilingual
from lighteval.tasks.requests import Doc, SamplingMethod

from cultureval.metrics.declared import Metrics, declare
from cultureval.runtime.doc_fields import PAPER
from cultureval.runtime.errors import CulturevalError, SourceUnavailable, did_you_mean
from cultureval.tasks.harnesses.foreign import LIGHTEVAL, HarnessConfig, HarnessTask, rows_report, with_place
from cultureval.tasks.harnesses.local_rows import LocalRows, local_rows

_configs: dict[str, LightevalTaskConfig] = {}


def tasks_of(name: str) -> tuple[list[HarnessTask], list[str]]:
    """The task of that name, or all tasks `NAME:...` of a group.

    Returns:
        (tasks, missing): the tasks with their rows, and why rows of further tasks of the group are not there.

    Raises:
        CulturevalError: LightEval has no such task, or it cannot be asked here.
    """
    _import_modules(name)
    members = [known for known in _configs if known == name or known.startswith(f"{name}:")]
    if not members:
        raise CulturevalError(f"LightEval has no task {name!r}.{did_you_mean(name, _configs)}")
    found, missing = [], []
    for member in members:
        try:
            found.append(_found(member, name if member != name else member.partition(":")[0]))
        except SourceUnavailable as error:
            missing.append(str(error))
    return found, missing


def _import_modules(name: str) -> None:
    """Imports the modules of LightEval until one defines the name; those first whose text begins like it.

    LightEval's registry imports all of them, of which one asks the network.
    """
    packages = (multilingual, single_tasks)
    files = [(package, file) for package in packages for file in Path(package.__path__[0]).glob("[a-z]*.py")]

    def likeness(entry: tuple[Any, Path]) -> int:
        text = entry[1].read_text(encoding="utf-8")
        return max((size for size in range(1, len(name) + 1) if f'"{name[:size]}' in text), default=0)

    for package, file in sorted(files, key=likeness, reverse=True):
        if any(known == name or known.startswith(f"{name}:") for known in _configs):
            return
        with suppress(ImportError, OSError):  # of packages that a task needs and that are not installed
            module = importlib.import_module(f"{package.__name__}.{file.stem}")
            _configs.update({config.name: config for config in getattr(module, "TASKS_TABLE", ())})


def _found(name: str, group: str) -> HarnessTask:
    config = _configs[name]
    metrics = _metrics(name, config)
    splits = [*config.evaluation_splits, *(config.hf_avail_splits or ()), config.few_shots_split or ""]
    subset = None if config.hf_subset == "default" else config.hf_subset
    rows = local_rows(f"lighteval:{name}", config.hf_repo, subset, filter(None, splits))
    kinds = {metric.category for metric in metrics}
    return HarnessTask(
        name,
        group,
        False,
        _declared(metrics),
        " and ".join(sorted(kind.name.lower() for kind in kinds)),
        config.hf_repo,
        0,
        (config.generation_size or -1) if SamplingMethod.GENERATIVE in kinds else -1,
        partial(_load, name, rows),
    )


def _metrics(name: str, config: LightevalTaskConfig) -> list[Metric]:
    """The metrics that our models can serve.

    Raises:
        CulturevalError: There is none: they need a judge, several samples, or perplexities.
    """
    metrics = [metric for metric in map(_plain, config.metrics) if _servable(metric)]
    if not metrics:
        raise CulturevalError(f"lighteval:{name} has no metric of single answers: run it with `lighteval accelerate`.")
    return metrics


def _plain(metric: Any) -> Metric:
    return metric.value if hasattr(metric, "value") else metric


def _servable(metric: Metric) -> bool:
    """Whether a metric needs one answer alone; PMI needs log-probabilities that LightEval's models are never asked."""
    score = metric.sample_level_fn
    pmi = isinstance(getattr(score, "logprob_normalization", None), LogProbPMINorm)
    judged = "judge" in type(score).__name__.lower()
    return not (pmi or judged or hasattr(score, "num_samples")) and metric.category != SamplingMethod.PERPLEXITY


def _declared(metrics: Sequence[Metric]) -> Metrics:
    better: dict[str, bool] = {}
    for metric in metrics:
        names = [metric.metric_name] if isinstance(metric.metric_name, str) else list(metric.metric_name)
        each = metric.higher_is_better
        better |= each if isinstance(each, dict) else dict.fromkeys(names, bool(each))
    return declare(*better, lower=[name for name, higher in better.items() if not higher])


class _LocalTask(LightevalTask):
    """A task of LightEval over rows that are read already."""

    def __init__(self, config: HarnessConfig, rows: LocalRows) -> None:
        super().__init__(config)
        self.dataset = rows.splits if config.hf_filter is None else rows.splits.filter(config.hf_filter)
        self.places = [place for split in self.evaluation_split for place in rows.places.get(split, ())]

    def eval_docs(self) -> list[Doc]:
        """Its Docs, which name their rows and ask for the tokens of LightEval's own backends."""
        if self._docs is None:
            docs = super().eval_docs()
            named = self.places if len(self.places) == len(docs) else [f"row:{number}" for number in range(len(docs))]
            self._docs = [with_place(doc, place, {"parity": PAPER}) for doc, place in zip(docs, named, strict=True)]
        return self._docs


def _load(name: str, rows: LocalRows, shots: int) -> _LocalTask:
    """A task with that many examples, as LightEval's object."""
    own = _configs[name]
    values = {field: copy.copy(getattr(own, field)) for field in LightevalTaskConfig.__dataclass_fields__}
    config = HarnessConfig(**{**values, "name": f"{LIGHTEVAL}:{name}", "num_fewshots": shots})
    config.metrics = _metrics(name, own)
    config.full_name = f"{config.name}|{shots}"
    task = _LocalTask(config, rows)
    examples = len(rows.splits[task.fewshot_split]) if task.fewshot_split in rows.splits else 0
    if shots > examples:
        raise CulturevalError(f"lighteval:{name} has {examples} few-shot examples: run it with |{examples}.")
    config.rows_report = rows_report(own.hf_repo, rows.revision, task.eval_docs(), examples, PAPER)
    return task
