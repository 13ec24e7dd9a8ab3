"""Corpus scores of translations, as AL-QASIDA computes them with sacrebleu (arXiv 2412.04193, section 3; its files).

Both sides are stripped, there is one reference per sentence, and scores are in 0 to 100. The published
`ChrF_corpus_score` of GPT-4o, Command R and Command R+ is chrF++, that of Llama, SILMA and AceGPT chrF: here each
has its own name.
"""

import hashlib
import io
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from cultureval.runtime.data.hub import is_offline
from cultureval.runtime.data.scorers import mirrored
from cultureval.runtime.data.user_cache import user_cache, write_atomically
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.sacrebleu import flores200_file, score_of_counts, sentence_counts
from cultureval.runtime.settings import current_settings, variable_of

DRAWS = 1000
SEED = 417
COUNTS = 1  # version of the cached counts
OF_CHARACTERS = 18  # the first counts of chrF++, which are those of chrF: three for each of six orders


def spbleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """BLEU over the pieces of the SentencePiece model of FLORES-200 (sacrebleu's `flores200` tokenizer).

    Args:
        hypotheses: N translations.
        references: One reference per translation.

    Returns:
        Corpus score in 0 to 100.

    Raises:
        ValueError: No sentence, or another number of references.
        CulturevalError: The SentencePiece model is neither set by CULTUREVAL_FLORES200_MODEL nor in sacrebleu's
            cache, and cannot be downloaded.
    """
    return _corpus_score("spbleu", hypotheses, references)


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """chrF2: characters up to 6-grams, no words, beta 2 (Popović 2015). Arguments and errors as in `spbleu`."""
    return _corpus_score("chrf", hypotheses, references)


