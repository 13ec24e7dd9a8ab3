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
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from io import StringIO, TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from cultureval.runtime.data.declared_files import (
    DESCRIPTIONS,
    declared_files,
    declares_configs,
    format_of,
    front_matter,
    saved_files,
)
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
_SHARD = re.compile(
    r"(?P<name>.*?)[-_. ]?(?:part|shard)?[-_. ]?(?<!\d)(?P<number>\d{1,6})[-_ ]?of[-_ ]?(?P<all>\d{1,6})(?!\d)",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"(?P<name>.*?)(?<!\d)(?P<number>\d{1,6})")
# A word of a file's name, not a part of one (constraints, devices), says that it holds few-shot examples.
_EXAMPLES = re.compile(
    r"(?<![a-z])(?:train(?:ing)?|dev(?:elopment)?|val(?:id(?:ation)?)?)_?(?:set|data|split)?(?![a-z])"
)


def read_rows(path: Path) -> list[Row]:
    """All rows of one data file (.csv, .tsv, .json, .jsonl, each also as .gz, .parquet or .arrow), in order.

    CSV cells stay strings and empty cells become None. A JSON file is a list of objects, an object of lists of one
    length (parallel columns), or an object a line.

    Raises:
        CulturevalError: The file cannot be read as what its name says.
    """
    suffix = format_of(path)
    try:
        if suffix == ".parquet":
            import pyarrow.parquet

            return pyarrow.parquet.read_table(path).to_pylist()
        if suffix == ".arrow":
            return [row for batch in _arrow_batches(path) for row in batch]
        with _open_text(path) as file:
            if suffix in (".csv", ".tsv"):
                return list(csv_rows(file, "\t" if suffix == ".tsv" else ","))
            if suffix == ".jsonl":
                return list(_jsonl_rows(file))
            return _json_rows(file.read())
    except (ValueError, OSError, EOFError, zlib.error, csv.Error) as error:
        if isinstance(error, FileNotFoundError):
            raise CulturevalError(f"{path} does not exist.") from error
        if isinstance(error, UnicodeDecodeError):
            raise CulturevalError(
                f"{path} cannot be read as {suffix[1:] or 'json'}: it is not UTF-8 ({error.reason}): save it as UTF-8."
            ) from error
        raise CulturevalError(f"{path} cannot be read as {suffix[1:] or 'json'}: {error}") from error


def iter_rows(path: Path) -> Iterator[Row]:
    """The rows of `read_rows`, one by one; parquet and arrow files, which may hold images, are read in batches.

    Raises:
        CulturevalError: As `read_rows`.
    """
    suffix = format_of(path)
    if suffix not in (".parquet", ".arrow"):
        yield from read_rows(path)
        return
    import pyarrow.parquet

    try:
        if suffix == ".arrow":
            for rows in _arrow_batches(path):
                yield from rows
            return
        with pyarrow.parquet.ParquetFile(path) as table:
            for batch in table.iter_batches(batch_size=64):
                yield from batch.to_pylist()
    except (ValueError, OSError) as error:
        raise CulturevalError(f"{path} cannot be read as {suffix[1:]}: {error}") from error


def rows_of_files(files: Sequence[Path], task: object) -> Iterator[PlacedRow]:
    """The rows of files, one by one, in the form of `Source.read`: their cells may hold thousands of images."""
    for file in files:
        yield from (PlacedRow(file.name, number, row) for number, row in enumerate(iter_rows(file)))


def _arrow_batches(path: Path) -> Iterator[list[Row]]:
    """The rows of an Arrow file, a stream as `datasets` writes it or a file with an index, in batches."""
    import pyarrow.ipc

    with path.open("rb") as file:
        indexed = file.read(6) == b"ARROW1"
        file.seek(0)
        reader = pyarrow.ipc.open_file(file) if indexed else pyarrow.ipc.open_stream(file)
        batches = map(reader.get_batch, range(reader.num_record_batches)) if indexed else reader
        for batch in batches:
            for start in range(0, batch.num_rows, 64):
                yield batch.slice(start, 64).to_pylist()


def files_of_split(folder: Path, configs: Sequence[str], splits: Sequence[str]) -> list[Path]:
    """The data files of the first of `splits` that the first known one of `configs` has; [] if there are none.

    Raises:
        SourceUnavailable: The folder's README declares files for that config, and some are not there.
        CulturevalError: They are outside the folder.
    """
    if "default" not in configs and not declares_configs(folder) and not saved_files(folder):
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
    if (declared := declared_files(folder) or saved_files(folder)) is not None:
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
    if (declared := declared_files(folder) or saved_files(folder)) is not None:
        return tuple(declared)
    try:
        found = tuple(_datasets().get_dataset_config_names(str(folder)))
        if lost := [name for name in _declared_configs(folder) if name not in found]:  # as by a byte-order mark
            raise ValueError(f"it does not find the config {lost[0]!r}, which the README declares")
        return found
    except FileNotFoundError:  # also where a declared file is missing
        return _declared_configs(folder)
    except Exception as error:  # of many kinds: for a README, or files, that the library does not accept
        raise _refused(folder, error) from error


