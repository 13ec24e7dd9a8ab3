"""Options of finding and reading data: shared by all suites, and by name those of one suite."""

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
    form: Form = "curated"  # QIMMA's copy where there is one, the original, or each subset in the form that was found
    suite: Mapping[str, Any] = field(default_factory=dict)  # by name (`Suite.options`); absent: the default
    manifests: tuple[Path, ...] = ()  # of audits (`tasks.manifest`): rows that they discard are left out
    columns: Mapping[str, str] = field(default_factory=dict)  # column that a reader expects -> column in the data


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
    """The folder of a data root: '' is the hub (None), 'samples' the shipped samples, else a path."""
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
