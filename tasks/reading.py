"""From a task's sources to the folder of prepared rows that LightEval loads.

LightEval reads `load_dataset(hf_repo, hf_subset)`. Our sources need more: two copies of a benchmark of which one is
preferred, several configs pooled, tables that hold many subsets, options in one cell, broken rows. So each subset is
read, checked and converted once, and written as JSON lines below the user cache, in a folder named by a hash of its
content, which LightEval loads.
"""

import hashlib
import json
import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from cultureval.prompts.cells import alike
from cultureval.prompts.choices import check_labels
from cultureval.prompts.gold_numbers import GoldColumn, UndecidedNumbers, golds_of
from cultureval.prompts.preparation import Preparation, PreparedRow
from cultureval.prompts.templates import template_hash
from cultureval.runtime.data.hub import find_source
from cultureval.runtime.data.row_files import (
    PlacedRow,
    Row,
    config_names,
    declares_configs,
    files_matching,
    files_named_by_split,
    files_of_split,
    forget_folders,
    holds_examples,
    read_rows,
    require_whole,
    split_names,
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
    shown_names,
)
from cultureval.runtime.extras import require_extra
from cultureval.runtime.rows_report import RowsReport
from cultureval.tasks.cleaned_data import cleaned_files, cleaned_record, cleaned_rows
from cultureval.tasks.manifest import Selection, manifest_of, refuse_on_cleaned
from cultureval.tasks.options import with_defaults
from cultureval.tasks.registration import Registered, mirror_arguments, registered
from cultureval.tasks.suite import Source, Task

_DIRECTIONS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")

logger = logging.getLogger(__name__)

SHOWN_ROWS = 30  # broken rows that a message lists
FEW = 0.01  # share of a subset's rows that may be broken, at least one
NOT_ASKED = {"source_row", "form", "cluster", "index"}  # fields of prepared rows beside the question
NO_EXAMPLES = "no few-shot examples; run it zero-shot (no |k)"
_AT_HAND: dict[str, "PreparedSubset"] = {}


@dataclass(frozen=True)
class FoundSource:
    """A source whose files of a subset are on this machine.

    Attributes:
        folder: Folder that holds it.
        revision: Commit on the hub, or "local".
        files: Data files of the evaluated rows.
        few_shot_files: Data files of the few-shot examples.
        mixed: Whether the files hold the rows of several subsets, so that `source.subset_of` selects the task's.
        cleaned: Whether `audit apply` wrote the files, with rows as the source's own reader gives them.
    """

    source: Source
    folder: Path
    revision: str
    files: tuple[Path, ...]
    few_shot_files: tuple[Path, ...]
    mixed: bool = False
    cleaned: bool = False


class BrokenRows(CulturevalError):
    """All broken rows of a task, a clause for each: where it is, and what is wrong."""

    def __init__(self, rows: Sequence[str]) -> None:
        self.rows = tuple(rows)
        advice = "pass --bad-rows skip (CULTUREVAL_BAD_ROWS=skip) to leave all of them out; `few` leaves out up to 1 %."
        if len(self.rows) == 1:
            super().__init__(f"{self.rows[0]}. Fix the row, or {advice}")
            return
        lines = [f"{len(self.rows)} broken rows:", *(f"  - {row}" for row in self.rows[:SHOWN_ROWS])]
        if (more := len(self.rows) - SHOWN_ROWS) > 0:
            lines.append(f"  ... and {more} more, which `cultureval check SUITE --rows FILE` lists.")
        super().__init__("\n".join([*lines, f"Fix them, or {advice}"]))


@dataclass
class PreparedSubset:
    """The rows of a subset, ready for LightEval, and a report of all rows.

    Attributes:
        folder: Data set folder with the splits `test` and, where the source has examples, `few_shot`.
        report: Provenance and counts, as written into the results (see `SourcedTaskConfig`) of a run without examples.
        fingerprint: Of the evaluated rows and the examples together.
        content: The same whatever files they stand in.
    """

    folder: Path
    report: RowsReport = field(default_factory=RowsReport)
    fingerprint: str = ""
    content: str = ""

    def report_with(self, shots: int) -> RowsReport:
        """The report of a run with that many few-shot examples, on whose rows its scores depend as well."""
        return {**self.report, "fingerprint": self.fingerprint, "content": self.content} if shots else self.report


