"""AL-QASIDA's countries; its metrics: dialectal fidelity under two profiles, and corpus scores of translations."""

from collections.abc import Collection

from cultureval.metrics.declared import PERCENT, Metrics, declare
from cultureval.runtime.settings import Option, current_settings

# The classes of the NADI model in their fixed order, by code and by name. The paper's program never reads the config.
COUNTRIES = tuple("dza bhr egy irq jor kwt lbn lby mar omn pse qat sau sdn syr tun are yem".split())
COUNTRY_NAMES = tuple(
    "Algeria Bahrain Egypt Iraq Jordan Kuwait Lebanon Libya Morocco Oman Palestine Qatar Saudi_Arabia Sudan Syria "
    "Tunisia UAE Yemen".split()
)
NAMES = {code: name.replace("_", " ") for code, name in zip(COUNTRIES, COUNTRY_NAMES, strict=True)}  # for people
# Regions of the released files (and of ADI-under-scrutiny); the paper does not list them.
REGIONS: dict[str, tuple[str, ...]] = {
    "Gulf": ("bhr", "irq", "kwt", "omn", "qat", "sau", "are"),
    "Levant": ("jor", "lbn", "pse", "syr"),
    "Maghreb": ("dza", "lby", "mar", "tun"),
    "Nile": ("egy", "sdn"),
    "Aden": ("yem",),
}

PROFILES = ("paper", "released")  # how replies are read before they are scored, see `dialect.read_completion`
ADI2, ADI2_MACRO, NADI, NADI_MACRO = "adi2", "adi2_macro", "nadi", "nadi_macro"
ALDI, ARABIC_RATE = "aldi", "arabic_rate"
SCORES = (ADI2, ADI2_MACRO, NADI, NADI_MACRO, ALDI, ARABIC_RATE)  # under each profile
PROMPT_ALDI = "prompt_aldi"  # ALDi of the prompt
ZERO = "_zero"  # the score of the untranslated source
GAIN = "spbleu_gain"  # spBLEU minus that of the untranslated source
CORPUS = ("spbleu", "chrf_plus_plus", "chrf", "bleu")

_SHARES = ("empty_rate", "prompt_copy_rate", "too_few_rate", "truncated_rate")


def _fidelity(*names: str) -> Metrics:
    shares = [name for name in names if name in _SHARES]
    return declare(*names, counts=shares, lower=shares)


def profiles_of(metrics: Metrics, chosen: Collection[str]) -> list[str]:
    """The chosen profiles that apply to the metrics, the paper's first.

    `MONOLINGUAL` has no `released`, since no published monolingual number uses it.
    """
    profiles = [name for name in PROFILES if name != "released" or metrics is FIDELITY]
    return [name for name in profiles if name == PROFILES[0] or name in chosen]


def with_profiles(metrics: Metrics, chosen: Collection[str]) -> Metrics:
    """Metrics of requests with the scores of further profiles, `<name>_<profile>`.

    `released` also adds the share of excluded replies.
    """
    further = profiles_of(metrics, chosen)[1:]
    names = [f"{name}_{profile}" for profile in further for name in SCORES]
    return _fidelity(*metrics, *names, *(["too_few_rate"] if "released" in further else []))


FIDELITY = _fidelity(*SCORES, "empty_rate", "prompt_copy_rate", "truncated_rate")
MONOLINGUAL = _fidelity(*FIDELITY, PROMPT_ALDI)
_TRANSLATION = "cultureval.metrics.alqasida.translation"
_OF_CORPUS = tuple(name + suffix for name in CORPUS for suffix in ("", ZERO))
CORPUS_SCORES = declare(
    *(*_OF_CORPUS[:2], GAIN, *_OF_CORPUS[2:]),
    bounds=[name + ZERO for name in CORPUS],
    ranges=dict.fromkeys(_OF_CORPUS, PERCENT) | {GAIN: (-100.0, 100.0)},
    sums={name: f"{_TRANSLATION}:{name.removesuffix(ZERO)}_of_sums" for name in (*_OF_CORPUS, GAIN)},
)
# Prompt copies are not removed from translations: upstream never re-scored them.
FIDELITY_OF_TRANSLATIONS = _fidelity(*SCORES, "empty_rate", "truncated_rate")


def _profiles(text: str) -> tuple[str, ...]:
    chosen = {name.strip() for name in text.split(",") if name.strip()}
    if unknown := sorted(chosen - set(PROFILES)):
        raise ValueError(f"names {', '.join(unknown)}; the profiles are {', '.join(PROFILES)}")
    return tuple(name for name in PROFILES if name == PROFILES[0] or name in chosen)


PROFILES_OPTION = Option(
    "profiles",
    "CULTUREVAL_PROFILES",
    PROFILES[:1],
    "`released` also scores cross-lingual requests as the released files' path A",
    parse=_profiles,
    signed=False,
)
OPTIONS = (PROFILES_OPTION,)


def chosen_profiles() -> tuple[str, ...]:
    """The profiles of the current settings, the paper's first."""
    return PROFILES_OPTION.read(current_settings())
