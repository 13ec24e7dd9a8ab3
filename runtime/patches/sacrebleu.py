"""sacrebleu: private functions for the counts of its corpus scores, and its model files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any


def sentence_counts(metric: Any, hypotheses: list[str], references: list[str]) -> list[list[float]]:
    """The n-gram counts of each sentence; their sums give the corpus score of a `BLEU` or `CHRF`."""
    return metric._extract_corpus_statistics(hypotheses, [references])


def score_of_counts(metric: Any, totals: Sequence[float]) -> float:
    """The corpus score (0 to 100) of summed counts."""
    return float(metric._compute_score_from_stats(list(totals)).score)


def flores200_file() -> tuple[str, Path]:
    """The address of FLORES-200's SentencePiece model, and the file in which sacrebleu keeps it."""
    from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
    from sacrebleu.utils import SACREBLEU_DIR

    url = SPM_MODELS["flores200"]["url"]
    return url, Path(SACREBLEU_DIR, "models", url.rpartition("/")[2])
