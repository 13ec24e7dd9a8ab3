"""The LightEval metrics of AL-QASIDA: dialectal fidelity of replies, and corpus scores of translations.

They read from `doc.specific`: `dialect` (the three-letter code of the target country, or a language that is not a
dialect, for which there is no fidelity score), `prompt` (the plain prompt), and for translations `source`.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from lighteval.metrics.metrics_corpus import CorpusLevelComputation
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.utils.metric_utils import CorpusLevelMetricGrouping, Metric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc, SamplingMethod

from cultureval.metrics.alqasida.countries import COUNTRIES
from cultureval.metrics.alqasida.dialect import score_completions
from cultureval.metrics.alqasida.dialect_models import configured_models, models_signature, one_line
from cultureval.metrics.alqasida.names import (
    ADI2,
    CORPUS,
    CORPUS_SCORES,
    FIDELITY,
    FIDELITY_OF_TRANSLATIONS,
    GAIN,
    MONOLINGUAL,
    PROFILES,
    PROMPT_ALDI,
    SCORES,
    ZERO,
    chosen_profiles,
    with_profiles,
)
from cultureval.metrics.alqasida.translation import (
    corpus_score_and_error,
    gain_and_error,
    sentence_score,
)
from cultureval.metrics.declared import Metrics
from cultureval.metrics.lighteval.clustered_means import MeanOfScored, MeanWhereItApplies
from cultureval.metrics.lighteval.shared_pass import Columns, SharedPass, SharedScore, batched_metric, reply_of
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.patches.lighteval.group_averages import StandardError

if TYPE_CHECKING:
    from cultureval.prompts.alqasida.rows import RequestSpecific, TranslationSpecific


def fidelity_metrics() -> list[Metric]:
    """Dialectal fidelity of replies: `adi2` is the headline (AL-QASIDA section 3, the `paper` profile).

    Further profiles that `--profiles` names are `<name>_released` and `<name>_clean`; `too_few_rate` is the share of
    replies that `released` excludes from its means, `truncated_rate` the share that is truncated.
    """
    return _pass_metrics(with_profiles(FIDELITY, chosen_profiles()))


def monolingual_metrics() -> list[Metric]:
    """As `fidelity_metrics`, with `prompt_aldi` (ALDi of the prompt) and without the profile `released`."""
    return _pass_metrics(with_profiles(MONOLINGUAL, chosen_profiles()))


def translation_metrics() -> list[Metric]:
    """Corpus spBLEU, chrF++, chrF and BLEU, each with the score of the untranslated source, and ADI2 of the outputs.

    spBLEU is the headline (AL-QASIDA section 3.3), and `spbleu_gain` what it is above that of the source. Outputs in
    English or Standard Arabic have no fidelity scores, which are 0 in the released files.
    """
    corpus = CorpusLevelMetricGrouping(
        metric_name=list(CORPUS_SCORES),
        higher_is_better={name: declared.higher_is_better for name, declared in CORPUS_SCORES.items()},
        category=SamplingMethod.GENERATIVE,
        sample_level_fn=SentenceScores(),
        corpus_level_fn={name: CorpusScore(name) for name in CORPUS_SCORES},
    )
    return [corpus, *_pass_metrics(FIDELITY_OF_TRANSLATIONS, everywhere=False)]


class FidelityScore(SharedScore):
    """One metric of a pass of the classifiers; their files are hashed only when the results are written."""

    def __init__(self, name: str, shared: SharedPass[Columns]) -> None:
        super().__init__(name, name, shared, definition="")

    def __str__(self) -> str:
        """The definition of this metric in LightEval's results."""
        return f"{self.name}({models_signature()})"


class SentenceScores(SampleLevelComputation):
    """The scores of one sentence, with the texts for the corpus scores; BLEU over the orders that the sentence has."""

    def compute(self, doc: Doc, model_response: ModelResponse, **kwargs: object) -> dict[str, "SentenceScore"]:
        """Sentence scores in 0 to 100 under the names of the corpus metrics."""
        specific: TranslationSpecific = specific_of(doc)
        texts = {"": reply_of(doc, model_response), ZERO: specific["source"]}
        (reference,) = doc.get_golds()
        found = {
            name + suffix: SentenceScore.of(sentence_score(name, text, reference), text, reference)
            for name in CORPUS
            for suffix, text in texts.items()
        }
        gain = found["spbleu"] - found["spbleu" + ZERO]
        return found | {GAIN: SentenceScore.of(gain, texts[""], texts[ZERO], reference)}


