"""LightEval metrics of free answers by the functions of a benchmark's author."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lighteval.tasks.requests import Doc

from cultureval.metrics.declared import Metrics
from cultureval.metrics.lighteval.row_scores import Columns, reply_metrics
from cultureval.runtime.errors import CulturevalError, described

Score = Callable[[str, Sequence[str]], float]


def function_metrics(declared: Metrics, functions: Mapping[str, Score]) -> list[Any]:
    """A metric for each function; a task's score is the mean of its rows.

    Args:
        declared: Name -> declaration with the range of values.
        functions: Name -> function from an answer and the right answers to a number.

    Raises:
        CulturevalError: When scoring: a function fails, or returns a value outside the declared range.
    """

    def score(docs: list[Doc], replies: list[str]) -> Columns:
        pairs = list(zip(docs, replies, strict=True))
        return {
            name: [_value(name, function, declared[name].range, doc, reply) for doc, reply in pairs]
            for name, function in functions.items()
        }

    return reply_metrics(declared, score, "function")


def _value(name: str, function: Score, limits: tuple[float, float], doc: Doc, reply: str) -> float:
    metric = f"{doc.task_name}, item {doc.id}: the metric {name}"
    try:
        value = float(function(reply, list(doc.choices)))
    except Exception as error:  # the function of a benchmark's author
        raise CulturevalError(f"{metric} failed: {described(error)}.") from error
    if math.isnan(value) or not min(limits) <= value <= max(limits):
        raise CulturevalError(f"{metric} is {value}, outside its range {limits[0]} to {limits[1]}: declare `ranges`.")
    return value
