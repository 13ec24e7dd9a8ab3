"""BLEU, ROUGE-L and CIDEr-D of captions against their references, on the scale of the JEEM paper (times 100).

JEEM (arXiv 2503.21910), section 5.1.1, names BLEU, CIDEr and ROUGE without order, variant or program. The definitions
here are those of pycocoevalcap 1.2: BLEU with the closest reference length (Papineni et al., ACL 2002), ROUGE-L with
beta 1.2 (Lin, 2004), CIDEr-D with sigma 6 (Vedantam et al., CVPR 2015). A reference test compares the values. That
program has 100 MB of Java, and cannot score a part of the captions with the document frequencies of all. The tokenizer
is ours: its Java tokenizer and that of the usual ROUGE package are for English (the latter drops Arabic letters).
"""

import math
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from cultureval.runtime.extras import require_camel_tools
from cultureval.runtime.zero_width import without_marks

MAX_ORDER = 4
ROUGE_BETA = 1.2
CIDER_SIGMA = 6.0

# Keep quotients defined if no n-gram matches or a text is shorter than n; the values of pycocoevalcap.
_TINY, _SMALL = 1e-15, 1e-9

Tokens = list[str]
References = Sequence[str | Sequence[str]]
NGram = tuple[str, ...]


def tokenize(text: str, normalize: bool = True) -> Tokens:
    """The words of a text, without directional and zero-width marks.

    Args:
        normalize: False only splits at whitespace. True applies NFKC, deletes tatweel, diacritics (U+064B to U+065F,
            U+0670) and punctuation, and maps letters: every alef to ا, ى to ي, ة to ه (camel-tools), the Persian ی and
            ک to ي and ك.
    """
    text = without_marks(text)
    if not normalize:
        return text.split()
    require_camel_tools()
    from camel_tools.tokenizers.word import simple_word_tokenize
    from camel_tools.utils.normalize import (
        normalize_alef_ar,
        normalize_alef_maksura_ar,
        normalize_teh_marbuta_ar,
        normalize_unicode,
    )

    plain = normalize_unicode(text).translate(_FOLDED)
    plain = normalize_teh_marbuta_ar(normalize_alef_maksura_ar(normalize_alef_ar(plain)))
    return [token for token in simple_word_tokenize(plain) if not _is_punctuation(token)]


_FOLDED = dict.fromkeys([0x0640, 0x0670, *range(0x064B, 0x0660)]) | str.maketrans("یک", "يك")


def _is_punctuation(token: str) -> bool:
    return all(unicodedata.category(character).startswith("P") for character in token)


@dataclass(frozen=True)
class CaptionScores:
    """For N items: BLEU's counts (`bleu_statistics`), shape (N, 10); ROUGE-L and CIDEr-D times 100, shape (N,) each."""

    bleu_statistics: np.ndarray
    rouge_l: np.ndarray
    cider: np.ndarray


def score_captions(
    predictions: Sequence[str], references: References, normalize: bool, document_references: References | None
) -> CaptionScores:
    """The scores of captions, and BLEU's counts.

    Corpus BLEU is 100 times `bleu_of` the sum of the items' counts. As in pycocoevalcap, an item's BLEU without a match
    of some order is slightly above 0.

    Args:
        predictions: N captions; an empty one scores 0.
        references: N references, each one text or several.
        normalize: Whether `tokenize` normalises the texts, or splits them unchanged.
        document_references: References for CIDEr's document frequencies; None: `references`. Give those of the
            complete data set if only a part of it is scored.

    Returns:
        ROUGE-L is in 0 to 100, CIDEr-D in 0 to 1,000 (identical texts of at least four words: 1,000, which is CIDEr's
        raw 10; 0 with a single document, since no n-gram is distinctive).

    Raises:
        ValueError: No caption, lengths that differ, or an item without a reference.
    """
    hypotheses = [tokenize(text, normalize) for text in predictions]
    groups = token_groups(references, normalize)
    if not hypotheses:
        raise ValueError("there is no caption to score")
    if len(hypotheses) != len(groups):
        raise ValueError(f"there are {len(hypotheses)} predictions but {len(groups)} references")
    documents = groups if document_references is None else token_groups(document_references, normalize)
    frequencies = DocumentFrequencies.of(documents)
    pairs = list(zip(hypotheses, groups, strict=True))
    return CaptionScores(
        bleu_statistics=np.array([bleu_statistics(*pair) for pair in pairs]),
        rouge_l=np.array([100 * rouge_l(*pair) for pair in pairs]),
        cider=np.array([100 * cider_d(*pair, frequencies) for pair in pairs]),
    )


def token_groups(references: References, normalize: bool) -> list[list[Tokens]]:
    """The words of each item's references."""
    groups = [[texts] if isinstance(texts, str) else list(texts) for texts in references]
    if not all(groups):
        raise ValueError(f"item {[bool(group) for group in groups].index(False)} has no reference")
    return [[tokenize(text, normalize) for text in group] for group in groups]


def ngrams(tokens: Sequence[str], order: int) -> Counter[NGram]:
    """Counts of the n-grams of one order in a text."""
    return Counter(zip(*(tokens[start:] for start in range(order)), strict=False))


