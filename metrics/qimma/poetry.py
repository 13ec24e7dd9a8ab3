"""FannOrFlop: BERTScore of verse-by-verse explanations of a poem, written as JSON.

QIMMA paper (arXiv 2604.03395) section 5.1 scores the benchmark with BERTScore F1 by FannOrFlop's own script.
Verified there: the pairing of verses, the normalisation and its order, the model and its layer (12, the last).
Ours: the search for the list in a reply with other text, and 0 for a reply without a list. The script excludes such
poems; QIMMA's published 0.02 for one model shows that QIMMA did not.
"""

import json
import re
import string
import unicodedata
from collections.abc import Mapping, Sequence

import numpy as np

from cultureval.metrics.semantic import bertscore
from cultureval.runtime.extras import require_camel_tools

GOLD_VERSES = 10
MAX_REPLY_CHARACTERS = 200_000
MAX_LISTS_TRIED = 200

_DIACRITICS = re.compile("[\u0617-\u061a\u064b-\u0652]")
_TATWEEL = "\u0640"
_DELETED = str.maketrans("", "", _TATWEEL + string.punctuation + "،؟«»")


def parse_poem_explanations(text: str) -> list[dict[str, str]] | None:
    """The first JSON list of {verse, explanation} objects in a reply.

    Text, code fences and objects around the list, such as {"verse_explanations": [...]}, are skipped.

    Args:
        text: A model's reply.

    Returns:
        The objects in order, each with strings for `verse` ('' if missing) and `explanation`. None if no list has
        only objects with explanations, if the list is cut off, or beyond 200,000 characters.
    """
    if len(text) > MAX_REPLY_CHARACTERS:
        return None
    decoder = json.JSONDecoder(strict=False)
    start = -1
    for _ in range(MAX_LISTS_TRIED):
        start = text.find("[", start + 1)
        if start < 0:
            return None
        try:
            value, _ = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if value and all(isinstance(item, dict) and isinstance(item.get("explanation"), str) for item in value):
            return [{"verse": _text_or_empty(item.get("verse")), "explanation": item["explanation"]} for item in value]
    return None


def _text_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""


def pair_with_gold(
    predicted: Sequence[Mapping[str, str]], gold: Sequence[Mapping[str, str]]
) -> tuple[list[str], list[str]]:
    """The explanations to compare, as FannOrFlop's script chooses them.

    Args:
        predicted: Objects with `explanation`, in verse order.
        gold: Objects with `explanation`, in verse order; the first ten are used.

    Returns:
        (predicted explanations, gold explanations): if there are more predicted than gold ones, up to twice as many,
        consecutive ones are joined in pairs (explanations of half verses); then as many as gold ones are kept.
    """
    references = [item["explanation"] for item in gold[:GOLD_VERSES]]
    explanations = [item["explanation"] for item in predicted]
    limit = len(references)
    if limit < len(explanations) <= 2 * limit:
        explanations = [" ".join(explanations[index : index + 2]) for index in range(0, len(explanations), 2)]
    return explanations[:limit], references


def normalize_explanation(text: str) -> str:
    """FannOrFlop's normalisation: no diacritics, NFKC, no tatweel, no punctuation, words as CAMeL Tools splits them.

    The order matters: a diacritic that NFKC makes of a presentation form is kept. The Arabic semicolon, which the
    script does not list, stays as a word.
    """
    require_camel_tools()
    from camel_tools.tokenizers.word import simple_word_tokenize

    composed = unicodedata.normalize("NFKC", _DIACRITICS.sub("", text))
    return " ".join(simple_word_tokenize(" ".join(composed.translate(_DELETED).split())))


def fannorflop(
    predictions: Sequence[str],
    references: Sequence[Sequence[Mapping[str, str]]],
    model: str,
    device: str = "cpu",
) -> dict[str, np.ndarray]:
    """Score replies with explanations of poems: one BERTScore per poem, over its concatenated explanations.

    Args:
        predictions: N replies.
        references: N non-empty lists of gold objects with `explanation`, in verse order.
        model: Hub id or folder of BERTScore's model.
        device: torch device.

    Returns:
        `precision`, `recall` and `f1` as `bertscore` gives them, and `parsed` (1.0 if the reply contains a list of
        explanations), float64 arrays of shape (N,). The first three are 0 if `parsed` is 0.

    Raises:
        ValueError: No reply, lengths differ, or a poem has no gold explanation.
        CulturevalError: The model cannot be loaded.
    """
    if len(predictions) != len(references):
        raise ValueError(f"there are {len(predictions)} predictions but {len(references)} references")
    if not references:
        raise ValueError("there is no reply to score")
    if not all(references):
        raise ValueError(f"poem {[bool(gold) for gold in references].index(False)} has no gold explanation")
    parsed = [parse_poem_explanations(reply) for reply in predictions]
    pairs = [pair_with_gold(poem or [], gold) for poem, gold in zip(parsed, references, strict=True)]
    texts = [[" ".join(map(normalize_explanation, side)) for side in pair] for pair in pairs]
    scores = bertscore([poem for poem, _ in texts], [gold for _, gold in texts], model, device=device)
    return scores | {"parsed": np.array([poem is not None for poem in parsed], dtype=np.float64)}
