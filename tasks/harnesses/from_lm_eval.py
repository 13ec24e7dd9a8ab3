"""Tasks of lm-evaluation-harness: its own prompts, examples, filters and metrics on rows from the data root."""

import copy
import inspect
import os
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc, SamplingMethod

from cultureval.metrics.declared import Metrics
from cultureval.metrics.lighteval.row_scores import Columns, pass_metrics
from cultureval.runtime.errors import CulturevalError, SourceUnavailable, did_you_mean
from cultureval.runtime.patches.lighteval.row_order import LIGHTEVAL_SEED
from cultureval.tasks.harnesses import local_rows as rows_of
from cultureval.tasks.harnesses.foreign import LM_EVAL, declare_metrics, harness_task, their_code
from cultureval.tasks.harnesses.local_rows import FinishedDocs, HarnessConfig
from cultureval.tasks.suite import Task

if TYPE_CHECKING:
    from datasets import Dataset
    from lm_eval.api.group import Group
    from lm_eval.api.instance import Instance
    from lm_eval.api.task import ConfigurableTask

INSTALL = "pip install 'cultureval[lm-eval]'"
NEW_TOKENS = 256  # lm-eval's, if a task has no limit
SEED = 1234  # of lm-eval's few-shot examples
ENVIRONMENT = {"arab_culture": ("COUNTRY", "REGION", "ARABIC")}  # beginning of a name -> what its prompts depend on
CALLS_OUT = re.compile(r"\b(openai|anthropic|subprocess|multiprocessing)\b|\bexec\(")
_NAMED = re.compile(
    r"""^[ \t]*(?:(?:-[ \t]*)?['"]?(?:task|group|tag)['"]?:|-)[ \t]*['"]?([^\s'":#]+)['"]?[ \t]*(?:#.*)?$""",
    re.MULTILINE,
)
_GROUP = re.compile(r"""^[ \t]*['"]?group['"]?:[ \t]*['"]?([^\s'"#]+)""", re.MULTILINE)


def tasks_of(name: str) -> list[Task]:
    """The tasks of a task, group or tag of lm-eval.

    Raises:
        SourceUnavailable: None of them has data.
        CulturevalError: lm-eval is not installed or has no such name, or a task cannot run here.
    """
    try:
        import lm_eval.tasks
    except ImportError as error:
        raise CulturevalError(f"{LM_EVAL}:{name} needs lm-eval: {INSTALL}.") from error
    paths = _folders(Path(lm_eval.tasks.__file__).parent, name)
    manager = lm_eval.tasks.TaskManager(include_path=paths, include_defaults=False)
    with _rows_from_root() as missing, their_code(f"{LM_EVAL}:{name}"):
        loaded: Any = manager.load([name])
    if not loaded["tasks"]:
        raise next(iter(missing.values()))
    group = loaded["groups"].get(name)
    found = [_task(task, own, group) for task, own in loaded["tasks"].items()]
    return found + [_absent(found[0], task, error) for task, error in missing.items()]


def _absent(like: Task, name: str, error: SourceUnavailable) -> Task:
    """A task of a group without rows, so that a run names it and the group's average counts it."""

    def refuse(shots: int) -> None:
        raise error

    return replace(like, task=f"{LM_EVAL}:{name}", subset=name, kind=replace(like.kind, load=refuse))


def _folders(root: Path, name: str) -> list[str]:
    """The folders that define a name and the members of its group: the whole index of lm-eval takes a minute.

    Raises:
        CulturevalError: No file has the name.
    """
    files = (file for file in root.rglob("*") if file.suffix == ".yaml" or file.name.endswith("_yaml"))
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    named = {file: {*_NAMED.findall(text)} for file, text in texts.items()}
    folders, known, wanted = set[str](), set[str](), {name}
    while wanted:
        known |= wanted
        found = [file for file, names in named.items() if names & wanted]
        folders |= {file.relative_to(root).parts[0] for file in found}
        groups = [file for file in found if wanted & {*_GROUP.findall(texts[file])}]
        wanted = set[str]().union(*(named[file] for file in groups)) - known
    if not folders:
        every = set[str]().union(*named.values())
        raise CulturevalError(f"lm-eval has no task {name!r}.{did_you_mean(name, every)}")
    return [str(root / folder) for folder in sorted(folders)]