@contextmanager
def rows_at_hand(subsets: Mapping[str, PreparedSubset]) -> Iterator[None]:
    """A context in which tasks, by their names, take these rows instead of preparing theirs again."""
    _AT_HAND.update(subsets)
    try:
        yield
    finally:
        _AT_HAND.clear()


def at_hand(name: str) -> PreparedSubset | None:
    """The rows of a task that `rows_at_hand` offers."""
    return _AT_HAND.get(name)


def prepare_subset(task: Task, options: DataOptions, limit: int | None = None) -> PreparedSubset:
    """Reads, checks and converts the rows of a task; with a limit, broken ones are left out while enough are sound.

    Raises:
        SourceUnavailable: No copy of the data is on this machine or on the hub.
        MissingColumn: A source lacks a column; the message lists those found.
        BrokenRows: More rows are broken than `options.bad_rows` allows.
        CulturevalError: No valid row is left, or the source's check of all rows fails.
    """
    options = with_defaults(options)
    found = find_subset(task, options)
    evaluated, examples = _Outcome(), _Outcome()
    manifest, cleaned = manifest_of(options.manifests), cleaned_record(found.folder)
    if manifest and cleaned:
        refuse_on_cleaned(manifest, found.folder)
    selection = Selection(manifest, found.source.repo, found.folder, task.subset)
    for files, few_shot_ones, outcome in ((found.files, False, evaluated), (found.few_shot_files, True, examples)):
        for placed, prepared in tried_rows(task, found, files, few_shot_ones, options):
            if selection.leaves_out(placed, files, prepared is not None):
                outcome.discarded += 1
            else:
                outcome.add(task, found, placed, prepared)
    selection.finish([] if found.source.read and not found.cleaned else [*found.files, *found.few_shot_files])
    rows, repeated = _in_clusters(_evaluated_rows(task, found, evaluated, examples, options, limit))
    folder, fingerprint, with_examples = _write(task, rows, examples.rows)
    report = _rows_report(task, found, rows, evaluated, examples, options)
    report |= {"fingerprint": fingerprint, "duplicate_rows": repeated, "unread_files": _unread_files(task, found)}
    report["content"] = _content(rows)
    if manifest:
        report["manifest"] = selection.report(evaluated.discarded)
    elif cleaned:
        report["manifest"] = cleaned.report(task.task)
    _warn(task, report, found)
    return PreparedSubset(folder, report, with_examples, _content(rows, examples.rows))


def _evaluated_rows(
    task: Task, found: FoundSource, evaluated: "_Outcome", examples: "_Outcome", options: DataOptions, limit: int | None
) -> list[PreparedRow]:
    skipped = evaluated.broken
    too_many = [*_too_many(evaluated, found.source, options), *_too_many(examples, found.source, options)]
    if options.bad_rows == "few" and not evaluated.used:
        too_many = too_many or skipped
    enough = options.bad_rows == "few" and limit is not None and evaluated.used >= limit
    if too_many and not enough:
        raise BrokenRows([_told(task, found, row) for row in too_many])
    if not evaluated.rows:
        gone = f"{len(skipped)} were skipped" + (f", {evaluated.discarded} discarded" if evaluated.discarded else "")
        raise CulturevalError(f"{where(task, found)}: no row is left to evaluate ({gone}).")
    if found.source.check:
        found.source.check(evaluated.rows)
    return found.source.reorder(evaluated.rows) if found.source.reorder else evaluated.rows


def _too_many(outcome: "_Outcome", source: Source, options: DataOptions) -> list[dict[str, Any]]:
    """The broken rows that stop a run: all with "stop", those of which there are more than a few with "few"."""
    if options.bad_rows == "stop":
        return outcome.broken
    unknown = [row for row in outcome.broken if row["row"] not in source.unreadable]
    allowed = max(1, int(FEW * (outcome.used + len(outcome.broken))))
    return unknown if options.bad_rows == "few" and len(unknown) > allowed else []


