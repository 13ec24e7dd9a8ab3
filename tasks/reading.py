"""From a task's sources to the folder of prepared rows that LightEval loads.

LightEval reads `load_dataset(hf_repo, hf_subset)`. Our sources need more: pooled configs, tables of many subsets, and
checks for broken rows. Each subset is read, checked and converted once, and written as JSON lines for LightEval. Its
folder below the user cache is named by a hash of the content.
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
FEW = 0.01  # share of a subset's rows that may be broken; one row always may
NOT_ASKED = {"source_row", "form", "cluster", "index"}  # fields of prepared rows that do not change the question
_PREPARED: dict[tuple[Any, ...], "PreparedSubset"] = {}  # emptied by `forget_files`


@dataclass(frozen=True)
class FoundSource:
    """A source on this machine with the files of a subset.

    Attributes:
        folder: The source's folder.
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
    """The broken rows of a task, each with its place and its problem."""

    def __init__(self, rows: Sequence[str]) -> None:
        self.rows = tuple(rows)
        more = [f"  ... and {len(rows) - SHOWN_ROWS} more"] if len(rows) > SHOWN_ROWS else []
        lines = [f"{len(rows)} broken rows:", *(f"  - {row}" for row in rows[:SHOWN_ROWS]), *more]
        advice = f"At most {FEW:.0%} of a subset's rows may be broken. Fix a copy of the data, and pass it with --data."
        super().__init__("\n".join([*lines, advice]))


@dataclass
class PreparedSubset:
    """The rows of a subset, ready for LightEval, and a report of all rows.

    Attributes:
        folder: Data set folder with the splits `test` and, if the source has examples, `few_shot`.
        report: Provenance and counts for the results (see `SourcedTaskConfig`) of a run without examples.
        with_examples: The report's `fingerprint` of a run with examples.
    """

    folder: Path
    report: RowsReport = field(default_factory=RowsReport)
    with_examples: str = ""

    def report_with(self, shots: int) -> RowsReport:
        """The report of a run with this number of few-shot examples."""
        return {**self.report, "fingerprint": self.with_examples} if shots else self.report

    def rows(self) -> list[PreparedRow]:
        """The prepared rows to evaluate."""
        return read_rows(self.folder / "test.jsonl")


def forget_files() -> None:
    """Clears all caches of read data, before another run in this process."""
    _PREPARED.clear()
    _rows_of.cache_clear()
    forget_folders()


def prepare_subset(task: Task, options: DataOptions) -> PreparedSubset:
    """Reads, checks and converts the rows of a task. Up to 1 % may be broken: they are left out and listed.

    Rows are cached until `forget_files`.

    Raises:
        SourceUnavailable: No copy of the data is on this machine or on the hub.
        MissingColumn: A column is missing; the message lists those found.
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
        left_out = f"{len(evaluated.broken)} are broken" + f", {evaluated.discarded} discarded" * bool(
            evaluated.discarded
        )
        raise CulturevalError(f"{where(task, found)}: no row is left to evaluate ({left_out}).")
    if source.check:
        source.check(evaluated.rows)
    rows, repeated = _in_clusters(source.reorder(evaluated.rows) if source.reorder else evaluated.rows)
    report = _rows_report(task, found, rows, evaluated, examples, options)
    report |= {"fingerprint": _fingerprint(rows), "duplicate_rows": repeated}
    if manifest:
        report["manifest"] = {"name": manifest.name, "hash": manifest.hash, "discarded": evaluated.discarded}
    return PreparedSubset(_write(task, rows, examples.rows), report, _fingerprint(rows, examples.rows))


def report_of(task: Task, shots: int, options: DataOptions) -> RowsReport:
    """The report of a task's rows; a task of another harness is loaded with its few-shot examples for it."""
    return task.kind.load(shots).config.rows_report if task.kind.load else prepare_subset(task, options).report


def require_examples(name: str, shots: int, report: RowsReport) -> None:
    """Raises CulturevalError if a source has fewer few-shot examples than `shots`."""
    if shots > (available := report["few_shot_rows"]):
        raise CulturevalError(
            f"{name}: {report['source']} has {available} few-shot examples: run it with |{available}."
        )


# --- where the rows are -------------------------------------------------------------------------------------------


