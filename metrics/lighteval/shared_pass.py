"""One pass over a task's replies for several LightEval metrics."""

from collections.abc import Callable
from functools import partial
from typing import Generic, Self, TypeVar

import numpy as np
from lighteval.metrics.metrics_corpus import CorpusLevelComputation
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc, SamplingMethod

from cultureval.metrics.lighteval.clustered_means import ClusteredScore
from cultureval.runtime.errors import CulturevalError

Result = TypeVar("Result")
Columns = dict[str, np.ndarray]
ScoreReplies = Callable[[list[Doc], list[str]], Columns]


class SharedPass(Generic[Result]):
    """One computation for several metrics of a task, run when the first of them needs it.

    LightEval calls each batched metric in turn, with the same list of responses, and has no batched metric with several
    names. The result is kept until every metric has read it.
    """

    def __init__(self, compute: Callable[[list[Doc], list[ModelResponse]], Result]) -> None:
        self._compute = compute
        self._metrics, self._reads = 0, 0
        self._kept: tuple[list[ModelResponse], Result] | None = None

    def joined(self) -> Self:
        """This pass, registered for one more metric."""
        self._metrics += 1
        return self

    def result(self, docs: list[Doc], responses: list[ModelResponse]) -> Result:
        """The result of `compute`; computed again only for another list of responses."""
        if self._kept is None or self._kept[0] is not responses:
            self._kept, self._reads = (responses, self._compute(docs, responses)), 0
        result = self._kept[1]
        self._reads += 1
        if self._reads == self._metrics:
            self._kept = None
        return result


class SharedScore(SampleLevelComputation):
    """One column of the scores of a shared pass; batched: gets all Docs and responses of a task."""

    def __init__(self, name: str, part: str, shared: SharedPass[Columns], definition: str) -> None:
        """Prepare a metric.

        Args:
            part: Name of the column, an array with one value per item.
            shared: Computes the columns.
            definition: Everything that the values depend on, for LightEval's results.
        """
        self.name, self.part, self.shared, self.definition = name, part, shared.joined(), definition

    def compute(self, docs: list[Doc], responses: list[ModelResponse], **kwargs: object) -> list[ClusteredScore]:
        """The scores of all items, in order."""
        values = self.shared.result(docs, responses)[self.part]
        return [ClusteredScore.of(value, doc) for value, doc in zip(values, docs, strict=True)]

    def __str__(self) -> str:
        """The definition of this metric in LightEval's results."""
        return f"{self.name}({self.definition})"


def pass_over_replies(score: ScoreReplies) -> SharedPass[Columns]:
    """A shared pass of a function that scores reply texts."""
    return SharedPass(partial(_score_texts, score))


def _score_texts(score: ScoreReplies, docs: list[Doc], responses: list[ModelResponse]) -> Columns:
    return score(docs, [reply_of(doc, response) for doc, response in zip(docs, responses, strict=True)])


def reply_of(doc: Doc, response: ModelResponse) -> str:
    """The text of a response, which may be "" but not missing."""
    text = final_text(response)
    if text is None:
        raise CulturevalError(f"{doc.task_name}, item {doc.id}: the model's response has no text.")
    return text


def final_text(response: ModelResponse) -> str | None:
    """The first text of a response, without reasoning; None where it has none (not even "")."""
    # LightEval's vision backend returns a string, which its own `final_text` treats as a list of characters.
    if isinstance(response.text, str):
        return response.text
    return response.final_text[0] if response.final_text else None


def batched_metric(
    name: str,
    sample: SampleLevelComputation,
    corpus: CorpusLevelComputation,
    higher_is_better: bool = True,
    category: SamplingMethod = SamplingMethod.GENERATIVE,
) -> SampleLevelMetric:
    """A batched metric with one name; `sample` scores all responses of a task, one value per item."""
    return SampleLevelMetric(
        metric_name=name,
        higher_is_better=higher_is_better,
        category=category,
        sample_level_fn=sample,
        corpus_level_fn=corpus,
        batched_compute=True,
    )
