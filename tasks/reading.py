"""From a task's sources to the folder of prepared rows that LightEval loads.

LightEval reads `load_dataset(hf_repo, hf_subset)`. Our sources need more: configs to pool, tables that hold many
subsets, broken rows. So each subset is read, checked and converted once, and written as JSON lines below the user
cache, in a folder named by a hash of its content, which LightEval loads.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from cultureval.prompts.preparation import Preparation, PreparedRow
from cultureval.prompts.templates import template_hash
from cultureval.runtime.data.hub import find_source
from cultureval.runtime.data.row_files import (
    PlacedRow,
    Row,
    config_names,
    declares_configs,
    files_matching,
    files_of_split,
    forget_folders,
    format_of,
    iter_rows,
    read_rows,
    require_one_file,
)
from cultureval.runtime.data.user_cache import user_cache, write_atomically
from cultureval.runtime.data_options import DataOptions, samples_root
from cultureval.runtime.doc_fields import PAPER, PARITIES
from cultureval.runtime.errors import (
    BadRow,
    CulturevalError,
    MissingColumn,
    SourceUnavailable,
    did_you_mean,
    shorten,
)
from cultureval.runtime.extras import require_extra
from cultureval.runtime.rows_report import RowsReport
from cultureval.tasks.manifest import Manifest, ManifestRow, manifest_of, row_hash, row_name
from cultureval.tasks.options import with_defaults
from cultureval.tasks.registration import mirror_arguments
from cultureval.tasks.suite import Source, Task

SHOWN_ROWS = 30  # broken rows that a message lists
FEW = 0.01  # share of a subset's rows that may be broken, at least one
NOT_ASKED = {"source_row", "form", "cluster", "index"}  # fields of prepared rows beside the question
_PREPARED: dict[tuple[Any, ...], "PreparedSubset"] = {}  # until `forget_files`


@dataclass(frozen=True)
class FoundSource:
    """A source whose files of a subset are on this machine.

    Attributes:
        folder: Folder that holds it.
        revision: Commit on the hub, or "local".
        files: Data files of the evaluated rows.
        few_shot_files: Data files of the few-shot examples.
    """

    source: Source
    folder: Path
    revision: str
    files: tuple[Path, ...]
    few_shot_files: tuple[Path, ...]


class BrokenRows(CulturevalError):
    """All broken rows of a task, a clause for each: where it is, and what is wrong."""

    def __init__(self, rows: Sequence[str]) -> None:
        self.rows = tuple(rows)
        more = [f"  ... and {len(rows) - SHOWN_ROWS} more"] if len(rows) > SHOWN_ROWS else []
        lines = [f"{len(rows)} broken rows:", *(f"  - {row}" for row in rows[:SHOWN_ROWS]), *more]
        advice = f"At most {FEW:.0%} of a subset's rows may be broken. Fix them in a copy of the data, and pass --data."
        super().__init__("\n".join([*lines, advice]))


@dataclass
class PreparedSubset:
    """The rows of a subset, ready for LightEval, and a report of all rows.

    Attributes:
        folder: Data set folder with the splits `test` and, where the source has examples, `few_shot`.
        report: Provenance and counts, as written into the results (see `SourcedTaskConfig`) of a run without examples.
        with_examples: The report's `fingerprint` of a run with examples, on which its scores depend as well.
    """

    folder: Path
    report: RowsReport = field(default_factory=RowsReport)
    with_examples: str = ""

    def report_with(self, shots: int) -> RowsReport:
        """The report of a run with that many few-shot examples."""
        return {**self.report, "fingerprint": self.with_examples} if shots else self.report

    def rows(self) -> list[PreparedRow]:
        """The prepared rows to evaluate."""
        return read_rows(self.folder / "test.jsonl")


def forget_files() -> None:
    """Lets data be read anew, for another run of this process."""
    _PREPARED.clear()
    _rows_of.cache_clear()
    forget_folders()


def prepare_subset(task: Task, options: DataOptions) -> PreparedSubset:
    """Reads, checks and converts the rows of a task; up to 1 % may be broken, and are left out and listed.

    Rows that were prepared since the last `forget_files` are not read again.

    Raises:
        SourceUnavailable: No copy of the data is on this machine or on the hub.
        MissingColumn: A source lacks a column; the message lists those found.
        BrokenRows: More rows are broken.
        CulturevalError: No valid row is left, the source's check of all rows fails, or a manifest does not fit.
    """
    options = with_defaults(options)
    manifest = manifest_of(options.manifests)
    key = (task, repr(options), user_cache(), manifest and manifest.hash)
    if key not in _PREPARED:
        _PREPARED[key] = _prepared(task, options, manifest)
    return _PREPARED[key]


def _prepared(task: Task, options: DataOptions, manifest: Manifest | None) -> PreparedSubset:
    found = find_subset(task, options)
    source = found.source
    decided = manifest.by_source.get(source.repo, {}) if manifest else {}
    hashes: dict[str, str] = {}
    evaluated, examples = (
        _outcome(task, found, files, options, decided, hashes) for files in (found.files, found.few_shot_files)
    )
    if manifest:
        manifest.require_fit(source.repo, task.subset, hashes)
    if too_many := [*evaluated.too_many(source), *examples.too_many(source)]:
        raise BrokenRows([f"{where(task, found)}, {broken_row(row)}" for row in too_many])
    if not evaluated.rows:
        gone = f"{len(evaluated.broken)} are broken" + f", {evaluated.discarded} discarded" * bool(evaluated.discarded)
        raise CulturevalError(f"{where(task, found)}: no row is left to evaluate ({gone}).")
    if source.check:
        source.check(evaluated.rows)
    rows, repeated = _in_clusters(source.reorder(evaluated.rows) if source.reorder else evaluated.rows)
    report = _rows_report(task, found, rows, evaluated, examples, options)
    report |= {"fingerprint": _fingerprint(rows), "duplicate_rows": repeated}
    if manifest:
        report["manifest"] = {"name": manifest.name, "hash": manifest.hash, "discarded": evaluated.discarded}
    return PreparedSubset(_write(task, rows, examples.rows), report, _fingerprint(rows, examples.rows))


def require_examples(name: str, shots: int, report: RowsReport) -> None:
    """Raises CulturevalError where a source has fewer few-shot examples than asked for, by the report of its rows."""
    if shots > (there := report["few_shot_rows"]):
        raise CulturevalError(f"{name}: {report['source']} has {there} few-shot examples: run it with |{there}.")


# --- where the rows are -------------------------------------------------------------------------------------------


def find_subset(task: Task, options: DataOptions) -> FoundSource:
    """The first source of a task, of the wanted form, whose files are available.

    Raises:
        SourceUnavailable: There is none; the message names the searched places and how to get the data.
        CulturevalError: There is one, but of another form, or there are two files of one split, or a shard is lacking.
    """
    wanted = [source for source in task.sources if _is_wanted(source, task, options)]
    unreachable: SourceUnavailable | None = None
    for source in wanted:
        try:
            if found := _found(task, source, options):
                return found
        except SourceUnavailable as error:
            unreachable = unreachable or error
    if unreachable:
        raise SourceUnavailable(f"{task.task}: {unreachable}")
    others = [source for source in task.sources if source not in wanted]
    if (
        options.form == "curated"
        and others
        and (options.root is None or any(_found(task, source, options) for source in others))
    ):
        raise CulturevalError(
            f"{task.task}: {wanted[0].repo}, the {wanted[0].form} copy of the data, is not there. Pass --form "
            f"{others[0].form} to evaluate {others[0].repo}, or --form mixed for each subset in the form that is there."
        )
    raise SourceUnavailable(_not_found(task, wanted, options))


def _is_wanted(source: Source, task: Task, options: DataOptions) -> bool:
    """Whether a source is of the form asked for. The samples, which are no data, are read in any form."""
    if options.form == "original":
        return source.form == "original"
    if options.form == "mixed" or options.root == samples_root():
        return True
    return source.form == "curated" or source.as_curated or all(one.form == "original" for one in task.sources)


def _found(task: Task, source: Source, options: DataOptions) -> FoundSource | None:
    """The files of a task in a source; None without any."""
    place = find_source(source.repo, source.revision, options.root, source.on_hub, mirror_arguments(task.suite))
    if not place:
        return None
    folder, revision = place
    if source.find:
        files, few_shot = source.find(folder, task)
    else:
        files = _files_of_splits(task, source, folder, source.splits)
        few_shot = _files_of_splits(task, source, folder, source.few_shot_splits)
        if not files and source.files and not declares_configs(folder):
            patterns = [one.format(subset=name) for one in source.files for name in task.subset_names]
            files = files_matching(folder, patterns)
            require_one_file(files, folder)
    return FoundSource(source, folder, revision, tuple(files), tuple(few_shot)) if files else None


def _files_of_splits(task: Task, source: Source, folder: Path, splits: tuple[str, ...]) -> list[Path]:
    """The files of the task's config; where a subset is all of the source, those of all its configs but `All`."""
    wanted = [(split,) for split in splits] if source.pool_splits else [splits]
    files = [file for names in wanted for file in files_of_split(folder, list(task.subset_names), names)]
    if not files and source.pool_configs:
        configs = [name for name in config_names(folder) if name.lower() != "all"]
        files = [file for names in wanted for config in configs for file in files_of_split(folder, [config], names)]
    return list(dict.fromkeys(files))


