"""Reads all rows of tasks' data without a model, and counts valid, broken and duplicate rows."""

from collections.abc import Iterable
from dataclasses import dataclass

from cultureval.runtime.data_options import DataOptions
from cultureval.runtime.errors import CulturevalError, SourceUnavailable
from cultureval.runtime.extras import MissingExtra
from cultureval.tasks.catalogue import all_tasks, groups, name_and_shots
from cultureval.tasks.reading import BrokenRows, broken_row, report_of, require_examples
from cultureval.tasks.running import quiet_libraries
from cultureval.tasks.selection import select_tasks


@dataclass
class SubsetCounts:
    """The rows of one task's source; a row of the source may give several prepared rows.

    Attributes:
        source: Its data set; "" without data.
        form: "curated" or "original".
        rows: Prepared rows to evaluate.
        few_shot: Prepared few-shot examples.
        duplicates: Rows with the same content as an earlier row of the subset.
        broken: A sentence for each broken row.
        expected: Published number of rows; None: unknown.
        problem: Why it cannot be read, or a problem of all rows together.
        missing: Whether there are no data.
    """

    task: str
    source: str = ""
    form: str = ""
    rows: int = 0
    few_shot: int = 0
    duplicates: int = 0
    broken: tuple[str, ...] = ()
    expected: int | None = None
    problem: str = ""
    missing: bool = False

    def differs(self) -> bool:
        """Whether the source has another number of rows than the published one."""
        return self.expected not in (None, self.rows + len(self.broken))

    def is_broken(self) -> bool:
        """Whether a row is broken, or existing data cannot be read."""
        return bool(self.broken or (self.problem and not self.missing))


def check_data(names: Iterable[str], options: DataOptions) -> list[SubsetCounts]:
    """Reads every row of every subset of the named tasks.

    Args:
        names: Suites, groups, tasks or files of them, as of `selection.select_tasks`. With `|k`, fewer than k few-shot
            examples are a problem of the subset.

    Raises:
        CulturevalError: A name is unknown, or the extra `vision` is missing.
    """
    quiet_libraries()
    return [_counts(*name_and_shots(name), options) for name in select_tasks(list(names))[0]]


def _counts(name: str, shots: str, options: DataOptions) -> SubsetCounts:
    counts = SubsetCounts(name)
    try:
        report = report_of(all_tasks()[name], int(shots or 0), options)
        counts.source, counts.form, counts.rows = report["source"], report["form"], report["rows"]
        counts.few_shot, counts.duplicates = report["few_shot_rows"], report["duplicate_rows"]
        counts.expected = report["expected_rows"]
        counts.broken = tuple(map(broken_row, [*report["skipped_rows"], *report["skipped_few_shot_rows"]]))
        require_examples(name, int(shots or 0), report)
    except MissingExtra:
        raise
    except BrokenRows as error:
        counts.broken = error.rows
    except CulturevalError as error:
        counts.problem, counts.missing = str(error), isinstance(error, SourceUnavailable)
    return counts


def differing_sums(subsets: Iterable[SubsetCounts]) -> list[str]:
    """A sentence for each complete group with another number of rows than the published sum."""
    by_group: dict[str, list[SubsetCounts]] = {}
    for subset in subsets:
        by_group.setdefault(all_tasks()[subset.task].group, []).append(subset)
    sentences = []
    for group, members in by_group.items():
        forms = {subset.form for subset in members}
        published = all_tasks()[members[0].task].group_rows.get(forms.pop()) if len(forms) == 1 else None
        rows, shots = (
            sum(subset.rows + len(subset.broken) for subset in members),
            sum(subset.few_shot for subset in members),
        )
        if published not in (None, rows, rows + shots) and len(members) == len(groups()[group]):
            sentences.append(f"{group}: {rows:,} rows and {shots:,} few-shot examples; published: {published:,} rows.")
    return sentences
