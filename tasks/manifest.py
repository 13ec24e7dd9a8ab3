"""Manifests of audits: which rows of a source are kept, discarded or still to be reviewed, and why; never their text.

A manifest is a JSON-lines file. Its first line is `{"format": "cultureval-manifest", "version": 1}`; each other line is
one row of a source:

    {"source": "QCRI/AraDiCE-Culture", "revision": "1f3a...", "subset": "Egypt", "row": "Egypt/test.csv:17",
     "hash": "<64 hexadecimal digits>", "decision": "discard", "reasons": ["check:missing_gold"], "by": ["check"]}

`row` is the file below the source's folder and the number of the row in it, from 0; `hash` is that of the row's cells
(`row_hash`). Reasons, and those who gave them, are words of a closed form without spaces, so that no text of an item
can stand in a manifest. It may be published where the data may not.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cultureval.runtime.data.row_files import PlacedRow, Row
from cultureval.runtime.data.user_cache import write_atomically
from cultureval.runtime.errors import CulturevalError, Problems, wrong_settings
from cultureval.runtime.signatures import combined_hash

FORMAT, VERSION = "cultureval-manifest", 1
CODE = r"^[A-Za-z0-9_.:+=@/-]{1,120}$"
# Neither control characters, nor those that turn the direction of a line, nor breaks of lines.
PRINTED = r"[^\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]"
NAME = rf"^{PRINTED}{{0,1000}}$"
MOST_BYTES = 1 << 30
SHOWN_ROWS = 10  # changed rows that an error lists

Decision = Literal["keep", "discard", "review"]
Code = Annotated[str, Field(pattern=CODE)]


@lru_cache(maxsize=4096)
def printed(name: str) -> str:
    """The name of a file or folder as a manifest may hold it: other characters become escapes."""
    return re.sub(rf"(?!{PRINTED})[\s\S]|[\ud800-\udfff]", lambda one: one[0].encode("unicode_escape").decode(), name)


class ManifestRow(BaseModel):
    """The decision on one row of a source.

    Attributes:
        source: `org/name` of the data set, or the name of the file or folder that was audited by its path.
        revision: Commit on the hub, or "local".
        subset: The subset's name in the paper, or the file's name; for tables, not to find the row.
        row: Path of the file below the source's folder, a colon, and the row's number in it from 0.
        hash: SHA-256 of the row's cells, 64 hexadecimal digits.
        decision: "keep", "discard", or "review" (a person has to decide; until then the row is kept).
        reasons: What led to the decision: `check:NAME`, `judge:NAME:CRITERION`, `person:VERDICT`.
        by: Who decided: `check`, `judge:NAME`, `person:ID`, ...
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    source: str = Field(pattern=NAME, min_length=1)
    revision: str = Field(pattern=NAME)
    subset: str = Field(pattern=NAME)
    row: str = Field(pattern=rf"^{PRINTED}{{1,4000}}:[0-9]{{1,12}}$")
    hash: str = Field(pattern=r"^[0-9a-f]{64}$")
    decision: Decision
    reasons: list[Code] = Field(default_factory=list, max_length=200)
    by: list[Code] = Field(default_factory=list, max_length=200)


@dataclass(frozen=True)
class Manifest:
    """Decisions on rows.

    Attributes:
        name: The file's name, for messages.
        rows: One for each row of a source that was decided on.
    """

    name: str
    rows: tuple[ManifestRow, ...]

    @cached_property
    def hash(self) -> str:
        """First eight hexadecimal digits of a SHA-256 of the decisions, whatever their order; for signatures."""
        return combined_hash("\t".join((one.source, one.row, one.hash, one.decision)) for one in self.rows)

    @cached_property
    def by_source(self) -> dict[str, dict[str, ManifestRow]]:
        """Source -> row -> its decision."""
        found: dict[str, dict[str, ManifestRow]] = {}
        for one in self.rows:
            found.setdefault(one.source, {})[one.row] = one
        return found

    def count(self, decision: Decision) -> int:
        """Number of rows with a decision."""
        return sum(one.decision == decision for one in self.rows)


