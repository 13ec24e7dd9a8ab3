"""What scores AL-QASIDA's replies besides arithmetic: names for signatures, and the checks before a run."""

from cultureval.metrics.alqasida.dialect_models import check_models, models_signature
from cultureval.metrics.alqasida.names import FIDELITY, profiles_of
from cultureval.metrics.alqasida.options import chosen_profiles
from cultureval.metrics.alqasida.translation import check_flores200, flores200_signature
from cultureval.metrics.declared import Metrics
from cultureval.runtime.errors import all_of


def check_translation_instruments() -> None:
    """Load and try the SentencePiece model of spBLEU and the classifiers."""
    all_of([check_flores200, check_models])


def translation_signature() -> str:
    """The models that score translations, for score signatures."""
    return f"{flores200_signature()},{models_signature()}"


def request_signature(metrics: Metrics = FIDELITY) -> str:
    """The models that score replies to requests, and the profiles, for score signatures."""
    return f"{models_signature()},profiles={'+'.join(profiles_of(metrics, chosen_profiles()))}"
