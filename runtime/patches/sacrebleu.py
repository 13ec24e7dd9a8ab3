"""What we use of sacrebleu that is not public: the counts that its corpus scores are made of, and its model files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cultureval.runtime.patches.table import expect, patched


def sentence_counts(metric: Any, hypotheses: list[str], references: list[str]) -> list[list[float]]:
    """The n-gram counts of each sentence, whose sums over sentences give the corpus score of a `BLEU` or `CHRF`."""
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


@patched(
    "sacrebleu",
    "sacrebleu.metrics.base.Metric._extract_corpus_statistics, _compute_score_from_stats",
    "Its public resampling gives no standard error; with its counts a draw is one product of matrices.",
)
def _counts_give_the_score() -> None:
    from sacrebleu.metrics import BLEU, CHRF

    said, meant = ["the cat sat on a mat", "it rains"], ["the cat sat on the mat", "it is raining"]
    for metric in (BLEU(), CHRF(word_order=2)):
        totals = [sum(column) for column in zip(*sentence_counts(metric, said, meant), strict=True)]
        expected = metric.corpus_score(said, [meant]).score
        same = abs(score_of_counts(metric, totals) - expected) < 1e-9
        expect(same, f"sacrebleu's counts no longer add up to the score of {type(metric).__name__}")


@patched(
    "sacrebleu",
    "sacrebleu.tokenizers.tokenizer_spm.SPM_MODELS",
    "Its tokenizer ends the process where it cannot download its model, and takes no local file.",
)
def _model_is_kept_as_read() -> None:
    import inspect

    from sacrebleu.tokenizers import tokenizer_spm

    url, place = flores200_file()
    expect(url.startswith("https://"), f"sacrebleu has the address {url!r} for the model of FLORES-200")
    source = inspect.getsource(tokenizer_spm.TokenizerSPM.__init__)
    kept = 'os.path.join(SACREBLEU_DIR, "models", os.path.basename(SPM_MODELS[key]["url"]))'
    expect(kept in source, f"sacrebleu no longer keeps the model of FLORES-200 as {place}")