def broken_row(row: Mapping[str, Any]) -> str:
    """A clause on a broken row of a report."""
    return f"row {row['row'] + 1} of {row['file']}: column {row['column']!r} {row['reason']} (value: {row['value']})"


def where(task: Task, found: FoundSource) -> str:
    """The source and the subset, for messages."""
    return f"{found.source.repo}, subset {task.subset!r} ({task.task})"


def _not_found(task: Task, wanted: list[Source], options: DataOptions) -> str:
    if not wanted:
        return f"{task.task}: there is no {options.form} copy of {task.benchmark}. Leave --form or the task out."
    places = ", ".join(f"{options.root}/{source.repo}" if options.root else source.repo for source in wanted)
    text = f"{task.task}: no data; looked for the subset {task.subset!r} in {places}."
    how = "; or ".join(dict.fromkeys(source.how_to_get for source in wanted if source.how_to_get))
    if how:
        text += f" How to get them: {how}."
    if any(source.on_hub or source.archive for source in wanted):
        return f"{text} `cultureval fetch {mirror_arguments(task.suite)} --output-dir DIR` fetches them."
    return f"{text} Put them below DIR/{wanted[0].repo}, and pass --data DIR."


# --- the rows -----------------------------------------------------------------------------------------------------


def prompt_template(task: Task, options: DataOptions) -> str:
    """The template of a task's original rows; its name may hold options (`qimma/templates/arabculture_{location}`)."""
    return task.template.format(**with_defaults(options).suite)


