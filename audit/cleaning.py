"""From a manifest to the cleaned data set: the rows of a source without those that it discards.

A data set is written below the output folder as `<org>/<name>`, so that the folder is a data root: `cultureval eval
--data` reads the cleaned rows in place of the source's. Each subset is a config of its README, and so is each task
where several read one subset. `.cultureval-manifest` keeps the manifest's hash, for the signatures of scores, and each
task's files (`tasks.cleaned_data`). Images that rows name by a path below the source's folder are copied.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cultureval.audit.items import AuditItem
from cultureval.prompts.cells import image_bytes
from cultureval.runtime.data.content_store import TEXTS
from cultureval.runtime.data.user_cache import write_atomically
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.cleaned_data import CLEANED, SOURCE_ROW, STORED_TEXTS, CleanedRecord, CleanedTask
from cultureval.tasks.manifest import Manifest, misfit

if TYPE_CHECKING:
    import pyarrow

IMAGES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff")
LONGEST_PATH = 1000
Form = Literal["parquet", "arrow", "jsonl"]


@dataclass(frozen=True)
class CleanedSubset:
    """The rows of one subset that are left.

    Attributes:
        source: `org/name`, or the name of the data by path.
        subset: Name of its config: the subset's, or the task's where several tasks read one subset.
        splits: Name of a split -> its rows.
        discarded: Number of evaluated rows that were left out.
        undecided: Number of evaluated rows that the manifest says nothing of, and that are kept.
        task: The task that reads it; "" for data by path.
        copy: "curated" or "original", of the task's source.
        few_shot: Name of the split of examples.
        root: The source's folder.
    """

    source: str
    revision: str
    subset: str
    folder: str
    splits: Mapping[str, list[dict[str, Any]]]
    discarded: int
    undecided: int
    task: str = ""
    copy: str = ""
    few_shot: str = ""
    root: Path = Path()


def cleaned_subsets(items: Sequence[AuditItem], manifest: Manifest) -> list[CleanedSubset]:
    """The rows that a manifest keeps, subset by subset; rows to be reviewed, and undecided ones, are kept.

    Raises:
        CulturevalError: A row has other content than when it was audited, or is gone, or the manifest decides on no
            row of a source.
    """
    grouped: dict[tuple[str, str, str], list[AuditItem]] = {}
    for item in items:
        grouped.setdefault((item.source, item.subset, item.task), []).append(item)
    for source in dict.fromkeys(item.source for item in items):
        _require_fit(source, [item for item in items if item.source == source], manifest)
    shared = Counter((source, subset) for source, subset, _ in grouped)
    named = {key: key[2].replace(":", "_") if shared[key[:2]] > 1 else key[1] for key in grouped}
    return [_cleaned(some, manifest, named[key], place) for place, (key, some) in enumerate(grouped.items())]


def _require_fit(source: str, items: Sequence[AuditItem], manifest: Manifest) -> None:
    wanted = manifest.by_source.get(source)
    if not wanted:
        known = ", ".join(manifest.by_source) or "nothing"
        raise CulturevalError(f"The manifest {manifest.name} decides on no row of {source}; it is about {known}.")
    hashes = {item.row: item.hash for item in items}
    changed = [row for row, decided in wanted.items() if row in hashes and hashes[row] != decided.hash]
    by_path = not any(item.task for item in items)  # then all files are read, and one without rows here is gone
    read = {(item.row.rpartition(":")[0], item.subset) for item in items}  # a file may hold subsets nobody asked for
    gone = [
        row
        for row, decided in wanted.items()
        if row not in hashes and (by_path or (row.rpartition(":")[0], decided.subset) in read)
    ]
    if changed or gone:
        raise misfit(manifest, source, changed, gone)


def _cleaned(items: Sequence[AuditItem], manifest: Manifest, config: str, number: int) -> CleanedSubset:
    first = items[0]
    wanted = manifest.by_source[first.source]
    names = _split_names(first)
    splits: dict[str, list[dict[str, Any]]] = {}
    discarded = undecided = 0
    for item in items:
        decided = wanted.get(item.row)
        if decided is not None and decided.decision == "discard":
            discarded += item.split == "test"
            continue
        undecided += decided is None and item.split == "test"
        added = {SOURCE_ROW: item.source_row} if item.task else {}
        splits.setdefault(names[item.split], []).append(dict(item.raw) | added)
    slug = re.sub(r"[^A-Za-z0-9]+", "_", config).strip("_")[:40]
    folder = f"{number:03d}_{slug}".rstrip("_")
    return CleanedSubset(
        *(first.source, first.revision, config, folder, splits, discarded, undecided),
        *(first.task, first.copy, names["few_shot"], first.folder),
    )


def _split_names(item: AuditItem) -> dict[str, str]:
    sources = all_tasks()[item.task].sources if item.task else ()
    found = next((source for source in sources if source.repo == item.source), None)
    if found is None:
        return {"test": "test", "few_shot": "validation"}
    examples = next((name for name in found.few_shot_splits if name != found.splits[0]), "few_shot")
    return {"test": found.splits[0], "few_shot": examples}


def write_cleaned(subsets: Sequence[CleanedSubset], manifest: Manifest, folder: Path, form: Form) -> list[Path]:
    """Writes the cleaned data sets and returns their folders; "arrow" is what `datasets.load_from_disk` reads.

    Raises:
        CulturevalError: Cells of one column have types that do not fit together, a folder holds other data, or another
            process writes there.
    """
    with _alone_in(folder):
        return _write_sources(subsets, manifest, folder, form)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """A lock on the output folder: two processes would delete each other's files, and leave a copy that lacks some."""
    folder.mkdir(parents=True, exist_ok=True)
    opened = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(opened)
        raise CulturevalError(f"Another process writes cleaned data to {folder}: wait for it to end.") from error
    except OSError:  # a file system without locks of folders
        pass
    try:
        yield
    finally:
        os.close(opened)


