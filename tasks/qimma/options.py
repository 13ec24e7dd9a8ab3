"""QIMMA's own options."""

from cultureval.runtime.doc_fields import PAPER, PARITIES
from cultureval.runtime.settings import Option

LOCATION = Option(
    "location",
    "CULTUREVAL_ARABCULTURE_LOCATION",
    "country_region",
    "`country_region` (default), `region` or `none`: what ArabCulture's prompt says",
    values=("country_region", "region", "none"),
    signed=False,
)
SHUFFLE = Option(
    "shuffle",
    "CULTUREVAL_SHUFFLE",
    "on",
    "`off` keeps AraDiCE-Culture's right option in the first place",
    values=("on", "off"),
    signed=False,
)
PARITY = Option(
    "parity",
    "CULTUREVAL_PARITY",
    PAPER,
    "`paper` (default) tokenises prompt and label together, with BOS, as `lighteval vllm` does; `sound` tokenises them "
    "apart, with one BOS",
    values=PARITIES,
    signed=False,
)
PROMPT_OPTIONS = (LOCATION, SHUFFLE)
OPTIONS = (*PROMPT_OPTIONS, PARITY)
