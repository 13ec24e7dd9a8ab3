"""What `cultureval tasks` and `check` print: suites, groups and subsets, and of their data what is not as published."""

from collections.abc import Iterable, Sequence

from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.errors import counted
from cultureval.runtime.printing import folded, terminal_width
from cultureval.tasks.catalogue import all_suites, all_tasks, groups
from cultureval.tasks.checking import DataReport, FileCounts, GroupCounts, Kind, ListedRow, SubsetCounts
from cultureval.tasks.suite import Suite, Task

WIDTH = 80  # cells, where standard output is no terminal
MOST_NAMES = 8  # of metrics
HINTS = (
    "Rows are the published ones: ≥ where only some tasks' numbers are known, ? where none is. `cultureval tasks "
    "SUITE` lists a suite's groups, `cultureval tasks GROUP` a group's tasks, `cultureval tasks --all` every task; "
    "`--json` prints them as JSON."
)
FIRST = 10  # listed rows of a kind, and subsets, that are shown without --full
COLUMNS = ("subset", "source", "items", "few-shot", "broken", "duplicate", "published", "")


def suites_text() -> str:
    """A line a suite: what it measures, how many tasks and rows, what a run needs, the languages of its texts."""
    rows = []
    for name, suite in all_suites().items():
        tasks = [task for task in all_tasks().values() if task.suite == name]
        languages = ", ".join(sorted({task.language for task in tasks}))
        rows.append((name, _what(suite), str(len(tasks)), _rows(tasks), _needs(suite, tasks), languages))
    header = ("suite", "what it measures", "tasks", "rows", "needs", "languages")
    return "\n".join([_table(header, rows, "llrrll"), "", _paragraph(HINTS)])


def suite_text(name: str) -> str:
    """A line a group of the suite, the tasks of the only one, and where the suite's documentation is."""
    rows = []
    for group, members in groups(name).items():
        tasks = [all_tasks()[member] for member in members]
        rows.append((group, tasks[0].task_type, str(len(tasks)), _rows(tasks), tasks[0].metrics[0]))
    suite = all_suites()[name]
    parts = [_paragraph(suite.title), _table(("group", "type", "tasks", "rows", "first metric"), rows, "llrrl")]
    if len(rows) == 1:
        parts.append(groups_text(groups(name)[rows[0][0]]))
    more = f"More on {name}: {suite.page}"
    return "\n\n".join([*parts, *([more] if suite.page else [])])


def groups_text(names: Iterable[str]) -> str:
    """The tasks of these names, group by group: what all of a group share above, then a line a task."""
    wanted = [all_tasks()[name] for name in names]
    return "\n\n".join(
        _group_text([task for task in wanted if task.group == group])
        for group in dict.fromkeys(task.group for task in wanted)
    )


def _group_text(tasks: Sequence[Task]) -> str:
    first, several = tasks[0], len(tasks) > 1
    copy = f" of the {first.sources[0].form} copy" if several and first.sources[0].form in first.group_rows else ""
    shared = [("type", first.task_type), ("metrics", _metrics(first)), ("rows", _rows(tasks) + copy)]
    columns, header, align = [[task.task for task in tasks]], ["task"], "l"
    sources = [task.as_record()["source"] for task in tasks]
    if len(set(sources)) > 1:
        columns, header, align = [*columns, sources], [*header, "source"], "ll"
    else:
        shared.append(("source", sources[0]))
    counts = ["?" if task.expected_rows is None else f"{task.expected_rows:,}" for task in tasks]
    if {*counts} != {"?"}:
        columns, header, align = [*columns, counts], [*header, "rows"], f"{align}r"
    name = first.group if several else first.task
    parts = [_paragraph(f"{name}: {', '.join(dict.fromkeys(task.benchmark for task in tasks))}"), _table((), shared)]
    return "\n".join([*parts, *(["", _table(header, list(zip(*columns, strict=True)), align)] if several else [])])


def _what(suite: Suite) -> str:
    """The suite's title without its name, which stands beside it."""
    first, _, rest = suite.title.partition(": ")
    return rest if rest and "".join(filter(str.isalnum, first)).lower() == suite.name else suite.title


def _needs(suite: Suite, tasks: Sequence[Task]) -> str:
    """What a run of the tasks needs: of the model, to score answers, to get the data."""
    needs = ["vision model" if any(task.images for task in tasks) else "text model"]
    kinds = [task.kind for task in tasks]
    needs += ["log-probabilities"] if any(kind.generation_size < 0 for kind in kinds) else []
    needs += dict.fromkeys(kind.instrument.needs for kind in kinds if kind.instrument and kind.instrument.needs)
    needs += ["gated data"] if all(task.sources[0].gated for task in tasks) else []
    return ", ".join(needs)


def _rows(tasks: Sequence[Task]) -> str:
    """The published rows of tasks: of their groups in the preferred form where the sum is known, else of subsets."""
    total, complete = 0, True
    by_group: dict[str, list[Task]] = {}
    for task in tasks:
        by_group.setdefault(task.group, []).append(task)
    for group, members in by_group.items():
        first = members[0]
        of_group = first.group_rows.get(first.sources[0].form) if len(members) == len(groups()[group]) else None
        known = [task.expected_rows for task in members if task.expected_rows is not None]
        total += sum(known) if of_group is None else of_group
        complete = complete and (of_group is not None or len(known) == len(members))
    return f"{total:,}" if complete else f"≥{total:,}" if total else "?"


def _metrics(task: Task) -> str:
    names = list(task.metrics)
    return ", ".join(names if len(names) <= MOST_NAMES else [*names[:4], f"{len(names) - 4} more"])


def _paragraph(text: str) -> str:
    return folded(text, terminal_width() or WIDTH)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], align: str = "l") -> str:
    return terminal_table(header, rows, align, width=terminal_width() or WIDTH)