def _write_sources(subsets: Sequence[CleanedSubset], manifest: Manifest, folder: Path, form: Form) -> list[Path]:
    """Writes each source; errors as of `write_cleaned`."""
    written = []
    for source in dict.fromkeys(one.source for one in subsets):
        own = [one for one in subsets if one.source == source]
        place = folder.joinpath(*(_safe(part) for part in source.split("/")))
        if place.exists() and not (place / CLEANED).is_file():
            raise CulturevalError(f"{place} holds other data, which are not replaced: give another --output-dir.")
        if any(one.root.resolve() == place.resolve() for one in own):
            raise CulturevalError(f"{place} is the data set that is to be cleaned: give another --output-dir.")
        partial = place.with_name(f".{place.name}.partial")  # a copy that was cut short is never read
        shutil.rmtree(partial, ignore_errors=True)
        _write_copy(own, manifest, partial, form)
        shutil.rmtree(place, ignore_errors=True)
        partial.rename(place)
        written.append(place)
    return written


def _write_copy(subsets: Sequence[CleanedSubset], manifest: Manifest, place: Path, form: Form) -> None:
    """One data set; errors as of `write_cleaned`."""
    own = _without_copies([_portable(one, place, form) for one in subsets])
    for one in {one.folder: one for one in own}.values():
        _write_subset(one, place / one.folder, form)
    write_atomically(place / "README.md", _readme(own, manifest, form).encode("utf-8"))
    record = CleanedRecord(manifest.name, manifest.hash, {} if form == "arrow" else _tasks(own, form))
    write_atomically(place / CLEANED, json.dumps(asdict(record), ensure_ascii=False).encode("utf-8"))
    write_atomically(place / ".cultureval-revision", f"{own[0].revision}\n".encode())


def _tasks(subsets: Sequence[CleanedSubset], form: Form) -> dict[str, CleanedTask]:
    found = {}
    for one in subsets:
        kinds = {split: "few_shot" if split == one.few_shot else "test" for split in one.splits}
        files = {kind: f"{one.folder}/{split}.{form}" for split, kind in kinds.items()}
        found |= {one.task: CleanedTask(one.copy, one.discarded, files)} if one.task else {}
    return found


def _without_copies(subsets: Sequence[CleanedSubset]) -> list[CleanedSubset]:
    """The same, where tasks that read equal rows share a folder."""
    folders: dict[str, str] = {}
    found = []
    for one in subsets:
        text = json.dumps(one.splits, sort_keys=True, default=str)
        key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        found.append(replace(one, folder=folders.setdefault(key, one.folder)))
    return found


def _portable(subset: CleanedSubset, place: Path, form: Form) -> CleanedSubset:
    """The subset with what its rows name copied below `place`, and paths relative to it."""

    def moved(cell: Any) -> Any:
        if isinstance(cell, str):
            return _moved_text(cell, subset.root, place)
        if isinstance(cell, Mapping):
            return {str(name): moved(value) for name, value in cell.items()}
        if isinstance(cell, list | tuple):
            return [moved(value) for value in cell]
        if isinstance(cell, set | frozenset):
            return sorted(cell)
        if isinstance(cell, bytes) and form == "jsonl":  # JSON has no form for them
            return _stored_bytes(cell, place)
        return cell

    splits = {
        split: [{str(name): moved(cell) for name, cell in row.items()} for row in rows]
        for split, rows in subset.splits.items()
    }
    return replace(subset, splits=splits)


def _moved_text(cell: str, root: Path, place: Path) -> str:
    """A text; where it is the path of an image below the source's folder, that path from there, and the file copied."""
    if len(cell) > LONGEST_PATH:
        return cell
    if re.fullmatch(r"[0-9a-f]{64}\.json", cell):
        return _with_stored_texts(cell, place)
    if Path(cell).suffix.lower() not in IMAGES:
        return cell
    try:
        content = image_bytes(cell, root)
    except (ValueError, OSError):
        return cell  # no path, or one that the task's reader refuses too
    below = os.path.relpath(os.path.abspath(root / cell), os.path.abspath(root))
    if below.startswith(os.pardir):  # the source's folder is a link, and the path is not
        return _stored_bytes(content, place, Path(cell).suffix.lower())
    _write_once(place / below, content)
    return Path(below).as_posix()


