"""The scores and details of a LightEval run that has ended, as they will be written to its files.

LightEval's own `get_results` returns copies. Scores that are added, and undefined values that are to be written as
null, must go into the loggers from which the files are written.
"""

from typing import TYPE_CHECKING, Any

from cultureval.runtime.patches.table import expect, patched

if TYPE_CHECKING:
    from lighteval.pipeline import Pipeline


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