def _rows_report(
    task: Task,
    found: FoundSource,
    rows: list[PreparedRow],
    evaluated: "_Outcome",
    examples: "_Outcome",
    options: DataOptions,
) -> RowsReport:
    """The report of a task's rows, without their hash."""
    return {
        "source": found.source.repo,
        "form": found.source.form,
        "revision": found.revision,
        "prompt": _prompts(task, found.source, rows, options),
        "parity": parity_of(task, options),
        "rows": len(rows),
        "expected_rows": task.expected(found.source.form),
        "expected_group_rows": task.group_rows.get(found.source.form),
        "few_shot_rows": len(examples.rows),
        "skipped_rows": evaluated.broken,
        "skipped_few_shot_rows": examples.broken,
        "row_counts": _row_counts(found, evaluated, examples),
        "sources": found.source.given,
        "not_selected": _reasons(evaluated.other_subsets, found.source.repo),
        "notes": [
            *(found.source.notes(rows) if found.source.notes else []),
            *_unusual_letters(rows),
        ],
        "caveat": found.source.caveat,
        "other_data": found.source.other_data(rows) if found.source.other_data else "",
    }


def _unusual_letters(rows: Sequence[PreparedRow]) -> list[str]:
    """A note on prompts that look as usual to a reader and have other tokens: they are asked as they stand."""
    decomposed = sum(not unicodedata.is_normalized("NFC", str(row.get("prompt", ""))) for row in rows)
    marked = sum(bool(_DIRECTIONS.search(str(row.get("prompt", "")))) for row in rows)
    told = ((decomposed, "letters in parts (not in Unicode's NFC)"), (marked, "marks of direction or byte order"))
    return [
        f"{count} of {len(rows)} prompts hold {what}: models read other tokens than of the usual spelling."
        for count, what in told
        if count
    ]


def _prompts(task: Task, source: Source, rows: Sequence[PreparedRow], options: DataOptions) -> str:
    """What the prompts are, for signatures."""
    tokens = f"+{template_hash(task.instruction)}" if task.instruction else ""
    tokens += f"+{PAPER}" if parity_of(task, options) == PAPER else ""
    if source.prompts:
        return source.prompts(rows) + tokens
    return ("curated" if source.form == "curated" else template_hash(prompt_template(task, options))) + tokens


def require_examples(name: str, shots: int, report: RowsReport) -> None:
    """Raises CulturevalError where a source has fewer few-shot examples than asked for, by the report of its rows."""
    if shots > (there := report["few_shot_rows"]):
        has = f"{there} few-shot examples; run it with |{there} at most" if there else NO_EXAMPLES
        raise CulturevalError(f"{name}: {report['source']} has {has}.")


def find_subset(task: Task, options: DataOptions) -> FoundSource:
    """The preferred source of a task whose files are available.

    Raises:
        SourceUnavailable: There is none; the message names the searched places and how to get the data.
    """
    looked_at, failures = [], []
    for source in task.sources:
        if options.form not in ("auto", source.form):
            continue
        try:
            fetch = mirror_arguments(task.suite)
            place = find_source(source.repo, source.revision, options.root, source.on_hub, fetch)
        except SourceUnavailable as error:
            failures.append(str(error))
            continue
        looked_at.append(source)
        if place and (found := _task_files(task, source, *place)):
            for files in (found.files, found.few_shot_files):
                require_whole([] if found.mixed and source.subset_of else files)
            return found
        if source.given:
            raise SourceUnavailable(f"{task.task}: {_nothing_there(source, place, options)}")
    if failures:
        raise SourceUnavailable(f"{task.task}: {failures[0]}")
    raise SourceUnavailable(_not_found(task, looked_at, options))


def _task_files(task: Task, source: Source, folder: Path, revision: str) -> FoundSource | None:
    """The files of a task: by config and split, else by the source's file patterns, else the tables that hold it."""
    if (record := cleaned_record(folder)) and record.tasks:
        known = record.tasks.get(task.task)
        if known is None or known.form != source.form:
            return None
        files, few_shot = cleaned_files(folder, known)
        return FoundSource(source, folder, revision, tuple(files), tuple(few_shot), cleaned=True)
    if source.find:
        files, few_shot = source.find(folder, task)
        return FoundSource(source, folder, revision, tuple(files), tuple(few_shot), True) if files else None
    mixed = False
    files = [] if source.files_first else _files_of_splits(task, source, folder, source.splits)
    if not files:
        files, mixed = _files_by_pattern(task, source, folder)
    few_shot = _example_files(task, source, folder, mixed) if files else []
    if not few_shot and source.few_shot_column and not any(_is_test_file(file) for file in files):
        few_shot = files  # one table, in which a column marks the examples
    return FoundSource(source, folder, revision, tuple(files), tuple(few_shot), mixed) if files else None


