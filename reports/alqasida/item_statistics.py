"""What the corpus scores of translations are made of: counts of n-grams of every sentence."""

from functools import partial
from pathlib import Path

import numpy as np

from cultureval.metrics.alqasida.names import CORPUS_SCORES, GAIN, ZERO
from cultureval.metrics.alqasida.translation import score_of_sums, sentence_sums
from cultureval.metrics.item_statistics import ItemStatistics
from cultureval.metrics.paired_tests import Floats
from cultureval.runs.items import details_columns, saved_replies


def item_statistics(file: Path, task: str, metric: str) -> ItemStatistics | None:
    """The counts of a task's translations for a corpus score, or for its gain over the untranslated source.

    Returns:
        None for other metrics, which are means, and for a score of the source alone, the same for every model.

    Raises:
        CulturevalError: The details cannot be read, or the SentencePiece model of spBLEU is missing.
    """
    if metric not in CORPUS_SCORES or metric.endswith(ZERO):
        return None
    choices, sources = details_columns(file, ["doc.choices", "doc.specific.source"]).values()
    replies = saved_replies(file)
    if not choices or sources is None or replies is None:
        return None
    references = [given[0] for given in choices]
    if metric != GAIN:
        return ItemStatistics(sentence_sums(metric, replies, references), partial(score_of_sums, metric))
    pair = [sentence_sums("spbleu", side, references) for side in (replies, sources)]
    return ItemStatistics(np.concatenate(pair, axis=1), _gain)


def _gain(sums: Floats) -> Floats:
    ours, untranslated = np.split(sums, 2, axis=-1)
    return score_of_sums("spbleu", ours) - score_of_sums("spbleu", untranslated)
