"""Tasks of lm-evaluation-harness: its own prompts, examples, filters and metrics on rows from the data root."""

import copy
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc, SamplingMethod

from cultureval.metrics.declared import SHARE, Metrics, Range, declare
from cultureval.metrics.lighteval.row_scores import Columns, pass_metrics
from cultureval.runtime.doc_fields import PAPER
from cultureval.runtime.errors import CulturevalError, SourceUnavailable, did_you_mean
from cultureval.tasks.harnesses.foreign import (
    LM_EVAL,
    FinishedDocs,
    HarnessConfig,
    HarnessTask,
    rows_report,
    with_place,
)
from cultureval.tasks.harnesses.local_rows import LocalRows, local_rows

if TYPE_CHECKING:
    from lm_eval.api.group import Group
    from lm_eval.api.instance import Instance
    from lm_eval.api.task import ConfigurableTask
    from lm_eval.tasks import TaskManager

INSTALL = "pip install 'cultureval[lm-eval]'"
NEW_TOKENS = 256  # lm-eval's, where a task names no limit
SEED = 1234  # of lm-eval's few-shot examples
UNBOUNDED: Range = (float("-inf"), float("inf"))
SHARES = ("acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match")


def tasks_of(name: str) -> tuple[list[HarnessTask], list[str]]:
    """The tasks of a task, group or tag of lm-eval.

    Returns:
        (tasks, missing): the tasks with their rows, and why rows of further tasks of the group are not there.

    Raises:
        CulturevalError: lm-eval is not installed or has no such name, or a task cannot be asked here.
    """
    try:
        manager = _manager(name)
    except ImportError as error:
        raise CulturevalError(f"lm-eval:{name} needs lm-eval: {INSTALL}.") from error
    if name not in manager.all_tasks:
        raise CulturevalError(f"lm-eval has no task {name!r}.{did_you_mean(name, manager.all_tasks)}")
    with _rows_from_root() as read:
        from lm_eval.tasks._factory import TaskFactory

        factory = manager._factory = _present_tasks(TaskFactory)()
        loaded: Any = manager.load([name])
    by_task = {task: group for group in loaded["groups"].values() for task in _tasks_below(group)}
    found = [_found(task, own, by_task.get(task), read[id(own)]) for task, own in loaded["tasks"].items()]
    return found, factory.missing


def _tasks_below(group: "Group") -> list[str]:
    return [task.task_name for task in group.get_all_tasks()]


def _manager(name: str) -> "TaskManager":
    """A manager of the folders that define a name: lm-eval's whole index of 14,000 names takes 40 seconds."""
    import lm_eval.tasks

    root = Path(lm_eval.tasks.__file__).parent
    line = re.compile(rf"""^\W*(task|group|tag)['"]?:\s*(-\s*)?['"]?{re.escape(name)}['"]?\s*$""", re.MULTILINE)
    files = (file for file in root.rglob("*") if file.suffix == ".yaml" or file.name.endswith("_yaml"))
    folders = {file.relative_to(root).parts[0] for file in files if line.search(file.read_text(encoding="utf-8"))}
    paths = [str(root / folder) for folder in sorted(folders)]
    return lm_eval.tasks.TaskManager(include_path=paths, include_defaults=not folders)


@contextmanager
def _rows_from_root() -> Iterator[dict[int, LocalRows]]:
    """A context in which lm-eval's tasks read our data root; gives the rows of each task by its `id`."""
    from lm_eval.api.task import ConfigurableTask

    read: dict[int, LocalRows] = {}

    def download(task: "ConfigurableTask", dataset_kwargs: Any = None, **_: Any) -> None:
        config = task.config
        if callable(config.custom_dataset):
            raise CulturevalError(f"lm-eval:{config.task} makes its rows by a function: run it with lm-eval.")
        examples = task.fewshot_cfg.split
        splits = [config.training_split, config.validation_split, config.test_split, config.fewshot_split, examples]
        found = local_rows(f"lm-eval:{config.task}", str(task.DATASET_PATH), task.DATASET_NAME, filter(None, splits))
        task.dataset, read[id(task)] = found.splits, found
        if examples and examples not in found.splits and not config.num_fewshot:  # which it reads, but does not show
            task.dataset[examples] = next(iter(found.splits.values())).select([])

    with patch.object(ConfigurableTask, "download", download):
        yield read