def parity_of(task: Task, options: DataOptions) -> str:
    """How a task's prompts become tokens (`Kind.parity`): "paper" or "sound"; "" where the task has no choice."""
    values = {f"{{{name}}}": value for name, value in with_defaults(options).suite.items()}
    parity = values.get(task.kind.parity, task.kind.parity)
    if parity not in ("", *PARITIES):
        raise CulturevalError(
            f"{task.task}: its `parity`, {task.kind.parity!r}, is {parity!r}, neither paper nor sound."
        )
    return parity


def tried_rows(
    task: Task, found: FoundSource, files: Sequence[Path], options: DataOptions
) -> Iterator[tuple[PlacedRow, list[PreparedRow] | BadRow | None]]:
    """Every row of a task's files with what became of it, in order.

    Args:
        files: Those of its evaluated rows, or of its few-shot examples.

    Yields:
        (row, outcome): its prepared rows, the reason why it is broken, or None where it belongs to another subset.

    Raises:
        MissingColumn: The source lacks a column.
        MissingExtra: Its rows have images, and what reads them is not installed.
    """
    if not files:
        return
    if task.images:
        require_extra("vision")
    source = found.source
    preparation = Preparation(prompt_template(task, options), found.folder, options, task.language)
    rows: Iterable[PlacedRow] = source.read(files, task) if source.read else _records(files, source, options)
    try:
        for placed in source.complete(list(rows), task, found.folder) if source.complete else rows:
            try:
                if source.subset_of and source.subset_of(placed.row) not in task.subset_names:
                    yield placed, None
                    continue
                prepared = source.prepare(placed.row, preparation)
            except BadRow as error:
                yield placed, error
                continue
            items = prepared if isinstance(prepared, list) else [prepared]
            yield placed, [item | {"source_row": placed.name, "form": source.form} for item in items]
    except MissingColumn as error:
        hint = " --columns NAME=THEIRS gives the names of the data." if source.columns else ""
        raise MissingColumn(f"{where(task, found)}: {error}.{hint}") from error


