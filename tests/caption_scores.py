"""Scores of captions by name, from the values that JEEM's metrics are made of."""

from cultureval.metrics.jeem.caption import bleu_of, score_captions

NAMES = ("bleu_1", "bleu_2", "bleu_3", "bleu_4", "rouge_l", "cider")


def corpus_scores(predictions, references, normalize=True, document_references=None):
    """Name -> the score of all captions: corpus BLEU, and the means of ROUGE-L and CIDEr-D."""
    scored = score_captions(predictions, references, normalize, document_references)
    bleu = 100 * bleu_of(scored.bleu_statistics.sum(axis=0))
    values = dict(zip(NAMES, bleu.tolist(), strict=False))
    return values | {"rouge_l": float(scored.rouge_l.mean()), "cider": float(scored.cider.mean())}


def sample_scores(predictions, references, normalize=True, document_references=None):
    """Name -> the scores of each caption."""
    scored = score_captions(predictions, references, normalize, document_references)
    values = dict(zip(NAMES, 100 * bleu_of(scored.bleu_statistics).T, strict=False))
    return values | {"rouge_l": scored.rouge_l, "cider": scored.cider}
