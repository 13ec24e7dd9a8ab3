"""What a task in Inspect is asked and how it is scored: our rows, prompts, metrics and standard errors.

A sample of Inspect names its task and row; its score holds what our metrics made of the answer, from which the totals
are computed in the end as LightEval computes them. All of it is plain data, so that logs can be scored again.
"""

import copy
import hashlib
import json
import logging
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError, did_you_mean
from cultureval.runtime.generation_hints import chat_messages, cut, stop_strings
from cultureval.runtime.patches.lighteval.group_averages import NotApplicable, StandardError
from cultureval.runtime.reasoning import split_reasoning
from cultureval.runtime.servers.data_urls import data_url
from cultureval.runtime.settings import Settings, current_settings, field_names, use_settings
from cultureval.tasks.catalogue import all_tasks, groups, kind_of, means_of_subsets, name_and_shots
from cultureval.tasks.options import all_options
from cultureval.tasks.running import quiet_libraries

if TYPE_CHECKING:
    from lighteval.metrics.utils.metric_utils import Metric
    from lighteval.models.model_output import ModelResponse
    from lighteval.tasks.requests import Doc

logger = logging.getLogger(__name__)

READ_BY_ALL = (".png", ".jpg", ".webp", ".gif")  # formats of stored images that servers take


def members_of(name: str) -> list[str]:
    """The tasks that generate of a task or a group, in the catalogue's order."""
    names = [name] if name in all_tasks() else groups().get(name, [])
    return [one for one in names if kind_of(one).generation_size > 0]


@cache
def asked_task(name: str, shots: int, options: str) -> "AskedTask":
    """A task with its rows and a number of few-shot examples, read once a process.

    `options` is a JSON object: options of `cultureval eval` and of suites by name (`data_root`, `box_format`).
    """
    return AskedTask(name, shots, options)