def _files_of_splits(task: Task, source: Source, folder: Path, splits: tuple[str, ...]) -> list[Path]:
    wanted = [(split,) for split in splits] if source.pool_splits else [splits]
    files = [file for names in wanted for file in files_of_split(folder, list(task.subset_names), names)]
    if not files and source.pool_configs:
        files = [file for names in wanted for file in _files_of_all_configs(folder, names)]
    return list(dict.fromkeys(files))


def _example_files(task: Task, source: Source, folder: Path, mixed: bool) -> list[Path]:
    """The files of few-shot examples: by config and split, else by their names, as the evaluated ones were found."""
    files = _files_of_splits(task, source, folder, source.few_shot_splits)
    if files or declares_configs(folder) and _files_of_splits(task, source, folder, source.splits):
        return files
    short = ("valid", "val") if "validation" in source.few_shot_splits else ()
    places = [*_own_folders(task, folder), *([folder] if mixed else [])]
    named = (files_named_by_split(place, (*source.few_shot_splits, *short)) for place in places)
    return next((files for files in named if files), [])


def _own_folders(task: Task, folder: Path) -> list[Path]:
    """The folder that is named like the task's subset, if there is one."""
    names = {name.lower() for name in task.subset_names if name}
    return [one for one in sorted(folder.iterdir()) if one.name.lower() in names and one.is_dir()]


def _files_by_pattern(task: Task, source: Source, folder: Path) -> tuple[list[Path], bool]:
    """(files, mixed): those whose names fit; files that patterns without the subset's name find hold all subsets."""
    own = [pattern for pattern in source.files if "{subset}" in pattern]
    patterns = [pattern.format(subset=name) for pattern in own for name in task.subset_names]
    if files := files_matching(folder, patterns):
        return files, False
    if not declares_configs(folder) and not source.given:
        for place in _own_folders(task, folder):
            if files := files_named_by_split(place, source.splits):
                return files, False
    if files := files_matching(folder, [pattern for pattern in source.files if pattern not in own]):
        return files, True
    if not source.subset_of or source.given:
        return [], False
    shards = _tables_of_all(source, folder)
    require_whole(shards)  # of which one may hold no row of the subset
    tables = [file for file in shards if any(_in_subset(_renamed(row, source), task, source) for row in _rows_of(file))]
    return tables, True


def _tables_of_all(source: Source, folder: Path) -> list[Path]:
    """The files that may hold the evaluated rows of all subsets: where a README declares configs, those of the one
    config, or of the one that is named so, and no others.
    """
    if not declares_configs(folder):
        return [file for file in files_matching(folder, ["*"]) if not holds_examples(file.relative_to(folder))]
    names = config_names(folder)
    whole = names if len(names) == 1 else [name for name in names if name.lower() in ("all", "default")]
    return files_of_split(folder, whole, source.splits)


def prompt_template(task: Task, options: DataOptions) -> str:
    """The template of a task's original rows; its name may hold options (`qimma/templates/arabculture_{location}`)."""
    return task.template.format(**with_defaults(options).suite)


def parity_of(task: Task, options: DataOptions) -> str:
    """How a task's prompts become tokens (`Kind.parity`): "paper" or "sound"; "" where the task has no choice."""
    values = {f"{{{name}}}": value for name, value in with_defaults(options).suite.items()}
    parity = values.get(task.parity, task.parity)
    if parity not in ("", *PARITIES):
        raise CulturevalError(f"{task.task}: its `parity`, {task.parity!r}, is {parity!r}, neither paper nor sound.")
    return parity


def _files_of_all_configs(folder: Path, splits: tuple[str, ...]) -> list[Path]:
    configs = [name for name in config_names(folder) if name.lower() != "all"]
    return [file for config in configs for file in files_of_split(folder, [config], splits)]


def _is_test_file(path: Path) -> bool:
    return path.stem.lower().startswith("test")


@lru_cache(maxsize=64)
def _rows_of(path: Path) -> list[Row]:
    return read_rows(path)


def forget_files() -> None:
    """Lets data be read anew, for another run of this process."""
    _rows_of.cache_clear()
    _files_of_no_task.cache_clear()
    forget_folders()


def _in_subset(row: Row, task: Task, source: Source) -> bool:
    name = source.subset_of(row) if source.subset_of else None
    return name is None or name in task.subset_names


