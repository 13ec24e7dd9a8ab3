"""Human ratings of JEEM's captions, in a format of our own: the paper's file is not public."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cultureval.prompts.jeem.rows import country_of
from cultureval.reports.human_ratings import HumanRatings, HumanRow, Rating, rating_rows, split_ratings
from cultureval.runtime.doc_fields import specific_of

CRITERIA = {"Consistency": 5, "Relevance": 5, "Fluency": 5, "Dialect Authenticity": 5}  # Appendix B.4


def read_jeem_ratings(path: Path) -> tuple[list[Rating], int]:
    """Ratings of captions: columns country, image_id, the criteria, and, if there are several, model and annotator.

    Column names may be written as in tables (`Image ID`, `DA`); a column `caption` has the rated text.

    Returns:
        The ratings of models' captions, and the number of excluded ratings of the human reference.

    Raises:
        CulturevalError: The file cannot be read, lacks a column, or has an unknown country or a score out of range.
    """
    columns = {
        "country": ("country", "dialect", "variety"),
        "item": ("image_id", "image", "id"),
        "Consistency": ("consistency", "con"),
        "Relevance": ("relevance", "rel"),
        "Fluency": ("fluency", "flu"),
        "Dialect Authenticity": ("dialect_authenticity", "dialectal_authenticity", "da"),
    }
    optional = {"model": ("model", "system"), "annotator": ("annotator", "rater"), "text": ("caption", "text")}

    def rating(row: HumanRow) -> Rating:
        country = country_of({"country": row.text("country")})
        if country is None:
            raise row.wrong("country", "names none of Jordan, Emirates, Egypt, Morocco")
        scores = row.scores(CRITERIA)
        item = f"{country}/{row.text('item')}"
        return Rating(country, item, row.get("model"), row.get("annotator"), row.get("text") or None, scores)

    return split_ratings(path, [rating(row) for row in rating_rows(path, columns, optional)])


def item_of(doc: Mapping[str, Any]) -> str:
    """The item of a saved Doc: country and image (`JO/image id`)."""
    specific = specific_of(doc)
    return f"{specific['country']}/{specific['image_id']}"


RATINGS = HumanRatings(
    criteria=CRITERIA,
    read=read_jeem_ratings,
    tasks=("jeem_caption:jo", "jeem_caption:ae", "jeem_caption:eg", "jeem_caption:ma"),  # the captions in MSA: nobody
    item_of=item_of,
    judge_templates=("jeem_caption_image_reference", "jeem_caption_reference"),
)