def bleu_statistics(hypothesis: Tokens, references: Sequence[Tokens]) -> np.ndarray:
    """BLEU's counts for one item; their sums over items are those of the corpus.

    Returns:
        Shape (10,): n-grams that match, each at most as often as in one reference, for n = 1 to 4; n-grams of the
        hypothesis for n = 1 to 4; its length; the length of the closest reference (the shorter one of a tie).
    """
    matches, totals = [], []
    for order in range(1, MAX_ORDER + 1):
        counted = ngrams(hypothesis, order)
        most: Counter[NGram] = Counter()
        for reference in references:
            most |= ngrams(reference, order)
        matches.append((counted & most).total())
        totals.append(counted.total())
    size = len(hypothesis)
    closest = min((len(reference) for reference in references), key=lambda length: (abs(length - size), length))
    return np.array([*matches, *totals, size, closest], dtype=np.float64)


def bleu_of(statistics: np.ndarray) -> np.ndarray:
    """BLEU-1 to BLEU-4 in 0 to 1 from the counts of `bleu_statistics`: shape (..., 10) gives (..., 4)."""
    matches, totals = statistics[..., :MAX_ORDER], statistics[..., MAX_ORDER : 2 * MAX_ORDER]
    precisions = np.log((matches + _TINY) / (totals + _SMALL))
    ratio = (statistics[..., -2] + _TINY) / (statistics[..., -1] + _SMALL)
    log_brevity = np.minimum(0.0, 1 - 1 / ratio)[..., None]
    return np.exp(np.cumsum(precisions, axis=-1) / np.arange(1, MAX_ORDER + 1) + log_brevity)


def _corpus_bleu(sums: np.ndarray, order: int) -> np.ndarray:
    """BLEU of an order in 0 to 100 from sums of `bleu_statistics`: shape (..., 10) gives (...)."""
    return 100 * bleu_of(sums)[..., order - 1]


bleu_1, bleu_2, bleu_3, bleu_4 = (partial(_corpus_bleu, order=order) for order in range(1, MAX_ORDER + 1))


def rouge_l(hypothesis: Tokens, references: Sequence[Tokens]) -> float:
    """ROUGE-L in 0 to 1: the F measure, beta 1.2, of the best precision and the best recall over the references.

    Both are shares of the longest common subsequence (Lin 2004, Eq. 2-4). 0 if either text is empty.
    """
    if not hypothesis:
        return 0.0
    common = [(longest_common_subsequence(hypothesis, reference), len(reference)) for reference in references]
    precision = max(length for length, _ in common) / len(hypothesis)
    recall = max(length / size if size else 0.0 for length, size in common)
    if not precision:
        return 0.0
    return (1 + ROUGE_BETA**2) * precision * recall / (recall + ROUGE_BETA**2 * precision)


def longest_common_subsequence(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest common subsequence, by Hyyrö's bit-parallel recurrence (AWOCA 2004)."""
    places: dict[str, int] = {}
    for place, token in enumerate(first):
        places[token] = places.get(token, 0) | 1 << place
    everything = (1 << len(first)) - 1
    row = everything  # a 0 at each position where the subsequence grew
    for token in second:
        matching = row & places.get(token, 0)
        row = ((row + matching) | (row - matching)) & everything
    return len(first) - row.bit_count()


@dataclass(frozen=True)
class DocumentFrequencies:
    """Number of documents (an item's references are one document) in which each n-gram of 1 to 4 words occurs."""

    counts: Counter[NGram]
    documents: int

    @classmethod
    def of(cls, groups: Sequence[Sequence[Tokens]]) -> "DocumentFrequencies":
        """Counts the n-grams of each item's references."""
        counts: Counter[NGram] = Counter()
        for references in groups:
            orders = range(1, MAX_ORDER + 1)
            counts.update({ngram for tokens in references for order in orders for ngram in ngrams(tokens, order)})
        return cls(counts, len(groups))

    def weighted(self, tokens: Tokens, order: int) -> dict[NGram, float]:
        """N-grams of a text -> counts times inverse document frequencies; unknown n-grams count as in one document."""
        documents = math.log(self.documents)
        counts = ngrams(tokens, order).items()
        return {ngram: count * (documents - math.log(max(1, self.counts[ngram]))) for ngram, count in counts}


def cider_d(hypothesis: Tokens, references: Sequence[Tokens], frequencies: DocumentFrequencies) -> float:
    """CIDEr-D in 0 to 10: the mean over orders and references of clipped cosines of weighted n-grams, times 10.

    Vedantam et al. 2015, section 4, Eq. 3-6. The length penalty counts bigrams, as in pycocoevalcap.
    """
    total = 0.0
    for reference in references:
        difference = max(0, len(hypothesis) - 1) - max(0, len(reference) - 1)
        penalty = math.exp(-(difference**2) / (2 * CIDER_SIGMA**2))
        for order in range(1, MAX_ORDER + 1):
            sides = frequencies.weighted(hypothesis, order), frequencies.weighted(reference, order)
            total += penalty * _clipped_cosine(*sides)
    return 10 * total / MAX_ORDER / len(references)


def _clipped_cosine(text: dict[NGram, float], reference: dict[NGram, float]) -> float:
    norms = math.prod(math.sqrt(sum(value**2 for value in side.values())) for side in (text, reference))
    shared = ((value, reference[ngram]) for ngram, value in text.items() if ngram in reference)
    return sum(min(value, other) * other for value, other in shared) / norms if norms else 0.0