def tried_rows(
    task: Task, found: FoundSource, files: tuple[Path, ...], few_shot: bool, options: DataOptions
) -> Iterator[tuple[PlacedRow, list[PreparedRow] | BadRow | None]]:
    """Every row of a task's files with what became of it, in order.

    Args:
        files: Those of its evaluated rows, or of its few-shot examples.
        few_shot: Whether they are read for examples.

    Yields:
        (row, outcome): its prepared rows, the reason why it is broken, or None where it belongs to another subset or
        to the other split of the table.

    Raises:
        MissingColumn: The source lacks a column.
        MissingExtra: Its rows have images, and what reads them is not installed.
    """
    if task.images:
        require_extra("vision")
    source = found.source
    asked: set[str] = set()
    golds = GoldColumn(source.gold_numbers)
    contents: dict[Path | None, set[str]] = {}
    for placed in _placed_rows(task, found, files, asked):
        if not _is_of_task(placed.row, task, found, few_shot):
            yield placed, None
            continue
        try:
            try:
                prepared = _prepared(task, found, placed, options, golds)
            except UndecidedNumbers:
                golds = _gold_column(task, found, options)
                prepared = _prepared(task, found, placed, options, golds)
            if len(files) > 1:
                contents.setdefault(placed.path, set()).update(map(asked_by, prepared))
            yield placed, prepared
        except MissingColumn as error:
            text = f"{where(task, found)}, {placed.file}: {error}{_misspelt_columns(source, asked)}"
            raise MissingColumn(text) from error
        except BadRow as error:
            yield placed, error
    if files and not found.cleaned:
        _require_read_columns(source, asked, where(task, found))
        _require_other_rows(contents, where(task, found))


def asked_by(row: PreparedRow) -> str:
    """What rows that ask the same have in common: all but the place in the source and the gold, as `alike` reads it."""
    content = {name: value for name, value in row.items() if name not in NOT_ASKED}
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)
    return _hash(alike(text.replace("\\n", " ")))  # a mark at the end of a line leaves a space, or none


def _in_clusters(rows: list[PreparedRow]) -> tuple[list[PreparedRow], int]:
    """The rows, those that ask the same in one cluster of the standard errors; and how many repeat an earlier one.

    Rows without a field `cluster`, whose items are made of several rows, and those of a passage keep theirs.
    """
    asked = [asked_by(row) for row in rows]
    counts = Counter(asked)
    clustered = [
        row | {"cluster": f"same-{key}"} if counts[key] > 1 and row.get("cluster") == "" else row
        for row, key in zip(rows, asked, strict=True)
    ]
    return clustered, len(rows) - len(counts)


def _require_other_rows(contents: Mapping[Path | None, set[str]], place: str) -> None:
    """Refuses two files of a task that hold the same rows, as a copy or another format of one file does."""
    seen: dict[frozenset[str], Path | None] = {}
    for path, rows in contents.items():
        other = seen.setdefault(frozenset(rows), path)
        if other and path and other != path and len(rows) > 1:
            raise CulturevalError(
                f"{place}: {other.name} and {path.name} hold the same {len(rows)} rows, which would count twice: move "
                f"one of them out of {other.parent}."
            )


def _is_of_task(row: Row, task: Task, found: FoundSource, few_shot: bool) -> bool:
    """Whether a row of a task's files is of its subset and, in a table of both, of the wanted split."""
    source = found.source
    one_table = bool(source.few_shot_column) and set(found.files) == set(found.few_shot_files)
    other = found.mixed and not _in_subset(row, task, source)
    return not other and not (one_table and _is_example(row, source) != few_shot)


def _prepared(
    task: Task, found: FoundSource, placed: PlacedRow, options: DataOptions, golds: GoldColumn
) -> list[PreparedRow]:
    """The prepared rows of a row; raises as the source's conversion, and UndecidedNumbers where its gold is a number of
    which the column has not told yet what it means.
    """
    source = found.source
    preparation = Preparation(prompt_template(task, options), found.folder, options, task.language)
    with golds_of(golds):
        prepared = source.prepare(placed.row, preparation)
    items = prepared if isinstance(prepared, list) else [prepared]
    for item in items:
        check_labels(item, preparation.template, ready_made=source.form == "curated")
    place = {"source_row": placed.name, "form": source.form}
    return [item | place for item in items]