@contextmanager
def _rows_from_root() -> Iterator[dict[str, SourceUnavailable]]:
    """A context in which lm-eval's tasks read our data root and no metric comes from the hub.

    It gives the tasks without rows, which are left out of groups.
    """
    from lm_eval.api.group import Group
    from lm_eval.api.task import ConfigurableTask
    from lm_eval.tasks._factory import TaskFactory

    missing: dict[str, SourceUnavailable] = {}
    build_task = TaskFactory._build_task

    def build_present(factory: TaskFactory, entry: Any, overrides: Any) -> Any:
        try:
            return build_task(factory, entry, overrides)
        except SourceUnavailable as error:
            missing[entry.name] = error
            return Group(f"{entry.name} (no rows)")

    def download(task: Any, dataset_kwargs: Mapping[str, Any] | None = None, **_: Any) -> None:
        config, name, examples = task.config, f"{LM_EVAL}:{task.config.task}", task.fewshot_cfg.split
        if reason := _refused(task, dataset_kwargs or {}):
            raise CulturevalError(f"{name} {reason}: run it with lm-eval.")
        splits = [config.training_split, config.validation_split, config.test_split, config.fewshot_split, examples]
        found, task.revision = rows_of.local_rows(name, task.DATASET_PATH, task.DATASET_NAME, filter(None, splits))
        task.dataset = found
        for holder in (config, task.fewshot_cfg):
            holder.process_docs = holder.process_docs and partial(_processed, holder.process_docs)
        if examples and not config.num_fewshot:  # which it reads, but does not show
            found.setdefault(examples, next(iter(found.values())).select([]))

    def no_hub(name: str, *_: Any, **__: Any) -> None:
        raise CulturevalError(f"The metric {name} comes from the hub: run this task with lm-eval.")

    patches = (patch.object(TaskFactory, "_build_task", build_present), patch("evaluate.load", no_hub))
    with patch.object(ConfigurableTask, "download", download), patches[0], patches[1]:
        yield missing


def _processed(process: "Callable[[Dataset], Dataset]", rows: "Dataset") -> "Dataset":
    """The rows as the task's code makes them, with their places where that code keeps columns.

    It does not see the places: some tasks take every column but the question for a choice.
    """
    made = process(rows.remove_columns(rows_of.PLACE))
    try:
        marked = process(rows)
    except Exception:  # code that knows all columns
        return made
    keeps = rows_of.PLACE in marked.column_names and len(marked) == len(made)
    return made.add_column(rows_of.PLACE, list(marked[rows_of.PLACE])) if keeps else made


def _refused(task: "ConfigurableTask", dataset_kwargs: Mapping[str, Any]) -> str:
    """Why a task does not run here, as the end of a sentence; "" if it does."""
    config, wanted = task.config, task.config.generation_kwargs or {}
    functions = [config.process_results, *task._metric_fn_list.values()]
    modules = {inspect.getmodule(getattr(function, "func", function)) for function in functions if function}
    code = [inspect.getsource(module) for module in modules if module and not module.__name__.startswith("lm_eval.api")]
    if getattr(task, "UNSAFE_CODE", False) or any(map(CALLS_OUT.search, code)):
        return "runs the model's programs outside a sandbox, or asks a judge"
    if getattr(task, "MULTIMODAL", False):
        return "has images or sound"
    if task.OUTPUT_TYPE not in ("multiple_choice", "loglikelihood", "generate_until"):
        return f"asks for {task.OUTPUT_TYPE}"
    if (wanted.get("do_sample") and wanted.get("temperature")) or (config.repeats or 1) > 1:
        return "samples several answers"
    if config.process_results is None and None in task._metric_fn_list.values():
        return "has a metric from the hub"
    own_rows = callable(config.custom_dataset) or {"data_files", "data_dir"} & {*dataset_kwargs}
    return "has rows of a function or of named files" if own_rows else ""


def _task(name: str, task: "ConfigurableTask", group: "Group | None") -> Task:
    declared, generates = _declared(name, task), task.OUTPUT_TYPE == "generate_until"
    averages = (group.aggregate_metric_list or ()) if group is not None else ()
    return harness_task(
        f"{LM_EVAL}:{name}",
        declared,
        str(task.OUTPUT_TYPE),
        str(task.DATASET_PATH),
        partial(_load, name, task, declared),
        group=str(group.name) if group is not None and averages else "",
        by_size=any(metric.weight_by_size for metric in averages),
        shots=int(task.config.num_fewshot or 0),
        generation_size=_generation(task.config.generation_kwargs)["max_gen_toks"] if generates else -1,
    )


def _declared(name: str, task: "ConfigurableTask") -> Metrics:
    """The metrics that are means of their items' values, by the names that results have.

    Raises:
        CulturevalError: There is none.
    """
    from lm_eval.api.metrics import mean

    means = {metric for metric, function in task.aggregation().items() if function is mean}
    names = {_metric_name(metric, ensemble.name): metric for ensemble in task._filters for metric in task.aggregation()}
    names = {own: metric for own, metric in names.items() if metric in means}
    if not names:
        raise CulturevalError(f"{LM_EVAL}:{name} has no metric that is a mean of its items: run it with lm-eval.")
    better = task.higher_is_better()
    return declare_metrics([*names], [own for own, metric in names.items() if not better.get(metric, True)])