def find_subset(task: Task, options: DataOptions) -> FoundSource:
    """The first available source of a task in the form of `options`.

    Raises:
        SourceUnavailable: There is none; the message has the searched places and how to get the data.
        CulturevalError: Only another form is available, a split has two files, or a shard is missing.
    """
    candidates = [source for source in task.sources if _has_form(source, task, options)]
    unreachable: SourceUnavailable | None = None
    for source in candidates:
        try:
            if found := _found(task, source, options):
                return found
        except SourceUnavailable as error:
            unreachable = unreachable or error
    if unreachable:
        raise SourceUnavailable(f"{task.task}: {unreachable}")
    other_forms = [source for source in task.sources if source not in candidates]
    if (
        options.form == "curated"
        and other_forms
        and (options.root is None or any(_found(task, source, options) for source in other_forms))
    ):
        raise CulturevalError(
            f"{task.task}: {candidates[0].repo}, the {candidates[0].form} copy of the data, is missing. Pass --form "
            f"{other_forms[0].form} to evaluate {other_forms[0].repo}, or --form mixed to take any form."
        )
    raise SourceUnavailable(_not_found(task, candidates, options))


def _has_form(source: Source, task: Task, options: DataOptions) -> bool:
    """Whether a source has the form of `options`. Samples are read in any form."""
    if options.form == "original":
        return source.form == "original"
    if options.form == "mixed" or options.root == samples_root():
        return True
    return source.form == "curated" or source.as_curated or all(other.form == "original" for other in task.sources)


def _found(task: Task, source: Source, options: DataOptions) -> FoundSource | None:
    """The files of a task in a source; None if there are none."""
    located = find_source(source.repo, source.revision, options.root, source.on_hub, mirror_arguments(task.suite))
    if not located:
        return None
    folder, revision = located
    if source.find:
        files, few_shot = source.find(folder, task)
    else:
        files = _files_of_splits(task, source, folder, source.splits)
        few_shot = _files_of_splits(task, source, folder, source.few_shot_splits)
        if not files and source.files and not declares_configs(folder):
            patterns = [pattern.format(subset=name) for pattern in source.files for name in task.subset_names]
            files = files_matching(folder, patterns)
            require_one_file(files, folder)
    return FoundSource(source, folder, revision, tuple(files), tuple(few_shot)) if files else None


def _files_of_splits(task: Task, source: Source, folder: Path, splits: tuple[str, ...]) -> list[Path]:
    """The files of the task's config, or with `pool_configs` of all configs except `All`."""
    choices = [(split,) for split in splits] if source.pool_splits else [splits]
    files = [file for names in choices for file in files_of_split(folder, list(task.subset_names), names)]
    if not files and source.pool_configs:
        configs = [name for name in config_names(folder) if name.lower() != "all"]
        files = [file for names in choices for config in configs for file in files_of_split(folder, [config], names)]
    return list(dict.fromkeys(files))


def broken_row(row: Mapping[str, Any]) -> str:
    """A broken row of a report as text."""
    return f"row {row['row'] + 1} of {row['file']}: column {row['column']!r} {row['reason']} (value: {row['value']})"


def where(task: Task, found: FoundSource) -> str:
    """The source and the subset, for messages."""
    return f"{found.source.repo}, subset {task.subset!r} ({task.task})"


def _not_found(task: Task, candidates: list[Source], options: DataOptions) -> str:
    if not candidates:
        return f"{task.task}: there is no {options.form} copy of {task.benchmark}. Leave --form or the task out."
    places = ", ".join(f"{options.root}/{source.repo}" if options.root else source.repo for source in candidates)
    text = f"{task.task}: no data for the subset {task.subset!r} in {places}."
    how = "; or ".join(dict.fromkeys(source.how_to_get for source in candidates if source.how_to_get))
    if how:
        text += f" How to get them: {how}."
    if any(source.on_hub or source.archive for source in candidates):
        return f"{text} `cultureval fetch {mirror_arguments(task.suite)} --output-dir DIR` fetches them."
    return f"{text} Put them below DIR/{candidates[0].repo}, and pass --data DIR."


# --- the rows -----------------------------------------------------------------------------------------------------


def prompt_template(task: Task, options: DataOptions) -> str:
    """The template of a task's original rows, with options filled in (`qimma/templates/arabculture_{location}`)."""
    return task.template.format(**with_defaults(options).suite)


def parity_of(task: Task, options: DataOptions) -> str:
    """The tokenisation of a task's prompts (`Kind.parity`): "paper", "sound", or "" if the kind has no parity."""
    values = {f"{{{name}}}": value for name, value in with_defaults(options).suite.items()}
    parity = values.get(task.kind.parity, task.kind.parity)
    if parity not in ("", *PARITIES):
        raise CulturevalError(f"{task.task}: `parity` {task.kind.parity!r} is {parity!r}: use paper or sound.")
    return parity


