"""How data are found and read: the options that every suite shares, and those of suites by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

Form = Literal["curated", "original", "mixed"]


@dataclass(frozen=True)
class DataOptions:
    """Options of reading data."""

    root: Path | None = None  # folder that replaces the hub (`root/<org>/<name>`)
    form: Form = (
        "curated"  # QIMMA's copy where the paper has one, the original, or each subset in the form that is there
    )
    suite: Mapping[str, Any] = field(default_factory=dict)  # by name (`Suite.options`); absent: the default
    manifests: tuple[Path, ...] = ()  # of audits (`tasks.manifest`), whose discarded rows are left out
    columns: Mapping[str, str] = field(default_factory=dict)  # name that a reader knows -> name in the data


def samples_root() -> Path:
    """The folder of the shipped samples, laid out as a data root."""
    return Path(str(files("cultureval.samples"))).resolve()  # an editable install finds it through a link


def expanded(text: str | Path) -> Path:
    """A path with `~` and `~user` expanded."""
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise ValueError("names no user of this machine") from error


def data_folder(value: Any) -> Any:
    """The folder of a data root; '' is the hub (None), 'samples' the shipped samples (./samples is a path)."""
    if not isinstance(value, str | Path):
        return value
    if not str(value):
        return None
    root = samples_root() if value == "samples" else expanded(value)
    if not root.is_dir():
        raise ValueError(
            "is not a folder: give an existing one with <org>/<name> inside, 'samples' for the shipped samples, or "
            "leave it out for the hub"
        )
    return root.resolve()