def _gold_column(task: Task, found: FoundSource, options: DataOptions) -> GoldColumn:
    """What numbers among a task's golds mean, by all of its rows and examples; CulturevalError if they do not tell."""
    golds = GoldColumn(collecting=True)
    for files, few_shot in ((found.files, False), (found.few_shot_files, True)):
        for placed in _placed_rows(task, found, files, set()):
            if _is_of_task(placed.row, task, found, few_shot):
                with suppress(BadRow):
                    _prepared(task, found, placed, options, golds)
    golds.collecting = False
    if why := golds.decide():
        raise CulturevalError(
            f"{where(task, found)}: what the numbers among its golds mean is not clear: {why}. Say it in a file for "
            f"--sources: `{task.group}: {{gold_numbers: 0}}` where the first option is 0, 1 where it is 1, `text` "
            "where they are texts of options."
        )
    return golds


def _placed_rows(task: Task, found: FoundSource, files: Sequence[Path], asked: set[str]) -> Iterable[PlacedRow]:
    if found.cleaned:
        return cleaned_rows(files)
    read = found.source.read
    return read(files, task) if read and files else _records(files, found.source, asked)


def _require_read_columns(source: Source, asked: set[str], place: str) -> None:
    if unread := [name for name in source.columns if name not in asked]:
        near = did_you_mean(unread[0], sorted(asked - set(source.columns)))
        raise CulturevalError(f"{source.given}, columns: nothing in {place} reads {unread[0]!r}.{near}")


def _misspelt_columns(source: Source, asked: set[str]) -> str:
    """A sentence on the user's name of a column that most resembles one that a row was asked for; "" without such."""
    unread = [name for name in source.columns if name not in asked]
    known = sorted(asked - set(source.columns))
    name = max(unread, key=lambda name: bool(did_you_mean(name, known, 0.7)), default="")
    hint = did_you_mean(name, known, 0.7)
    return f". {source.given}, columns: nothing reads {name!r}.{hint}" if hint else ""


@dataclass
class _Outcome:
    """What became of the rows of the evaluated files, or of those of the examples; a manifest discards some."""

    rows: list[PreparedRow] = field(default_factory=list)
    broken: list[dict[str, Any]] = field(default_factory=list)
    used: int = 0
    discarded: int = 0
    other_subsets: Counter[str] = field(default_factory=Counter)

    def add(
        self, task: Task, found: FoundSource, placed: PlacedRow, outcome: list[PreparedRow] | BadRow | None
    ) -> None:
        if isinstance(outcome, BadRow):
            place = {"file": placed.file, "row": placed.number}
            what = {"column": outcome.column, "value": shorten(outcome.value), "reason": outcome.reason}
            self.broken.append(place | what)
        elif outcome is not None:
            self.used += 1
            self.rows += outcome
        elif found.mixed and not _in_subset(placed.row, task, found.source):
            name = found.source.subset_of(placed.row) if found.source.subset_of else ""
            self.other_subsets[str(name)] += 1


def _reasons(other_subsets: Counter[str], repo: str) -> dict[str, int]:
    """Why rows are not selected, from the names of their subsets -> how many rows."""
    known = subsets_of(registered(), repo)
    reasons: Counter[str] = Counter()
    for name, count in other_subsets.items():
        reasons["of another subset" if name in known else _unknown_subset(name, known)] += count
    return dict(reasons)


def _unknown_subset(name: str, known: frozenset[str]) -> str:
    return f"no task has the subset {shorten(name, 60)}.{did_you_mean(name, known, 0.8)}".removesuffix(".")


@lru_cache(maxsize=64)
def subsets_of(suites: Registered, repo: str) -> frozenset[str]:
    """Names of the subsets of all tasks that may read a source."""
    tasks = [task for task in suites.tasks.values() if any(one.repo == repo for one in task.sources)]
    return frozenset(name for task in tasks for name in task.subset_names)


def _row_counts(found: FoundSource, evaluated: _Outcome, examples: _Outcome) -> dict[str, int]:
    """The rows of the files: `rows` is the sum of the others."""
    counts = {
        "scored": evaluated.used,
        "few_shot": examples.used,
        "skipped": len(evaluated.broken) + len(examples.broken),
        "not_selected": sum(evaluated.other_subsets.values()),
    }
    if discarded := evaluated.discarded + examples.discarded:
        counts["discarded"] = discarded
    if set(found.files) != set(found.few_shot_files):  # else both are the same table
        counts["not_selected"] += sum(examples.other_subsets.values())
    return {"rows": sum(counts.values()), **counts}