class SentenceScore(float):
    """The score of a sentence with the texts that it compares, the reference last; otherwise a plain float."""

    texts: tuple[str, ...]

    @classmethod
    def of(cls, score: float, *texts: str) -> "SentenceScore":
        """The score of these texts."""
        value = cls(score)
        value.texts = texts
        return value


class CorpusScore(CorpusLevelComputation):
    """A corpus score and its bootstrap standard error, from the texts in the sample scores."""

    def __init__(self, name: str) -> None:
        self.name = name

    def compute_corpus(self, items: list[SentenceScore]) -> dict[str, float]:
        """Both in 0 to 100."""
        sides = list(zip(*(item.texts for item in items), strict=True))
        if self.name == GAIN:
            score, error = gain_and_error("spbleu", *sides)
        else:
            score, error = corpus_score_and_error(self.name.removesuffix(ZERO), *sides)
        return {self.name: score, f"{self.name}_stderr": StandardError(error, len(items))}


def _prompt_of(doc: Doc, response: ModelResponse) -> str:
    """The prompt whose copies are removed: with few-shot examples for a base model, the full last block."""
    specific: RequestSpecific = specific_of(doc)
    prompt = specific.get("prompt", "")
    plain = isinstance(response.input, str) and doc.query in response.input
    return doc.query if prompt and plain else prompt


def _classify(names: Sequence[str], docs: list[Doc], responses: list[ModelResponse]) -> Columns:
    """The scores of a task's replies: one pass of the classifiers for all these metrics."""
    values = {name: np.zeros(len(docs)) for name in names}
    prompts = [_prompt_of(doc, response) for doc, response in zip(docs, responses, strict=True)]
    replies = [reply_of(doc, response) for doc, response in zip(docs, responses, strict=True)]
    asked: list[RequestSpecific] = [specific_of(doc) for doc in docs]
    dialects, requests = [one["dialect"] for one in asked], [one.get("prompt", "") for one in asked]
    for dialect in dict.fromkeys(dialects):
        rows = [number for number, name in enumerate(dialects) if name == dialect]
        parts = ([column[row] for row in rows] for column in (prompts, replies, requests))
        found = _fidelity(names, *parts, dialect)
        for name in set(names) & found.keys():
            values[name][rows] = found[name]
    if PROMPT_ALDI in names:
        values[PROMPT_ALDI] = configured_models().dialectness([one_line(one["prompt"]) for one in asked])
    return values


def _fidelity(
    names: Sequence[str], prompts: list[str], replies: list[str], requests: list[str], dialect: str
) -> Columns:
    if dialect in COUNTRIES:
        profiles = [name for name in PROFILES if f"{ADI2}_{name}" in names]
        return score_completions(prompts, replies, dialect, profiles, requests=requests)
    nothing = np.full(len(replies), np.nan)  # English and Standard Arabic are no dialects to be faithful to
    empty = np.array([not reply.strip() for reply in replies], dtype=np.float64)
    return dict.fromkeys((*SCORES, "truncated_rate"), nothing) | {"empty_rate": empty}


def _pass_metrics(metrics: Metrics, everywhere: bool = True) -> list[Metric]:
    """The metrics of one pass; those that are not defined in every task are left out of averages where they are not."""
    shared = SharedPass(partial(_classify, tuple(metrics)))
    # A task of which the profile `released` leaves all replies out has no score, and costs no other task's average.
    means = {
        name: MeanOfScored if everywhere and not name.endswith("_released") else MeanWhereItApplies for name in metrics
    }
    return [
        batched_metric(name, FidelityScore(name, shared), means[name](name), declared.higher_is_better)
        for name, declared in metrics.items()
    ]
