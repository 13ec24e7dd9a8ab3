"""Rows of other harnesses' tasks, from the data root or the hub's cache: what their `load_dataset` would give."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cultureval.runtime.data.hub import find_source
from cultureval.runtime.data.row_files import config_names, files_of_split, iter_rows
from cultureval.runtime.errors import SourceUnavailable
from cultureval.tasks.options import read_data_options

if TYPE_CHECKING:
    from datasets import DatasetDict

DEFAULT = "default"


class LocalRows(NamedTuple):
    """The rows of one configuration of a data set.

    Attributes:
        splits: As `datasets.load_dataset` returns them, of the splits that were asked for and are there.
        places: Split -> `file:number` of each row, as our own tasks call rows.
        revision: Commit on the hub, or "local".
    """

    splits: "DatasetDict"
    places: dict[str, list[str]]
    revision: str


def local_rows(task: str, repo: str, config: str | None, splits: Iterable[str]) -> LocalRows:
    """The rows that a task of another harness reads.

    Args:
        task: Its name, for messages.
        repo: `org/name` of the hub, also the folder below a data root.
        config: The configuration on the hub; None: the only one.
        splits: Names of the splits that the task may read.

    Raises:
        SourceUnavailable: The data set, its configuration or all of its splits are not there.
        CulturevalError: A file cannot be read.
    """
    from datasets import Dataset, DatasetDict

    root = read_data_options().root
    place = find_source(repo, None, root)
    searched = f"{root}/{repo}" if root else repo
    if place is None:
        raise SourceUnavailable(f"{task}: no data; looked in {searched}. Put {repo} below a folder and pass --data.")
    folder, revision = place
    found, places = DatasetDict(), {}
    for split in dict.fromkeys(splits):
        numbered = [(file.name, number, row) for file in _files(folder, config, split) for number, row in _rows(file)]
        if numbered:
            found[split] = Dataset.from_list([row for *_, row in numbered])
            places[split] = [f"{file}:{number}" for file, number, _ in numbered]
    if not found:
        raise SourceUnavailable(f"{task}: {searched} has no split of {config or DEFAULT!r} that the task reads.")
    return LocalRows(found, places, revision)


def _files(folder: Path, config: str | None, split: str) -> list[Path]:
    """The files of a split: as the folder declares or implies them, else `CONFIG/SPLIT.*`."""
    names = [config] if config else [DEFAULT, *config_names(folder)]
    files = files_of_split(folder, names, [split])
    return files or sorted(folder.glob(f"{config}/{split}.jsonl") if config else folder.glob(f"{split}.jsonl"))


def _rows(file: Path) -> Iterable[tuple[int, dict[str, object]]]:
    return enumerate(iter_rows(file))
