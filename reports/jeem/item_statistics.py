"""What JEEM's corpus BLEU is made of: counts of n-grams of every caption or answer."""

from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from cultureval.metrics.item_statistics import ItemStatistics
from cultureval.metrics.jeem.caption import bleu_error, bleu_of, bleu_statistics, tokenize
from cultureval.metrics.jeem.names import WORDS
from cultureval.metrics.paired_tests import Floats
from cultureval.runs.items import details_columns, saved_replies, state_of

BLEU = "bleu_"


def item_statistics(file: Path, task: str, metric: str) -> ItemStatistics | None:
    """The counts of a task's replies for BLEU of an order; None for other metrics, which are means.

    Raises:
        CulturevalError: The details cannot be read.
    """
    if not metric.startswith(BLEU):
        return None
    order, _, suffix = metric.removeprefix(BLEU).partition("_")
    parts = _counts(file, suffix, *state_of(file))
    score, error = partial(_bleu, order=int(order)), partial(bleu_error, order=int(order))
    return None if parts is None else ItemStatistics(parts, score, error=error)


@lru_cache(maxsize=4)  # the orders are asked one after another
def _counts(file: Path, suffix: str, *state: int) -> Floats | None:
    """The counts of n-grams of each row, which all orders share; None of details without replies or references."""
    choices, golds = details_columns(file, ["doc.choices", "doc.gold_index"]).values()
    replies = saved_replies(file)
    if not choices or golds is None or replies is None:
        return None
    references = [
        [given[place] for place in (gold if isinstance(gold, list) else [gold])]
        for given, gold in zip(choices, golds, strict=True)
    ]
    words = partial(tokenize, normalize=WORDS[f"_{suffix}" if suffix else ""])
    return np.array(
        [
            bleu_statistics(words(reply), [words(text) for text in texts])
            for reply, texts in zip(replies, references, strict=True)
        ]
    )


def _bleu(sums: Floats, order: int) -> Floats:
    return 100 * bleu_of(sums)[..., order - 1]
