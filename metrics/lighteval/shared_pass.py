"""One pass over a task's replies for several LightEval metrics."""

from collections.abc import Callable

import numpy as np
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

from cultureval.metrics.lighteval.clustered_means import ClusteredScore
from cultureval.runtime.errors import CulturevalError

ScoreReplies = Callable[[list[Doc], list[str], str], dict[str, np.ndarray]]


class SharedPass:
    """One pass over a task's replies for all metrics that it yields.

    LightEval asks each batched metric for its values in turn, with the same list of responses, and has no batched
    metric of several names. The values are kept until each metric has taken its own, and no longer.
    """

    def __init__(self, score: ScoreReplies, model: str) -> None:
        self.score = score
        self.model = model
        self._responses: list[ModelResponse] | None = None
        self._values: dict[str, np.ndarray] = {}

    def take(self, part: str, docs: list[Doc], responses: list[ModelResponse]) -> np.ndarray:
        """One part of the scores, an array with one value an item.

        Raises:
            CulturevalError: A response holds no text at all, not even an empty one, or BERTScore's model is missing.
        """
        if responses is not self._responses or part not in self._values:
            replies = [_reply(doc, response) for doc, response in zip(docs, responses, strict=True)]
            self._values = dict(self.score(docs, replies, self.model))
            self._responses = responses
        values = self._values.pop(part)
        if not self._values:
            self._responses = None
        return values


class SharedScore(SampleLevelComputation):
    """One metric of a shared pass; batched: takes all documents and responses of a task at once."""

    def __init__(self, name: str, part: str, shared: SharedPass) -> None:
        self.name = name
        self.part = part
        self.shared = shared

    def compute(self, docs: list[Doc], responses: list[ModelResponse], **kwargs: object) -> list[ClusteredScore]:
        """The scores of all items, in order."""
        values = self.shared.take(self.part, docs, responses)
        return [ClusteredScore.of(value, doc) for value, doc in zip(values, docs, strict=True)]

    def __str__(self) -> str:
        """What LightEval writes into the results as this metric's definition."""
        return f"{self.name}(model={self.shared.model}, layer=last, idf=no, rescaled=no)"


def _reply(doc: Doc, response: ModelResponse) -> str:
    if not response.final_text:
        raise CulturevalError(f"{doc.task_name}, item {doc.id}: the model's response holds no text.")
    return response.final_text[0]
