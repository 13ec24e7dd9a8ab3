"""What AL-QASIDA needs besides packages: its classifiers, and the SentencePiece model of spBLEU."""

from functools import partial

from cultureval.metrics.alqasida.dialect_models import check_model, configured_models
from cultureval.metrics.alqasida.translation import flores200_model
from cultureval.reports.doctor import Finding, scored_by, tried
from cultureval.tasks.alqasida.kinds import TRANSLATION


def findings() -> list[Finding]:
    """The models; nothing is downloaded."""
    cost, names = "AL-QASIDA's tasks cannot be scored", configured_models().names
    found = [tried(f"{kind} model", partial(check_model, kind), cost, name=name) for kind, name in names.items()]
    pieces = partial(flores200_model, fetch=False)
    cost, scored = "AL-QASIDA's translations cannot be scored", scored_by("alqasida", TRANSLATION)
    return [*found, tried("spBLEU's SentencePiece model", pieces, cost, scored)]