class AskedTask:
    """A task of our catalogue with its rows and metrics, under the settings that it was asked for with."""

    def __init__(self, name: str, shots: int, options: str) -> None:
        """As `asked_task`."""
        from lighteval.tasks.lighteval_task import LightevalTask

        from cultureval.tasks.task_table import running_config

        self.name, self.shots, self.options = name, shots, options
        self.settings = settings_of(json.loads(options))
        quiet_libraries()
        with use_settings(self.settings):
            self._task: LightevalTask = LightevalTask(running_config(name, shots))
            self.docs: dict[str, Doc] = {row_key(doc): doc for doc in self._task.get_docs()}
            self.metrics: Sequence[Metric] = list(self._task.metrics)
        self.places = {key: place for place, key in enumerate(self.docs)}
        self.report: Mapping[str, Any] = self._task.config.rows_report

    def doc_of(self, prepared: dict[str, Any]) -> "Doc":
        """The doc of a prepared row."""
        return self.docs[row_key(self._task.config.prompt_function(prepared, self.name))]

    @cached_property
    def _functions(self) -> dict[str, Callable[[list[Any]], Any]]:
        """Name of a row's value -> what is made of the values of all rows."""
        return {name: made for metric in self.metrics for name, made in metric.get_corpus_aggregations().items()}

    def score(self, answers: Sequence[tuple[str, "ModelResponse"]]) -> list[tuple["Doc", dict[str, Any]]]:
        """The scores of rows' answers, and their docs, to which metrics add reasons.

        Args:
            answers: Keys of rows (`row_key`) with the answers; a row may come several times.

        Raises:
            CulturevalError: An answer cannot be scored.
        """
        from lighteval.metrics import apply_metric

        docs = []
        for key, _ in answers:
            doc = copy.copy(self.docs[key])
            doc.specific = dict(specific_of(doc))
            docs.append(doc)
        with use_settings(self.settings):
            rows = apply_metric(docs=docs, responses=[response for _, response in answers], metrics=list(self.metrics))
        return list(zip(docs, rows, strict=True))

    def totals(self, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
        """The task's scores and standard errors.

        Args:
            rows: Keys of rows with their scores (`restored`); a row comes once an epoch.
        """
        seen: Counter[str] = Counter()
        epochs: dict[int, list[tuple[str, Mapping[str, Any]]]] = {}
        for key, scores in sorted(rows, key=lambda row: self.places[row[0]]):
            epochs.setdefault(seen[key], []).append((key, scores))
            seen[key] += 1
        found: dict[str, Any] = {}
        with use_settings(self.settings):
            for name, function in self._functions.items():
                columns = [[(key, scores[name]) for key, scores in part if name in scores] for part in epochs.values()]
                found |= _total(name, function, columns, kind_of(self.name).rows_per_item)
        headline = all_tasks()[self.name].metrics[0]
        return {name: found[name] for name in sorted(found, key=lambda name: not name.startswith(headline))}


def _total(
    name: str, function: Callable[[list[Any]], Any], epochs: Sequence[list[tuple[str, Any]]], rows_per_item: int
) -> dict[str, Any]:
    """What a metric makes of the values of all rows; epochs of a row are one cluster, or averaged where it has none."""
    values = [value for column in epochs for _, value in column]
    if len(epochs) > 1 and all(hasattr(one, "cluster") and not hasattr(one, "item_id") for one in values):
        for column in epochs:
            for key, value in column:
                value.cluster = value.cluster or f"row {key}"
        epochs = [[row for column in epochs for row in column]]
    parts = []
    for column in epochs:
        values = _whole_items([value for _, value in column], rows_per_item)
        made = function(values) if values else {}
        parts.append(made if isinstance(made, Mapping) else {name: made})
    if len(parts) == 1:
        return dict(parts[0])
    shared = [key for key in parts[0] if all(key in part for part in parts)]
    return {key: _mean_of_epochs([part[key] for part in parts]) for key in shared}


def _mean_of_epochs(values: Sequence[float]) -> float:
    """The mean, in the class by which LightEval averages it over a group."""
    first, mean = values[0], math.fsum(map(float, values)) / len(values)
    if isinstance(first, NotApplicable):
        return first
    if isinstance(first, StandardError):
        return StandardError(mean, first.clusters)
    return type(first)(mean)


def _whole_items(values: list[Any], rows_per_item: int) -> list[Any]:
    """The values without those of items that lack a row: `--limit` may cut an item, and rows may have failed."""
    rows = Counter(value.item_id for value in values if hasattr(value, "item_id"))
    whole = [value for value in values if not rows or rows[value.item_id] == rows_per_item]
    if len(whole) < len(values):
        logger.warning("%d rows of cut items are left out of the scores.", len(values) - len(whole))
    return whole


def group_totals(group: str, found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The averages of a group, with LightEval's equal weights, and the headline of each task, from the tasks' totals.

    Without one of its tasks, and where its tasks differ in kind, a group has no average.
    """
    names, together = members_of(group), {}
    cells = [found[name] for name in names if name in found]
    means = means_of_subsets({f"{name}|0": totals for name, totals in found.items()})
    if len(cells) == len(groups()[group]) and not any(all_tasks()[name].mean for name in names):
        for metric in cells[0]:
            values = [cell[metric] for cell in cells if metric in cell]
            if len(values) == len(cells):
                together[metric] = sum(values[1:], values[0]) / len(values)  # LightEval's own sum and classes
    for mean, totals in means.items():
        label = name_and_shots(mean)[0].partition(":_")[2]
        together |= {f"{label}: {metric}": value for metric, value in totals.items()}
    for name, totals in found.items():
        headline, label = all_tasks()[name].metrics[0], name.partition(":")[2]
        for metric in (headline, f"{headline}_stderr"):
            if metric in totals:
                together[f"{label}: {metric}"] = totals[metric]
    return together


def settings_of(options: Mapping[str, Any]) -> Settings:
    """The environment's settings with options of a task on top: texts by names of options, ours or of suites.

    Raises:
        CulturevalError: An option is unknown, or its value is not allowed.
    """
    settings = current_settings()
    names = field_names()
    ours = {name: value for name, value in options.items() if name in names}
    suite = {name: value for name, value in options.items() if name not in ours}
    settings = settings.with_(**ours)
    known = {option.name: option for option in all_options(settings)}
    for name in suite:
        if name not in known:
            near = did_you_mean(name, [*known, *names])
            raise CulturevalError(f"-T {name}: no suite has such an option.{near} There are {', '.join(known)}.")
    settings = settings.with_(suite=suite)
    for name in suite:
        known[name].read(settings)
    return settings


def row_key(doc: "Doc") -> str:
    """The name of a row by its content, the same in every run and process."""
    about = [doc.query, doc.choices, doc.gold_index, specific_of(doc), list(map(str, doc.images or []))]
    return hashlib.sha256(json.dumps(about, default=str, sort_keys=True).encode()).hexdigest()[:16]


def turns_of(doc: "Doc") -> list[dict[str, Any]]:
    """The prompt as chat messages, as our model of servers sends them; images are files or data URLs."""
    return chat_messages(doc, None, lambda image: {"type": "image", "image": _image(str(image))})


def _image(file: str) -> str:
    return file if Path(file).suffix in READ_BY_ALL else data_url(file)


def generation_of(doc: "Doc", kind_size: int) -> dict[str, Any]:
    """What the task asks of the generation, where a run does not say otherwise."""
    stops = stop_strings(doc, chat=True)
    return {"temperature": 0.0, "max_tokens": kind_size} | ({"stop_seqs": stops} if stops else {})


def response_of(doc: "Doc", text: str, reasoning: str | None) -> "ModelResponse":
    """An answer as our metrics read it: without reasoning, up to the first stop string."""
    from lighteval.models.model_output import ModelResponse

    answer, inside = split_reasoning(text)
    texts, reasonings = [cut(answer, stop_strings(doc, chat=True))], [reasoning or inside]
    return ModelResponse(input=turns_of(doc), text=texts, reasonings=reasonings)


def kept(value: Any) -> dict[str, Any]:
    """A row's value of a metric as plain data, with the attributes from which totals are made."""
    if isinstance(value, Mapping):
        return {"value": dict(value)}
    about = getattr(value, "__dict__", {})  # plain numbers and texts have none
    fields = {name: part.tolist() if hasattr(part, "tolist") else part for name, part in about.items()}
    return {"value": str(value) if isinstance(value, str) else float(value), "fields": fields}


def restored(plain: Mapping[str, Any]) -> Any:
    """What `kept` wrote: a mapping, or a number or text with attributes."""
    value = plain["value"]
    if isinstance(value, Mapping):
        return value
    made = (_Text if isinstance(value, str) else _Number)(value)
    vars(made).update(plain.get("fields") or {})
    return made


class _Number(float):
    """A score with attributes."""


class _Text(str):
    """A verdict with attributes."""


def shown(value: Any) -> str | float:
    """A row's value of a metric as Inspect lists it: a number, a verdict, or a judge's outcome."""
    if isinstance(value, Mapping):
        return str(value.get("outcome", ""))
    return str(value) if isinstance(value, str) else float(value)


def in_turn(columns: Sequence[Sequence[Any]], block: int) -> Iterator[Any]:
    """The elements of several columns in turn, a block of each, so that a limit takes as many of each."""
    for start in range(0, max(map(len, columns), default=0), block):
        for column in columns:
            yield from column[start : start + block]
