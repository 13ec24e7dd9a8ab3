"""QIMMA's own LightEval metrics, which call pure functions of metrics/."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from lighteval.metrics.normalizations import remove_braces, remove_braces_and_strip
from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.tasks.requests import Doc

from cultureval.metrics.declared import Metrics
from cultureval.metrics.lighteval.row_scores import Columns, reply_metrics
from cultureval.metrics.qimma.names import BERTSCORE, FANNORFLOP
from cultureval.metrics.qimma.poetry import fannorflop
from cultureval.metrics.semantic import bertscore, bertscore_model
from cultureval.runtime.devices import scoring_device
from cultureval.runtime.doc_fields import specific_of

if TYPE_CHECKING:
    from cultureval.prompts.qimma.rows import PoemSpecific

PARTS = ("f1", "precision", "recall", "parsed")  # of scores of replies, in the order of names of metrics


def bertscore_metrics() -> list[SampleLevelMetric]:
    """BERTScore of generated answers, QIMMA section 5.1: `BERTScore-F` is the headline, with -P and -R.

    Whitespace and one brace on either side are stripped first, as in QIMMA's task code. Of several references the best
    value is used. The model is AraBERT v02 unless CULTUREVAL_BERTSCORE_MODEL names another.
    """
    return _generative_metrics(BERTSCORE, _score_answers)


def fannorflop_metrics() -> list[SampleLevelMetric]:
    """BERTScore of poem explanations, QIMMA section 5.1: `BERTScore-F` is the headline, with -P and -R.

    `parse_rate` is the share of replies with a JSON list of explanations; the others score 0. The gold list is
    `doc.specific["gold_explanations"]`.
    """
    return _generative_metrics(FANNORFLOP, _score_poems)


def _generative_metrics(declared: Metrics, score: Callable[..., Columns]) -> list[SampleLevelMetric]:
    model = bertscore_model()

    def columns(docs: list[Doc], replies: list[str]) -> Columns:
        found = score(docs, replies, model=model)
        return {name: found[part] for name, part in zip(declared, PARTS, strict=False)}

    return reply_metrics(declared, columns, f"model={model}, layer=last, idf=no, rescaled=no")


def _score_answers(docs: list[Doc], replies: list[str], model: str) -> Columns:
    references = [[remove_braces(gold) for gold in doc.get_golds()] for doc in docs]
    return bertscore([remove_braces_and_strip(reply) for reply in replies], references, model, device=scoring_device())


def _score_poems(docs: list[Doc], replies: list[str], model: str) -> Columns:
    poems: list[PoemSpecific] = [specific_of(doc) for doc in docs]
    return fannorflop(replies, [poem["gold_explanations"] for poem in poems], model, device=scoring_device())
