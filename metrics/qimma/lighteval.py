"""The LightEval metrics of QIMMA's four metric sets, which call pure functions of metrics/."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.normalizations import remove_braces, remove_braces_and_strip
from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc, SamplingMethod
from lighteval.utils.utils import as_list

from cultureval.metrics.lighteval.clustered_means import ClusteredMean, ClusteredScore
from cultureval.metrics.lighteval.shared_pass import Columns, SharedScore, pass_over_replies
from cultureval.metrics.likelihood import (
    argmax_accuracy,
    char_normalized_accuracy,
    gold_probability_mass,
    gold_set_match,
)
from cultureval.metrics.poetry import fannorflop
from cultureval.metrics.qimma.names import BERTSCORE, FANNORFLOP, MULTI_SELECT, MULTIPLE_CHOICE
from cultureval.metrics.semantic import bertscore, bertscore_model
from cultureval.runtime.devices import scoring_device
from cultureval.runtime.doc_specific import specific_of
from cultureval.runtime.errors import CulturevalError

if TYPE_CHECKING:
    from cultureval.prompts.qimma.specific import PoemSpecific

BERTSCORE_PARTS = dict(zip(BERTSCORE, ("f1", "precision", "recall"), strict=True))

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


def bertscore_metrics() -> list[SampleLevelMetric]:
    """BERTScore of generated answers, QIMMA section 5.1: `BERTScore-F` is the headline, with -P and -R.

    Whitespace and one brace on either side are stripped first, as in QIMMA's task code. Of several references the best
    value is used. The model is AraBERT v02 unless CULTUREVAL_BERTSCORE_MODEL names another.
    """
    return _generative_metrics(BERTSCORE_PARTS, _score_answers)


def fannorflop_metrics() -> list[SampleLevelMetric]:
    """BERTScore of poem explanations, QIMMA section 5.1: `BERTScore-F` is the headline, with -P and -R.

    `parse_rate` is the share of replies with a JSON list of explanations; the others score 0. The gold list is
    `doc.specific["gold_explanations"]`.
    """
    return _generative_metrics(dict(zip(FANNORFLOP, (*BERTSCORE_PARTS.values(), "parsed"), strict=True)), _score_poems)


class LikelihoodScore(SampleLevelComputation):
    """Scores one item from the log-probabilities of its options."""

    def __init__(self, score: ScoreOptions) -> None:
        self.score = score

    def compute(self, doc: Doc, model_response: ModelResponse, **kwargs: object) -> ClusteredScore:
        """The item's score.

        Raises:
            CulturevalError: The log-probabilities or the gold are unusable; the message names the item.
        """
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


def _generative_metrics(parts: dict[str, str], score: Callable[..., Columns]) -> list[SampleLevelMetric]:
    model = bertscore_model()
    shared = pass_over_replies(partial(score, model=model))
    definition = f"model={model}, layer=last, idf=no, rescaled=no"
    return [
        SampleLevelMetric(
            metric_name=name,
            higher_is_better=True,
            category=SamplingMethod.GENERATIVE,
            sample_level_fn=SharedScore(name, part, shared, definition),
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
    poems: list[PoemSpecific] = [specific_of(doc) for doc in docs]
    return fannorflop(replies, [poem["gold_explanations"] for poem in poems], model, device=scoring_device())
