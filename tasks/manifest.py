"""Manifests of audits: decisions to keep, discard or review rows of a source, with reasons but without texts.

A manifest is a JSON-lines file. Its first line is `{"format": "cultureval-manifest", "version": 1}`. Each other line is
a row of a source:

    {"source": "QCRI/AraDiCE-Culture", "revision": "1f3a...", "subset": "Egypt", "row": "Egypt/test.csv:17",
     "hash": "<64 hexadecimal digits>", "decision": "discard", "reasons": ["check:missing_gold"], "by": ["check"]}

`row` is the file below the source's folder and the row's number in it, from 0; `hash` is a hash of the row's cells
(`row_hash`). `reasons` and `by` are words without spaces, so a manifest has no text of an item. It may be published
even if the data may not.
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
    """A decision on a row of a source: a line of a manifest.

    Attributes:
        source: `org/name` of the data set, or the name of an audited file or folder.
        revision: Commit on the hub, or "local".
        subset: The subset's name in the paper, or the file's name.
        decision: "keep", "discard", or "review" (a person has to decide; until then the row is kept).
        reasons: Reasons of the decision: `check:NAME`, `judge:NAME:CRITERION`, `person:VERDICT`.
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
    by: list[Annotated[str, Field(pattern=r"^[\w.:+=@/-]{1,120}$")]] = []  # letters of any script

    @property
    def by_people(self) -> bool:
        """Whether a person is among those who decided."""
        return any(name.startswith("person:") for name in self.by)


@dataclass(frozen=True)
class Manifest:
    """Decisions on rows.

    Attributes:
        name: The file's name, for messages.
        rows: A decision for each audited row of a source.
    """

    name: str
    rows: tuple[ManifestRow, ...]

    @cached_property
    def hash(self) -> str:
        """First eight hexadecimal digits of a SHA-256 of the decisions in any order; for signatures."""
        return combined_hash("\t".join((row.source, row.row, row.hash, row.decision)) for row in self.rows)

    @cached_property
    def by_source(self) -> dict[str, dict[str, ManifestRow]]:
        """Source -> row -> decision."""
        found: dict[str, dict[str, ManifestRow]] = {}
        for row in self.rows:
            found.setdefault(row.source, {})[row.row] = row
        return found

    def require_source(self, sources: Iterable[str]) -> None:
        """Refuses, with a CulturevalError, data of which the manifest has no source."""
        if self.by_source and not {*sources} & {*self.by_source}:
            raise CulturevalError(
                f"The manifest {self.name} is of {shown_names(sorted(self.by_source))}, and the tasks read "
                f"{shown_names(sorted({*sources}))}: name the manifest of these data, or leave --manifest out."
            )

    def require_fit(self, source: str, subset: str, hashes: Mapping[str, str]) -> None:
        """Refuses data in which a row of the manifest has changed or is missing.

        Args:
            source: The data set.
            subset: The subset that was read.
            hashes: Name -> hash of each read row that is in the manifest.

        Raises:
            CulturevalError: It has the names of these rows.
        """
        decided = self.by_source.get(source, {})
        changed = [name for name, digest in hashes.items() if digest != decided[name].hash]
        missing = [name for name, row in decided.items() if row.subset == subset and name not in hashes]
        if changed or missing:
            raise misfit(self, source, changed, missing)


def misfit(manifest: Manifest, source: str, changed: Sequence[str], missing: Sequence[str]) -> CulturevalError:
    """The error of a manifest that does not fit a source's data: changed and missing rows."""
    problems = {"changed rows": changed, "missing rows": missing}
    text = "; ".join(f"{problem}: {shown_names(names)}" for problem, names in problems.items() if names)
    return CulturevalError(
        f"The manifest {manifest.name} does not fit the data of {source} ({text}): audit the data again, or use the "
        "manifest's revision of the data."
    )


def row_name(placed: PlacedRow, files: Sequence[Path], folder: Path) -> str:
    """The name of a row in manifests: its file (one of `files`) below the folder, and its number in the file."""
    matching = (file for file in files if str(file).endswith(f"/{placed.file}"))
    file = placed.path or next(matching, Path(placed.file))
    return f"{relative_path(file, folder)}:{placed.number}"


def relative_path(file: Path, folder: Path) -> str:
    """A file's path below a source's folder."""
    return file.relative_to(folder).as_posix() if file.is_relative_to(folder) else file.name


def row_hash(row: Row, folder: Path | None = None) -> str:
    """SHA-256 of the cells of a row, 64 hexadecimal digits; the same on every machine.

    Args:
        row: The row; columns of our readers (`__...`) are left out, images are hashed by their bytes.
        folder: The source's folder; paths in it are hashed relative to it.
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
    """The manifest of a file.

    Raises:
        CulturevalError: The file is no manifest, a line is wrong, or a row has two decisions.
    """
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
                row = ManifestRow.model_validate_json(line)
            except ValidationError as error:
                raise CulturevalError(f"{path}, line {number}: {wrong_settings(error)}.") from None
            if rows.setdefault((row.source, row.row), row) is not row:
                raise CulturevalError(f"{path}, line {number}: {row.source} {row.row} has two decisions.")
    return Manifest(path.name, tuple(rows.values()))


def manifest_of(paths: Sequence[Path]) -> Manifest | None:
    """The merged manifest of some files, cached until they change; None without files."""
    return _of_files(tuple((path, path.stat().st_mtime_ns) for path in paths)) if paths else None


@lru_cache(maxsize=4)
def _of_files(files: tuple[tuple[Path, int], ...]) -> Manifest:
    return merged([read_manifest(path) for path, _ in files])


def write_manifest(path: Path, rows: Iterable[ManifestRow]) -> Manifest:
    """Writes a manifest, sorted by source and row, and returns it."""

    def place(row: ManifestRow) -> tuple[str, str, int]:
        file, _, number = row.row.rpartition(":")
        return row.source, file, int(number)

    ordered = sorted(rows, key=place)
    write_json_lines(path.expanduser(), [HEAD, *(row.model_dump() for row in ordered)])
    return Manifest(path.name, tuple(ordered))


def merged(manifests: Sequence[Manifest]) -> Manifest:
    """Merges manifests. A person's decision comes first, then discard, review and keep in this order.

    Raises:
        CulturevalError: Two manifests have different content of a row.
    """

    def weight(row: ManifestRow) -> tuple[bool, int]:
        by_person = row.decision != "review" and row.by_people
        return by_person, ["keep", "review", "discard"].index(row.decision)

    rows: dict[tuple[str, str], ManifestRow] = {}
    for row in (row for manifest in manifests for row in manifest.rows):
        other = rows.setdefault((row.source, row.row), row)
        if other.hash != row.hash:
            raise CulturevalError(f"Two manifests have different content of {row.source} {row.row}.")
        first, second = (other, row) if weight(other) >= weight(row) else (row, other)
        joined = {name: list(dict.fromkeys(getattr(first, name) + getattr(second, name))) for name in ("reasons", "by")}
        rows[row.source, row.row] = first.model_copy(update=joined)
    return Manifest("+".join(row.name for row in manifests), tuple(rows.values()))