class Selection:
    """The rows of a task's source that a manifest discards, found while the source is read; `subset` is the task's."""

    def __init__(self, manifest: Manifest | None, source: str, folder: Path, subset: str) -> None:
        self.manifest, self.source, self.folder, self.subset = manifest, source, folder, subset
        self.wanted = manifest.by_source.get(source, {}) if manifest else {}
        self.for_review = 0
        self.changed: list[str] = []
        self.seen: set[str] = set()

    def leaves_out(self, placed: PlacedRow, files: Sequence[Path], selected: bool = True) -> bool:
        """Whether the manifest discards a row; one whose cells changed since is noted for `finish`.

        With `selected` False the task does not read the row, which may be another subset's.
        """
        if not self.wanted:
            return False
        name = row_name(placed, files, self.folder)
        self.seen.add(name)
        decided = self.wanted.get(name) if selected else None
        if decided is None:
            return False
        if row_hash(placed.row, self.folder) != decided.hash:
            self.changed.append(name)
            return False
        self.for_review += decided.decision == "review"
        return decided.decision == "discard"

    def finish(self, files: Iterable[Path]) -> None:
        """Checks, after the last row of these files, that the manifest fits the data: no row has changed or is gone.

        Nor is it of files that are not there at all, as where the same rows lie unpacked, so that it left out none.
        """
        if not self.wanted or self.manifest is None:
            return
        read = {printed(relative_path(file, self.folder)) for file in files}
        own = {name for name, one in self.wanted.items() if one.subset == self.subset}
        elsewhere = own if self.seen.isdisjoint(own) and not any(map(self._has_file_of, own)) else ()
        gone = [name for name in self.wanted if name.rpartition(":")[0] in read or name in elsewhere]
        gone = [name for name in gone if name not in self.seen]
        if self.changed or gone:
            raise misfit(self.manifest, self.source, self.changed, gone)

    def _has_file_of(self, name: str) -> bool:
        return (self.folder / name.rpartition(":")[0].partition("@")[0]).exists()  # @: of several sets in one file

    def report(self, discarded: int) -> dict[str, Any]:
        """What a run records of the manifest; `discarded` rows were left out of the evaluated ones."""
        known = self.manifest or Manifest("", ())
        return {"name": known.name, "hash": known.hash, "discarded": discarded, "for_review": self.for_review}


def refuse_on_cleaned(manifest: Manifest, folder: Path) -> None:
    """Refuses a manifest for data that `audit apply` has cleaned already: results name one, with what it left out."""
    raise CulturevalError(
        f"The manifest {manifest.name} cannot be taken with {folder}, which `cultureval audit apply` has cleaned by "
        "another: clean the source by both (--manifest, once for each), or read the source with both."
    )


def misfit(manifest: Manifest, source: str, changed: Sequence[str], gone: Sequence[str]) -> CulturevalError:
    """The error of a manifest that does not fit a source's data: rows with other cells, and rows that are gone."""
    problems = [f"{name} has other content than when it was audited" for name in changed]
    problems += [f"{name} is no longer there" for name in gone]
    more = [f"and {len(problems) - SHOWN_ROWS} more rows"] if len(problems) > SHOWN_ROWS else []
    first = (
        f"The manifest {manifest.name} does not fit the data of {source}: audit them again, or read the revision that "
        "it names."
    )
    return Problems([first, *problems[:SHOWN_ROWS], *more])


def row_name(placed: PlacedRow, files: Sequence[Path], folder: Path) -> str:
    """The name of a row in manifests: its file (one of those that are read) below the folder, and its number there."""
    named = (file for file in files if str(file).endswith(f"/{placed.file}"))
    file = placed.path or next(named, Path(placed.file))
    return f"{printed(relative_path(file, folder))}:{placed.number}"


def relative_path(file: Path, folder: Path) -> str:
    """A file's path below a source's folder."""
    return file.relative_to(folder).as_posix() if file.is_relative_to(folder) else file.name


