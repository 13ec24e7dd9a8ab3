"""Rows of a local folder of data files of any format, without conversion of types.

Which files belong to a config and a split is decided as the `datasets` library decides it: by the front matter of the
README (`declared_files`), else by the names of folders and files, for which that library is loaded. Reading them is
ours, because its CSV reader guesses types: the option "07" would become 7 and "NA" a null.
"""

import csv
import gzip
import json
import logging
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from cultureval.runtime.data.declared_files import declared_files, declares_configs, format_of, front_matter
from cultureval.runtime.errors import CulturevalError, SourceUnavailable, described

Row = dict[str, Any]


class PlacedRow(NamedTuple):
    """A row with the name of its file and its number in that file, from 0.

    `path` is the file where names repeat, or what manifests call it where several rows are made of one record;
    `source_row` is what results call the row of a cleaned copy, which stood elsewhere in its source.
    """

    file: str
    number: int
    row: Row
    path: Path | None = None
    source_row: str = ""

    @property
    def name(self) -> str:
        """What results call the row."""
        return self.source_row or f"{self.file}:{self.number}"


MOST_LINES = 10  # broken lines of a file that its error names


def read_rows(path: Path) -> list[Row]:
    """All rows of one data file (.csv, .tsv, .json, .jsonl, each also as .gz, or .parquet), in order.

    CSV cells stay strings and empty cells become None. A JSON file is a list of objects, or an object of lists of one
    length (parallel columns).

    Raises:
        CulturevalError: The file cannot be read as what its name says.
    """
    suffix = format_of(path)
    try:
        if suffix == ".parquet":
            import pyarrow.parquet

            return pyarrow.parquet.read_table(path).to_pylist()
        with _open_text(path) as file:
            if suffix in (".csv", ".tsv"):
                return list(csv_rows(file, "\t" if suffix == ".tsv" else ","))
            if suffix == ".jsonl":
                return list(_jsonl_rows(file))
            return _json_rows(json.load(file))
    except (ValueError, OSError, csv.Error) as error:
        if isinstance(error, FileNotFoundError):
            raise CulturevalError(f"{path} does not exist.") from error
        raise CulturevalError(f"{path} cannot be read as {suffix[1:] or 'json'}: {error}") from error


def iter_rows(path: Path) -> Iterator[Row]:
    """The rows of `read_rows`, one by one; parquet files, whose cells may hold images, are read in batches.

    Raises:
        CulturevalError: As `read_rows`.
    """
    if format_of(path) != ".parquet":
        yield from read_rows(path)
        return
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as table:
            for batch in table.iter_batches(batch_size=64):
                yield from batch.to_pylist()
    except (ValueError, OSError) as error:
        raise CulturevalError(f"{path} cannot be read as parquet: {error}") from error


def files_of_split(folder: Path, configs: Sequence[str], splits: Sequence[str]) -> list[Path]:
    """The data files of the first of `splits` that the first known one of `configs` has; [] if there are none.

    Raises:
        SourceUnavailable: The folder's README declares files for that config, and some are not there.
        CulturevalError: They are outside the folder.
    """
    if "default" not in configs and not declares_configs(folder):
        return []  # its only config would be "default"
    known = config_names(folder)
    config = next((name for name in configs if name in known), None)
    if config is None:
        return []
    data_files = _data_files(folder, config)
    split = next((name for name in splits if name in data_files), None)
    return [_inside(Path(file), folder) for file in data_files[split]] if split else []


def split_names(folder: Path, config: str) -> list[str]:
    """Names of the splits of a config that a folder has."""
    return [str(split) for split in _data_files(folder, config)]


@lru_cache(maxsize=1024)
def _data_files(folder: Path, config: str) -> dict[str, list[str]]:
    """Paths by split; kept, since every subset of a source asks several times and `datasets` reads all anew."""
    if (declared := declared_files(folder)) is not None:
        return declared[config]
    try:
        return dict(_datasets().load_dataset_builder(str(folder), name=config).config.data_files or {})
    except FileNotFoundError as error:
        named = re.search(r"'([^']*)'", str(error))
        raise SourceUnavailable(
            f"{folder} declares the data file {named[1] if named else '?'} of {config!r} in its README, and it is not "
            "there: fetch it, or delete its lines in the README."
        ) from error
    except Exception as error:
        raise _refused(folder, error) from error


