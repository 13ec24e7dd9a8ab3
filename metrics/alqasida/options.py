"""AL-QASIDA's own option: which profiles beyond the paper's are scored."""

from cultureval.metrics.alqasida.names import PROFILES
from cultureval.runtime.settings import Option, current_settings


def _profiles(text: str) -> tuple[str, ...]:
    named = {name.strip() for name in text.split(",") if name.strip()}
    if unknown := sorted(named - set(PROFILES)):
        raise ValueError(f"names {', '.join(unknown)}; the profiles are {', '.join(PROFILES)}")
    return tuple(name for name in PROFILES if name == PROFILES[0] or name in named)


PROFILES_OPTION = Option(
    "profiles",
    "CULTUREVAL_PROFILES",
    PROFILES[:1],
    "profiles to score beside `paper` (default), separated by commas: `released`, for cross-lingual requests, `clean`",
    parse=_profiles,
    signed=False,
)
OPTIONS = (PROFILES_OPTION,)


def chosen_profiles() -> tuple[str, ...]:
    """The profiles of the current settings, the paper's first."""
    return PROFILES_OPTION.read(current_settings())
