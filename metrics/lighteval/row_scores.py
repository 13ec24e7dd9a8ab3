"""LightEval metrics of our suites: one pass over a task's answers gives columns, from which task scores are made.

What the details have of a metric is all that its score and error are made of (`runs/frame.py` reads it):

- `<name>`: the row's score; nan where it has none.
- `<name>_den`: how often the row counts; 0 where the metric does not apply to it. Absent: every row counts once.
- `<name>_sums`: of a corpus score, the numbers whose sum over rows gives it (`Declared.of_sums`).

LightEval's own bootstrap, whose errors are too small by the square root of its number of draws, does not run, since our
aggregators return a dict.
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
CLUSTER = ("cluster", "task_id", "item_id")  # fields of `doc.specific` that name what rows share, the first that is set


class RowScore(float):
    """A row's score (nan: none), with what the task's score is made of; otherwise a plain float.

    Attributes:
        cluster: What it shares with other rows; "": nothing.
        den: How often it counts.
        sums: Its part of a corpus score.
    """

    cluster: str = ""
    den: float = 1.0
    sums: Sequence[float] | None = None

    @classmethod
    def of(cls, score: float, doc: Doc, **about: Any) -> Self:
        """The score of a row, in the cluster of its Doc."""
        value = cls(score)
        specific = specific_of(doc)
        vars(value).update(about, cluster=str(next(filter(None, map(specific.get, CLUSTER)), "")))
        return value


class TaskScore(CorpusLevelComputation):
    """The score of a task and its standard error, as two values of LightEval's results."""

    def __init__(self, name: str, declared: Declared) -> None:
        self.name, self.declared = name, declared

    def compute_corpus(self, items: list[RowScore]) -> dict[str, float]:
        """Both, always present: LightEval expects the same keys of all subsets.

        They are nan where no row has a score, and left out of averages where the metric applies to no row.
        """
        rows = [item for item in items if getattr(item, "den", 1.0) > 0]
        if not rows:
            return {self.name: NotApplicable(), f"{self.name}_stderr": NotApplicableStandardError()}
        found = self.errors_of([row for row in rows if row == row])
        named = {name: add for name, add in found.adds.items() if isinstance(name, str)}
        return {self.name: found.value, f"{self.name}_stderr": StandardError(found.error, named)}

    def errors_of(self, rows: list[RowScore]) -> ClusterErrors:
        """The score of the rows that have one and count."""
        if not rows:
            return ClusterErrors(float("nan"), float("nan"), {})
        clusters = [getattr(row, "cluster", "") or number for number, row in enumerate(rows)]
        share = sorted(self.declared.range) == sorted(SHARE)
        if self.declared.of_sums:
            function = load_attribute(self.declared.of_sums)
            return errors_of_sums([list(row.sums or ()) for row in rows], clusters, function, share)
        dens = np.array([getattr(row, "den", 1.0) for row in rows])
        return errors_of_ratio(np.array(rows, float) * dens, dens, clusters, share)


class Kept(CorpusLevelComputation):
    """A column that is in the details alone: nothing is made of it."""

    def compute_corpus(self, items: list[Any]) -> dict[str, float]:
        """No value of LightEval's results."""
        return {}


class SharedPass:
    """One computation for several metrics of a task, run when the first of them needs it.

    LightEval calls each batched metric in turn, with the same list of responses, and has no batched metric with several
    names.
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
            definition: Everything that the values depend on, for LightEval's results.
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
            RowScore.of(score, doc, den=float(den), sums=None if own is None else [float(one) for one in own])
            for score, doc, den, own in zip(columns[self.name], docs, dens, sums, strict=True)
        ]


class DenColumn(Column):
    """How often rows count in one metric."""

    def __init__(
        self, name: str, shared: SharedPass, definition: str | Callable[[], str], unanswered: Weights | None
    ) -> None:
        """Prepare the column of a metric; `unanswered` says how often rows without an answer count."""
        super().__init__(name, shared, definition)
        self.unanswered = unanswered

    def weight(self, doc: Doc) -> float:
        """How often a row without an answer counts."""
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
        declared: By name.
        compute: Gives a column for each, and those of `DEN` and `SUMS`.
        definition: Everything that the values depend on.
        weighted: Those that do not count every row once.
        unanswered: How often a row without an answer counts in these, 1 where it does not say.
        score_column: For columns that need more of a response, or refuse docs.
        task_score: For scores that results have more values of.
        details: Names of further columns, which are in the details alone.
    """
    shared, metrics = SharedPass(compute), []
    kept = [Column(name, shared, definition) for name in details]
    for name, of_metric in declared.items():
        score = score_column(name, shared, definition)
        better = of_metric.higher_is_better
        metrics.append(batched_metric(name, score, task_score(name, of_metric), better, category))
        if name in weighted:
            kept.append(DenColumn(name + DEN, shared, definition, unanswered))
        if of_metric.of_sums:
            kept.append(Column(name + SUMS, shared, definition))
    return metrics + [batched_metric(one.name, one, Kept(), category=category) for one in kept]


def reply_metrics(declared: Metrics, score: ScoreReplies, definition: str | Callable[[], str]) -> list[Any]:
    """As `pass_metrics`, of a function that scores the texts of replies."""
    return pass_metrics(declared, partial(_score_texts, score), definition)


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
