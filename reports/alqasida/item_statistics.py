"""What the corpus scores of translations are made of: counts of n-grams of every sentence."""

from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from cultureval.metrics.alqasida.names import CORPUS_SCORES, GAIN, ZERO
from cultureval.metrics.alqasida.translation import score_of_sums, sentence_sums
from cultureval.metrics.item_statistics import ItemStatistics
from cultureval.metrics.paired_tests import Floats
from cultureval.runs.items import details_columns, saved_replies, state_of


def item_statistics(file: Path, task: str, metric: str) -> ItemStatistics | None:
    """The counts of a task's translations for a corpus score, of its sources for a `_zero`, of both for the gain.

    Returns:
        None for other metrics, which are means.

    Raises:
        CulturevalError: The details cannot be read, or the SentencePiece model of spBLEU is missing.
    """
    if metric not in CORPUS_SCORES or (texts := _texts(file, *state_of(file))) is None:
        return None
    replies, sources, references = texts
    if metric != GAIN:
        name, said = metric.removesuffix(ZERO), sources if metric.endswith(ZERO) else replies
        return ItemStatistics(sentence_sums(name, said, references), partial(score_of_sums, name))
    pair = [sentence_sums("spbleu", side, references) for side in (replies, sources)]
    return ItemStatistics(np.concatenate(pair, axis=1), _gain)


@lru_cache(maxsize=2)  # a task's scores are asked one after another
def _texts(file: Path, *state: int) -> tuple[list[str], list[str], list[str]] | None:
    """Replies, sources and references of each row; None of other details."""
    choices, sources = details_columns(file, ["doc.choices", "doc.specific.source"]).values()
    replies = saved_replies(file)
    if not choices or sources is None or replies is None:
        return None
    return replies, sources, [given[0] for given in choices]


def _gain(sums: Floats) -> Floats:
    ours, untranslated = np.split(sums, 2, axis=-1)
    return score_of_sums("spbleu", ours) - score_of_sums("spbleu", untranslated)
