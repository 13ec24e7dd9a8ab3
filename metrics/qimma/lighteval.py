"""QIMMA's own LightEval metrics, which call pure functions of metrics/."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from lighteval.metrics.normalizations import remove_braces, remove_braces_and_strip
from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.tasks.requests import Doc

from cultureval.metrics.lighteval.clustered_means import ClusteredMean
from cultureval.metrics.lighteval.shared_pass import Columns, SharedScore, batched_metric, pass_over_replies
from cultureval.metrics.qimma.names import BERTSCORE, FANNORFLOP
from cultureval.metrics.qimma.poetry import fannorflop
from cultureval.metrics.semantic import bertscore, bertscore_model
from cultureval.runtime.devices import scoring_device
from cultureval.runtime.doc_fields import specific_of

if TYPE_CHECKING:
    from cultureval.prompts.qimma.rows import PoemSpecific

BERTSCORE_PARTS = dict(zip(BERTSCORE, ("f1", "precision", "recall"), strict=True))


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


def _generative_metrics(parts: dict[str, str], score: Callable[..., Columns]) -> list[SampleLevelMetric]:
    model = bertscore_model()
    shared = pass_over_replies(partial(score, model=model))
    definition = f"model={model}, layer=last, idf=no, rescaled=no"
    return [
        batched_metric(name, SharedScore(name, part, shared, definition), ClusteredMean(name))
        for name, part in parts.items()
    ]


def _score_answers(docs: list[Doc], replies: list[str], model: str) -> dict[str, np.ndarray]:
    references = [[remove_braces(gold) for gold in doc.get_golds()] for doc in docs]
    return bertscore([remove_braces_and_strip(reply) for reply in replies], references, model, device=scoring_device())


def _score_poems(docs: list[Doc], replies: list[str], model: str) -> dict[str, np.ndarray]:
    poems: list[PoemSpecific] = [specific_of(doc) for doc in docs]
    return fannorflop(replies, [poem["gold_explanations"] for poem in poems], model, device=scoring_device())
