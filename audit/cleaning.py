"""From a manifest to the cleaned data set: the rows of a source without those that it discards.

A data set is written below the output folder as `<org>/<name>`, so that the folder is a data root: `cultureval eval
--data` reads the cleaned rows in place of the source's. Each subset is a config of its README. `.cultureval-manifest`
keeps the manifest's hash, for the signatures of scores.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cultureval.audit.items import AuditItem
from cultureval.runtime.data.user_cache import write_atomically
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.manifest import CLEANED, Manifest, misfit

if TYPE_CHECKING:
    import pyarrow

Form = Literal["parquet", "arrow", "jsonl"]


@dataclass(frozen=True)
class CleanedSubset:
    """The rows of one subset that are left.

    Attributes:
        source: `org/name`, or the name of the data by path.
        revision: Of the source.
        subset: Its name.
        folder: Name of its folder.
        splits: Name of a split -> its rows.
        discarded: Number of rows that were left out.
        undecided: Number of rows that the manifest says nothing of, and that are kept.
    """

    source: str
    revision: str
    subset: str
    folder: str
    splits: Mapping[str, list[dict[str, Any]]]
    discarded: int
    undecided: int


def cleaned_subsets(items: Sequence[AuditItem], manifest: Manifest) -> list[CleanedSubset]:
    """The rows that a manifest keeps, subset by subset; rows to be reviewed, and undecided ones, are kept.

    Args:
        items: All items of the sources, few-shot examples among them.
        manifest: The decisions.

    Raises:
        CulturevalError: A row has other content than when it was audited, or is gone, or the manifest decides on no
            row of a source.
    """
    grouped: dict[tuple[str, str], list[AuditItem]] = {}
    for item in items:
        grouped.setdefault((item.source, item.subset), []).append(item)
    for source in dict.fromkeys(item.source for item in items):
        _require_fit(source, [item for item in items if item.source == source], manifest)
    return [_cleaned(some, manifest, number) for number, some in enumerate(grouped.values())]


def _require_fit(source: str, items: Sequence[AuditItem], manifest: Manifest) -> None:
    wanted = manifest.by_source.get(source)
    if not wanted:
        known = ", ".join(manifest.by_source) or "nothing"
        raise CulturevalError(f"The manifest {manifest.name} decides on no row of {source}; it is about {known}.")
    hashes = {item.row: item.hash for item in items}
    files = {row.rpartition(":")[0] for row in hashes}
    changed = [row for row, decided in wanted.items() if row in hashes and hashes[row] != decided.hash]
    gone = [row for row in wanted if row not in hashes and row.rpartition(":")[0] in files]
    if changed or gone:
        raise misfit(manifest, source, changed, gone)


def _cleaned(items: Sequence[AuditItem], manifest: Manifest, number: int) -> CleanedSubset:
    first = items[0]
    wanted = manifest.by_source[first.source]
    names = _split_names(first)
    splits: dict[str, list[dict[str, Any]]] = {}
    discarded = undecided = 0
    for item in items:
        decided = wanted.get(item.row)
        if decided is not None and decided.decision == "discard":
            discarded += 1
            continue
        undecided += decided is None and item.split == "test"
        row = {name: cell for name, cell in item.raw.items() if not str(name).startswith("__")}
        splits.setdefault(names[item.split], []).append(row)
    slug = re.sub(r"[^A-Za-z0-9]+", "_", first.subset).strip("_")[:40]
    folder = f"{number:03d}_{slug}".rstrip("_")
    return CleanedSubset(first.source, first.revision, first.subset, folder, splits, discarded, undecided)


def _split_names(item: AuditItem) -> dict[str, str]:
    sources = all_tasks()[item.task].sources if item.task else ()
    found = next((source for source in sources if source.repo == item.source), None)
    if found is None:
        return {"test": "test", "few_shot": "validation"}
    return {"test": found.splits[0], "few_shot": found.few_shot_splits[0]}


def write_cleaned(subsets: Sequence[CleanedSubset], manifest: Manifest, folder: Path, form: Form) -> list[Path]:
    """Writes the cleaned data sets.

    Args:
        subsets: Of one or several sources.
        manifest: What cleaned them.
        folder: Output folder; each source is a folder below it.
        form: "parquet", "jsonl", or "arrow" as `datasets.load_from_disk` reads it.

    Returns:
        The folders of the data sets.

    Raises:
        CulturevalError: Cells of one column have types that do not fit together.
    """
    written = []
    for source in dict.fromkeys(one.source for one in subsets):
        own = [one for one in subsets if one.source == source]
        place = folder.joinpath(*(_safe(part) for part in source.split("/")))
        for one in own:
            _write_subset(one, place / one.folder, form)
        write_atomically(place / "README.md", _readme(own, manifest, form).encode("utf-8"))
        discarded = {one.subset: one.discarded for one in own}
        record = {"name": manifest.name, "hash": manifest.hash, "discarded": discarded}
        write_atomically(place / CLEANED, json.dumps(record, ensure_ascii=False).encode("utf-8"))
        write_atomically(place / ".cultureval-revision", f"{own[0].revision}\n".encode())
        written.append(place)
    return written


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


def push_cleaned(subsets: Sequence[CleanedSubset], manifest: Manifest, repo: str) -> None:
    """Uploads the cleaned subsets of one source as configs of a private data set on the hub.

    Raises:
        CulturevalError: They are of several sources, or the hub refuses them.
    """
    from huggingface_hub.errors import HfHubHTTPError

    if len({one.source for one in subsets}) > 1:
        raise CulturevalError("--push-to takes one data set: name the subsets of one source.")
    message = f"Without the rows that the manifest {manifest.name} ({manifest.hash}) discards"
    for one in subsets:
        try:
            _dataset_dict(one).push_to_hub(repo, config_name=one.subset, private=True, commit_message=message)
        except (HfHubHTTPError, OSError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise CulturevalError(f"The hub does not take {one.subset} as a config of {repo}: {reason}") from error