def row_hash(row: Row, folder: Path | None = None) -> str:
    """SHA-256 of the cells of a row, 64 hexadecimal digits; the same on every machine.

    Args:
        row: The row; columns that our readers add (`__...`) do not count, images count by their bytes.
        folder: The source's folder: paths below it count from there.
    """
    inside = f"{folder}/" if folder else None

    def plain(value: Any) -> Any:
        if isinstance(value, str):
            return value.removeprefix(inside) if inside else value
        if isinstance(value, Mapping):
            return {str(name): plain(cell) for name, cell in value.items()}
        if isinstance(value, list | tuple):
            return [plain(cell) for cell in value]
        if isinstance(value, bytes):
            return {"bytes": hashlib.sha256(value).hexdigest()}
        return value

    cells = {str(name): plain(cell) for name, cell in row.items() if not str(name).startswith("__")}
    text = json.dumps(cells, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def read_manifest(path: Path) -> Manifest:
    """The manifest of a file.

    Raises:
        CulturevalError: It is no manifest, a line breaks the form, or two lines decide on one row.
    """
    lines = _lines(path)
    rows: dict[tuple[str, str], ManifestRow] = {}
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        try:
            one = ManifestRow.model_validate_json(line)
        except ValidationError as error:
            raise CulturevalError(f"{path}, line {number}: {wrong_settings(error)}.") from None
        if rows.setdefault((one.source, one.row), one) is not one:
            raise CulturevalError(f"{path}, line {number}: {one.source} {one.row} is decided on twice.")
    return Manifest(path.name, tuple(rows.values()))


def manifest_of(paths: Sequence[Path]) -> Manifest | None:
    """The manifest of one or several files, read once while they stay the same; None without any."""
    if not paths:
        return None
    return _of_files(tuple((path, path.stat().st_size, path.stat().st_mtime_ns) for path in paths))


@lru_cache(maxsize=4)
def _of_files(files: tuple[tuple[Path, int, int], ...]) -> Manifest:
    """The manifest of files with their sizes and times of change, which tell a changed file from a known one."""
    read = [read_manifest(path) for path, _, _ in files]
    return read[0] if len(read) == 1 else merged(read)


def _lines(path: Path) -> list[str]:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise CulturevalError(f"{path} is larger than a manifest may be (1 GiB).")
        lines = path.read_text(encoding="utf-8").split("\n")
        head = json.loads(lines[0])
    except (ValueError, RecursionError) as error:
        raise CulturevalError(f"{path} is no manifest: its first line is not JSON ({error}).") from error
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise CulturevalError(f'{path} is no manifest: its first line is not {{"format": "{FORMAT}", ...}}.')
    if head.get("version") != VERSION:
        raise CulturevalError(f"{path} is a manifest of version {head.get('version')!r}; this program reads {VERSION}.")
    return lines


def write_manifest(path: Path, rows: Iterable[ManifestRow]) -> Manifest:
    """Writes a manifest, its rows in the order of sources and rows, and returns it."""
    ordered = sorted(rows, key=lambda one: (one.source, *_place(one.row)))
    head = json.dumps({"format": FORMAT, "version": VERSION})
    lines = [head, *(json.dumps(one.model_dump(), ensure_ascii=False) for one in ordered)]
    write_atomically(path.expanduser(), "".join(f"{line}\n" for line in lines).encode("utf-8"))
    return Manifest(path.name, tuple(ordered))


def merged(manifests: Sequence[Manifest]) -> Manifest:
    """One manifest of several: a person's decision counts before others, then discard, review, keep in this order.

    Raises:
        CulturevalError: Two of them hold different content of one row.
    """
    strict = {"discard": 2, "review": 1, "keep": 0}
    rows: dict[tuple[str, str], ManifestRow] = {}
    for manifest in manifests:
        for one in manifest.rows:
            key = (one.source, one.row)
            other = rows.get(key)
            if other is None:
                rows[key] = one
                continue
            if other.hash != one.hash:
                raise CulturevalError(f"{manifest.name}: {one.source} {one.row} has other content than in the others.")
            first, second = sorted((other, one), key=lambda row: (_by_person(row), strict[row.decision]), reverse=True)
            joined = {
                name: list(dict.fromkeys([*getattr(first, name), *getattr(second, name)])) for name in ("reasons", "by")
            }
            rows[key] = first.model_copy(update=joined)
    return Manifest("+".join(one.name for one in manifests), tuple(rows.values()))


def _by_person(row: ManifestRow) -> bool:
    return row.decision != "review" and any(name.startswith("person:") for name in row.by)


def _place(row: str) -> tuple[str, int]:
    file, _, number = row.rpartition(":")
    return file, int(number)