def _metric_name(metric: str, filter_name: str) -> str:
    """`acc`, or `exact_match,strict-match` where lm-eval names a filter of the answer."""
    return metric if filter_name == "none" else f"{metric},{filter_name}"


def _generation(wanted: dict[str, Any] | None) -> dict[str, Any]:
    from lm_eval.models.utils import normalize_gen_kwargs

    return normalize_gen_kwargs(dict(wanted or {}), NEW_TOKENS)


def _load(name: str, task: "ConfigurableTask", declared: Metrics, shots: int) -> FinishedDocs:
    """A task with that many examples, as LightEval's object.

    Raises:
        CulturevalError: The task has another fixed number of examples, or too few.
    """
    called, own = f"{LM_EVAL}:{name}", _with_shots(name, task, shots)
    with their_code(called):
        own.build_all_requests(limit=None)
    requests = {key: list(same) for key, same in groupby(own.instances, key=lambda instance: str(instance.doc_id))}
    split = str(own.config.test_split or own.config.validation_split or own.config.training_split)
    docs = [_doc(own, same, f"{split}:{key}") for key, same in requests.items()]
    category = docs[0].sampling_methods[0]
    config = HarnessConfig(
        name=called,
        prompt_function=lambda row, task_name=None: None,
        hf_repo=str(own.DATASET_PATH),
        hf_subset=str(own.DATASET_NAME or "default"),
        metrics=pass_metrics(declared, partial(_scores, own, requests), f"{LM_EVAL} {name}", category=category),
        num_fewshots=shots,
        generation_size=docs[0].generation_size,
        stop_sequence=docs[0].stop_sequences,
        evaluation_splits=[split],
        version=own.VERSION or 0,
    )
    examples = own.fewshot_docs() if shots else own.dataset.get(own.fewshot_cfg.split)
    revision: str = vars(task)["revision"]
    config.rows_report = rows_of.rows_report(config.hf_repo, revision, docs, len(list(examples or ())), _prompt(name))
    for doc in docs:
        doc.task_name = config.full_name
    random.Random(LIGHTEVAL_SEED).shuffle(docs)
    return FinishedDocs(config, docs)


def _prompt(name: str) -> str:
    """What results say of a prompt: the harness with its version, and the variables that its text depends on."""
    variables = next((names for begin, names in ENVIRONMENT.items() if name.startswith(begin)), ())
    set_so = [f"{variable}={os.environ.get(variable) == 'True'}" for variable in variables]
    return ", ".join([f"lm_eval {version('lm_eval')}", *set_so])


def _with_shots(name: str, task: "ConfigurableTask", shots: int) -> "ConfigurableTask":
    """A copy of a task that shows so many examples, by lm-eval's seed."""
    if shots and task.config.num_fewshot == 0:
        raise CulturevalError(f"{LM_EVAL}:{name} has no few-shot examples, as its file says: leave |{shots} out.")
    own = copy.copy(task)
    own._config, own._instances = copy.copy(task.config), None
    own.set_config("num_fewshot", shots)
    own.set_fewshot_seed(seed=SEED)
    return own


def _doc(task: "ConfigurableTask", same: "Sequence[Instance]", place: str) -> Doc:
    """The Doc of the requests of one item: choices after one prompt or several, or one prompt to be answered.

    `place` names rows that the task's code makes.
    """
    place = same[0].doc.get(rows_of.PLACE, place)
    first, target = same[0], task.doc_to_target(same[0].doc)
    doc = Doc(query=first.args[0], choices=[], gold_index=0, id=str(first.doc_id))
    if first.request_type == "generate_until":
        wanted = _generation(first.args[1])
        golds = target if isinstance(target, list) else [target]
        doc.choices, doc.gold_index = [str(gold) for gold in golds], list(range(len(golds)))
        doc.generation_size, doc.stop_sequences = wanted["max_gen_toks"], list(wanted["until"])
        doc.sampling_methods = [SamplingMethod.GENERATIVE]
        return rows_of.with_place(doc, place, verbatim=True)
    contexts = [request.args[0] for request in same]
    doc.choices = [request.args[1] for request in same]
    labels = list(task.doc_to_choice(first.doc)) if task.OUTPUT_TYPE == "multiple_choice" else []
    gold = labels.index(target) if target in labels else target
    doc.gold_index = gold if isinstance(gold, int) and 0 <= gold < len(same) else 0
    doc.sampling_methods = [SamplingMethod.LOGPROBS]
    several = {"contexts": contexts} if len(set(contexts)) > 1 else {}
    return rows_of.with_place(doc, place, verbatim=True, **several)


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
