"""Rows of a local folder of data files, without conversion of types.

The `datasets` library finds the files of a config and a split. Our own readers read them, because its CSV reader
guesses types: the option "07" would become 7 and "NA" a null.
"""

import csv
import gzip
import json
import logging
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from cultureval.runtime.errors import CulturevalError, SourceUnavailable, described, shown_names

Row = dict[str, Any]


class PlacedRow(NamedTuple):
    """A row with the name of its file and its number in that file, from 0."""

    file: str
    number: int
    row: Row
    path: Path | None = None  # its name in manifests, where file names repeat or one record makes several rows

    @property
    def name(self) -> str:
        """What results call the row."""
        return f"{self.file}:{self.number}"


SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".arrow")
DESCRIPTIONS = {"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json"}  # files without rows
BATCH = 64  # rows, which may hold images
_SHARD = re.compile(r"-(?P<number>\d{5})-of-(?P<all>\d{5})(?!\d)")
# Words in names of files with few-shot examples; parts of words (constraints, devices) do not count.
_EXAMPLES = re.compile(
    r"(?<![a-z])(?:train(?:ing)?|dev(?:elopment)?|val(?:id(?:ation)?)?)_?(?:set|data|split)?(?![a-z])"
)


def format_of(path: Path) -> str:
    """The suffix of a data file, in lower case and without a final `.gz`; "" for other files."""
    name = path.name.lower().removesuffix(".gz")
    return next((suffix for suffix in SUFFIXES if name.endswith(suffix)), "")


def read_rows(path: Path) -> list[Row]:
    """All rows of one data file (.csv, .tsv, .json, .jsonl, each also as .gz, .parquet or .arrow), in order.

    CSV cells stay strings and empty cells become None. A JSON file is a list of objects, or an object a line. Raises a
    CulturevalError where the file does not have the format of its name.
    """
    return list(iter_rows(path))


def iter_rows(path: Path) -> Iterator[Row]:
    """The rows of `read_rows`, one at a time; parquet and arrow files are read in batches."""
    suffix = format_of(path)
    try:
        if suffix in (".parquet", ".arrow"):
            for batch in _batches(path, suffix):
                yield from batch.to_pylist()
            return
        opened = gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb")
        with TextIOWrapper(opened, encoding="utf-8-sig", newline="") as file:
            if suffix in (".csv", ".tsv"):
                yield from csv_rows(file, "\t" if suffix == ".tsv" else ",")
            else:
                yield from _json_rows(file.read(), lines=suffix == ".jsonl")
    except FileNotFoundError as error:
        raise CulturevalError(f"{path} does not exist.") from error
    except (ValueError, OSError, EOFError, zlib.error, csv.Error) as error:
        coding = isinstance(error, UnicodeDecodeError)
        reason = f"it is not UTF-8 ({error.reason}): save it as UTF-8." if coding else error
        raise CulturevalError(f"{path} cannot be read as {suffix[1:] or 'json'}: {reason}") from error


def _batches(path: Path, suffix: str) -> Iterator[Any]:
    """The batches of a parquet file, or of an Arrow stream as `datasets` writes it."""
    if suffix == ".arrow":
        import datasets

        yield from datasets.Dataset.from_file(str(path)).data.to_batches(max_chunksize=BATCH)
        return
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as table:
        yield from table.iter_batches(batch_size=BATCH)


def files_of_split(folder: Path, configs: Sequence[str], splits: Sequence[str]) -> list[Path]:
    """The data files of the first of `splits` that the first known one of `configs` has; [] if there are none.

    Raises a CulturevalError where the README cannot be read, it declares files that are missing or outside the folder,
    or a split has several files that are not shards.
    """
    if "default" not in configs and not declares_configs(folder):
        return []  # its only config would be "default"
    known = config_names(folder)
    config = next((name for name in configs if name in known), None)
    data_files = _data_files(folder, config) if config is not None else {}
    split = next((name for name in splits if name in data_files), None)
    files = [_inside(Path(file), folder) for file in data_files[split]] if split else []
    require_one_file(files, folder)
    return files


@lru_cache(maxsize=256)
def declares_configs(folder: Path) -> bool:
    """Whether a folder's README declares configs; CulturevalError if it is unreadable or declares one twice."""
    from huggingface_hub import metadata_load

    readme = folder / "README.md"
    try:
        configs = (metadata_load(readme) if readme.is_file() else None) or {}
    except Exception as error:  # errors of YAML or of the encoding
        raise CulturevalError(f"The front matter of {readme} cannot be read: {described(error)}") from error
    listed = configs.get("configs")
    names = Counter(str(config.get("config_name")) for config in listed or () if isinstance(config, dict))
    if twice := [name for name, count in names.items() if count > 1]:
        raise CulturevalError(f"{readme} declares the config {twice[0]!r} {names[twice[0]]} times: keep one.")
    return listed is not None


def config_names(folder: Path) -> tuple[str, ...]:
    """Names of the configs that a local folder declares, or that its files imply; () if it holds no data files."""
    return tuple(_configs(folder))


