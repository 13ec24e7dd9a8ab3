"""Human ratings of AL-QASIDA's completions, as the authors release them: humevals/results/*_humeval.csv."""

from collections.abc import Mapping
from typing import Any

from cultureval.reports.human_ratings import HumanRatings
from cultureval.runtime.doc_fields import specific_of

CRITERIA = {"Adherence": 3, "Adequacy": 5, "Fluency": 5, "Dialectal Accuracy": 5}


def item_of(doc: Mapping[str, Any]) -> str:
    """The item of a saved Doc: its prompt."""
    return str(specific_of(doc).get("prompt") or doc["query"]).strip()


RATINGS = HumanRatings(
    criteria=CRITERIA,
    columns={
        **{"dialect": "group", "prompt": "item", "model": "model"},
        **{"annotator": "annotator", "completion": "text"},
    },
    needed=("dialect", "prompt", "model", "completion", "fluency", "dialectal_accuracy"),
    tasks=("alqasida_",),
    item_of=item_of,
    headline="Dialectal Accuracy",  # the scales of the criteria differ, so there is no mean
    metrics=("TVD",),  # the authors' ADI2
    judges_names={"Dialectal Accuracy": "Dialectal Fidelity"},
)