def _present_tasks(factory: type[Any]) -> type[Any]:
    """lm-eval's factory of tasks, which leaves out parts of groups without rows and lists them in `missing`."""
    from lm_eval.api.group import Group

    class PresentTasks(factory):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.missing: list[str] = []

        def _build_task(self, entry: Any, overrides: Any) -> Any:
            try:
                return super()._build_task(entry, overrides)
            except SourceUnavailable as error:
                self.missing.append(str(error))
                return Group(f"{entry.name} (no rows)")

    return PresentTasks


def _found(name: str, task: "ConfigurableTask", group: "Group | None", rows: LocalRows) -> HarnessTask:
    if reason := _refused(task):
        raise CulturevalError(f"lm-eval:{name} {reason}: run it with lm-eval.")
    declared = _declared(name, task)
    asked = task.OUTPUT_TYPE == "generate_until"
    about = group.aggregate_metric_list if group is not None and group.aggregate_metric_list else ()
    return HarnessTask(
        name,
        group.name if group is not None else "",
        any(metric.weight_by_size for metric in about),
        declared,
        str(task.OUTPUT_TYPE),
        str(task.DATASET_PATH),
        int(task.config.num_fewshot or 0),
        _new_tokens(task.config.generation_kwargs) if asked else -1,
        partial(_load, name, task, rows, declared),
    )


def _refused(task: "ConfigurableTask") -> str:
    """Why a task cannot be asked here, as the end of a sentence; "" where it can."""
    wanted = task.config.generation_kwargs or {}
    if getattr(task, "UNSAFE_CODE", False):
        return "runs the model's programs outside a sandbox"
    if getattr(task, "MULTIMODAL", False):
        return "has images or sound"
    if task.OUTPUT_TYPE not in ("multiple_choice", "loglikelihood", "generate_until"):
        return f"asks for {task.OUTPUT_TYPE}"
    if (wanted.get("do_sample") and wanted.get("temperature")) or (task.config.repeats or 1) > 1:
        return "samples several answers"
    return ""


def _declared(name: str, task: "ConfigurableTask") -> Metrics:
    """The metrics that are means of their items' values, by the names that results have.

    Raises:
        CulturevalError: There is none.
    """
    from lm_eval.api.metrics import mean

    better = task.higher_is_better()
    means = [metric for metric, function in task.aggregation().items() if function is mean]
    names = [_metric_name(metric, ensemble.name) for ensemble in task._filters for metric in means]
    if not names:
        raise CulturevalError(f"lm-eval:{name} has no metric that is a mean of its items: run it with lm-eval.")
    lower = [own for own in names if not better.get(own.partition(",")[0], True)]
    ranges = {own: SHARE if own.partition(",")[0] in SHARES else UNBOUNDED for own in names}
    return declare(*names, lower=lower, ranges=ranges)


def _metric_name(metric: str, filter_name: str) -> str:
    """`acc`, or `exact_match,strict-match` where lm-eval names a filter of the answer."""
    return metric if filter_name == "none" else f"{metric},{filter_name}"


def _new_tokens(wanted: dict[str, Any] | None) -> int:
    from lm_eval.models.utils import normalize_gen_kwargs

    return int(normalize_gen_kwargs(dict(wanted or {}), NEW_TOKENS)["max_gen_toks"])


