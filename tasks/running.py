"""A run of tasks by LightEval's pipeline, and our tasks in the form that its start-up takes (`OWN_TASKS`)."""

import logging
import math
from pathlib import Path
from typing import TYPE_CHECKING

from cultureval.runtime import processes
from cultureval.runtime.gc_pause import no_collection
from cultureval.runtime.patches.lighteval.start_up import OwnTasks
from cultureval.runtime.printing import print_note
from cultureval.runtime.progress import working
from cultureval.runtime.saving import Saving
from cultureval.runtime.settings import current_settings
from cultureval.tasks.catalogue import kind_of, task_names
from cultureval.tasks.registration import unknown_name_hint

if TYPE_CHECKING:
    from lighteval.pipeline import Pipeline

OWN_TASKS = OwnTasks("cultureval.tasks", task_names, unknown_name_hint)
INSPECT_TASKS = OwnTasks("cultureval.tasks.harnesses.inspect_table", task_names, unknown_name_hint)  # of `eval`


def run_pipeline(
    model: str, model_file: Path, tasks: list[str], limit: int | None, output_dir: str, saving: Saving
) -> "Pipeline":
    """Runs LightEval's pipeline (see `load_pipeline`); the results are in its tracker, not yet written."""
    with working("Loading the tasks and the model"):
        pipeline = load_pipeline(model, model_file, tasks, limit, output_dir, saving)
    with processes.scoring_together(any(map(scored_together, tasks))):
        pipeline.evaluate()
    processes.finish()
    return pipeline


@no_collection()
def load_pipeline(
    model: str, model_file: Path, tasks: list[str], limit: int | None, output_dir: str, saving: Saving
) -> "Pipeline":
    """LightEval's pipeline under its custom launcher, with its tasks and its model loaded.

    Args:
        model: Hub id, folder, or YAML file with settings.
        model_file: The file with the model's class, as `lighteval custom` takes it.
        tasks: As LightEval spells them, with `|k`.
        limit: At most this many rows per task; raised to complete items.
        saving: What will be kept, and where it will be uploaded.

    Raises:
        CulturevalError: A source cannot be read, or the model cannot be loaded.
    """
    from cultureval.runtime.patches.lighteval.pipeline import timed_pipeline
    from cultureval.runtime.patches.lighteval.start_up import prepare_lighteval

    prepare_lighteval(OWN_TASKS)
    limit = complete_items(limit, tasks)
    from lighteval.models.custom.custom_model import CustomModelConfig
    from lighteval.pipeline import ParallelismManager, PipelineParameters

    from cultureval.runtime.patches.lighteval.tracker import Tracker

    return timed_pipeline(
        tasks=",".join(tasks),
        pipeline_parameters=PipelineParameters(
            launcher_type=ParallelismManager.CUSTOM, custom_tasks_directory="cultureval.tasks", max_samples=limit
        ),
        evaluation_tracker=Tracker(output_dir=output_dir, **saving.tracker_options()),
        model_config=CustomModelConfig(model_name=model, model_definition_file_path=str(model_file)),
    )


def scored_together(task: str) -> bool:
    """Whether several processes share the scoring of a task: with classifiers, BERTScore, or judges that are named."""
    kind = kind_of(task)
    return bool((kind.instrument and kind.instrument.shared) or (kind.judge_templates and current_settings().judges))


def complete_items(limit: int | None, tasks: list[str]) -> int | None:
    """The limit, raised to complete items where an item has several rows (M2CQA: three statements)."""
    size = math.lcm(*(kind_of(name).rows_per_item for name in tasks))
    if limit is None or limit % size == 0:
        return limit
    raised = size * math.ceil(limit / size)
    print_note(f"--limit {limit} would cut an item of {size} rows; it is raised to {raised}.")
    return raised


@no_collection()
def quiet_libraries() -> None:
    """Silences LightEval's libraries, whose messages about a hundred small files hide the model's progress."""
    import datasets

    datasets.disable_progress_bars()
    logging.getLogger("huggingface_hub.repocard").setLevel(logging.ERROR)