def tried_rows(
    task: Task, found: FoundSource, files: Sequence[Path], options: DataOptions
) -> Iterator[tuple[PlacedRow, list[PreparedRow] | BadRow | None]]:
    """Every row of a task's files, in order, with the outcome of its conversion.

    Args:
        files: The files of the evaluated rows, or of the few-shot examples.

    Yields:
        (row, outcome): the prepared rows, the error of a broken row, or None for a row of another subset.

    Raises:
        MissingColumn: A column is missing.
        MissingExtra: Rows have images, and the extra `vision` is missing.
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
        hint = " Rename columns with --columns NAME=THEIRS." if source.columns else ""
        raise MissingColumn(f"{where(task, found)}: {error}.{hint}") from error


@lru_cache(maxsize=64)
def _rows_of(path: Path) -> list[Row]:
    return read_rows(path)


def _records(files: Iterable[Path], source: Source, options: DataOptions) -> Iterator[PlacedRow]:
    """The rows of files, with columns renamed for the source's reader."""
    if unknown := [name for name in options.columns if name not in source.columns]:
        columns = f"it reads {', '.join(source.columns)}" if source.columns else "its columns are published"
        raise CulturevalError(f"--columns: {source.repo} has no column {unknown[0]!r} to rename; {columns}.")
    for file in files:
        for number, row in enumerate(iter_rows(file) if format_of(file) in (".parquet", ".arrow") else _rows_of(file)):
            yield PlacedRow(file.name, number, _renamed(row, options.columns, source), file)


def _renamed(row: Row, columns: Mapping[str, str], source: Source) -> Row:
    if not columns:
        return row
    if missing := [column for column in columns.values() if column not in row]:
        names = [str(name) for name in row]
        near = did_you_mean(missing[0], names)
        raise MissingColumn(f"--columns: {source.repo} has no column {missing[0]!r}.{near} It has {', '.join(names)}")
    unchanged = {name: value for name, value in row.items() if name not in columns.values()}
    return unchanged | {name: row[column] for name, column in columns.items()}


@dataclass
class _Outcome:
    """The outcome of files: prepared and broken rows; counts of used, discarded and other subsets' rows."""

    rows: list[PreparedRow] = field(default_factory=list)
    broken: list[dict[str, Any]] = field(default_factory=list)
    used: int = 0
    discarded: int = 0
    not_selected: int = 0

    def too_many(self, source: Source) -> list[dict[str, Any]]:
        """The broken rows that are not known in the published data, if they are more than a few; else []."""
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
    """Converts the rows of files; adds the hashes of rows in the manifest to `hashes`."""
    outcome = _Outcome()
    for placed, prepared in tried_rows(task, found, files, options):
        name = row_name(placed, files, found.folder) if decided else ""
        if prepared is None:
            outcome.not_selected += 1
            continue
        if name in decided:
            hashes[name] = row_hash(placed.row, found.folder)
        if name in decided and decided[name].decision == "discard":
            outcome.discarded += 1
        elif isinstance(prepared, BadRow):
            reason = {"column": prepared.column, "value": shorten(prepared.value), "reason": prepared.reason}
            outcome.broken.append({"file": placed.file, "row": placed.number} | reason)
        else:
            outcome.used += 1
            outcome.rows += prepared
    return outcome


def _in_clusters(rows: list[PreparedRow]) -> tuple[list[PreparedRow], int]:
    """The rows with equal questions in one cluster, and the number of repeated rows.

    Rows with a cluster of their own, and rows without a field `cluster` (items of several rows), stay unchanged.
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
    counts = {"scored": evaluated.used, "few_shot": examples.used}
    counts |= {"not_selected": evaluated.not_selected + examples.not_selected}
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
    """The prompts' name in signatures."""
    tokens = f"+{template_hash(task.kind.instruction)}" if task.kind.instruction else ""
    tokens += f"+{PAPER}" if parity_of(task, options) == PAPER else ""
    if source.prompts:
        return source.prompts(rows) + tokens
    return ("curated" if source.form == "curated" else template_hash(prompt_template(task, options))) + tokens


def _write(task: Task, rows: list[PreparedRow], few_shot: list[PreparedRow]) -> Path:
    """Writes the splits into a folder of the user cache that is named by a hash of their content."""
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
    """A hash of rows without file names, so that other formats and shards give the same hash."""
    bare = [[{name: row[name] for name in row if name != "source_row"} for row in split] for split in splits]
    return _hash(json.dumps(bare, ensure_ascii=False))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]