@lru_cache(maxsize=64)
def _rows_of(path: Path) -> list[Row]:
    return read_rows(path)


def _records(files: Iterable[Path], source: Source, options: DataOptions) -> Iterator[PlacedRow]:
    """The rows of files, under the names of columns that the source's reader knows; tables may hold images."""
    if unknown := [name for name in options.columns if name not in source.columns]:
        known = f"it reads {', '.join(source.columns)}" if source.columns else "its columns are published"
        raise CulturevalError(f"--columns: {source.repo} has no column {unknown[0]!r} to rename; {known}.")
    for file in files:
        for number, row in enumerate(iter_rows(file) if format_of(file) in (".parquet", ".arrow") else _rows_of(file)):
            yield PlacedRow(file.name, number, _renamed(row, options.columns, source), file)


def _renamed(row: Row, columns: Mapping[str, str], source: Source) -> Row:
    if not columns:
        return row
    if lacking := [theirs for theirs in columns.values() if theirs not in row]:
        names = [str(name) for name in row]
        near = did_you_mean(lacking[0], names)
        raise MissingColumn(f"--columns: {source.repo} has no column {lacking[0]!r}.{near} It has {', '.join(names)}")
    kept = {name: value for name, value in row.items() if name not in columns.values()}
    return kept | {ours: row[theirs] for ours, theirs in columns.items()}


@dataclass
class _Outcome:
    """What became of the rows of the evaluated files, or of those of the examples; a manifest discards some."""

    rows: list[PreparedRow] = field(default_factory=list)
    broken: list[dict[str, Any]] = field(default_factory=list)
    used: int = 0
    discarded: int = 0
    others: int = 0

    def too_many(self, source: Source) -> list[dict[str, Any]]:
        """The broken rows, without those that are published so, where they are more than a few."""
        unknown = [row for row in self.broken if row["row"] not in source.unreadable]
        return unknown if len(unknown) > max(1, int(FEW * (self.used + len(self.broken)))) or not self.used else []


def _outcome(
    task: Task,
    found: FoundSource,
    files: Sequence[Path],
    options: DataOptions,
    decided: Mapping[str, ManifestRow],
    hashes: dict[str, str],
) -> _Outcome:
    """What became of the rows of files; the hashes of those that a manifest decided on are added to `hashes`."""
    outcome = _Outcome()
    for placed, prepared in tried_rows(task, found, files, options):
        name = row_name(placed, files, found.folder) if decided else ""
        if prepared is None:
            outcome.others += 1
            continue
        if name in decided:
            hashes[name] = row_hash(placed.row, found.folder)
        if name in decided and decided[name].decision == "discard":
            outcome.discarded += 1
        elif isinstance(prepared, BadRow):
            what = {"column": prepared.column, "value": shorten(prepared.value), "reason": prepared.reason}
            outcome.broken.append({"file": placed.file, "row": placed.number} | what)
        else:
            outcome.used += 1
            outcome.rows += prepared
    return outcome


