"""QIMMA's own options of reading data."""

from cultureval.runtime.settings import Option

LOCATION = Option(
    "location",
    "CULTUREVAL_ARABCULTURE_LOCATION",
    "country_region",
    "`country_region` (default), `region` or `none`: what ArabCulture's prompt says",
    values=("country_region", "region", "none"),
)
SHUFFLE = Option(
    "shuffle",
    "CULTUREVAL_SHUFFLE",
    "on",
    "`off` keeps AraDiCE-Culture's right option in the first place",
    values=("on", "off"),
)
OPTIONS = (LOCATION, SHUFFLE)
