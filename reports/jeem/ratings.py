"""Human ratings of JEEM's captions, in a format of our own: the paper's file is not public."""

from collections.abc import Mapping
from typing import Any

from cultureval.prompts.jeem.rows import COUNTRIES
from cultureval.reports.human_ratings import HumanRatings
from cultureval.runtime.doc_fields import specific_of


def item_of(doc: Mapping[str, Any]) -> str:
    """The item of a saved Doc: country and image (`JO/image id`)."""
    specific = specific_of(doc)
    return f"{specific['country']}/{specific['image_id']}"


RATINGS = HumanRatings(
    criteria={"Consistency": 5, "Relevance": 5, "Fluency": 5, "Dialect Authenticity": 5},  # Appendix B.4
    columns={
        **{"country": "group", "image_id": "item", "model": "model"},
        **{"annotator": "annotator", "caption": "text"},
    },
    needed=("country", "image_id", "consistency", "relevance", "fluency", "dialect_authenticity"),
    tasks=("jeem_caption:jo", "jeem_caption:ae", "jeem_caption:eg", "jeem_caption:ma"),  # nobody rated captions in MSA
    item_of=item_of,
    item="{group}/{item}",
    group_of=lambda cell: next((code for code, country in COUNTRIES.items() if cell in (code, country.label)), None),
)
