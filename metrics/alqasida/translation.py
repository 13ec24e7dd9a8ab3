"""Corpus scores of translations, as AL-QASIDA computes them with sacrebleu (arXiv 2412.04193, section 3; its files).

Both sides are stripped, there is one reference per sentence, and scores are in 0 to 100. The published
`ChrF_corpus_score` of GPT-4o, Command R and Command R+ is chrF++, that of Llama, SILMA and AceGPT chrF: here each
has its own name.
"""

import hashlib
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from cultureval.runtime.data.hub import is_offline
from cultureval.runtime.data.scorers import mirrored
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.sacrebleu import flores200_file, score_of_counts, sentence_counts
from cultureval.runtime.settings import current_settings, variable_of

OF_CHARACTERS = 18  # counts of chrF, the first of chrF++: three for each of six orders


def sentence_sums(name: str, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
    """Counts of each sentence, [N, P]; their sum gives the corpus score (`score_of_sums`).

    Args:
        name: "spbleu" (BLEU over the pieces of FLORES-200's SentencePiece model, sacrebleu's `flores200`), "bleu" (13a
            tokens, exponential smoothing), "chrf" (chrF2, characters up to 6-grams: Popović 2015) or "chrf_plus_plus"
            (with words and pairs of words: Popović 2017).
        hypotheses: N translations.
        references: One reference per translation.

    Raises:
        ValueError: No sentence, or another number of references.
        CulturevalError: The SentencePiece model is neither set by CULTUREVAL_FLORES200_MODEL nor in sacrebleu's
            cache, and cannot be downloaded.
    """
    if isinstance(hypotheses, str) or isinstance(references, str):
        raise ValueError("hypotheses and references must be lists of sentences")
    if len(hypotheses) != len(references) or not len(hypotheses):
        raise ValueError(f"there are {len(hypotheses)} hypotheses and {len(references)} references; one each is needed")
    prepared = _preparation(flores200_model() if name == "spbleu" else None)
    sides = [[prepared(text) for text in side] for side in (hypotheses, references)]
    return np.array(sentence_counts(_metric(name), *sides), dtype=np.float64)


def sentence_scores(name: str, sums: np.ndarray) -> np.ndarray:
    """[N] each sentence's score, 0 to 100, from its counts; BLEU uses the n-gram orders that the sentence has."""
    return _scores(_metric(name, effective_order=True), sums)


def score_of_sums(name: str, sums: np.ndarray) -> np.ndarray:
    """Corpus scores in 0 to 100 of summed counts: shape (..., P) gives (...)."""
    return _scores(_metric(name), sums)


def _scores(metric: Any, sums: np.ndarray) -> np.ndarray:
    return np.apply_along_axis(lambda total: score_of_counts(metric, total.astype(int).tolist()), -1, sums)


def spbleu_gain_of_sums(sums: np.ndarray) -> np.ndarray:
    """The spBLEU minus that of the untranslated sources, from the counts of both: shape (..., 2 P) gives (...)."""
    translated, untranslated = np.split(sums, 2, axis=-1)
    return spbleu_of_sums(translated) - spbleu_of_sums(untranslated)


spbleu_of_sums, chrf_plus_plus_of_sums, chrf_of_sums, bleu_of_sums = (
    partial(score_of_sums, name) for name in ("spbleu", "chrf_plus_plus", "chrf", "bleu")
)


def flores200_model(fetch: bool = True) -> Path:
    """The SentencePiece model of FLORES-200.

    It is the file in CULTUREVAL_FLORES200_MODEL, else the copy below the data root, else sacrebleu's cache.

    Args:
        fetch: Whether it may be downloaded into that cache.

    Raises:
        CulturevalError: It is missing and cannot be downloaded.
    """
    from sacrebleu.utils import download_file

    url, cached = flores200_file()
    setting = current_settings().flores200_model
    place = Path(setting).expanduser() if setting else mirrored(url) or cached
    if place.is_file():
        return place
    reason = f"{place} is not a file"
    if fetch and not setting and not is_offline():
        try:
            download_file(url, str(cached))
            return cached
        except (OSError, EOFError, SystemExit) as error:  # sacrebleu exits if it cannot download
            reason = f"it cannot be downloaded ({error or type(error).__name__})"
    raise CulturevalError(
        f"spBLEU needs the SentencePiece model of FLORES-200: {reason}. Download {url} on a machine with internet and "
        f"set {variable_of('flores200_model')} to the file, or save it as {cached}. `cultureval fetch alqasida "
        "--output-dir DIR` downloads it, too."
    )


def flores200_source() -> tuple[str, ...]:
    """The address of the SentencePiece model; () if CULTUREVAL_FLORES200_MODEL is set."""
    return () if current_settings().flores200_model else (flores200_file()[0],)


def check_flores200() -> None:
    """Loads the SentencePiece model of FLORES-200; CulturevalError if it is missing or broken."""
    _pieces(str(flores200_model()))


def flores200_signature() -> str:
    """The hash of the SentencePiece model and sacrebleu's version, for score signatures."""
    import sacrebleu

    model = flores200_model()
    return f"spBLEU(flores200@{_digest(model, model.stat().st_mtime_ns)},sacrebleu {sacrebleu.__version__})"


@cache
def _metric(name: str, effective_order: bool = False) -> Any:
    from sacrebleu.metrics import BLEU, CHRF

    if name == "spbleu":
        return BLEU(tokenize="none", force=True, effective_order=effective_order)
    if name == "bleu":
        return BLEU(effective_order=effective_order)
    return CHRF(word_order={"chrf": 0, "chrf_plus_plus": 2}[name])


def _preparation(model: Path | None) -> Callable[[str], str]:
    """The tokenisation of texts: for spBLEU by a SentencePiece model, else stripping only."""
    if model is None:
        return str.strip
    pieces = _pieces(str(model))
    return lambda text: " ".join(pieces.encode(text.strip(), out_type=str))


@lru_cache(maxsize=2)
def _digest(file: Path, changed: int) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:8]


@lru_cache(maxsize=2)
def _pieces(file: str) -> Any:
    from sentencepiece import SentencePieceProcessor

    try:
        return SentencePieceProcessor(model_file=file)
    except (OSError, RuntimeError) as error:
        reason = f"{file} cannot be read as a SentencePiece model ({' '.join(str(error).split())})"
        remedy = f"Download it again, or set {variable_of('flores200_model')} to the file."
        raise CulturevalError(f"{reason}. {remedy}") from error
