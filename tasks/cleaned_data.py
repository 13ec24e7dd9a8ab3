"""Data that `cultureval audit apply` cleaned: which files a task reads in place of its source's, and what they lack.

The rows of a cleaned copy are those that the source's reader gave (joined, sampled, in galleries), so that nothing but
the discarded rows differs from a run with the manifest. Such a reader adds cells that begin with `__`, and refers to
images by their path and to long lists of texts by their name in our store: both are copied.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cultureval.runtime.data.content_store import TEXTS
from cultureval.runtime.data.row_files import PlacedRow, iter_rows
from cultureval.runtime.errors import CulturevalError

CLEANED = ".cultureval-manifest"  # in the folder of a cleaned data set
STORED_TEXTS = ".texts"  # folder in it
SOURCE_ROW = "__source_row"  # cell of a cleaned row: file and number of the row in the source


@dataclass(frozen=True)
class CleanedTask:
    """What a cleaned data set holds of a task.

    Attributes:
        form: "curated" or "original", of the source.
        discarded: Number of evaluated rows that were left out.
        files: "test" and, where there are any, "few_shot" -> the file below the data set's folder.
    """

    form: str
    discarded: int
    files: Mapping[str, str]


@dataclass(frozen=True)
class CleanedRecord:
    """The file `.cultureval-manifest` of a cleaned data set.

    Attributes:
        name: Of the manifest.
        hash: Of the manifest.
        tasks: Name of a task -> what the data set holds of it; {} for data by path, and for folders of arrow files.
    """

    name: str
    hash: str
    tasks: Mapping[str, CleanedTask]

    def report(self, task: str) -> dict[str, Any]:
        """What a run records of the manifest, as of `Selection.report`."""
        discarded = self.tasks[task].discarded if task in self.tasks else 0
        return {"name": self.name, "hash": self.hash, "discarded": discarded, "for_review": 0}


def cleaned_record(folder: Path) -> CleanedRecord | None:
    """The record of a data set's folder; None where it was not cleaned."""
    from pydantic import TypeAdapter, ValidationError

    file = folder / CLEANED
    if not file.is_file():
        return None
    try:
        return TypeAdapter(CleanedRecord).validate_python(json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, ValidationError, RecursionError) as error:
        raise CulturevalError(f"{file} is no record of cleaned data; write them again with `audit apply`.") from error


def cleaned_files(folder: Path, task: CleanedTask) -> tuple[list[Path], list[Path]]:
    """The files of a task's evaluated rows and of its examples; stores the texts to which the rows refer.

    Raises:
        CulturevalError: A file is outside the folder, or is not there.
    """
    found = {name: folder / path for name, path in task.files.items()}
    for file in found.values():
        if not file.resolve().is_relative_to(folder.resolve()) or not file.is_file():
            raise CulturevalError(f"{folder / CLEANED} names {file}, which is not in that folder.")
    for file in sorted((folder / STORED_TEXTS).glob("*.json")):
        TEXTS.put(file.read_bytes())
    test, few_shot = ([found[name]] if name in found else [] for name in ("test", "few_shot"))
    return test, few_shot


def cleaned_rows(files: Sequence[Path]) -> Iterator[PlacedRow]:
    """The rows of a cleaned data set's files."""
    for file in files:
        for number, row in enumerate(iter_rows(file)):
            name = str(row.pop(SOURCE_ROW, ""))
            yield PlacedRow(file.name, number, row, file, name)
