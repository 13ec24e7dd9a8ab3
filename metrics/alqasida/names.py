"""The metrics of AL-QASIDA: dialectal fidelity under three profiles, and corpus scores of translations."""

from cultureval.metrics.declared import Metrics, declare

PROFILES = ("paper", "released", "clean")
SCORES = ("adi2", "adi2_macro", "nadi", "nadi_macro", "aldi", "arabic_rate")  # under each profile
ZERO = "_zero"  # the score of the untranslated source
CORPUS = ("spbleu", "chrf_plus_plus", "chrf", "bleu")

_SHARES = ("empty_rate", "prompt_copy_rate", "too_few_rate", "truncated_rate")
_PROFILED = tuple(f"{name}_{profile}" for profile in PROFILES[1:] for name in SCORES)


def _fidelity(*names: str) -> Metrics:
    shares = [name for name in names if name in _SHARES]
    return declare(*names, counts=shares, lower=shares)


FIDELITY = _fidelity(*SCORES, *_SHARES[:2], *_PROFILED, *_SHARES[2:])
MONOLINGUAL = _fidelity(*FIDELITY, "prompt_aldi")
CORPUS_SCORES = declare(
    *(name + suffix for name in CORPUS for suffix in ("", ZERO)), bounds=[name + ZERO for name in CORPUS]
)
# Prompt copies are not removed from translations: upstream never re-scored them.
FIDELITY_OF_TRANSLATIONS = _fidelity(*SCORES, "empty_rate", "truncated_rate")
