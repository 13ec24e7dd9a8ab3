"""QIMMA's own options of reading data."""

from cultureval.runtime.settings import Option

LOCATION = Option(
    "location",
    "CULTUREVAL_ARABCULTURE_LOCATION",
    "country_region",
    "what ArabCulture's prompt says of the place: country and region, region only, or nothing",
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
