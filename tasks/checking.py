"""Reads all rows of tasks' data without a model, and accounts for each: scored, an example, or listed."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from cultureval.prompts.preparation import PreparedRow
from cultureval.runtime.data.row_files import PlacedRow, files_matching, iter_rows
from cultureval.runtime.data_options import DataOptions
from cultureval.runtime.errors import BadRow, CulturevalError, SourceUnavailable, shorten
from cultureval.runtime.extras import MissingExtra
from cultureval.tasks.catalogue import all_tasks, groups, name_and_shots
from cultureval.tasks.manifest import relative_path
from cultureval.tasks.options import with_defaults
from cultureval.tasks.reading import FoundSource, asked_by, find_subset, require_examples, subsets_of, tried_rows
from cultureval.tasks.registration import registered
from cultureval.tasks.running import quiet_libraries
from cultureval.tasks.selection import select_tasks
from cultureval.tasks.suite import Task

Kind = Literal["broken", "duplicate", "unmatched", "unselected"]
SHOWN = 60  # characters of a value


@dataclass(frozen=True)
class ListedRow:
    """A row, or a whole file of them, that needs a look.

    Attributes:
        kind: "broken" (breaks its schema), "duplicate" (the same question as an earlier row; it is scored all the
            same), "unmatched" (names a subset that no task has), "unselected" (no task reads it).
        source: The data set.
        file: Path below the source's folder.
        row: Number in the file, from 0; None stands for all rows of the file.
        rows: How many rows it stands for.
        task: The task that reads it; "" without one.
        column: The broken column.
        value: What that column holds, shortened.
        reason: What is wrong, as a clause.
    """

    kind: Kind
    source: str
    file: str
    row: int | None
    rows: int = 1
    task: str = ""
    column: str = ""
    value: str = ""
    reason: str = ""


@dataclass
class SubsetCounts:
    """The rows of one task's source; `scored` are prepared rows, of which a row of the source may give several.

    Attributes:
        source: The data set that it reads; "" where there are no data.
        form: "curated" or "original".
        scored: Prepared rows to evaluate.
        few_shot: Prepared few-shot examples.
        duplicates: Rows that repeat an earlier one of the subset.
        expected: Rows of the published subset, where known.
        problem: Why it cannot be read, or what is wrong with all rows together.
        missing: Whether there are no data.
    """

    task: str
    source: str = ""
    form: str = ""
    scored: int = 0
    few_shot: int = 0
    broken: int = 0
    duplicates: int = 0
    expected: int | None = None
    problem: str = ""
    missing: bool = False

    def differs(self) -> bool:
        """Whether the source has another number of rows than the published one."""
        return self.expected not in (None, self.scored + self.broken)


@dataclass
class FileCounts:
    """The rows of one data file: `rows` = scored + few_shot + broken + unselected (unmatched ones among them).

    A file that only completes the rows of another one (the answers to its questions) is not counted.
    """

    source: str
    file: str
    rows: int = 0
    scored: int = 0
    few_shot: int = 0
    broken: int = 0
    unselected: int = 0


@dataclass
class GroupCounts:
    """The rows of all subsets of a group whose published sum is known; it counts the examples or leaves them out.

    Attributes:
        form: "curated" or "original".
        rows: Rows to evaluate, broken ones included.
        few_shot: Few-shot examples.
        expected: Rows of the published group.
        complete: Whether all of its subsets have data in that form.
    """

    group: str
    form: str
    rows: int
    few_shot: int
    expected: int
    complete: bool = True

    def differs(self) -> bool:
        """Whether all subsets together have another number of rows than published."""
        return self.complete and self.expected not in (self.rows, self.rows + self.few_shot)


@dataclass
class DataReport:
    """What the data of tasks hold."""

    subsets: list[SubsetCounts] = field(default_factory=list)
    groups: list[GroupCounts] = field(default_factory=list)
    files: list[FileCounts] = field(default_factory=list)
    listed: list[ListedRow] = field(default_factory=list)

    def is_broken(self) -> bool:
        """Whether a row is broken, or a subset whose data are there cannot be read."""
        unreadable = any(one.problem and not one.missing for one in self.subsets)
        return unreadable or any(row.kind == "broken" for row in self.listed)


def check_data(names: Iterable[str], options: DataOptions) -> DataReport:
    """Reads every row of every subset of the named tasks.

    Args:
        names: Suites, groups, tasks or files of them, as `selection.select_tasks` takes them; after `|k`, fewer than k
            few-shot examples are a problem of the subset.
        options: Options of reading data; broken rows are always collected.

    Raises:
        CulturevalError: A name is unknown, or no named subset has data.
    """
    quiet_libraries()
    options, report, ledger = with_defaults(options), DataReport(), _Ledger()
    selected = [name_and_shots(name) for name in select_tasks(list(names))[0]]
    first_error: CulturevalError | None = None
    for name in dict.fromkeys(bare for bare, _ in selected):
        counts = SubsetCounts(name)
        report.subsets.append(counts)
        try:
            _check_subset(all_tasks()[name], options, counts, report.listed, ledger)
            shots = max(int(number) for bare, number in selected if bare == name)
            require_examples(name, shots, {"source": counts.source, "few_shot_rows": counts.few_shot})
        except MissingExtra:
            raise
        except CulturevalError as error:
            counts.problem, counts.missing = str(error), isinstance(error, SourceUnavailable)
            first_error = first_error or error
    if first_error and all(one.missing for one in report.subsets):
        raise first_error
    report.files = ledger.counts(report.listed, _read_in_part({one.task for one in report.subsets}))
    report.groups = _group_sums(report.subsets)
    return report


def _read_in_part(checked: set[str]) -> set[str]:
    """The sources of which other tasks of the same suites read further rows and files."""
    suites = {all_tasks()[name].suite for name in checked}
    others = [task for name, task in all_tasks().items() if task.suite in suites and name not in checked]
    return {source.repo for task in others for source in task.sources}


def _group_sums(subsets: list[SubsetCounts]) -> list[GroupCounts]:
    """The sums of all groups of several subsets whose published sum is known in a form that is there."""
    members: dict[str, list[SubsetCounts]] = {}
    for one in subsets:
        members.setdefault(all_tasks()[one.task].group, []).append(one)
    sums = []
    for group, some in members.items():
        forms = {one.form for one in some if one.form}
        form = min(forms) if len(forms) == 1 else ""
        wanted = all_tasks()[some[0].task].group_rows.get(form)
        if wanted is not None and len(some) > 1:
            rows = sum(one.scored + one.broken for one in some)
            complete = len(some) == len(groups()[group]) and all(one.form and not one.missing for one in some)
            sums.append(GroupCounts(group, form, rows, sum(one.few_shot for one in some), wanted, complete))
    return sums


def check_task(task: Task, options: DataOptions) -> SubsetCounts:
    """The counts of one task's rows; raises CulturevalError where there are no data, or they cannot be read."""
    counts = SubsetCounts(task.task)
    _check_subset(task, with_defaults(options), counts, [], _Ledger())
    return counts


