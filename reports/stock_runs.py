"""The record of a run by LightEval's own commands: `lighteval accelerate ... --custom-tasks cultureval.tasks`."""

import time
from typing import TYPE_CHECKING

from cultureval.reports.lighteval_files import complete_results
from cultureval.reports.recording import record_of

if TYPE_CHECKING:
    from lighteval.pipeline import Pipeline


def complete_stock_run(pipeline: "Pipeline") -> None:
    """Adds our record to the results of a run that is about to save them; runs without our tasks stay as they are.

    Args:
        pipeline: After its run.
    """
    age = time.perf_counter() - pipeline.evaluation_tracker.general_config_logger.start_time
    record = record_of(pipeline, (), time.time() - age)
    if record.tasks:
        pipeline.evaluation_tracker.sections = {}
        complete_results(pipeline, record)
