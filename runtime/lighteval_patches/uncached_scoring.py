"""LightEval's scoring of choices without its cache of answers, for `cultureval bench`."""

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cultureval.runtime.patches import Patch, expect

if TYPE_CHECKING:
    from lighteval.models.model_output import ModelResponse
    from lighteval.tasks.requests import Doc


def loglikelihood_without_cache(model: Any, docs: "Sequence[Doc]") -> "list[ModelResponse]":
    """What LightEval's `TransformersModel.loglikelihood` computes, without taking answers from its cache."""
    return inspect.unwrap(type(model).loglikelihood)(model, list(docs))


def _scoring_is_cached() -> None:
    from lighteval.models.transformers.transformers_model import TransformersModel

    method = TransformersModel.loglikelihood
    expect(inspect.unwrap(method) is not method, "LightEval's scoring takes no answers from a cache: call it as it is")
    taken = list(inspect.signature(inspect.unwrap(method)).parameters)
    expect(taken == ["self", "docs"], f"LightEval's loglikelihood takes {', '.join(taken)} now")


PATCHES = (
    Patch(
        "lighteval",
        "lighteval.models.transformers.transformers_model.TransformersModel.loglikelihood (without its decorator)",
        "`cultureval bench` times scoring, and the second round would come from LightEval's cache.",
        ("0.13.0",),
        _scoring_is_cached,
    ),
)