def _in_clusters(rows: list[PreparedRow]) -> tuple[list[PreparedRow], int]:
    """The rows, those that ask the same in one cluster of the standard errors; and how many repeat an earlier one.

    Rows without a field `cluster`, whose items are made of several rows, and those of a passage keep theirs.
    """
    asked = [_fingerprint([{name: row[name] for name in row if name not in NOT_ASKED}]) for row in rows]
    counts = Counter(asked)
    clustered = [
        row | {"cluster": f"same-{key}"} if counts[key] > 1 and row.get("cluster") == "" else row
        for row, key in zip(rows, asked, strict=True)
    ]
    return clustered, len(rows) - len(counts)


# --- what is written ----------------------------------------------------------------------------------------------


def _rows_report(
    task: Task,
    found: FoundSource,
    rows: list[PreparedRow],
    evaluated: _Outcome,
    examples: _Outcome,
    options: DataOptions,
) -> RowsReport:
    """The report of a task's rows, without their hash."""
    source = found.source
    counts = {"scored": evaluated.used, "few_shot": examples.used, "not_selected": evaluated.others + examples.others}
    counts |= {"skipped": len(evaluated.broken) + len(examples.broken)}
    counts |= {"discarded": gone} if (gone := evaluated.discarded + examples.discarded) else {}
    return {
        "source": source.repo,
        "form": source.form,
        "revision": found.revision,
        "prompt": _prompts(task, source, rows, options),
        "parity": parity_of(task, options),
        "rows": len(rows),
        "expected_rows": task.expected(source.form),
        "few_shot_rows": len(examples.rows),
        "skipped_rows": evaluated.broken,
        "skipped_few_shot_rows": examples.broken,
        "row_counts": {"rows": sum(counts.values()), **counts},
        "notes": source.notes(rows) if source.notes else [],
        "caveat": source.caveat,
        "other_data": source.other_data(rows) if source.other_data else "",
    }


def _prompts(task: Task, source: Source, rows: Sequence[PreparedRow], options: DataOptions) -> str:
    """What the prompts are, for signatures."""
    tokens = f"+{template_hash(task.kind.instruction)}" if task.kind.instruction else ""
    tokens += f"+{PAPER}" if parity_of(task, options) == PAPER else ""
    if source.prompts:
        return source.prompts(rows) + tokens
    return ("curated" if source.form == "curated" else template_hash(prompt_template(task, options))) + tokens


def _write(task: Task, rows: list[PreparedRow], few_shot: list[PreparedRow]) -> Path:
    """Writes the splits below the user cache, each file atomically, into a folder named by a hash of their content."""
    splits = {"test": rows} | ({"few_shot": few_shot} if few_shot else {})
    texts = {
        name: "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in split) for name, split in splits.items()
    }
    slug = "".join(character if character.isalnum() else "_" for character in task.task)
    folder = user_cache() / "rows" / f"{slug}-{_hash(chr(0).join(texts.values()))}"
    declared = "".join(f"      - split: {name}\n        path: {name}.jsonl\n" for name in splits)
    readme = f"---\nconfigs:\n  - config_name: default\n    data_files:\n{declared}---\n"
    for name, text in ({f"{name}.jsonl": text for name, text in texts.items()} | {"README.md": readme}).items():
        file, content = folder / name, text.encode("utf-8")
        if not file.is_file() or file.read_bytes() != content:  # new, or damaged since an earlier run
            write_atomically(file, content)
    return folder


def _fingerprint(*splits: Sequence[PreparedRow]) -> str:
    """A hash of rows without the names of their files: the same in another format and in shards."""
    bare = [[{name: row[name] for name in row if name != "source_row"} for row in split] for split in splits]
    return _hash(json.dumps(bare, ensure_ascii=False))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]