def _with_stored_texts(name: str, place: Path) -> str:
    """The name of a list of texts, which is copied where our store has it."""
    try:
        content = TEXTS.get(name)
    except CulturevalError:
        return name
    _write_once(place / STORED_TEXTS / name, content)
    return name


def _stored_bytes(content: bytes, place: Path, suffix: str = "") -> str:
    """The path of a file with these bytes, named by their hash."""
    name = f"files/{hashlib.sha256(content).hexdigest()}{suffix}"
    _write_once(place / name, content)
    return name


def _write_once(file: Path, content: bytes) -> None:
    if not file.exists():
        write_atomically(file, content)


def _safe(part: str) -> str:
    return re.sub(r"[^\w.-]+", "_", part).lstrip(".") or "_"


def _write_subset(subset: CleanedSubset, folder: Path, form: Form) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if form == "arrow":
        _dataset_dict(subset).save_to_disk(str(folder))
        return
    for split, rows in subset.splits.items():
        if form == "parquet":
            import pyarrow.parquet

            pyarrow.parquet.write_table(_table(subset, rows), folder / f"{split}.parquet")
        else:
            lines = (json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
            write_atomically(folder / f"{split}.jsonl", "".join(lines).encode("utf-8", "backslashreplace"))


def _table(subset: CleanedSubset, rows: list[dict[str, Any]]) -> "pyarrow.Table":
    import pyarrow

    names = dict.fromkeys(name for row in rows for name in row)
    try:
        return pyarrow.Table.from_pydict({name: [row.get(name) for row in rows] for name in names})
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
        raise CulturevalError(
            f"{subset.source}, {subset.subset}: a column holds several types ({error}). Give --file-format jsonl."
        ) from error
    except (UnicodeEncodeError, OverflowError) as error:
        raise CulturevalError(
            f"{subset.source}, {subset.subset}: a cell does not fit into this form ({error}). Give --file-format jsonl."
        ) from error


def _dataset_dict(subset: CleanedSubset) -> Any:
    import datasets

    datasets.disable_progress_bars()
    return datasets.DatasetDict(
        {split: datasets.Dataset(_table(subset, rows)) for split, rows in subset.splits.items()}
    )


def _readme(subsets: Sequence[CleanedSubset], manifest: Manifest, form: Form) -> str:
    import yaml

    configs = [
        {
            "config_name": one.subset,
            "data_files": [{"split": split, "path": f"{one.folder}/{split}.{form}"} for split in one.splits],
        }
        for one in subsets
    ]
    head = "" if form == "arrow" else f"---\n{yaml.safe_dump({'configs': configs}, allow_unicode=True)}---\n\n"
    discarded = sum(one.discarded for one in subsets)
    return (
        f"{head}# {subsets[0].source}, cleaned\n\nRevision {subsets[0].revision} without {discarded} rows that the "
        f"manifest {manifest.name} ({manifest.hash}) of `cultureval audit` discards. The source's licence applies.\n"
    )


def _names_images(row: Mapping[str, Any]) -> bool:
    paths = [cell.get("path") if isinstance(cell, Mapping) and not cell.get("bytes") else cell for cell in row.values()]
    return any(isinstance(path, str) and path.lower().endswith(IMAGES) for path in paths)


def _without_our_cells(subset: CleanedSubset) -> CleanedSubset:
    splits = {
        split: [{name: cell for name, cell in row.items() if not str(name).startswith("__")} for row in rows]
        for split, rows in subset.splits.items()
    }
    return replace(subset, splits=splits)


def push_cleaned(subsets: Sequence[CleanedSubset], manifest: Manifest, repo: str) -> None:
    """Uploads the cleaned subsets of one source as configs of a private data set on the hub.

    Raises:
        CulturevalError: They are of several sources, or the hub refuses them.
    """
    from huggingface_hub.errors import HfHubHTTPError

    if len({one.source for one in subsets}) > 1:
        raise CulturevalError("--push-to takes one data set: name the subsets of one source.")
    if any(_names_images(row) for one in subsets for rows in one.splits.values() for row in rows[:1]):
        raise CulturevalError(
            f"--push-to uploads tables, and these rows name images by their path: upload the written folder with "
            f"`hf upload {repo} FOLDER --repo-type dataset --private`."
        )
    message = f"Without the rows that the manifest {manifest.name} ({manifest.hash}) discards"
    for one in subsets:
        try:
            _dataset_dict(_without_our_cells(one)).push_to_hub(
                repo, config_name=one.subset, private=True, commit_message=message
            )
        except (HfHubHTTPError, OSError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise CulturevalError(f"The hub does not take {one.subset} as a config of {repo}: {reason}") from error