def forget_folders() -> None:
    """Lets folders be looked at anew: between two runs of one process they may have changed."""
    for kept in (declared_files, saved_files, front_matter, _data_files, config_names):
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
        for path in (folder.rglob("*") if lowered else ())
        if format_of(path)
        and path.name not in DESCRIPTIONS
        and any(_matches(path.relative_to(folder), item) for item in lowered)
        and path.is_file()
    )


def files_named_by_split(folder: Path, splits: Sequence[str]) -> list[Path]:
    """The data files of the first of `splits` that a folder names: `test.csv`, `test-00000-of-00002.parquet`, `test/`.

    Only files directly in the folder, or in a folder of the split's name.
    """
    files = files_matching(folder, ["*"])
    for split in splits:
        named = re.compile(rf"{re.escape(split.lower())}(?![a-z0-9])")
        found = [
            file
            for file in files
            if named.match((parts := file.relative_to(folder).parts)[0].lower()) and len(parts) < 3
        ]
        if found:
            return found
    return []


def holds_examples(path: Path) -> bool:
    """Whether a word of a file's path below its folder says that it holds few-shot examples: train, dev, validation."""
    for part in (*path.parts[:-1], path.stem):
        parted = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", part)  # MMLUTrain, not TRAINset
        if any(_EXAMPLES.search(name.lower()) for name in (part, parted)):
            return True
    return False


def require_whole(files: Sequence[Path]) -> None:
    """Checks that files of one split are all of its shards, and none is there in two formats.

    Raises:
        CulturevalError: `test-00001-of-00002.parquet` is missing, or `test.csv` stands beside `test.parquet`.
    """
    stems: dict[Path, Path] = {}
    shards: dict[tuple[Path, str, int], set[int]] = {}
    for file in files:
        stem = file.with_name(re.sub(rf"{re.escape(format_of(file))}(?:\.gz)?$", "", file.name, flags=re.IGNORECASE))
        if (other := stems.setdefault(stem, file)) != file:
            raise CulturevalError(
                f"{other.parent} holds {other.name} and {file.name}, one set of rows in two formats, which would count "
                "twice: move one of them out of the folder, or name the other by `files` in a file for --sources."
            )
        if shard := _SHARD.match(file.name):
            shards.setdefault((file.parent, shard["name"], int(shard["all"])), set()).add(int(shard["number"]))
    for (folder, name, count), numbers in shards.items():
        if len(numbers) < count:
            first = int(count in numbers and 0 not in numbers)
            missing = sorted({*range(first, count + first)} - numbers)
            raise CulturevalError(
                f"{folder} holds {len(numbers)} of the {count} shards of {name}; number "
                f"{', '.join(map(str, missing[:5]))} is missing: fetch the whole data set."
            )


def missing_numbers(files: Sequence[Path]) -> list[str]:
    """Sentences on files that are numbered from 0 or 1 with gaps, which their names do not say to be shards of a whole.

    Files that begin with a greater number, or whose last two numbers are far apart, are numbered otherwise (years).
    """
    numbers: dict[tuple[Path, str, str], set[int]] = {}
    for file in files:
        stem = file.name.removesuffix(".gz").removesuffix(".GZ").rpartition(".")[0]
        if (found := _NUMBERED.fullmatch(stem)) and not _SHARD.match(file.name):
            numbers.setdefault((file.parent, found["name"], format_of(file)), set()).add(int(found["number"]))
    told = []
    for (folder, name, suffix), known in numbers.items():
        gaps = sorted({*range(min(known), max(known))} - known)
        if gaps and min(known) < 2 and len(known) > len(gaps):
            told.append(
                f"{folder.name} holds the files {name}{', '.join(map(str, sorted(known)[:5]))} ({suffix}); if they are "
                f"parts of one table, {', '.join(map(str, gaps[:5]))} is missing."
            )
    return told


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


def utf8_text(path: Path) -> str:
    """The text of a file, without a byte-order mark; its line ends are kept.

    Raises:
        CulturevalError: It cannot be read, or is not UTF-8.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise CulturevalError(f"{path} is not UTF-8 ({error.reason}): save it as UTF-8.") from error
    except OSError as error:
        raise CulturevalError(f"{path} cannot be read: {error.strerror}.") from error


def _jsonl_rows(file: Iterable[str]) -> Iterator[Row]:
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


def _json_rows(text: str) -> list[Row]:
    try:
        content = json.loads(text)
    except ValueError:
        if text.count("\n") and text.lstrip().startswith("{") and text.partition("\n")[0].rstrip().endswith("}"):
            return list(_jsonl_rows(StringIO(text)))  # an object a line, under the wrong name
        raise
    if isinstance(content, dict) and not any(isinstance(column, list) for column in content.values()):
        content = [content] if "\n" not in text.strip() else content  # one line of JSON lines
    if isinstance(content, list) and all(isinstance(row, dict) for row in content):
        return content
    if isinstance(content, dict) and content and all(isinstance(column, list) for column in content.values()):
        if len({len(column) for column in content.values()}) == 1:
            return [dict(zip(content, cells, strict=True)) for cells in zip(*content.values(), strict=True)]
    raise ValueError("expected a list of objects, an object of lists of one length, or an object a line")
