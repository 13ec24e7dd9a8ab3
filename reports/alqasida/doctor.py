"""What AL-QASIDA needs besides packages: its classifiers, and the SentencePiece model of spBLEU."""

from functools import partial
from pathlib import Path

from cultureval.metrics.alqasida.dialect_models import check_model, configured_models
from cultureval.metrics.alqasida.translation import flores200_model
from cultureval.reports.doctor import Finding, scored_by, tried
from cultureval.runtime.data.hub import is_offline
from cultureval.runtime.data.scorers import local_copy
from cultureval.tasks.alqasida.kinds import TRANSLATION


def findings() -> list[Finding]:
    """The models; nothing is downloaded."""
    found = []
    for kind, name in configured_models().names.items():
        if not Path(local_copy(name)).expanduser().exists() and not is_offline() and not _is_cached(name):
            cost = "the first of AL-QASIDA's tasks fetches it; or set it to a local folder"
            found.append(Finding("missing", f"{kind} model {name}: not on this machine yet", cost))
        else:
            found.append(
                tried(f"{kind} model {name}", partial(check_model, kind), "AL-QASIDA's tasks cannot be scored")
            )
    pieces = partial(flores200_model, fetch=False)
    cost, scored = "AL-QASIDA's translations cannot be scored", scored_by("alqasida", TRANSLATION)
    return [*found, tried("spBLEU's SentencePiece model", pieces, cost, scored)]


def _is_cached(name: str) -> bool:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return bool(snapshot_download(name, local_files_only=True))
    except (LocalEntryNotFoundError, HfHubHTTPError, HFValidationError, OSError):
        return False
