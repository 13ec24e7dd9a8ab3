"""LightEval metrics of our suites: one pass over a task's answers gives columns, and from them task scores.

The details have these columns of a metric, which give its score and error (`runs/frame.py` reads them):

- `<name>`: the row's score; nan: none.
- `<name>_den`: the row's weight; 0 if the metric does not apply to it. Without this column all weights are 1.
- `<name>_sums`: for corpus scores, the row's statistics; their sum over rows gives the score (`Declared.of_sums`).

LightEval's own bootstrap does not run, since our aggregators return a dict. Its errors are too small by the square root
of its number of draws.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from lighteval.metrics.metrics_corpus import CorpusLevelComputation
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc, SamplingMethod

from cultureval.metrics.declared import DEN, SHARE, SUMS, Declared, Metrics
from cultureval.metrics.statistics import ClusterErrors, errors_of_ratio, errors_of_sums
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.dotted_names import load_attribute
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.lighteval.group_averages import (
    NotApplicable,
    NotApplicableStandardError,
    StandardError,
)

Columns = dict[str, Any]  # name -> a value of each row, in a list or an array
ScoreReplies = Callable[[list[Doc], list[str]], Columns]
ScoreAnswers = Callable[[list[Doc], list[ModelResponse]], Columns]
Weights = Callable[[Doc], Mapping[str, float]]
CLUSTER = ("cluster", "task_id", "item_id")  # fields of `doc.specific`; the first that is set names the row's cluster


class RowScore(float):
    """A row's score (nan: none) with cluster, weight and statistics; otherwise a plain float.

    Attributes:
        cluster: Its cluster; "": a cluster of its own.
        den: Its weight.
        sums: Its statistics of a corpus score.
    """

    cluster: str = ""
    den: float = 1.0
    sums: Sequence[float] | None = None

    @classmethod
    def of(cls, score: float, doc: Doc, **fields: Any) -> Self:
        """The score of a row, in the cluster of its Doc."""
        value = cls(score)
        specific = specific_of(doc)
        vars(value).update(fields, cluster=str(next(filter(None, map(specific.get, CLUSTER)), "")))
        return value


class TaskScore(CorpusLevelComputation):
    """The score of a task and its standard error, as two values of LightEval's results."""

    def __init__(self, name: str, declared: Declared) -> None:
        self.name, self.declared = name, declared

    def compute_corpus(self, items: list[RowScore]) -> dict[str, float]:
        """Both are always present, since LightEval expects the same keys of all subsets.

        They are nan if no row has a score, and left out of averages if the metric applies to no row.
        """
        rows = [item for item in items if getattr(item, "den", 1.0) > 0]
        if not rows:
            return {self.name: NotApplicable(), f"{self.name}_stderr": NotApplicableStandardError()}
        found = self.errors_of([row for row in rows if row == row])
        adds = {name: add for name, add in found.adds.items() if isinstance(name, str)}
        return {self.name: found.value, f"{self.name}_stderr": StandardError(found.error, adds)}

    def errors_of(self, rows: list[RowScore]) -> ClusterErrors:
        """The score of scored rows with a weight."""
        if not rows:
            return ClusterErrors(float("nan"), float("nan"), {})
        clusters = [getattr(row, "cluster", "") or number for number, row in enumerate(rows)]
        share = sorted(self.declared.range) == sorted(SHARE)
        if self.declared.of_sums:
            function = load_attribute(self.declared.of_sums)
            return errors_of_sums([list(row.sums or ()) for row in rows], clusters, function, share)
        dens = np.array([getattr(row, "den", 1.0) for row in rows])
        return errors_of_ratio(np.array(rows, float) * dens, dens, clusters, share)


class DetailsOnly(CorpusLevelComputation):
    """A column of the details without an aggregate."""

    def compute_corpus(self, items: list[Any]) -> dict[str, float]:
        """No aggregate."""
        return {}


class SharedPass:
    """One computation for several metrics of a task, run for the first of them.

    LightEval calls each batched metric in turn with the same list of responses; a batched metric has one name.
    """

    def __init__(self, compute: ScoreAnswers) -> None:
        self._compute = compute
        self._kept: tuple[list[ModelResponse], Columns] | None = None

    def result(self, docs: list[Doc], responses: list[ModelResponse]) -> Columns:
        """The result of `compute`; computed again only for another list of responses."""
        if self._kept is None or self._kept[0] is not responses:
            self._kept = responses, self._compute(docs, responses)
        return self._kept[1]


