"""LightEval metrics of multiple-choice and multi-select questions: from log-probabilities, or from generated labels."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc, SamplingMethod
from lighteval.utils.utils import as_list

from cultureval.metrics.choice_replies import parse_labels
from cultureval.metrics.declared import CHOICE_REPLIES, MULTI_SELECT, MULTIPLE_CHOICE, Metrics
from cultureval.metrics.lighteval.row_scores import Columns, pass_metrics, reply_metrics
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

    `acc_norm`, the headline, chooses the most likely option per code point, as QIMMA's task code does. `acc`
    chooses the most likely option (the paper's Eq. 1 as printed); it does not favour option five with its two code
    points.
    """
    return _likelihood_metrics(
        MULTIPLE_CHOICE, (char_normalized_accuracy, lambda logprobs, _, gold: argmax_accuracy(logprobs, gold))
    )


def multi_select_metrics() -> list[SampleLevelMetric]:
    """Metrics of items with several correct options, QIMMA section 5.1.

    `gold_probability_mass`, the headline, is Eq. 3-4 over log-probabilities per code point; `gold_set_match` is 1 if
    the most likely options are exactly the gold ones (QIMMA's task code, not in the paper).
    """
    return _likelihood_metrics(MULTI_SELECT, (gold_probability_mass, gold_set_match))


def _likelihood_metrics(declared: Metrics, scores: Sequence[ScoreOptions]) -> list[SampleLevelMetric]:
    compute = partial(_score_options, dict(zip(declared, scores, strict=True)))
    return pass_metrics(declared, compute, "log-probabilities of options", category=SamplingMethod.LOGPROBS)


def _score_options(scores: dict[str, ScoreOptions], docs: list[Doc], responses: list[ModelResponse]) -> Columns:
    """The scores of rows from the log-probabilities of their options; an error names the item."""
    columns: Columns = {name: [] for name in scores}
    for doc, response in zip(docs, responses, strict=True):
        gold = as_list(doc.gold_index)
        right = gold[0] if len(gold) == 1 else gold
        for name, score in scores.items():
            try:
                columns[name].append(score(response.logprobs, doc.choices, right))
            except ValueError as error:
                raise CulturevalError(f"{doc.task_name}, item {doc.id}: {error}.") from error
    return columns


def choice_reply_metrics(several: bool = False) -> list[SampleLevelMetric]:
    """`acc_strict`, the headline, and `acc_lenient`: the shares of right answers under each profile of `parse_labels`.

    Unreadable replies are wrong; `invalid_strict` and `invalid_lenient` are their shares.

    Args:
        several: Whether several options may be right; a right answer is then exactly these.
    """

    def score(docs: list[Doc], replies: list[str]) -> Columns:
        columns: Columns = {name: [] for name in CHOICE_REPLIES}
        for doc, reply in zip(docs, replies, strict=True):
            specific: ChoiceReplySpecific = specific_of(doc)
            for profile in ("strict", "lenient"):
                found = parse_labels(reply, specific["labels"], specific["options"], profile, several)
                columns[f"acc_{profile}"].append(float(found == tuple(specific["right"])))
                columns[f"invalid_{profile}"].append(float(found is None))
        return columns

    return reply_metrics(CHOICE_REPLIES, score, "labels of replies")