def chrf_plus_plus(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """chrF++: chrF2 with words and pairs of words (Popović 2017). Arguments and errors as in `spbleu`."""
    return _corpus_score("chrf_plus_plus", hypotheses, references)


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """BLEU with sacrebleu's defaults: 13a tokens, exponential smoothing. Arguments and errors as in `spbleu`."""
    return _corpus_score("bleu", hypotheses, references)


def sentence_score(name: str, hypothesis: str, reference: str) -> float:
    """One sentence's score in 0 to 100, of a name in `CORPUS`; BLEU of the n-gram orders that the sentence has."""
    metric = _metric(name, effective_order=True)
    prepared = _preparation(flores200_model() if name == "spbleu" else None)
    return metric.sentence_score(prepared(hypothesis), [prepared(reference)]).score


def corpus_score_and_error(name: str, hypotheses: Sequence[str], references: Sequence[str]) -> tuple[float, float]:
    """A corpus score and its standard error, the spread of 1,000 bootstrap draws of the sentences (fixed seed).

    Arguments and errors are those of `spbleu`, and a name in `CORPUS` of `alqasida/names.py`. Both are in 0 to 100; the
    error is nan for a single sentence.
    """
    metric, counts = _statistics(name, hypotheses, references)
    return _score(metric, counts.sum(axis=0)), _spread(_draws(metric, counts))


def gain_and_error(
    name: str, hypotheses: Sequence[str], sources: Sequence[str], references: Sequence[str]
) -> tuple[float, float]:
    """What translations gain over their untranslated sources: the difference of corpus scores, and its standard error.

    The bootstrap is paired: each draw takes the same sentences for both scores. Arguments and errors are those of
    `corpus_score_and_error`; the difference is in -100 to 100.
    """
    metric, counts = _statistics(name, hypotheses, references)
    _, untranslated = _statistics(name, sources, references)
    gain = _score(metric, counts.sum(axis=0)) - _score(metric, untranslated.sum(axis=0))
    return gain, _spread(_draws(metric, counts) - _draws(metric, untranslated))


def sentence_sums(name: str, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
    """Counts of each sentence, [N, P], whose sums over sentences give the corpus score; nothing is downloaded for them.

    Arguments and errors are those of `spbleu`, but the SentencePiece model must be on this machine.
    """
    return _statistics(name, hypotheses, references, fetch=False)[1].astype(np.float64)


def score_of_sums(name: str, sums: np.ndarray) -> np.ndarray:
    """Corpus scores in 0 to 100 of summed counts: shape (..., P) gives (...)."""
    metric = _metric(name)
    return np.apply_along_axis(lambda total: _score(metric, total), -1, sums)


def _draws(metric: Any, counts: np.ndarray) -> np.ndarray:
    """The scores of bootstrap draws of the sentences, the same for every table of as many; nan for a single one."""
    if len(counts) < 2:
        return np.full(DRAWS, np.nan)
    # A draw is how often each sentence was drawn: one matrix product gives the counts of all draws.
    taken = np.random.default_rng(SEED).multinomial(len(counts), np.full(len(counts), 1 / len(counts)), size=DRAWS)
    return np.array([_score(metric, total) for total in taken @ counts])


def _spread(draws: np.ndarray) -> float:
    return float(draws.std(ddof=1))


def flores200_model(fetch: bool = True) -> Path:
    """The SentencePiece model of FLORES-200.

    It is the file that CULTUREVAL_FLORES200_MODEL names, else the copy below the data root, else sacrebleu's cache.

    Args:
        fetch: Whether it may be downloaded into that cache.

    Raises:
        CulturevalError: It is missing and cannot be downloaded.
    """
    from sacrebleu.utils import download_file

    url, cached = flores200_file()
    named = current_settings().flores200_model
    place = Path(named).expanduser() if named else mirrored(url) or cached
    if place.is_file():
        return place
    reason = f"{place} is not a file"
    if fetch and not named and not is_offline():
        try:
            download_file(url, str(cached))
            return cached
        except (OSError, EOFError, SystemExit) as error:  # sacrebleu exits if it cannot download
            reason = f"it cannot be downloaded ({error or type(error).__name__})"
    raise CulturevalError(
        f"spBLEU needs the SentencePiece model of FLORES-200: {reason}. Download {url} on a machine with internet and "
        f"set {variable_of('flores200_model')} to the file, or save it as {cached}; `cultureval mirror alqasida "
        "--output-dir DIR` brings it along."
    )


def flores200_source() -> tuple[str, ...]:
    """The address of the SentencePiece model; nothing where CULTUREVAL_FLORES200_MODEL names a file."""
    return () if current_settings().flores200_model else (flores200_file()[0],)


def check_flores200() -> None:
    """Load the SentencePiece model of FLORES-200 and cut two sentences with it.

    Raises:
        CulturevalError: It is missing, is no SentencePiece model, or knows no Arabic or no English.
    """
    file = flores200_model()
    pieces = _pieces(str(file))
    for language, text in (("Arabic", "ذهب الطالب إلى المدرسة"), ("English", "The student went to school")):
        found = pieces.encode(text)
        if not found or found.count(pieces.unk_id()) * 2 >= len(found):
            raise CulturevalError(
                f"{file} does not know the letters of a sentence in {language}: it is not the SentencePiece model of "
                f"FLORES-200. Set {variable_of('flores200_model')} to that model."
            )


def flores200_signature() -> str:
    """The hash of the SentencePiece model and sacrebleu's version, for score signatures."""
    import sacrebleu

    model = flores200_model()
    return f"spBLEU(flores200@{_digest(model, model.stat().st_mtime_ns)},sacrebleu {sacrebleu.__version__})"


def _corpus_score(name: str, hypotheses: Sequence[str], references: Sequence[str]) -> float:
    metric, counts = _statistics(name, hypotheses, references)
    return _score(metric, counts.sum(axis=0))


def _statistics(
    name: str, hypotheses: Sequence[str], references: Sequence[str], fetch: bool = True
) -> tuple[Any, np.ndarray]:
    """The sacrebleu metric and its sufficient statistics, one row of counts per sentence.

    They are kept in the user's cache: counting the translations of a run takes ten seconds and more.
    """
    if isinstance(hypotheses, str) or isinstance(references, str):
        raise ValueError("hypotheses and references must be lists of sentences")
    if len(hypotheses) != len(references) or not len(hypotheses):
        raise ValueError(f"there are {len(hypotheses)} hypotheses and {len(references)} references; one each is needed")
    if name == "chrf":
        return _metric(name), _statistics("chrf_plus_plus", hypotheses, references)[1][:, :OF_CHARACTERS]
    model = flores200_model(fetch) if name == "spbleu" else None
    file = _counts_file(name, model, hypotheses, references)
    try:
        counts = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        prepared = _preparation(model)
        sides = [[prepared(text) for text in side] for side in (hypotheses, references)]
        counts = np.array(sentence_counts(_metric(name), *sides), dtype=np.int32)
        _keep(file, counts)
    return _metric(name), counts.astype(np.int64)


def _counts_file(name: str, model: Path | None, *sides: Sequence[str]) -> Path:
    """Where the counts of some texts are kept."""
    import sacrebleu

    pieces = _digest(model, model.stat().st_mtime_ns) if model else ""
    about = repr((COUNTS, sacrebleu.__version__, name, pieces, *map(list, sides)))
    key = hashlib.blake2b(about.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return user_cache() / "sentence_counts" / f"{key}.npy"


def _keep(file: Path, counts: np.ndarray) -> None:
    content = io.BytesIO()
    np.save(content, counts)
    try:
        write_atomically(file, content.getvalue())
    except OSError:  # counted again next time
        pass


def _score(metric: Any, totals: np.ndarray) -> float:
    return score_of_counts(metric, totals.tolist())


@cache
def _metric(name: str, effective_order: bool = False) -> Any:
    from sacrebleu.metrics import BLEU, CHRF

    if name == "spbleu":
        return BLEU(tokenize="none", force=True, effective_order=effective_order)
    if name == "bleu":
        return BLEU(effective_order=effective_order)
    return CHRF(word_order={"chrf": 0, "chrf_plus_plus": 2}[name])


def _preparation(model: Path | None) -> Callable[[str], str]:
    """What is done to each text before it is counted: for spBLEU its pieces by a SentencePiece model."""
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
