"""Scoring models: their versions, and where `cultureval fetch` puts them: `DIR/scorers/<org>/<name>`, or a file."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from cultureval.runtime.data.hub import cached_commit, recorded_revision
from cultureval.runtime.settings import current_settings

FOLDER = "scorers"
WEIGHTS = ("model.safetensors", "pytorch_model.bin", "tokenizer.json", "vocab.txt")


def is_address(source: str) -> bool:
    """Whether a source is the address of one file rather than a hub id."""
    return source.startswith(("https://", "http://"))


def is_hub_id(source: str) -> bool:
    """Whether a name can be a hub id: `org/name`, and not a local path."""
    return source.count("/") == 1 and source[0] not in "./~" and not Path(source).exists()


def scorer_place(root: Path, source: str) -> Path:
    """The path in a data root of a scoring model, given by hub id or by the address of a file."""
    return root / FOLDER / (source.rpartition("/")[2] if is_address(source) else source)


def mirrored(source: str) -> Path | None:
    """The copy of a scoring model in the current data root; None without a copy or a root."""
    root = current_settings().data_root
    if root is None or not (is_address(source) or is_hub_id(source)):
        return None
    place = scorer_place(root, source)
    return place if place.exists() else None


def local_copy(source: str) -> str:
    """The folder of a scoring model's copy in the data root; else the name as it is."""
    return str(mirrored(source) or source)


def versioned_name(name: str, files: Sequence[Path] = (), hub_file: str = "config.json") -> str:
    """`name@version`; the version has eight hexadecimal digits.

    For a local model it is a hash of `files` (default: weights and vocabulary in its folder), after the last part of
    its path. For a hub id it is the commit of the copy in the data root or of `hub_file` in the hub's cache, else "?".
    """
    place = Path(name).expanduser()
    if not place.exists():
        copy = mirrored(name)
        commit = recorded_revision(copy) if copy else cached_commit(name, hub_file)
        return f"{name}@{commit[:8] if commit else '?'}"
    wanted = files or [place / file for file in WEIGHTS]
    return f"{place.name}@{_digest(tuple(file for file in wanted if file.is_file()))}"


@lru_cache(maxsize=8)
def _digest(files: tuple[Path, ...]) -> str:
    """A hash of the files' content; cached, since the model for language identification has over a gigabyte."""
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:8]
