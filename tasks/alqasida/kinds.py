"""How AL-QASIDA's tasks are asked and scored: its program's 128 new tokens, no stop string."""

from dataclasses import replace
from functools import partial

from cultureval.metrics.alqasida.dialect_models import check_models, model_names, models_signature
from cultureval.metrics.alqasida.names import FIDELITY, MONOLINGUAL, chosen_profiles, profiles_of
from cultureval.metrics.alqasida.translation import check_flores200, flores200_signature, flores200_source
from cultureval.metrics.declared import Metrics
from cultureval.prompts.alqasida import rows
from cultureval.runtime.dotted_names import lazy_call
from cultureval.runtime.errors import all_of
from cultureval.tasks.kinds import Instrument, Kind

METRICS = "cultureval.metrics.alqasida.lighteval"


def request_signature(metrics: Metrics = FIDELITY) -> str:
    """The models that score replies to requests, and the profiles, for score signatures."""
    return f"{models_signature()},profiles={'+'.join(profiles_of(metrics, chosen_profiles()))}"


CLASSIFIERS = Instrument(
    name=request_signature,
    check=check_models,
    sources=model_names,
    needs="dialect classifiers",
)
MONOLINGUAL_CLASSIFIERS = replace(CLASSIFIERS, name=partial(request_signature, MONOLINGUAL))
TRANSLATION = Instrument(
    name=lambda: f"{flores200_signature()},{models_signature()}",
    check=lambda: all_of([check_flores200, check_models]),
    sources=lambda: (*model_names(), *flores200_source()),
    needs="spBLEU's tokenizer",
)
CROSS_LINGUAL = Kind(
    *(rows.request_prompt, lazy_call(f"{METRICS}:fidelity_metrics"), 128, (), CLASSIFIERS),
    few_shot_prompt=rows.request_prompt_few_shot,
)
KINDS: dict[str, Kind] = {
    "alqasida_cross": CROSS_LINGUAL,
    "alqasida_mono": replace(
        CROSS_LINGUAL, metrics=lazy_call(f"{METRICS}:monolingual_metrics"), instrument=MONOLINGUAL_CLASSIFIERS
    ),
    "alqasida_mt": Kind(rows.translation_prompt, lazy_call(f"{METRICS}:translation_metrics"), 128, (), TRANSLATION),
}
