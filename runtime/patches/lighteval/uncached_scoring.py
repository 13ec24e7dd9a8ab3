"""LightEval's scoring of choices and its generation without its cache of answers, for `cultureval bench`."""

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cultureval.runtime.patches.table import Patch, expect

if TYPE_CHECKING:
    from lighteval.models.model_output import ModelResponse
    from lighteval.tasks.requests import Doc


def loglikelihood_without_cache(model: Any, docs: "Sequence[Doc]") -> "list[ModelResponse]":
    """What LightEval's `TransformersModel.loglikelihood` computes, without taking answers from its cache."""
    return inspect.unwrap(type(model).loglikelihood)(model, list(docs))


def greedy_until_without_cache(model: Any, docs: "Sequence[Doc]") -> "list[ModelResponse]":
    """What LightEval's `TransformersModel.greedy_until` generates, without taking answers from its cache."""
    return inspect.unwrap(type(model).greedy_until)(model, list(docs))


def _answers_are_cached() -> None:
    from lighteval.models.transformers.transformers_model import TransformersModel

    for method in (TransformersModel.loglikelihood, TransformersModel.greedy_until):
        name = method.__name__
        expect(inspect.unwrap(method) is not method, f"LightEval's {name} uses no cache: call it as it is")
        taken = list(inspect.signature(inspect.unwrap(method)).parameters)
        expect(taken == ["self", "docs"], f"LightEval's {name} takes {', '.join(taken)} now")


PATCHES = (
    Patch(
        "lighteval",
        "lighteval.models.transformers.transformers_model.TransformersModel.loglikelihood, greedy_until (bare)",
        "`cultureval bench` times them, and the second round would come from LightEval's cache.",
        ("0.13.0",),
        _answers_are_cached,
    ),
)
