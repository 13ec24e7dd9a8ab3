"""The answers of several models to the same items, from the details of finished runs, as tables of models by items."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cultureval.metrics.likelihood import scores_of_options
from cultureval.runs.files import SavedTask, find_saved_tasks
from cultureval.runs.items import details_columns, metric_names, names_and_clusters
from cultureval.runs.rows import headline_of
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import all_tasks

CHOICES, GOLD = "doc.choices", "doc.gold_index"
ROW = "doc.specific.source_row"
LOGPROBS, TOKENS = "model_response.logprobs", "model_response.output_tokens"
HALF = 0.5  # a score from it on counts as right


@dataclass(frozen=True)
class AnsweredItem:
    """One item that models answered.

    Attributes:
        task: Its task, without `|k`.
        name: Its name in the details.
        row: `file:number` of its row in the source; "" where the details do not say.
        options: What is scored of each option, its label; () for free answers.
        gold: Positions of the right options.
    """

    task: str
    name: str
    row: str
    options: tuple[str, ...] = ()
    gold: tuple[int, ...] = ()

    @property
    def group(self) -> str:
        """The task's group, over which abilities are measured."""
        return self.task.partition(":")[0]


@dataclass
class Answers:
    """All answers.

    Attributes:
        models: Names of the M runs.
        items: The N items.
        right: [M, N] 1, 0, or nan without an answer.
        chosen: [M, N] position of the chosen option; -1 where it is not known.
        left_out: A sentence for each task whose scores do not tell right from wrong.
    """

    models: tuple[str, ...]
    items: tuple[AnsweredItem, ...]
    right: NDArray[np.float64]
    chosen: NDArray[np.int64]
    left_out: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _AnswerRow:
    item: AnsweredItem
    right: float
    chosen: int


def read_answers(paths: Sequence[Path]) -> Answers:
    """The answers in the newest details of each model and task.

    Args:
        paths: Output folders, results files or details files.

    Raises:
        CulturevalError: There are no details, or two runs have one item with other options or another gold.
    """
    saved = find_saved_tasks(paths)
    models = tuple(dict.fromkeys(one.label for one in saved))
    items: dict[tuple[str, str], AnsweredItem] = {}
    found: list[tuple[int, tuple[str, str], _AnswerRow]] = []
    left_out: dict[str, None] = {}
    for one in saved:
        rows = _rows(one)
        if rows is None:
            left_out[f"{one.task} is left out: its scores do not tell right answers from wrong ones."] = None
            continue
        for row in rows:
            key = (row.item.task, row.item.name)
            _require_same(items.setdefault(key, row.item), row.item, one.file)
            found.append((models.index(one.label), key, row))
    places = {key: place for place, key in enumerate(items)}
    right = np.full((len(models), len(items)), np.nan)
    chosen = np.full((len(models), len(items)), -1)
    for model, key, row in found:
        right[model, places[key]], chosen[model, places[key]] = row.right, row.chosen
    return Answers(models, tuple(items.values()), right, chosen, list(left_out))


def _require_same(known: AnsweredItem, other: AnsweredItem, file: Path) -> None:
    if (known.options, known.gold) != (other.options, other.gold):
        raise CulturevalError(
            f"{file}: the item {other.name} of {other.task} has other options or another gold than in the other runs; "
            "runs of different data cannot be compared item by item."
        )


def _rows(saved: SavedTask) -> list[_AnswerRow] | None:
    task = saved.task.partition("|")[0]
    names = names_and_clusters(saved.file)[0]
    columns = details_columns(saved.file, [CHOICES, GOLD, ROW, LOGPROBS, TOKENS])
    origin = columns[ROW] or [""] * len(names)
    answers = [columns[name] or [None] * len(names) for name in (CHOICES, GOLD, LOGPROBS, TOKENS)]
    chosen = partial(_chosen, headline_of(task))
    scored = [chosen(*row) for row in zip(*answers, strict=True)]
    if all(place is not None for place in scored):
        return [
            _of_choice(AnsweredItem(task, name, row or "", tuple(map(str.strip, options)), _places(gold)), place)
            for name, row, options, gold, place in zip(names, origin, *answers[:2], scored, strict=True)
        ]
    values = _scores(saved)
    if values is None:
        return None
    return [
        _AnswerRow(AnsweredItem(task, name, row or ""), float(value >= HALF) if not math.isnan(value) else math.nan, -1)
        for name, row, value in zip(names, origin, values, strict=True)
    ]


def _of_choice(item: AnsweredItem, place: int) -> _AnswerRow:
    return _AnswerRow(item, float(place in item.gold), place)


def _places(gold: Any) -> tuple[int, ...]:
    return tuple(gold) if isinstance(gold, list) else (gold,)


def _chosen(metric: str, options: Any, gold: Any, logprobs: Any, tokens: Any) -> int | None:
    """The option that the metric chose; None where the answer was no scored choice of one right one."""
    if not (options and logprobs and tokens) or not len(options) == len(logprobs) == len(tokens) > 1:
        return None
    if gold is None or len(_places(gold)) != 1 or not all(map(math.isfinite, logprobs)):
        return None
    return int(np.argmax(scores_of_options(metric, logprobs, options, list(map(len, tokens)))))


def _scores(saved: SavedTask) -> list[float] | None:
    """The rows' scores of the headline metric; None where they do not lie between 0 and 1."""
    known = all_tasks().get(saved.task.partition("|")[0])
    names = known.metrics if known else metric_names(saved.file)
    columns: Mapping[str, Any] = details_columns(saved.file, [f"metric.{name}" for name in names])
    for name in names:
        column = columns[f"metric.{name}"]
        if column and all(one is None or isinstance(one, int | float) for one in column):
            values = [math.nan if one is None else float(one) for one in column]
            inside = [0 <= value <= 1 for value in values if not math.isnan(value)]
            return values if inside and all(inside) else None
    return None