def _told(task: Task, found: FoundSource, row: Mapping[str, Any]) -> str:
    what = f"column {row['column']!r} {row['reason']} (value: {row['value']})"
    return f"{where(task, found)}, row {row['row']} of {row['file']}: {what}"


def _records(files: Iterable[Path], source: Source, asked: set[str]) -> Iterator[PlacedRow]:
    """The rows of files; the names of columns that are read later are added to `asked` where a user gives some."""
    for file in files:
        for number, row in enumerate(_rows_of(file)):
            named = _WatchedRow(_renamed(row, source), asked) if source.columns else row
            yield PlacedRow(file.name, number, named, file)


class _WatchedRow(dict[str, Any]):
    """A row that notes which of its columns are looked for."""

    def __init__(self, row: Row, asked: set[str]) -> None:
        super().__init__(row)
        self.asked = asked

    def __contains__(self, name: object) -> bool:
        self.asked.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> Any:
        self.asked.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.asked.add(name)
        return super().get(name, default)


def _renamed(row: Row, source: Source) -> Row:
    """The row with the names of columns that its reader knows."""
    if not source.columns:
        return row
    for theirs in source.columns.values():
        if theirs not in row:
            names = [str(name) for name in row]
            raise MissingColumn(
                f"{source.given}, columns: {source.repo} has no column {theirs!r}.{did_you_mean(theirs, names)} It has "
                f"{', '.join(names)}."
            )
    kept = {name: cell for name, cell in row.items() if name not in source.columns.values()}
    return kept | {ours: row[theirs] for ours, theirs in source.columns.items()}


def _is_example(row: Row, source: Source) -> bool:
    return str(row.get(source.few_shot_column or "")) in ("1", "1.0", "True")


def where(task: Task, found: FoundSource) -> str:
    """The source and the subset, for messages."""
    return f"{found.source.repo}, subset {task.subset!r} ({task.task})"


def _nothing_there(source: Source, place: tuple[Path, str] | None, options: DataOptions) -> str:
    """Why the data that a user named are not there, with what is there."""
    if place is None:
        folders = [f"{one.parent.name}/{one.name}" for one in options.root.glob("*/*")] if options.root else []
        there = options.root or "the hub"
        near = did_you_mean(source.repo, folders)
        return f"{source.given}: {there} has no data set {source.repo} that can be read.{near}"
    folder = place[0]
    if source.files_first or source.find:
        names = [str(file.relative_to(folder)) for file in files_matching(folder, ["*"])]
        near = did_you_mean(source.files[0], names, 0.2) if source.files else ""
        return f"{source.given}: no file of {source.repo} fits {', '.join(source.files) or 'its reader'}.{near}"
    known = sorted({split for config in config_names(folder) for split in split_names(folder, config)})
    near = did_you_mean(source.splits[0], known)
    return f"{source.given}: {source.repo} has no split {source.splits[0]!r} of it.{near} Splits: {', '.join(known)}."


def _not_found(task: Task, looked_at: list[Source], options: DataOptions) -> str:
    forms = {source.form for source in task.sources}
    if options.form not in ("auto", *forms):
        copies = ", ".join(source.repo for source in task.sources)
        return (
            f"{task.task}: there is no {options.form} copy of {task.benchmark}, subset {task.subset!r}; its data are "
            f"{copies} ({'/'.join(sorted(forms))}). Leave --form out, or leave the task out."
        )
    places = ", ".join(f"{options.root}/{source.repo}" if options.root else source.repo for source in looked_at)
    wanted = "" if options.form == "auto" else f" in the {options.form} form"
    text = f"{task.task}: no data{wanted}; looked for subset {task.subset!r} in {places or 'no source of that form'}."
    text += _other_configs(looked_at, options)
    fetch = f"cultureval mirror {mirror_arguments(task.suite)} --output-dir DIR"
    if task.sources[0].on_hub and task.sources[-1].on_hub and task.sources[-1].how_to_get:
        how = task.sources[-1].how_to_get
        return f"{text} {how}. `{fetch}` fetches it for machines without the hub."
    hints = [f"{source.how_to_get}, put it below DIR/{source.repo}" for source in task.sources if source.how_to_get]
    if hints:
        return f"{text} It is not on the hub: get {'; or '.join(hints)}; then pass --data DIR."
    if not any(source.on_hub or source.archive for source in task.sources):
        place = f"DIR/{task.sources[0].repo}"
        return f"{text} It is not on the hub: get it from its authors, put it below {place}, then pass --data DIR."
    return f"{text} `{fetch}` fetches it on a connected machine."


