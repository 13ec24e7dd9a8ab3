"""What JEEM's corpus BLEU is made of: counts of n-grams of every caption or answer."""

from functools import partial
from pathlib import Path

import numpy as np

from cultureval.metrics.item_statistics import ItemStatistics
from cultureval.metrics.jeem.caption import bleu_of, bleu_statistics, tokenize
from cultureval.metrics.jeem.names import WORDS
from cultureval.metrics.paired_tests import Floats
from cultureval.runs.items import details_columns
from cultureval.runs.rows import saved_reply

BLEU = "bleu_"


def item_statistics(file: Path, task: str, metric: str) -> ItemStatistics | None:
    """The counts of a task's replies for BLEU of an order; None for other metrics, which are means.

    Raises:
        CulturevalError: The details cannot be read.
    """
    if not metric.startswith(BLEU):
        return None
    order, _, suffix = metric.removeprefix(BLEU).partition("_")
    texts = ["doc.choices", "doc.gold_index", "model_response.text", "model_response.text_post_processed"]
    choices, golds, said, read = (found or [] for found in details_columns(file, texts).values())
    replies = [saved_reply({"text": one, "text_post_processed": other}) for one, other in zip(said, read, strict=True)]
    references = [
        [given[place] for place in (gold if isinstance(gold, list) else [gold])]
        for given, gold in zip(choices, golds, strict=True)
    ]
    words = partial(tokenize, normalize=WORDS[f"_{suffix}" if suffix else ""])
    parts = [
        bleu_statistics(words(reply), [words(text) for text in texts])
        for reply, texts in zip(replies, references, strict=True)
    ]
    return ItemStatistics(np.array(parts), partial(_bleu, order=int(order)))


def _bleu(sums: Floats, order: int) -> Floats:
    return 100 * bleu_of(sums)[..., order - 1]