def _load(name: str, task: "ConfigurableTask", rows: LocalRows, declared: Metrics, shots: int) -> FinishedDocs:
    """A task with that many examples, as LightEval's object.

    Raises:
        CulturevalError: The task shows a fixed number of examples.
    """
    own = _with_shots(name, task, shots)
    own.build_all_requests(limit=None)
    asked = [list(same) for _, same in groupby(own.instances, key=lambda instance: instance.doc_id)]
    split = own.config.test_split or own.config.validation_split or own.config.training_split
    places = rows.places.get(str(split), [])
    same_rows = own.config.process_docs is None and len(places) == len(asked)
    docs = [_doc(own, same, places[number] if same_rows else f"{split}:{number}") for number, same in enumerate(asked)]
    requests = {str(same[0].doc_id): same for same in asked}
    category = SamplingMethod.LOGPROBS if docs[0].choices else SamplingMethod.GENERATIVE
    metrics = pass_metrics(declared, partial(_scores, own, requests), f"lm-eval {name}", category=category)
    config = HarnessConfig(
        name=f"{LM_EVAL}:{name}",
        prompt_function=lambda row, task_name=None: None,
        hf_repo=str(own.DATASET_PATH),
        hf_subset=str(own.DATASET_NAME or "default"),
        metrics=metrics,
        num_fewshots=shots,
        generation_size=docs[0].generation_size,
        stop_sequence=docs[0].stop_sequences,
        evaluation_splits=[str(split)],
        version=own.VERSION or 0,
    )
    config.rows_report = rows_report(str(own.DATASET_PATH), rows.revision, docs, len(places), PAPER)
    config.full_name = f"{config.name}|{shots}"
    for doc in docs:
        doc.task_name = config.full_name
    return FinishedDocs(config, docs)


def _with_shots(name: str, task: "ConfigurableTask", shots: int) -> "ConfigurableTask":
    """A copy of a task that shows so many examples, by lm-eval's seed."""
    own = copy.copy(task)
    own._config, own._instances = copy.copy(task.config), None
    if hasattr(task, "sampler"):
        own.sampler = copy.copy(task.sampler)
    if shots != (task.config.num_fewshot or 0) and task.config.num_fewshot == 0:
        raise CulturevalError(f"lm-eval:{name} shows no examples, as its file says: leave |{shots} out.")
    own.set_config("num_fewshot", shots)
    own.set_fewshot_seed(seed=SEED)
    return own


def _doc(task: "ConfigurableTask", same: "Sequence[Instance]", place: str) -> Doc:
    """The Doc of the requests of one item: choices after one prompt or several, or one prompt to be answered."""
    from lm_eval.models.utils import normalize_gen_kwargs

    first = same[0]
    if first.request_type == "generate_until":
        wanted = normalize_gen_kwargs(dict(first.args[1]), NEW_TOKENS)
        doc = Doc(query=first.args[0], choices=[], gold_index=0, id=str(first.doc_id))
        doc.generation_size, doc.stop_sequences = wanted["max_gen_toks"], list(wanted["until"])
        doc.sampling_methods = [SamplingMethod.GENERATIVE]
        return with_place(doc, place, {"verbatim": True, "parity": PAPER})
    contexts = [request.args[0] for request in same]
    target = task.doc_to_target(first.doc)
    gold = target if isinstance(target, int) and 0 <= target < len(same) else 0
    doc = Doc(query=contexts[0], choices=[request.args[1] for request in same], gold_index=gold, id=str(first.doc_id))
    doc.sampling_methods = [SamplingMethod.LOGPROBS]
    several = {"contexts": contexts} if len(set(contexts)) > 1 else {}
    return with_place(doc, place, {"verbatim": True, "parity": PAPER, **several})


def _scores(
    task: "ConfigurableTask",
    requests: "dict[str, list[Instance]]",
    docs: list[Doc],
    responses: list[ModelResponse],
) -> Columns:
    """The values of all metrics of answered Docs, by lm-eval's filters and `process_results`."""
    asked = [requests[doc.id] for doc in docs]
    for same, response in zip(asked, responses, strict=True):
        answers = zip(response.logprobs, response.argmax_logits_eq_gold, strict=True) if response.logprobs else None
        for request, answer in zip(same, answers or response.text, strict=True):
            request.resps = [answer]
    found: dict[str, list[float]] = {}
    for ensemble in task._filters:
        ensemble.apply([request for same in asked for request in same])
        for same in asked:
            values = task.process_results(same[0].doc, [request.filtered_resps[ensemble.name] for request in same])
            for metric, value in values.items():
                found.setdefault(_metric_name(metric, ensemble.name), []).append(value)
    return found
