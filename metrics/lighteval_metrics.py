"""The LightEval Metric objects of QIMMA's four metric sets; thin, they call this folder's pure functions.

Each writes `<name>` and `<name>_stderr`, the standard error of the items, clustered where items share a passage
(`doc.specific["cluster"]`). LightEval's own bootstrap, whose errors are too small by the square root of its number of
draws, does not run for aggregators that return a dict, as ours do.
"""

from collections.abc import Callable, Sequence

import numpy as np
from lighteval.metrics.metrics_corpus import CorpusLevelComputation
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.normalizations import remove_braces, remove_braces_and_strip
from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc, SamplingMethod
from lighteval.utils.utils import as_list

from cultureval.metrics.group_averages import StandardError
from cultureval.metrics.likelihood import (
    argmax_accuracy,
    char_normalized_accuracy,
    gold_probability_mass,
    gold_set_match,
)
from cultureval.metrics.poetry import fannorflop
from cultureval.metrics.semantic import bertscore, bertscore_model
from cultureval.metrics.standard_errors import clustered_standard_error
from cultureval.runtime.errors import CulturevalError

BERTSCORE_NAMES = {"BERTScore-P": "precision", "BERTScore-R": "recall", "BERTScore-F": "f1"}

ScoreOptions = Callable[[Sequence[float], Sequence[str], int | Sequence[int]], float]
ScoreReplies = Callable[[list[Doc], list[str], str], dict[str, np.ndarray]]


def multiple_choice_metrics() -> list[SampleLevelMetric]:
    """Metrics of single-answer items, QIMMA section 5.1.

    `acc_norm`, the headline, takes the option likeliest per code point, as QIMMA's task code does; `acc` the option
    likeliest as a whole, the paper's Eq. 1 as printed, which does not favour the two code points of option five.
    """
    return [
        _likelihood_metric("acc_norm", char_normalized_accuracy),
        _likelihood_metric("acc", _argmax_of_options),
    ]


def multi_select_metrics() -> list[SampleLevelMetric]:
    """Metrics of items with several right options, QIMMA section 5.1.

    `gold_probability_mass`, the headline, is Eq. 3-4 over log-probabilities per code point; `gold_set_match` asks for
    exactly the gold set on top (QIMMA's task code, not in the paper).
    """
    return [
        _likelihood_metric("gold_probability_mass", gold_probability_mass),
        _likelihood_metric("gold_set_match", gold_set_match),
    ]


def bertscore_metrics() -> list[SampleLevelMetric]:
    """BERTScore of generated answers, QIMMA section 5.1: `BERTScore-F` is the headline, beside -P and -R.

    White space and one brace on either side are taken off first, as in QIMMA's task code. Of several references the
    best value counts. The model is AraBERT v02 unless CULTUREVAL_BERTSCORE_MODEL names another.
    """
    return _generative_metrics(BERTSCORE_NAMES, _score_answers)


def fannorflop_metrics() -> list[SampleLevelMetric]:
    """BERTScore of poem explanations, QIMMA section 5.1: `BERTScore-F` is the headline, beside -P and -R.

    `parse_rate` is the share of replies that held a JSON list of explanations; the others score 0. The gold list is
    `doc.specific["gold_explanations"]`.
    """
    return _generative_metrics(BERTSCORE_NAMES | {"parse_rate": "parsed"}, _score_poems)


class ClusteredScore(float):
    """A sample's score that knows its cluster; a plain number to everything else."""

    cluster: str = ""

    @classmethod
    def of(cls, score: float, doc: Doc) -> "ClusteredScore":
        """The score of an item, in the cluster that its document names ('' is a cluster of its own)."""
        value = cls(score)
        value.cluster = (doc.specific or {}).get("cluster") or ""
        return value


class ClusteredMean(CorpusLevelComputation):
    """Mean of the samples' scores and its standard error, as two values of LightEval's results."""

    def __init__(self, name: str) -> None:
        self.name = name

    def compute_corpus(self, items: list[float]) -> dict[str, float]:
        """The mean and the clustered standard error, which is nan for fewer than two clusters.

        The error is always there, since LightEval expects of all subsets of a group what the first one has.
        """
        clusters = [getattr(item, "cluster", "") or index for index, item in enumerate(items)]
        error = StandardError(clustered_standard_error(items, clusters))
        return {self.name: float(np.mean(items)), f"{self.name}_stderr": error}


class MeanOfScored(ClusteredMean):
    """As `ClusteredMean`, of the samples that have a score: those that are not nan."""

    def compute_corpus(self, items: list[float]) -> dict[str, float]:
        """The mean and its standard error; both nan where no sample has a score."""
        scored = [item for item in items if not np.isnan(item)]
        if scored:
            return super().compute_corpus(scored)
        return {self.name: float("nan"), f"{self.name}_stderr": StandardError("nan")}


class LikelihoodScore(SampleLevelComputation):
    """Scores one item from the log-probabilities of its options."""

    def __init__(self, score: ScoreOptions) -> None:
        self.score = score

    def compute(self, doc: Doc, model_response: ModelResponse, **kwargs: object) -> ClusteredScore:
        """The item's score.

        Raises:
            CulturevalError: The log-probabilities or the gold are unusable; names the item.
        """
        gold = as_list(doc.gold_index)
        try:
            score = self.score(model_response.logprobs, doc.choices, gold[0] if len(gold) == 1 else gold)
        except ValueError as error:
            raise CulturevalError(f"{doc.task_name}, item {doc.id}: {error}.") from error
        return ClusteredScore.of(score, doc)


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


def _likelihood_metric(name: str, score: ScoreOptions) -> SampleLevelMetric:
    return SampleLevelMetric(
        metric_name=name,
        higher_is_better=True,
        category=SamplingMethod.LOGPROBS,
        sample_level_fn=LikelihoodScore(score),
        corpus_level_fn=ClusteredMean(name),
    )


def _generative_metrics(parts: dict[str, str], score: ScoreReplies) -> list[SampleLevelMetric]:
    shared = SharedPass(score, bertscore_model())
    return [
        SampleLevelMetric(
            metric_name=name,
            higher_is_better=True,
            category=SamplingMethod.GENERATIVE,
            sample_level_fn=SharedScore(name, part, shared),
            corpus_level_fn=ClusteredMean(name),
            batched_compute=True,
        )
        for name, part in parts.items()
    ]


def _argmax_of_options(logprobs: Sequence[float], choices: Sequence[str], gold: int | Sequence[int]) -> float:
    if len(logprobs) != len(choices):
        raise ValueError(f"there are {len(logprobs)} log-probabilities but {len(choices)} choices")
    return argmax_accuracy(logprobs, gold)


def _score_answers(docs: list[Doc], replies: list[str], model: str) -> dict[str, np.ndarray]:
    references = [[remove_braces(gold) for gold in doc.get_golds()] for doc in docs]
    return bertscore([remove_braces_and_strip(reply) for reply in replies], references, model, device=scoring_device())


def _score_poems(docs: list[Doc], replies: list[str], model: str) -> dict[str, np.ndarray]:
    return fannorflop(replies, [doc.specific["gold_explanations"] for doc in docs], model, device=scoring_device())


def _reply(doc: Doc, response: ModelResponse) -> str:
    if not response.final_text:
        raise CulturevalError(f"{doc.task_name}, item {doc.id}: the model's response holds no text.")
    return response.final_text[0]


def scoring_device() -> str:
    """Where models that score run: the first GPU, else the CPU."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
