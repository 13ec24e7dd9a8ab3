"""Scoring models below a data root, where `cultureval mirror` puts them: `DIR/scorers/<org>/<name>`, or a file."""

from pathlib import Path

from cultureval.runtime.data.data_root import recorded_revision
from cultureval.runtime.settings import current_settings

FOLDER = "scorers"


def is_address(source: str) -> bool:
    """Whether a source is the address of one file rather than a hub id."""
    return source.startswith(("https://", "http://"))


def is_hub_id(source: str) -> bool:
    """Whether a name can be a hub id: `org/name`, and no folder or file here."""
    return source.count("/") == 1 and source[0] not in "./~" and not Path(source).exists()


def scorer_place(root: Path, source: str) -> Path:
    """Where a data root has a scoring model, which a hub id or the address of a file names."""
    return root / FOLDER / (source.rpartition("/")[2] if is_address(source) else source)


def mirrored(source: str) -> Path | None:
    """The copy of a scoring model below the current data root; None where it has none, or there is no root."""
    root = current_settings().data_root
    if root is None or not (is_address(source) or is_hub_id(source)):
        return None
    place = scorer_place(root, source)
    return place if place.exists() else None


def local_copy(source: str) -> str:
    """The folder of the mirrored copy of a scoring model; without one the name as it is."""
    return str(mirrored(source) or source)


def mirrored_commit(source: str) -> str | None:
    """The commit of the mirrored copy of a scoring model; None without one."""
    place = mirrored(source)
    return recorded_revision(place) if place else None
