"""LightEval metrics of multiple-choice and multi-select questions: from log-probabilities, or from generated labels."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc, SamplingMethod
from lighteval.utils.utils import as_list

from cultureval.metrics.choice_names import CHOICE_REPLIES, MULTI_SELECT, MULTIPLE_CHOICE
from cultureval.metrics.choice_replies import parse_labels
from cultureval.metrics.lighteval.clustered_means import ClusteredMean, ClusteredScore
from cultureval.metrics.lighteval.shared_pass import Columns, SharedScore, batched_metric, pass_over_replies
from cultureval.metrics.likelihood import (
    argmax_accuracy,
    char_normalized_accuracy,
    gold_probability_mass,
    gold_set_match,
)
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError

if TYPE_CHECKING:
    from cultureval.prompts.choices import ChoiceReplySpecific

ScoreOptions = Callable[[Sequence[float], Sequence[str], int | Sequence[int]], float]


def multiple_choice_metrics() -> list[SampleLevelMetric]:
    """Metrics of single-answer items, QIMMA section 5.1.

    `acc_norm`, the headline, chooses the option that is most likely per code point, as QIMMA's task code does; `acc`
    the most likely option, the paper's Eq. 1 as printed, which does not favour option five with its two code points.
    """
    return [
        _likelihood_metric(name, score)
        for name, score in zip(MULTIPLE_CHOICE, (char_normalized_accuracy, _argmax_of_options), strict=True)
    ]


def multi_select_metrics() -> list[SampleLevelMetric]:
    """Metrics of items with several correct options, QIMMA section 5.1.

    `gold_probability_mass`, the headline, is Eq. 3-4 over log-probabilities per code point; `gold_set_match` is 1 if
    the most likely options are exactly the gold ones (QIMMA's task code, not in the paper).
    """
    return [
        _likelihood_metric(name, score)
        for name, score in zip(MULTI_SELECT, (gold_probability_mass, gold_set_match), strict=True)
    ]


class LikelihoodScore(SampleLevelComputation):
    """Scores one item from the log-probabilities of its options."""

    def __init__(self, score: ScoreOptions) -> None:
        self.score = score

    def compute(self, doc: Doc, model_response: ModelResponse, **kwargs: object) -> ClusteredScore:
        """The item's score; an error names the item."""
        gold = as_list(doc.gold_index)
        try:
            score = self.score(model_response.logprobs, doc.choices, gold[0] if len(gold) == 1 else gold)
        except ValueError as error:
            raise CulturevalError(f"{doc.task_name}, item {doc.id}: {error}.") from error
        return ClusteredScore.of(score, doc)


def _likelihood_metric(name: str, score: ScoreOptions) -> SampleLevelMetric:
    return SampleLevelMetric(
        metric_name=name,
        higher_is_better=True,
        category=SamplingMethod.LOGPROBS,
        sample_level_fn=LikelihoodScore(score),
        corpus_level_fn=ClusteredMean(name),
    )


def _argmax_of_options(logprobs: Sequence[float], choices: Sequence[str], gold: int | Sequence[int]) -> float:
    if len(logprobs) != len(choices):
        raise ValueError(f"there are {len(logprobs)} log-probabilities but {len(choices)} choices")
    return argmax_accuracy(logprobs, gold)


def choice_reply_metrics(several: bool = False) -> list[SampleLevelMetric]:
    """`acc_strict`, the headline, and `acc_lenient`: the shares of right answers under each profile of `parse_labels`.

    A reply that cannot be read is wrong, and is counted apart: `invalid_strict` and `invalid_lenient`.

    Args:
        several: Whether several options may be right; a right answer is then exactly these.
    """

    def score(docs: list[Doc], replies: list[str]) -> Columns:
        columns: dict[str, list[float]] = {name: [] for name in CHOICE_REPLIES}
        for doc, reply in zip(docs, replies, strict=True):
            asked: ChoiceReplySpecific = specific_of(doc)
            for profile in ("strict", "lenient"):
                found = parse_labels(reply, asked["labels"], asked["options"], profile, several)
                columns[f"acc_{profile}"].append(float(found == tuple(asked["right"])))
                columns[f"invalid_{profile}"].append(float(found is None))
        return {name: np.array(values) for name, values in columns.items()}

    shared = pass_over_replies(score)
    return [
        batched_metric(
            name, SharedScore(name, name, shared, "labels of replies"), ClusteredMean(name), declared.higher_is_better
        )
        for name, declared in CHOICE_REPLIES.items()
    ]