@lru_cache(maxsize=1024)
def _data_files(folder: Path, config: str) -> dict[str, list[str]]:
    """Paths by split."""
    files = _configs(folder)[config].data_files or {}
    if hasattr(files, "resolve"):  # patterns
        with _refusing(folder):
            files = files.resolve(str(folder.absolute()))
    return {str(split): list(map(str, paths)) for split, paths in files.items()}


@lru_cache(maxsize=256)
def _configs(folder: Path) -> dict[str, Any]:
    """The configs as `datasets` has them, each with its `data_files`; {} of a folder without data files."""
    import datasets

    datasets.disable_progress_bars()
    logging.getLogger("huggingface_hub.repocard").setLevel(logging.ERROR)
    declared = declares_configs(folder)
    try:
        with _refusing(folder):
            module = datasets.load.dataset_module_factory(str(folder))
    except SourceUnavailable:
        if declared:
            raise
        return {}
    return {config.name: config for config in module.builder_configs_parameters.builder_configs}


@contextmanager
def _refusing(folder: Path) -> Iterator[None]:
    """A context that turns errors of the `datasets` library about a folder into CulturevalErrors."""
    try:
        yield
    except FileNotFoundError as error:
        raise SourceUnavailable(f"{folder} lacks a data file that its README declares: {error}") from error
    except Exception as error:  # many kinds, for a README or files that the library does not accept
        raise CulturevalError(
            f"The datasets library cannot find the data files of {folder} ({described(error)}): correct `configs` in "
            "its README."
        ) from error


def forget_folders() -> None:
    """Clears the caches about folders, which may change between two runs of one process."""
    for cached in (declares_configs, _configs, _data_files):
        cached.cache_clear()


def files_matching(folder: Path, patterns: Iterable[str]) -> list[Path]:
    """Data files with a relative path that matches a glob pattern, ignoring case, sorted."""
    lowered = [pattern.lower() for pattern in patterns]
    return sorted(
        path
        for path in (folder.rglob("*") if lowered else ())
        if format_of(path)
        and path.name not in DESCRIPTIONS
        and any(Path(str(path.relative_to(folder)).lower()).match(pattern) for pattern in lowered)
        and path.is_file()
    )


def holds_examples(path: Path) -> bool:
    """Whether a relative path names few-shot examples by a word: train, dev, validation."""
    for part in (*path.parts[:-1], path.stem):
        parted = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", part)  # splits MMLUTrain, not TRAINset
        if any(_EXAMPLES.search(name.lower()) for name in (part, parted)):
            return True
    return False


def require_one_file(files: Sequence[Path], place: Path) -> None:
    """Checks that a split has one file, or all of its shards (`test-00000-of-00002.parquet`).

    Raises:
        CulturevalError: A shard is missing, or there are several other files, which would count rows twice.
    """
    shards = [shard for file in files if (shard := _SHARD.search(file.name))]
    numbers = sorted(int(shard["number"]) for shard in shards)
    if shards and len(shards) == len(files) and numbers == list(range(int(shards[0]["all"]))):
        return
    if shards or len(files) > 1:
        names = shown_names([str(file.relative_to(place)) for file in files])
        problem = "are not all shards of one split: fetch all" if shards else "are of one split: keep one of them"
        raise CulturevalError(f"{place}: {names} {problem}.")


def _inside(path: Path, folder: Path) -> Path:
    """The path; a CulturevalError where it is outside its folder (links of the hub's cache are fine)."""
    real = folder.resolve()  # `datasets` finds files under the resolved path
    if path.is_relative_to(real):
        path = folder / path.relative_to(real)
    if not Path(os.path.abspath(path)).is_relative_to(os.path.abspath(folder)):
        raise CulturevalError(f"{folder} declares the data file {path}, which is outside it: correct the README.")
    return path


def csv_rows(file: TextIO, delimiter: str = ",") -> Iterator[Row]:
    """The rows of an open CSV file: cells stay strings, empty cells become None; raises ValueError or csv.Error."""
    csv.field_size_limit(10_000_000)
    for row in csv.DictReader(file, delimiter=delimiter, strict=True):
        if None in row:
            raise ValueError(f"a row has more cells than the header: {list(row.values())[:3]}")
        yield {name: cell or None for name, cell in row.items()}


def utf8_text(path: Path) -> str:
    """The text of a file without a byte-order mark, with its line ends; CulturevalError if missing or no UTF-8."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise CulturevalError(f"{path} does not exist.") from None
    except (UnicodeDecodeError, OSError) as error:
        raise CulturevalError(f"{path} cannot be read as UTF-8: {described(error)}") from error


def _json_rows(text: str, lines: bool) -> list[Row]:
    """The rows of a JSON list of objects, or of JSON lines (in `.json` files too); raises ValueError."""
    rows: list[Row] = []
    if not lines and text.lstrip().startswith("["):
        rows = json.loads(text)
    else:
        for number, line in enumerate(text.split("\n"), start=1):
            try:
                rows += [json.loads(line)] if line.strip() else []
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from error
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("expected a list of objects, or an object a line")
    return rows
