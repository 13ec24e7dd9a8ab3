"""The fields of the record in results files, as Markdown, from the types and their docstrings."""

import inspect
import re
from collections.abc import Iterator

from cultureval.runs.record import (
    MachineRecord,
    ModelRecord,
    Record,
    RunRecord,
    SignatureRecord,
    TaskRecord,
    TimingRecord,
)

PARTS: tuple[type[Record], ...] = (RunRecord, TaskRecord, SignatureRecord, ModelRecord, MachineRecord, TimingRecord)


def record_fields() -> str:
    """A table of the fields of each part of the record."""
    return "\n\n".join(_part(part) for part in PARTS)


def _part(part: type[Record]) -> str:
    about, _, attributes = inspect.cleandoc(part.__doc__ or "").partition("\n\nAttributes:\n")
    rows = [f"| `{_key(part, name)}` | {text} |" for name, text in _entries(attributes)]
    return "\n".join([f"### {part.__name__}", "", about, "", "| field | holds |", "|---|---|", *rows])


def _key(part: type[Record], name: str) -> str:
    """A field's name in the file."""
    return part.model_fields[name].alias or name


def _entries(attributes: str) -> Iterator[tuple[str, str]]:
    """The names and texts of a docstring's list of attributes."""
    for entry in re.split(r"\n(?=    \w+: )", attributes):
        name, _, text = entry.strip().partition(": ")
        yield name, " ".join(text.split()).replace("|", "\\|")
