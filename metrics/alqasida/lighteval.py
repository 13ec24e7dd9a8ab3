"""The LightEval metrics of AL-QASIDA: dialectal fidelity of replies, and corpus scores of translations.

They read from `doc.specific`: `dialect` (the three-letter code of the target country, or a language that is not a
dialect, for which there is no fidelity score), `prompt` (the plain prompt), and for translations `source`.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from lighteval.metrics.utils.metric_utils import Metric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

from cultureval.metrics.alqasida import names
from cultureval.metrics.alqasida.dialect import score_completions
from cultureval.metrics.alqasida.dialect_models import configured_models, models_signature, one_line
from cultureval.metrics.alqasida.translation import OF_CHARACTERS, sentence_scores, sentence_sums
from cultureval.metrics.declared import DEN, SUMS, Metrics
from cultureval.metrics.lighteval.row_scores import Columns, pass_metrics, reply_metrics, reply_of
from cultureval.runtime.doc_fields import specific_of

if TYPE_CHECKING:
    from cultureval.prompts.alqasida.rows import RequestSpecific, TranslationSpecific

RELEASED = "_released"  # which leaves out replies with too few words
OF_DIALECTS = (*names.SCORES, "truncated_rate")  # English and Standard Arabic are no dialects to be faithful to


def fidelity_metrics() -> list[Metric]:
    """Dialectal fidelity of replies: `adi2` is the headline (AL-QASIDA section 3, the `paper` profile).

    With `profiles=released` also `<name>_released`; `too_few_rate` is the share of replies that it excludes from its
    means, `truncated_rate` the share that is truncated.
    """
    return _pass_metrics(names.with_profiles(names.FIDELITY, names.chosen_profiles()))


def monolingual_metrics() -> list[Metric]:
    """As `fidelity_metrics`, with `prompt_aldi` (ALDi of the prompt) and without the profile `released`."""
    return _pass_metrics(names.with_profiles(names.MONOLINGUAL, names.chosen_profiles()))


def translation_metrics() -> list[Metric]:
    """Corpus spBLEU, chrF++, chrF and BLEU, each with the score of the untranslated source, and ADI2 of the outputs.

    spBLEU is the headline (AL-QASIDA section 3.3), and `spbleu_gain` what it is above that of the source. Outputs in
    English or Standard Arabic have no fidelity scores, which are 0 in the released files. A row has the score of its
    sentence, of BLEU over the orders that the sentence has.
    """
    corpus = reply_metrics(names.CORPUS_SCORES, _translations, "both sides stripped, by sacrebleu")
    return [*corpus, *_pass_metrics(names.FIDELITY_OF_TRANSLATIONS, OF_DIALECTS)]


def _translations(docs: list[Doc], replies: list[str]) -> Columns:
    asked: list[TranslationSpecific] = [specific_of(doc) for doc in docs]
    references = [doc.get_golds()[0] for doc in docs]
    columns: Columns = {}
    for suffix, texts in {"": replies, names.ZERO: [one["source"] for one in asked]}.items():
        sums = {name: sentence_sums(name, texts, references) for name in names.CORPUS if name != "chrf"}
        sums["chrf"] = sums["chrf_plus_plus"][:, :OF_CHARACTERS]
        columns |= {f"{name}{suffix}": sentence_scores(name, own) for name, own in sums.items()}
        columns |= {f"{name}{suffix}{SUMS}": own for name, own in sums.items()}
    pair = [columns[f"spbleu{suffix}{SUMS}"] for suffix in ("", names.ZERO)]
    gain = {
        names.GAIN: columns["spbleu"] - columns["spbleu" + names.ZERO],
        names.GAIN + SUMS: np.concatenate(pair, axis=1),
    }
    return columns | gain


def _prompt_of(doc: Doc, response: ModelResponse) -> str:
    """The prompt whose copies are removed: with few-shot examples for a base model, the full last block."""
    specific: RequestSpecific = specific_of(doc)
    prompt = specific.get("prompt", "")
    plain = isinstance(response.input, str) and doc.query in response.input
    return doc.query if prompt and plain else prompt


def _classify(wanted: Sequence[str], docs: list[Doc], responses: list[ModelResponse]) -> Columns:
    """The scores of a task's replies: one pass of the classifiers for all these metrics."""
    values = {name: np.zeros(len(docs)) for name in wanted}
    prompts = [_prompt_of(doc, response) for doc, response in zip(docs, responses, strict=True)]
    replies = [reply_of(doc, response) for doc, response in zip(docs, responses, strict=True)]
    asked: list[RequestSpecific] = [specific_of(doc) for doc in docs]
    dialects, requests = [one["dialect"] for one in asked], [one.get("prompt", "") for one in asked]
    for dialect in dict.fromkeys(dialects):
        rows = [number for number, name in enumerate(dialects) if name == dialect]
        parts = ([column[row] for row in rows] for column in (prompts, replies, requests))
        found = _fidelity(wanted, *parts, dialect)
        for name in set(wanted) & found.keys():
            values[name][rows] = found[name]
    values |= {f"{name}{DEN}": [float(one in names.COUNTRIES) for one in dialects] for name in OF_DIALECTS}
    values |= {f"{name}{DEN}": ~np.isnan(values[name]) for name in wanted if name.endswith(RELEASED)}
    if names.PROMPT_ALDI in wanted:
        values[names.PROMPT_ALDI] = configured_models().dialectness([one_line(one["prompt"]) for one in asked])
    return values


def _fidelity(
    wanted: Sequence[str], prompts: list[str], replies: list[str], requests: list[str], dialect: str
) -> Columns:
    if dialect in names.COUNTRIES:
        profiles = [name for name in names.PROFILES if f"{names.ADI2}_{name}" in wanted]
        return score_completions(prompts, replies, dialect, profiles, requests=requests)
    nothing = np.full(len(replies), np.nan)
    empty = np.array([not reply.strip() for reply in replies], dtype=np.float64)
    return dict.fromkeys(OF_DIALECTS, nothing) | {"empty_rate": empty}


def _pass_metrics(metrics: Metrics, of_dialects: Sequence[str] = ()) -> list[Metric]:
    """The metrics of one pass of the classifiers; those of `of_dialects` apply to outputs in a dialect alone."""
    weighted = [*of_dialects, *(name for name in metrics if name.endswith(RELEASED))]
    definition = models_signature  # files are hashed only when the results are written
    return pass_metrics(metrics, partial(_classify, tuple(metrics)), definition, weighted, _weights)


def _weights(doc: Doc) -> dict[str, float]:
    asked: RequestSpecific = specific_of(doc)
    return dict.fromkeys(OF_DIALECTS, float(asked["dialect"] in names.COUNTRIES))