@lru_cache(maxsize=1024)
def config_names(folder: Path) -> tuple[str, ...]:
    """Names of the configs that a local folder declares, or that its files imply; () if it holds no data files."""
    if (declared := declared_files(folder)) is not None:
        return tuple(declared)
    try:
        return tuple(_datasets().get_dataset_config_names(str(folder)))
    except FileNotFoundError:  # also where a declared file is missing
        return _declared_configs(folder)
    except Exception as error:  # of many kinds: for a README, or files, that the library does not accept
        raise _refused(folder, error) from error


def forget_folders() -> None:
    """Lets folders be looked at anew: between two runs of one process they may have changed."""
    for kept in (declared_files, front_matter, _data_files, config_names):
        kept.cache_clear()


def _refused(folder: Path, error: Exception) -> CulturevalError:
    return CulturevalError(
        f"The datasets library cannot tell the data files of {folder} ({described(error)}). Mend the README's "
        "`configs`, or move what does not belong there out of the folder."
    )


def _datasets() -> Any:
    """The library, whose messages about a hundred small files would hide a run's progress."""
    import datasets

    datasets.disable_progress_bars()
    logging.getLogger("huggingface_hub.repocard").setLevel(logging.ERROR)
    return datasets


def _declared_configs(folder: Path) -> tuple[str, ...]:
    """Names of the configs in the front matter of the folder's README.md."""
    configs = front_matter(folder).get("configs")
    named = configs if isinstance(configs, list) else []
    return tuple(str(one["config_name"]) for one in named if isinstance(one, dict) and "config_name" in one)


def files_matching(folder: Path, patterns: Iterable[str]) -> list[Path]:
    """Data files of the folder whose relative path matches one of the glob patterns, ignoring case, sorted."""
    lowered = [pattern.lower() for pattern in patterns]
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and format_of(path) and any(_matches(path.relative_to(folder), item) for item in lowered)
    )


def _inside(path: Path, folder: Path) -> Path:
    """The path; front matter that points outside its folder is refused (the hub cache's own links are fine)."""
    if not Path(os.path.abspath(path)).is_relative_to(os.path.abspath(folder)):
        raise CulturevalError(f"{folder} declares the data file {path}, which is outside it; it is not read.")
    return path


def _matches(path: Path, pattern: str) -> bool:
    return Path(str(path).lower()).match(pattern)


def _open_text(path: Path) -> TextIO:
    if path.name.lower().endswith(".gz"):
        return TextIOWrapper(gzip.open(path), encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def csv_rows(file: TextIO, delimiter: str = ",") -> Iterator[Row]:
    """The rows of an open CSV file: cells stay strings, empty cells become None.

    Raises:
        ValueError: A row has more cells than the header.
        csv.Error: The file is not CSV.
    """
    csv.field_size_limit(10_000_000)
    for row in csv.DictReader(file, delimiter=delimiter, strict=True):
        if None in row:
            raise ValueError(f"a row has more cells than the header: {list(row.values())[:3]}")
        yield {name: cell or None for name, cell in row.items()}


def _jsonl_rows(file: TextIO) -> Iterator[Row]:
    broken: list[str] = []
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            broken.append(f"line {number}: {error}")
            continue
        if isinstance(row, dict):
            yield row
        else:
            broken.append(f"line {number}: expected an object")
    if broken:
        more = f"; and {len(broken) - MOST_LINES} more lines" if len(broken) > MOST_LINES else ""
        raise ValueError("; ".join(broken[:MOST_LINES]) + more)


def _json_rows(content: Any) -> list[Row]:
    if isinstance(content, list) and all(isinstance(row, dict) for row in content):
        return content
    if isinstance(content, dict) and content and all(isinstance(column, list) for column in content.values()):
        if len({len(column) for column in content.values()}) == 1:
            return [dict(zip(content, cells, strict=True)) for cells in zip(*content.values(), strict=True)]
    raise ValueError("expected a list of objects, or an object of lists of one length")
