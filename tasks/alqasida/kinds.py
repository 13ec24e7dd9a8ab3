"""How AL-QASIDA's tasks are asked and scored: its program's 128 new tokens, no stop string."""

from dataclasses import replace
from functools import partial

from cultureval.metrics.alqasida import instruments, names
from cultureval.metrics.alqasida.dialect_models import check_models, model_names
from cultureval.metrics.alqasida.translation import flores200_source
from cultureval.prompts.alqasida import docs
from cultureval.runtime.dotted_names import lazy_call
from cultureval.tasks.kinds import Instrument, Kind

METRICS = "cultureval.metrics.alqasida.lighteval"
CLASSIFIERS = Instrument(
    name=instruments.request_signature,
    check=check_models,
    sources=model_names,
    shared=True,
    needs="dialect classifiers",
)
MONOLINGUAL_CLASSIFIERS = replace(CLASSIFIERS, name=partial(instruments.request_signature, names.MONOLINGUAL))
TRANSLATION = Instrument(
    name=instruments.translation_signature,
    check=instruments.check_translation_instruments,
    sources=lambda: (*model_names(), *flores200_source()),
    shared=True,
    needs="spBLEU's tokenizer",
)
CROSS_LINGUAL = Kind(
    *(docs.request_prompt, lazy_call(f"{METRICS}:fidelity_metrics"), 128, (), CLASSIFIERS),
    few_shot_prompt=docs.request_prompt_few_shot,
)
KINDS: dict[str, Kind] = {
    "alqasida_cross": CROSS_LINGUAL,
    "alqasida_mono": replace(
        CROSS_LINGUAL, metrics=lazy_call(f"{METRICS}:monolingual_metrics"), instrument=MONOLINGUAL_CLASSIFIERS
    ),
    "alqasida_mt": Kind(docs.translation_prompt, lazy_call(f"{METRICS}:translation_metrics"), 128, (), TRANSLATION),
}
