"""Manifests of audits: which rows of a source are kept, discarded or still to be reviewed, and why; never their text.

A manifest is a JSON-lines file. Its first line is `{"format": "cultureval-manifest", "version": 1}`; each other line is
one row of a source:

    {"source": "QCRI/AraDiCE-Culture", "revision": "1f3a...", "subset": "Egypt", "row": "Egypt/test.csv:17",
     "hash": "<64 hexadecimal digits>", "decision": "discard", "reasons": ["check:missing_gold"], "by": ["check"]}

`row` is the file below the source's folder and the number of the row in it, from 0; `hash` is that of the row's cells
(`row_hash`). Reasons, and those who gave them, are words without spaces, so that no text of an item can stand in a
manifest. It may be published where the data may not.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cultureval.runtime.data.row_files import PlacedRow, Row
from cultureval.runtime.data.user_cache import write_json_lines
from cultureval.runtime.errors import CulturevalError, shown_names, wrong_settings
from cultureval.runtime.signatures import combined_hash

HEAD = {"format": "cultureval-manifest", "version": 1}

Decision = Literal["keep", "discard", "review"]
Code = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:+=@/-]{1,120}$")]
Name = Annotated[str, Field(min_length=1, max_length=4000)]


class ManifestRow(BaseModel):
    """The decision on one row of a source: a line of a manifest.

    Attributes:
        source: `org/name` of the data set, or the name of the file or folder that was audited by its path.
        revision: Commit on the hub, or "local".
        subset: The subset's name in the paper, or the file's name.
        decision: "keep", "discard", or "review" (a person has to decide; until then the row is kept).
        reasons: What led to the decision: `check:NAME`, `judge:NAME:CRITERION`, `person:VERDICT`.
        by: Who decided: `check`, `judge:NAME`, `person:ID`, ...
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    source: Name
    revision: str
    subset: str
    row: Annotated[str, Field(pattern=r"^.{1,4000}:[0-9]{1,12}$")]
    hash: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    decision: Decision
    reasons: list[Code] = []
    by: list[Code] = []


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

    def require_fit(self, source: str, subset: str, hashes: Mapping[str, str]) -> None:
        """Refuses data of which a row that was decided on has other cells, or is gone; takes the hashes of those read.

        Raises:
            CulturevalError: It names such rows.
        """
        decided = self.by_source.get(source, {})
        changed = [name for name, found in hashes.items() if found != decided[name].hash]
        gone = [name for name, one in decided.items() if one.subset == subset and name not in hashes]
        if changed or gone:
            raise misfit(self, source, changed, gone)


def misfit(manifest: Manifest, source: str, changed: Sequence[str], gone: Sequence[str]) -> CulturevalError:
    """The error of a manifest that does not fit a source's data: rows with other cells, and rows that are gone."""
    told = {"rows have other content": changed, "rows are no longer there": gone}
    what = "; ".join(f"{problem}: {shown_names(names)}" for problem, names in told.items() if names)
    return CulturevalError(
        f"The manifest {manifest.name} does not fit the data of {source} ({what}): audit them again, or read the "
        "revision that it names."
    )


def row_name(placed: PlacedRow, files: Sequence[Path], folder: Path) -> str:
    """The name of a row in manifests: its file (one of those that are read) below the folder, and its number there."""
    named = (file for file in files if str(file).endswith(f"/{placed.file}"))
    file = placed.path or next(named, Path(placed.file))
    return f"{relative_path(file, folder)}:{placed.number}"


def relative_path(file: Path, folder: Path) -> str:
    """A file's path below a source's folder."""
    return file.relative_to(folder).as_posix() if file.is_relative_to(folder) else file.name


def row_hash(row: Row, folder: Path | None = None) -> str:
    """SHA-256 of the cells of a row, 64 hexadecimal digits; the same on every machine.

    Args:
        row: The row; columns that our readers add (`__...`) do not count, images count by their bytes.
        folder: The source's folder: paths below it count from there.
    """

    def of_object(value: Any) -> Any:
        return {"bytes": hashlib.sha256(value).hexdigest()} if isinstance(value, bytes) else str(value)

    cells = {
        name: value.removeprefix(f"{folder}/") if isinstance(value, str) and folder else value
        for name, value in row.items()
        if not name.startswith("__")
    }
    text = json.dumps(cells, sort_keys=True, ensure_ascii=False, default=of_object)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def read_manifest(path: Path) -> Manifest:
    """The manifest of a file; CulturevalError where it is none, a line breaks the form, or two decide on one row."""
    rows: dict[tuple[str, str], ManifestRow] = {}
    with path.open(encoding="utf-8") as lines:
        try:
            head = json.loads(next(lines, ""))
        except (ValueError, RecursionError):
            head = None
        if head != HEAD:
            raise CulturevalError(f"{path} is no manifest: its first line is not {json.dumps(HEAD)}.")
        for number, line in enumerate(lines, start=2):
            try:
                one = ManifestRow.model_validate_json(line)
            except ValidationError as error:
                raise CulturevalError(f"{path}, line {number}: {wrong_settings(error)}.") from None
            if rows.setdefault((one.source, one.row), one) is not one:
                raise CulturevalError(f"{path}, line {number}: {one.source} {one.row} is decided on twice.")
    return Manifest(path.name, tuple(rows.values()))


def manifest_of(paths: Sequence[Path]) -> Manifest | None:
    """The manifest of one or several files, read once while they stay the same; None without any."""
    return _of_files(tuple((path, path.stat().st_mtime_ns) for path in paths)) if paths else None


@lru_cache(maxsize=4)
def _of_files(files: tuple[tuple[Path, int], ...]) -> Manifest:
    return merged([read_manifest(path) for path, _ in files])


def write_manifest(path: Path, rows: Iterable[ManifestRow]) -> Manifest:
    """Writes a manifest, its rows in the order of sources and rows, and returns it."""

    def place(one: ManifestRow) -> tuple[str, str, int]:
        file, _, number = one.row.rpartition(":")
        return one.source, file, int(number)

    ordered = sorted(rows, key=place)
    write_json_lines(path.expanduser(), [HEAD, *(one.model_dump() for one in ordered)])
    return Manifest(path.name, tuple(ordered))


def merged(manifests: Sequence[Manifest]) -> Manifest:
    """One manifest of several: a person's decision counts before others, then discard, review, keep in this order.

    Raises:
        CulturevalError: Two of them hold different content of one row.
    """

    def weight(row: ManifestRow) -> tuple[bool, int]:
        by_person = row.decision != "review" and any(name.startswith("person:") for name in row.by)
        return by_person, ["keep", "review", "discard"].index(row.decision)

    rows: dict[tuple[str, str], ManifestRow] = {}
    for one in (one for manifest in manifests for one in manifest.rows):
        other = rows.setdefault((one.source, one.row), one)
        if other.hash != one.hash:
            raise CulturevalError(f"Two manifests hold different content of {one.source} {one.row}.")
        first, second = (other, one) if weight(other) >= weight(one) else (one, other)
        joined = {name: list(dict.fromkeys(getattr(first, name) + getattr(second, name))) for name in ("reasons", "by")}
        rows[one.source, one.row] = first.model_copy(update=joined)
    return Manifest("+".join(one.name for one in manifests), tuple(rows.values()))
