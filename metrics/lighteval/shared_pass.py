"""One pass over a task's replies for several LightEval metrics."""

from collections.abc import Callable
from functools import partial
from typing import Generic, Self, TypeVar

import numpy as np
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

from cultureval.metrics.lighteval.clustered_means import ClusteredScore
from cultureval.runtime.errors import CulturevalError

Result = TypeVar("Result")
Columns = dict[str, np.ndarray]
ScoreReplies = Callable[[list[Doc], list[str]], Columns]


class SharedPass(Generic[Result]):
    """What several metrics of a task need, computed when the first of them asks.

    LightEval asks each batched metric for its values in turn, with the same list of responses, and has no batched
    metric of several names. The result is kept until each metric has asked once, and no longer.
    """

    def __init__(self, compute: Callable[[list[Doc], list[ModelResponse]], Result]) -> None:
        self._compute = compute
        self._metrics, self._asked = 0, 0
        self._kept: tuple[list[ModelResponse], Result] | None = None

    def joined(self) -> Self:
        """The same pass, which one metric more asks."""
        self._metrics += 1
        return self

    def result(self, docs: list[Doc], responses: list[ModelResponse]) -> Result:
        """What `compute` gives for these; it is computed again for another list of responses only."""
        if self._kept is None or self._kept[0] is not responses:
            self._kept, self._asked = (responses, self._compute(docs, responses)), 0
        result = self._kept[1]
        self._asked += 1
        if self._asked == self._metrics:
            self._kept = None
        return result


class SharedScore(SampleLevelComputation):
    """One column of the scores of a shared pass; batched: takes all documents and responses of a task at once."""

    def __init__(self, name: str, part: str, shared: SharedPass[Columns], definition: str) -> None:
        """Prepare a metric.

        Args:
            name: Of the metric.
            part: Of the column, an array with one value an item.
            shared: Gives the columns.
            definition: What the values depend on, for LightEval's results.
        """
        self.name, self.part, self.shared, self.definition = name, part, shared.joined(), definition

    def compute(self, docs: list[Doc], responses: list[ModelResponse], **kwargs: object) -> list[ClusteredScore]:
        """The scores of all items, in order.

        Raises:
            CulturevalError: A response holds no text at all, not even an empty one, or what scores is missing.
        """
        values = self.shared.result(docs, responses)[self.part]
        return [ClusteredScore.of(value, doc) for value, doc in zip(values, docs, strict=True)]

    def __str__(self) -> str:
        """What LightEval writes into the results as this metric's definition."""
        return f"{self.name}({self.definition})"


def pass_over_replies(score: ScoreReplies) -> SharedPass[Columns]:
    """A shared pass of a function that scores the replies' texts."""
    return SharedPass(partial(_score_texts, score))


def _score_texts(score: ScoreReplies, docs: list[Doc], responses: list[ModelResponse]) -> Columns:
    return score(docs, [reply_of(doc, response) for doc, response in zip(docs, responses, strict=True)])


def reply_of(doc: Doc, response: ModelResponse) -> str:
    """The text of a response.

    Raises:
        CulturevalError: It holds no text at all, not even an empty one.
    """
    if not response.final_text:
        raise CulturevalError(f"{doc.task_name}, item {doc.id}: the model's response holds no text.")
    return response.final_text[0]
