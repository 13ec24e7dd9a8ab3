"""The LightEval metrics of JEEM's reference metrics, which call `caption` and `semantic`.

All values are on the paper's scale (times 100). Each text metric has two variants: `cider` on normalised words and
`cider_raw` on unchanged words.
"""

from collections.abc import Hashable

import numpy as np
from lighteval.metrics.metrics_corpus import CorpusLevelComputation
from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

from cultureval.metrics.jeem.caption import MAX_ORDER, bleu_error, bleu_of, score_captions
from cultureval.metrics.jeem.names import BERTSCORE_PARTS, REFERENCE, WORDS
from cultureval.metrics.lighteval.clustered_means import ClusteredMean, ClusteredScore
from cultureval.metrics.lighteval.shared_pass import Columns, SharedPass, SharedScore, batched_metric, pass_over_replies
from cultureval.metrics.semantic import NO_MODEL, bertscore, caption_bertscore_model
from cultureval.runtime.data.content_store import stored_texts
from cultureval.runtime.devices import scoring_device
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.lighteval.group_averages import StandardError
from cultureval.runtime.zero_width import without_marks


def caption_metrics() -> list[SampleLevelMetric]:
    """JEEM's reference metrics (section 5.1.1), CIDEr first, as it correlates best with people (Table 3).

    The document frequencies of CIDEr are those of the full reference set of the variety, even with --limit;
    `doc.specific["reference_set"]` names it in the text store. BERTScore's recall is the paper's headline; F1 is
    reported too (the paper's footnote 2). Without a model for it (`none`) both are left out.
    """
    model, layer = caption_bertscore_model()
    shared = pass_over_replies(_score_replies)
    metrics = []
    for suffix, normalize in WORDS.items():
        words = f"words={'normalized' if normalize else 'raw'}"
        for name, definition in (("cider", f"CIDEr-D,df=variety,{words}"), ("rouge_l", f"ROUGE-L,beta=1.2,{words}")):
            metrics.append(_mean_metric(f"{name}{suffix}", definition, shared))
        metrics += [_bleu_metric(f"bleu_{order}{suffix}", order, words, shared) for order in range(1, MAX_ORDER + 1)]
        if normalize and model != NO_MODEL:
            definition = f"{model},layer={layer},idf=no,rescaled=no"
            metrics += [_mean_metric(name, definition, shared) for name in BERTSCORE_PARTS]
    return metrics


class BleuScore(ClusteredScore):
    """An item's BLEU with its counts, which the corpus BLEU sums."""

    statistics: np.ndarray


class BleuSample(SharedScore):
    """BLEU of one order per item."""

    def __init__(self, name: str, definition: str, shared: SharedPass[Columns], order: int) -> None:
        super().__init__(name, name, shared, f"{definition},scale=100")
        self.order = order

    def compute(self, docs: list[Doc], responses: list[ModelResponse], **kwargs: object) -> list[ClusteredScore]:
        """The scores of all items, in order."""
        counts = self.shared.result(docs, responses)[self.part]
        scores = [BleuScore.of(100 * bleu_of(row)[self.order - 1], doc) for row, doc in zip(counts, docs, strict=True)]
        for score, row in zip(scores, counts, strict=True):
            score.statistics = row
        return scores


class CorpusBleu(CorpusLevelComputation):
    """Corpus BLEU from all items' counts; standard error by a bootstrap over clusters, seed 0."""

    def __init__(self, name: str, order: int) -> None:
        self.name = name
        self.order = order

    def compute_corpus(self, items: list[BleuScore]) -> dict[str, float]:
        """BLEU in 0 to 100 and its standard error (`bleu_error`)."""
        numbers: dict[Hashable, int] = {}
        members = [numbers.setdefault(item.cluster or index, len(numbers)) for index, item in enumerate(items)]
        counts = np.zeros((len(numbers), len(items[0].statistics)))
        np.add.at(counts, members, [item.statistics for item in items])
        value = 100 * float(bleu_of(counts.sum(axis=0))[self.order - 1])
        error = StandardError.of_whole(bleu_error(counts, self.order), len(items), numbers)
        return {self.name: value, f"{self.name}_stderr": error}


def _mean_metric(name: str, definition: str, shared: SharedPass[Columns]) -> SampleLevelMetric:
    return _metric(
        SharedScore(name, name, shared, f"{definition},scale=100"),
        ClusteredMean(name, highest=None if name.startswith("cider") else 100.0),
    )


def _bleu_metric(name: str, order: int, words: str, shared: SharedPass[Columns]) -> SampleLevelMetric:
    definition = f"BLEU-{order},closest reference length,{words}"
    return _metric(BleuSample(name, definition, shared, order), CorpusBleu(name, order))


def _metric(sample: SharedScore, corpus: CorpusLevelComputation) -> SampleLevelMetric:
    return batched_metric(sample.name, sample, corpus, REFERENCE[sample.name].higher_is_better)


def _score_replies(docs: list[Doc], replies: list[str]) -> Columns:
    references = [doc.get_golds() for doc in docs]
    values: Columns = {}
    for suffix, normalize in WORDS.items():
        scores = score_captions(replies, references, normalize, _reference_set(docs))
        values |= {f"cider{suffix}": scores.cider, f"rouge_l{suffix}": scores.rouge_l}
        values |= {f"bleu_{order}{suffix}": scores.bleu_statistics for order in range(1, MAX_ORDER + 1)}
    model, layer = caption_bertscore_model()
    if model == NO_MODEL:
        return values
    texts, golds = [without_marks(reply) for reply in replies], [[*map(without_marks, group)] for group in references]
    similarity = bertscore(texts, golds, model, layer, device=scoring_device())
    return values | {name: 100 * similarity[part] for name, part in BERTSCORE_PARTS.items()}


def _reference_set(docs: list[Doc]) -> list[str]:
    names = {specific_of(doc).get("reference_set") for doc in docs}
    if len(names) != 1 or None in names:
        raise CulturevalError(f"{docs[0].task_name}: its items do not name one set of references for CIDEr.")
    return stored_texts(names.pop())