def _check_subset(
    task: Task, options: DataOptions, counts: SubsetCounts, listed: list[ListedRow], ledger: "_Ledger"
) -> None:
    found = find_subset(task, options)
    counts.source, counts.form = found.source.repo, found.source.form
    counts.expected = task.expected(found.source.form)
    ledger.sources.setdefault(found.folder, found)
    rows: list[PreparedRow] = []
    seen: dict[str, str] = {}
    for files, few_shot in ((found.few_shot_files, True), (found.files, False)):
        for placed, outcome in tried_rows(task, found, files, few_shot, options):
            path = _path_of(placed, files)
            ledger.note(found, path, placed, _state(outcome, few_shot))
            if isinstance(outcome, BadRow):
                counts.broken += not few_shot
                listed.append(_broken_row(task, found, path, placed, outcome))
            elif outcome is not None:
                file = relative_path(path, found.folder)
                if repeated := _repeated(outcome, seen, f"{file}:{placed.number}"):
                    counts.duplicates += 1
                    reason = f"asks the same as {repeated}"
                    row = ListedRow("duplicate", found.source.repo, file, placed.number, task=task.task, reason=reason)
                    listed.append(row)
                rows += () if few_shot else outcome
                counts.few_shot += len(outcome) if few_shot else 0
    ledger.read.update(found.files, found.few_shot_files)
    counts.scored = len(rows)
    if found.source.check:
        found.source.check(rows)
    if not rows:
        raise CulturevalError("no row is left to evaluate")


