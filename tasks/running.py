"""A run of tasks: our own loop over LightEval's tasks, model, metrics and tracker instead of its Pipeline."""

import logging
import math
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.runtime import processes
from cultureval.runtime.model_settings import load_model_file
from cultureval.runtime.printing import print_note
from cultureval.runtime.progress import working
from cultureval.runtime.saving import Saving
from cultureval.tasks.catalogue import kind_of, name_and_shots

if TYPE_CHECKING:
    from lighteval.logging.evaluation_tracker import EvaluationTracker
    from lighteval.models.abstract_model import LightevalModel
    from lighteval.models.model_output import ModelResponse
    from lighteval.tasks.lighteval_task import LightevalTask
    from lighteval.tasks.requests import Doc

SEED = 1234  # as LightEval's pipeline has it
Answers = dict[Any, list[tuple["Doc", "ModelResponse"]]]  # by SamplingMethod


@dataclass
class FinishedRun:
    """A run with computed metrics, before its files are written.

    Attributes:
        tasks: Name with `|k` -> task, without tasks that have no answer.
        limit: Maximum number of rows of each task; None: all.
        tracker: Scores and details.
        seconds: Phase (`load_data`, `load_model`, `answering`, `scoring`) -> wall time in seconds.
        unanswered: Tasks without any answer, with the reason.
    """

    tasks: "dict[str, LightevalTask]"
    model: "LightevalModel"
    limit: int | None
    tracker: "EvaluationTracker"
    seconds: dict[str, float] = field(default_factory=dict)
    unanswered: "dict[str, tuple[LightevalTask, str]]" = field(default_factory=dict)

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """A context that adds its wall time to a phase."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - start


def run_tasks(
    model: str, model_file: Path, tasks: list[str], limit: int | None, output_dir: str, saving: Saving
) -> FinishedRun:
    """Runs a model on all rows of tasks and scores its answers; writes nothing.

    Args:
        model: Hub id, folder, or YAML file with settings.
        model_file: The file with the model's class, as `lighteval custom` takes it.
        tasks: As LightEval spells them, with `|k`.
        limit: Maximum number of rows of each task, raised to complete items.
        saving: What will be saved and uploaded.

    Raises:
        CulturevalError: A source cannot be read, the model cannot be loaded or asked, or no row has an answer.
    """
    with working("Loading the tasks and the model"):
        import numpy as np

        from cultureval.runtime.patches.lighteval.tracker import Tracker

        random.seed(SEED)
        np.random.seed(SEED)
        limit = complete_items(limit, tasks)
        run = FinishedRun({}, None, limit, Tracker(output_dir=output_dir, **saving.tracker_options()))  # type: ignore[arg-type]
        with run.timed("load_data"):
            run.tasks = {name: load_task(name) for name in sorted(set(tasks))}
            docs = [doc for task in run.tasks.values() for doc in task.get_docs(limit)]
        run.tracker.task_config_logger.log(run.tasks)
        with run.timed("load_model"):
            run.model = load_model_file(model, model_file)
    general = run.tracker.general_config_logger
    general.log_model_info(run.model.config)
    general.log_args_info(num_fewshot_seeds=1, max_samples=limit, job_id="0")
    with run.timed("answering"):
        answers = _answer(run, docs)
    with run.timed("scoring"):
        _score(run, answers, docs)
    general.log_end_time()
    run.tracker.metrics_logger.aggregate(task_dict=run.tasks)
    run.tracker.details_logger.aggregate()
    processes.finish()
    return run


def load_task(name: str) -> "LightevalTask":
    """A task with its data, by its name with `|k`."""
    from lighteval.tasks.lighteval_task import LightevalTask

    from cultureval.tasks.task_table import running_config

    bare, shots = name_and_shots(name)
    if load := kind_of(bare).load:
        return load(int(shots or 0))
    config = running_config(bare, int(shots or 0))
    config.full_name = f"{bare}|{config.num_fewshots}"
    return LightevalTask(config)


def _answer(run: FinishedRun, docs: list["Doc"]) -> Answers:
    """Runs the model; docs without a usable answer are listed in the reports of their tasks."""
    from lighteval.tasks.requests import SamplingMethod

    from cultureval.runtime.patches.lighteval.refused_docs import RefusedResponse, leave_out, refused_images

    docs, run.unanswered = leave_out(run.tasks, docs, refused_images(run.tasks, run.model, docs))
    ask = {
        SamplingMethod.PERPLEXITY: run.model.loglikelihood_rolling,
        SamplingMethod.LOGPROBS: run.model.loglikelihood,
        SamplingMethod.GENERATIVE: run.model.greedy_until,
    }
    answers: Answers = {}
    for method, function in ask.items():
        if chosen := [doc for doc in docs if method in doc.sampling_methods]:
            answers[method] = list(zip(chosen, function(chosen), strict=True))
    run.model.cleanup()
    refused = [pair for pairs in answers.values() for pair in pairs if isinstance(pair[1], RefusedResponse)]
    answered, unanswered = leave_out(run.tasks, docs, refused)
    run.unanswered |= unanswered
    ids = set(map(id, answered))
    return {method: [pair for pair in pairs if id(pair[0]) in ids] for method, pairs in answers.items()}


def _score(run: FinishedRun, answers: Answers, docs: list["Doc"]) -> None:
    """Logs each item's metrics in the tracker; docs without a usable answer become rows without scores."""
    from lighteval.metrics import apply_metric
    from lighteval.models.model_output import ModelResponse
    from lighteval.utils.utils import remove_reasoning_tags

    from cultureval.runtime.patches.lighteval.refused_docs import values_of_unscored

    places = {id(doc): place for place, doc in enumerate(docs)}
    unscored = [doc for doc in docs if (doc.specific or {}).get("unscored")]
    for method, pairs in answers.items():
        by_task: dict[str, list[tuple[Doc, ModelResponse]]] = {}
        for doc, response in pairs:
            texts = response.text or ()
            response.text_post_processed = [remove_reasoning_tags(text, [("<think>", "</think>")]) for text in texts]
            by_task.setdefault(doc.task_name, []).append((doc, response))
        for name, pairs_of_task in by_task.items():
            metrics = [metric for metric in run.tasks[name].metrics if metric.category == method]
            asked, responses = map(list, zip(*pairs_of_task, strict=True))
            rows = list(zip(asked, responses, apply_metric(responses, asked, metrics), strict=True))
            for _, _, values in rows:
                run.tracker.metrics_logger.log(name, values)
            missing = [doc for doc in unscored if doc.task_name == name and method in doc.sampling_methods]
            rows += [(doc, ModelResponse(), values_of_unscored(metrics, doc)) for doc in missing]
            for doc, response, values in sorted(rows, key=lambda row: places[id(row[0])]):
                run.tracker.details_logger.log(name, doc, response, values)


def complete_items(limit: int | None, tasks: Sequence[str]) -> int | None:
    """The limit, raised to complete items if an item has several rows (M2CQA: three statements)."""
    size = math.lcm(*(kind_of(name).rows_per_item for name in tasks))
    if limit is None or limit % size == 0:
        return limit
    raised = size * math.ceil(limit / size)
    print_note(f"--limit {limit} would cut an item of {size} rows: it is raised to {raised}.")
    return raised


def quiet_libraries() -> None:
    """Silences LightEval's libraries: their messages on many small files hide the model's progress."""
    import datasets

    datasets.disable_progress_bars()
    logging.getLogger("huggingface_hub.repocard").setLevel(logging.ERROR)
