"""Human ratings of AL-QASIDA's completions, as the authors release them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cultureval.reports.human_ratings import HumanRatings, HumanRow, Rating, rating_rows, split_ratings
from cultureval.runtime.doc_fields import specific_of

CRITERIA = {"Adherence": 3, "Adequacy": 5, "Fluency": 5, "Dialectal Accuracy": 5}  # of the files of humevals


def read_alqasida_ratings(path: Path) -> tuple[list[Rating], int]:
    """AL-QASIDA's humevals/results/*_humeval.csv: one row per completion; TVD is the authors' ADI2.

    Raises:
        CulturevalError: The file cannot be read, lacks a column, or has a score out of range.
    """
    columns = {
        "item": ("prompt",),
        "text": ("completion",),
        "model": ("model",),
        "group": ("dialect",),
        "Fluency": ("fluency",),
        "Dialectal Accuracy": ("dialectal_accuracy",),
    }
    optional = {
        "Adherence": ("adherence",),
        "Adequacy": ("adequacy",),
        "annotator": ("annotator", "rater"),
        "TVD": ("tvd",),
    }

    def rating(row: HumanRow) -> Rating:
        criteria = {name: top for name, top in CRITERIA.items() if name in row.names}
        metrics = {"TVD": row.number("TVD", 0, 1)} if row.get("TVD") else {}
        names = (row.text("group"), row.text("item"), row.text("model"), row.get("annotator"))
        return Rating(*names, row.get("text"), row.scores(criteria), metrics)

    return split_ratings(path, [rating(row) for row in rating_rows(path, columns, optional)])


def item_of(doc: Mapping[str, Any]) -> str:
    """The item of a saved Doc: its prompt."""
    return str(specific_of(doc).get("prompt") or doc["query"]).strip()


RATINGS = HumanRatings(
    criteria=CRITERIA,
    read=read_alqasida_ratings,
    tasks=("alqasida_",),
    item_of=item_of,
    headline="Dialectal Accuracy",  # the scales of the criteria differ, so there is no mean
    judge_templates=tuple(f"alqasida_{name}" for name in ("adherence", "adequacy", "fluency", "dialectal_fidelity")),
    judges_names={"Dialectal Accuracy": "Dialectal Fidelity"},
)