def _state(outcome: list[PreparedRow] | BadRow | None, few_shot: bool) -> str:
    if outcome is None:
        return ""
    return "broken" if isinstance(outcome, BadRow) else "few_shot" if few_shot else "scored"


def _repeated(items: list[PreparedRow], seen: dict[str, str], place: str) -> str:
    """The place of an earlier row that asks the same; "" without one."""
    first = seen.setdefault("".join(map(asked_by, items)), place)
    return "" if first == place else first


def _broken_row(task: Task, found: FoundSource, path: Path, placed: PlacedRow, error: BadRow) -> ListedRow:
    return ListedRow(
        "broken",
        found.source.repo,
        file=relative_path(path, found.folder),
        row=placed.number,
        task=task.task,
        column=error.column,
        value=shorten(error.value, SHOWN),
        reason=error.reason,
    )


def _path_of(placed: PlacedRow, files: tuple[Path, ...]) -> Path:
    if placed.path in files:  # files of several configs may have one name
        return placed.path
    name = Path(placed.file).name
    return next((file for file in files if file.name == name), Path(placed.file))


class _Ledger:
    """What became of each row of each file, over all tasks."""

    def __init__(self) -> None:
        self.sources: dict[Path, FoundSource] = {}
        self.states: dict[Path, dict[int, str]] = {}
        self.names: dict[Path, dict[int, str]] = {}  # of subsets that no task has claimed
        self.read: set[Path] = set()  # to the end, those too of which no row is noted: they complete rows of others

    def note(self, found: FoundSource, path: Path, placed: PlacedRow, state: str) -> None:
        states = self.states.setdefault(path, {})
        if state or placed.number not in states:
            states[placed.number] = state or states.get(placed.number, "")
        if found.source.subset_of and not states[placed.number]:
            name = found.source.subset_of(placed.row)
            self.names.setdefault(path, {})[placed.number] = "" if name is None else str(name)

    def counts(self, listed: list[ListedRow], in_part: set[str]) -> list[FileCounts]:
        """The counts of the sources' data files; rows that no task reads are added to the list.

        Of sources that are read `in_part`, only files of which a row was read are counted, and none of their rows is
        listed that another task may read.
        """
        counted = []
        for folder, found in self.sources.items():
            partly = found.source.repo in in_part
            for path in dict.fromkeys([*([] if partly else files_matching(folder, ["*"])), *self.states]):
                only_completes_others = path in self.read and path not in self.states  # joined to rows of another file
                if path.is_relative_to(folder) and not only_completes_others:
                    counted.append(self._count(path, found, listed, partly))
        return counted

    def _count(self, path: Path, found: FoundSource, listed: list[ListedRow], partly: bool) -> FileCounts:
        states, names = self.states.get(path, {}), self.names.get(path, {})
        by_state = Counter(states.values())
        rows = max(_length(path), len(states))
        counts = FileCounts(found.source.repo, relative_path(path, found.folder), rows)
        counts.scored, counts.few_shot, counts.broken = (by_state[name] for name in ("scored", "few_shot", "broken"))
        counts.unselected = rows - counts.scored - counts.few_shot - counts.broken
        place = {"source": found.source.repo, "file": counts.file}
        if not counts.scored + counts.few_shot + counts.broken and rows:
            listed.append(ListedRow("unselected", **place, row=None, rows=rows, reason="no task reads the file"))
            return counts
        known = subsets_of(registered(), found.source.repo)
        for number in (number for number in range(rows) if not states.get(number)):
            name = names.get(number, "")
            if name and name not in known:
                reason = f"no task has the subset {shorten(name, SHOWN)}"
                listed.append(ListedRow("unmatched", **place, row=number, value=name, reason=reason))
            elif not partly:
                reason = "its task reads another copy of the data" if name else "no task reads the row"
                listed.append(ListedRow("unselected", **place, row=number, value=name, reason=reason))
        return counts


def _length(path: Path) -> int:
    """Rows of a file; 0 where it is not a table of rows, but part of a source that is read in another way."""
    try:
        return sum(1 for _ in iter_rows(path))
    except CulturevalError:
        return 0
