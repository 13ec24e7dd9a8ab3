"""LightEval's pipeline with the wall time of its phases, without the docs that the model could not be asked.

And the scores and details of one that has ended: LightEval's own `get_results` returns copies, so that scores which are
added, and undefined ones to be written as null, must go into the loggers from which the files are written.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from cultureval.runtime.patches.table import expect, patched, source_of

if TYPE_CHECKING:
    from lighteval.pipeline import Pipeline

PHASES = {
    "_init_tasks_and_requests": "load_data",
    "_init_model": "load_model",
    "_run_model": "answering",
    "_compute_metrics": "scoring",
}
SAID_BY_US = {  # what LightEval warns of when a pipeline is made: the model file is ours, the summary tells the limit
    "lighteval.models.model_loader": "Executing custom model code loaded from",
    "lighteval.pipeline": "--max_samples WAS SET",
}


def timed_pipeline(**options: Any) -> "Pipeline":
    """LightEval's Pipeline of these options, with the attribute `seconds`: phase (`PHASES`) -> wall time so far."""
    with _unsaid():
        return _pipeline_class()(**options)


@contextmanager
def _unsaid() -> Iterator[None]:
    """A context without the warnings `SAID_BY_US`; all others of the same modules are heard."""

    def heard(record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith(SAID_BY_US[record.name])

    loggers = [logging.getLogger(name) for name in SAID_BY_US]
    for one in loggers:
        one.addFilter(heard)
    try:
        yield
    finally:
        for one in loggers:
            one.removeFilter(heard)


@cache
def _pipeline_class() -> type:
    from lighteval.pipeline import Pipeline

    from cultureval.runtime.patches.lighteval.refused_docs import leave_out_refused, leave_out_unseen

    def run_model(self: Any) -> Any:
        # LightEval's order is that of a set of texts, another one in each of several processes that share a run.
        self.sampling_docs = dict(sorted(self.sampling_docs.items(), key=lambda item: item[0].value, reverse=True))
        leave_out_unseen(self)
        outputs = Pipeline._run_model(self)
        leave_out_refused(self, outputs)
        return outputs

    changed = {name: getattr(Pipeline, name) for name in PHASES} | {"_run_model": run_model}
    return type("TimedPipeline", (Pipeline,), {name: _timed(method, PHASES[name]) for name, method in changed.items()})


def _timed(method: Callable[..., Any], phase: str) -> Callable[..., Any]:
    def run(self: Any, *args: Any, **options: Any) -> Any:
        start = time.perf_counter()
        try:
            return method(self, *args, **options)
        finally:
            seconds = vars(self).setdefault("seconds", {})
            seconds[phase] = seconds.get(phase, 0.0) + time.perf_counter() - start

    return run


@patched(
    "lighteval",
    "lighteval.pipeline.Pipeline._init_tasks_and_requests, _init_model, _run_model, _compute_metrics",
    "The record of a run has the wall time of each phase, for every backend.",
)
def _phases_are_these_methods() -> None:
    import inspect

    from lighteval.pipeline import Pipeline

    set_up, run = inspect.getsource(Pipeline.__init__), inspect.getsource(Pipeline.evaluate)
    for name in PHASES:
        expect(f"self.{name}(" in set_up + run, f"LightEval's pipeline no longer calls {name}")


@patched(
    "lighteval",
    "lighteval.pipeline.logger, lighteval.models.model_loader.logger",
    "They warn of our own model file, and in capitals of --max_samples where --limit was typed.",
)
def _warnings_are_these() -> None:
    for module, text in SAID_BY_US.items():
        source = source_of(module)
        expect("logger = logging.getLogger(__name__)" in source, f"{module} logs under another name")
        expect(f'"{text}' in source, f"{module} no longer warns: {text}")


def scores_of(pipeline: "Pipeline") -> dict[str, dict[str, float | None]]:
    """Task with `|k` -> metric -> value; changes to it reach the results file."""
    return pipeline.evaluation_tracker.metrics_logger.metric_aggregated


def details_of(pipeline: "Pipeline") -> dict[str, list[Any]]:
    """Task with `|k` -> a LightEval `Detail` for each row, in the order of the run."""
    return pipeline.evaluation_tracker.details_logger.details


@patched(
    "lighteval",
    "lighteval.logging.evaluation_tracker.EvaluationTracker.metrics_logger.metric_aggregated, details_logger.details",
    "A run's scores and details can be changed here before they are written; LightEval's function returns copies.",
)
def _results_are_made_of_the_loggers() -> None:
    from tempfile import TemporaryDirectory
    from types import SimpleNamespace
    from typing import get_type_hints

    from lighteval.logging.evaluation_tracker import EvaluationTracker
    from lighteval.logging.info_loggers import DetailsLogger
    from lighteval.models.abstract_model import ModelConfig

    with TemporaryDirectory() as folder:
        tracker = EvaluationTracker(output_dir=folder)
    tracker.general_config_logger.log_model_info(ModelConfig(model_name="canary"))
    run: Any = SimpleNamespace(evaluation_tracker=tracker)
    scores_of(run)["canary|0"] = {"value": None}
    written = tracker.results["results"]
    expect(written.get("canary|0") == {"value": None}, "LightEval's results are no longer made of metric_aggregated")
    expect(details_of(run) == {}, "LightEval's details are no longer kept in the details_logger")
    fields = set(get_type_hints(DetailsLogger.Detail))
    expect("metric" in fields, "a LightEval Detail no longer holds its metrics")