def data_check_text(report: DataReport, full: bool) -> str:
    """The report as tables, and its totals as sentences; but for `full` only the first rows of each kind, and only
    subsets and groups that are not as published.
    """
    files = _files_table(report.files) if full else []
    parts = [*_listed_rows(report.listed, full), *files, *_subsets(report.subsets, full), *_groups(report.groups, full)]
    return "\n\n".join([*parts, _totals(report)])


def _listed_rows(listed: Sequence[ListedRow], full: bool) -> list[str]:
    shown = [[one] for one in listed] if full else _first_of_each(listed)
    if not shown:
        return []
    cells = [(one.kind, _source(same), _place(same), one.task, _said_of_row(one)) for same in shown for one in same[:1]]
    more = len(listed) - sum(map(len, shown))
    hint = f"{f'... and {more} more: ' if more else ''}--full shows each, --rows FILE writes them into a file."
    hints = [hint] if len(listed) > len(shown) else []
    return [terminal_table(("", "source", "row", "task", "what"), cells), *hints]


def _files_table(files: Sequence[FileCounts]) -> list[str]:
    header = ("file", "rows", "evaluated", "few-shot", "broken", "unselected")
    cells = [
        (f"{one.source}/{one.file}", *map(str, (one.rows, one.scored, one.few_shot, one.broken, one.unselected)))
        for one in files
    ]
    return [terminal_table(header, cells, align="lr")]


def _subsets(subsets: Sequence[SubsetCounts], full: bool) -> list[str]:
    chosen = [one for one in subsets if full or (not one.missing and _is_unsound(one))]
    if not chosen:
        return []
    if not full:  # the worst first
        chosen.sort(key=lambda one: (not one.problem, not one.broken, not one.duplicates))
    cells = [_subset_cells(one) for one in (chosen if full else chosen[:FIRST])]
    table, align = [COLUMNS, *cells], "llrrrrrl"
    if not full:  # the listed rows name their source, and counts of nothing but 0 say nothing: 80 columns suffice
        told = [place for place in range(len(COLUMNS)) if place != 1 and {row[place] for row in cells} != {"0"}]
        table, align = [tuple(row[place] for place in told) for row in table], "l" + "r" * (len(told) - 2) + "l"
    more = len(chosen) - len(cells)
    hint = [f"... and {more} more subsets: --full shows them."] if more else []
    return [terminal_table(table[0], table[1:], align=align), *hint]


def _groups(groups: Sequence[GroupCounts], full: bool) -> list[str]:
    chosen = [one for one in groups if full or one.differs()]
    if not chosen:
        return []
    cells = [(one.group, one.form, *map(str, (one.rows, one.few_shot, one.expected)), _note(one)) for one in chosen]
    return [terminal_table(("group", "data", "items", "few-shot", "published", ""), cells, align="llrrrl")]


def _note(one: GroupCounts) -> str:
    return "differs" if one.differs() else "" if one.complete else "not all subsets are here"


def _is_unsound(one: SubsetCounts) -> bool:
    return bool(one.problem or one.broken or one.duplicates or one.differs())


def _subset_cells(one: SubsetCounts) -> tuple[str, ...]:
    counts = (one.scored, one.few_shot, one.broken, one.duplicates)
    note = "no data" if one.missing else one.problem or ("differs" if one.differs() else "")
    return one.task, one.source, *map(str, counts), "?" if one.expected is None else str(one.expected), note


def _first_of_each(listed: Sequence[ListedRow]) -> list[list[ListedRow]]:
    """The first of each kind, those of which the same is said together: rows of a source, whole files of any."""
    alike: dict[Kind, dict[tuple[str, ...], list[ListedRow]]] = {}
    for row in listed:
        same = ("" if row.row is None else row.source, row.task, _said_of_row(row))
        alike.setdefault(row.kind, {}).setdefault(same, []).append(row)
    return [rows for of_kind in alike.values() for rows in list(of_kind.values())[:FIRST]]


def _source(rows: Sequence[ListedRow]) -> str:
    first, *others = dict.fromkeys(row.source for row in rows)
    return f"{first} and {len(others)} more" if others else first


def _place(rows: Sequence[ListedRow]) -> str:
    first, more = rows[0], len(rows) - 1
    if first.row is None:
        also = f" and {counted(more, 'more file')}" if more else ""
        return f"{first.file}{also} ({counted(sum(row.rows for row in rows), 'row')})"
    return f"{first.file}:{first.row}{f' and {more} more' if more else ''}"


def _said_of_row(row: ListedRow) -> str:
    return f"column {row.column!r} {row.reason} (value: {row.value})" if row.column else row.reason


def _totals(report: DataReport) -> str:
    files = report.files
    rows, scored, shots, broken, rest = (
        sum(getattr(one, name) for one in files) for name in ("rows", "scored", "few_shot", "broken", "unselected")
    )
    read = [one for one in report.subsets if not one.missing]
    items = sum(one.scored for one in report.subsets)
    duplicates = sum(one.duplicates for one in report.subsets)
    differing = sum(one.differs() for one in read)
    stopped = sum(bool(one.problem) for one in read)
    problems = f"Subsets with a problem: {stopped} (named above).\n" if stopped else ""
    return (
        f"{problems}"
        f"Subsets with data: {len(read)} of {len(report.subsets)}, with other row counts than published: {differing}.\n"
        f"{counted(rows, 'row')} in {counted(len(files), 'file')} = {scored} evaluated, as {counted(items, 'item')}, "
        f"+ {shots} few-shot + {broken} broken\n"
        f"+ {rest} that none of these tasks reads.\n"
        f"{duplicates} of the items and few-shot rows are duplicates."
    )