class Column(SampleLevelComputation):
    """One column of a shared pass; batched: gets all Docs and responses of a task."""

    def __init__(self, name: str, shared: SharedPass, definition: str | Callable[[], str]) -> None:
        """Prepare a column.

        Args:
            definition: All settings that the values depend on, for LightEval's results.
        """
        self.name, self.shared, self.definition = name, shared, definition

    def compute(self, docs: list[Doc], responses: list[ModelResponse], **kwargs: object) -> list[Any]:
        """The values of all rows, in order."""
        values = self.shared.result(docs, responses)[self.name]
        return [value.tolist() if isinstance(value, np.ndarray | np.generic) else value for value in values]

    def __str__(self) -> str:
        """The definition of this metric in LightEval's results."""
        return f"{self.name}({self.definition if isinstance(self.definition, str) else self.definition()})"


class ScoreColumn(Column):
    """The scores of one metric."""

    def compute(self, docs: list[Doc], responses: list[ModelResponse], **kwargs: object) -> list[RowScore]:
        """The scores of all rows, in order."""
        columns = self.shared.result(docs, responses)
        dens = columns.get(f"{self.name}{DEN}", np.ones(len(docs)))
        sums = columns.get(f"{self.name}{SUMS}", [None] * len(docs))
        return [
            RowScore.of(
                score, doc, den=float(den), sums=None if row_sums is None else [float(value) for value in row_sums]
            )
            for score, doc, den, row_sums in zip(columns[self.name], docs, dens, sums, strict=True)
        ]


class DenColumn(Column):
    """The weights of rows in one metric."""

    def __init__(
        self, name: str, shared: SharedPass, definition: str | Callable[[], str], unanswered: Weights | None
    ) -> None:
        """Prepare the column of a metric; `unanswered` gives the weights of rows without an answer."""
        super().__init__(name, shared, definition)
        self.unanswered = unanswered

    def weight(self, doc: Doc) -> float:
        """The weight of a row without an answer."""
        return self.unanswered(doc).get(self.name.removesuffix(DEN), 1.0) if self.unanswered else 1.0


def pass_metrics(
    declared: Metrics,
    compute: ScoreAnswers,
    definition: str | Callable[[], str],
    weighted: Sequence[str] = (),
    unanswered: Weights | None = None,
    category: SamplingMethod = SamplingMethod.GENERATIVE,
    score_column: type[ScoreColumn] = ScoreColumn,
    task_score: type[TaskScore] = TaskScore,
    details: Sequence[str] = (),
) -> list[SampleLevelMetric]:
    """The metrics of one pass over a task's answers.

    Args:
        declared: Name -> declaration.
        compute: Gives a column for each metric, and the columns of `DEN` and `SUMS`.
        definition: All settings that the values depend on.
        weighted: Metrics with weights other than 1.
        unanswered: From a Doc without an answer to its weight in these metrics; default 1.
        score_column: Class of score columns, for those that refuse docs.
        task_score: Class of task scores, for those with several values.
        details: Names of further columns, which are only in the details.
    """
    shared, metrics = SharedPass(compute), []
    columns = [Column(name, shared, definition) for name in details]
    for name, of_metric in declared.items():
        score = score_column(name, shared, definition)
        better = of_metric.higher_is_better
        metrics.append(batched_metric(name, score, task_score(name, of_metric), better, category))
        if name in weighted:
            columns.append(DenColumn(name + DEN, shared, definition, unanswered))
        if of_metric.of_sums:
            columns.append(Column(name + SUMS, shared, definition))
    return metrics + [batched_metric(column.name, column, DetailsOnly(), category=category) for column in columns]


def reply_metrics(declared: Metrics, score: ScoreReplies, definition: str | Callable[[], str]) -> list[Any]:
    """As `pass_metrics`, for a function that scores the texts of replies."""
    return pass_metrics(declared, partial(_score_texts, score), definition)


def _score_texts(score: ScoreReplies, docs: list[Doc], responses: list[ModelResponse]) -> Columns:
    return score(docs, [reply_of(doc, response) for doc, response in zip(docs, responses, strict=True)])


def reply_of(doc: Doc, response: ModelResponse) -> str:
    """The text of a response; it may be "", but not missing."""
    text = final_text(response)
    if text is None:
        raise CulturevalError(f"{doc.task_name}, item {doc.id}: the model's response has no text.")
    return text


def final_text(response: ModelResponse) -> str | None:
    """The first text of a response, without reasoning; None if it has none (not even "")."""
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