def _other_configs(looked_at: Sequence[Source], options: DataOptions) -> str:
    """A sentence on what the README of a folder declares, which lacks the subset; "" without one."""
    for source in looked_at if options.root else ():
        folder = options.root / source.repo
        if folder.is_dir() and not source.find and declares_configs(folder) and (names := config_names(folder)):
            splits = sorted({split for name in names for split in split_names(folder, name)})
            lacks = f", none of which has the split {source.splits[0]!r}: there are {shown_names(splits)}"
            return (
                f" Its README declares the configs {shown_names(names)}{'' if {*splits} & {*source.splits} else lacks}."
            )
    return ""


def _write(task: Task, rows: list[PreparedRow], few_shot: list[PreparedRow]) -> tuple[Path, str, str]:
    """Writes the splits below the user cache, each file atomically; the folder's name holds a hash of the content.

    Returns:
        (folder, hash of the rows, hash of rows and examples).
    """
    splits = {"test": rows} | ({"few_shot": few_shot} if few_shot else {})
    texts = {
        name: "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in split) for name, split in splits.items()
    }
    fingerprint = _hash("\0".join(texts.values()))
    slug = "".join(character if character.isalnum() else "_" for character in task.task)
    folder = user_cache() / "rows" / f"{slug}-{fingerprint}"
    contents = {f"{name}.jsonl": text for name, text in texts.items()} | {"README.md": _front_matter(list(texts))}
    for name, text in contents.items():
        file, content = folder / name, text.encode("utf-8")
        if not file.is_file() or file.read_bytes() != content:  # new, or damaged since an earlier run
            write_atomically(file, content)
    return folder, _hash(texts["test"]), fingerprint


def _content(*splits: Sequence[PreparedRow]) -> str:
    """A hash of rows without the names of their files: the same in another format and in shards."""
    bare = [[{name: row[name] for name in row if name != "source_row"} for row in split] for split in splits]
    return _hash(json.dumps(bare, ensure_ascii=False))


def _unread_files(task: Task, found: FoundSource) -> list[str]:
    """The data files of a source's folder that none of its tasks reads; [] where a reader of its own finds them."""
    if found.cleaned or found.source.find or found.source.read or found.source.given:
        return []
    tasks, repo = registered().tasks.values(), found.source.repo
    same = tuple((one, source) for one in tasks for source in one.sources if source.repo == repo)
    return list(_files_of_no_task(same, found.folder))


@lru_cache(maxsize=64)
def _files_of_no_task(tasks: tuple[tuple[Task, Source], ...], folder: Path) -> tuple[str, ...]:
    """The files below a folder that no task reads by its source and whose names are not those of training splits."""
    read: set[Path] = set()
    for task, source in tasks:
        with suppress(CulturevalError):  # another task's files may be missing
            if found := _task_files(task, source, folder, ""):
                read.update(path.resolve() for path in (*found.files, *found.few_shot_files))
    names = {file: file.relative_to(folder) for file in files_matching(folder, ["*"]) if file.resolve() not in read}
    return tuple(str(name) for name in names.values() if not holds_examples(name))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def _front_matter(splits: list[str]) -> str:
    entries = "".join(f"      - split: {name}\n        path: {name}.jsonl\n" for name in splits)
    return f"---\nconfigs:\n  - config_name: default\n    data_files:\n{entries}---\n"


def _warn(task: Task, report: RowsReport, found: FoundSource) -> None:
    if report["skipped_rows"]:
        logger.warning("%s: skipped %d broken rows.", where(task, found), len(report["skipped_rows"]))
    for note in filter(None, [*report["notes"], report["other_data"]]):
        logger.info("%s: %s", where(task, found), note)
    strange = {why: count for why, count in report["not_selected"].items() if why.startswith("no task")}
    for why, count in strange.items():
        logger.warning("%s: %d rows are not read: %s.", where(task, found), count, why.rstrip("?."))
    discarded = report.get("manifest", {}).get("discarded", 0)
    total = report["rows"] + len(report["skipped_rows"]) + discarded
    expected = report["expected_rows"]
    if expected not in (None, total) and not found.folder.is_relative_to(samples_root()):
        logger.warning("%s: %d rows, %d expected.", where(task, found), total, expected)
