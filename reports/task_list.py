"""What `cultureval tasks` and `check` print: suites, groups and subsets, and of their data what is not as published."""

from collections.abc import Iterable, Sequence

from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.errors import CulturevalError, counted, shown_names
from cultureval.runtime.printing import folded, print_note, terminal_width
from cultureval.tasks.catalogue import all_suites, all_tasks, groups, kind_of
from cultureval.tasks.checking import DataReport, ListedRow, SubsetCounts
from cultureval.tasks.suite import Suite, Task

WIDTH = 80  # cells, where standard output is no terminal
MOST_NAMED = 8  # of metrics
HINTS = (
    "Rows are the published ones: ≥ where only some tasks' numbers are known, ? where none is. `cultureval tasks "
    "SUITE` lists a suite's groups, `cultureval tasks GROUP` a group's tasks, `cultureval tasks --all` every task; "
    "`--json` prints them as JSON."
)
FIRST = 10  # rows of a table that are shown without --full
COLUMNS = ("subset", "items", "few-shot", "broken", "duplicate", "published", "")


def suites_text() -> str:
    """A line a suite: what it measures, how many tasks and rows, what a run needs, the languages of its texts."""
    rows = []
    for name, suite in all_suites().items():
        tasks = [task for task in all_tasks().values() if task.suite == name]
        languages = ", ".join(sorted({task.language for task in tasks}))
        cells = [suite.title, str(len(tasks)), _rows(tasks), _needs(suite, tasks), languages]
        rows.append([name, *cells])
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
    sources = [task.as_record()["source"] for task in tasks]
    facts = [("type", first.task_type), ("metrics", shown_names(first.metrics, MOST_NAMED))]
    facts += [("rows", _rows(tasks) + copy), *([("source", sources[0])] if len({*sources}) == 1 else [])]
    name = first.group if several else first.task
    parts = [_paragraph(f"{name}: {', '.join(dict.fromkeys(task.benchmark for task in tasks))}"), _table((), facts)]
    counts = ["?" if task.expected_rows is None else f"{task.expected_rows:,}" for task in tasks]
    columns = [[task.task for task in tasks], *([sources] if len({*sources}) > 1 else []), counts]
    rows = list(zip(*columns, strict=True))
    header = ("task", "source", "rows") if len(columns) > 2 else ("task", "rows")
    return "\n".join([*parts, "", _table(header, rows, "l" * (len(header) - 1) + "r")] if several else parts)


def _needs(suite: Suite, tasks: Sequence[Task]) -> str:
    """What a run of the tasks needs: of the model, to score answers, to get the data."""
    needs = ["vision model" if any(task.images for task in tasks) else "text model"]
    try:
        kinds = [kind_of(task.task) for task in tasks]
    except CulturevalError as error:  # of another package; the other suites are listed
        print_note(str(error))
        return "cannot be loaded"
    needs += ["log-probabilities"] if any(kind.generation_size < 0 for kind in kinds) else []
    needs += dict.fromkeys(kind.instrument.needs for kind in kinds if kind.instrument and kind.instrument.needs)
    needs += ["gated data"] if all(task.sources[0].gated for task in tasks) else []
    return ", ".join(needs)


def _rows(tasks: Sequence[Task]) -> str:
    """The published rows of tasks: of their groups in the preferred form where the sum is known, else of subsets."""
    total, complete = 0, True
    for group in dict.fromkeys(task.group for task in tasks):
        members = [task for task in tasks if task.group == group]
        of_group = (
            members[0].group_rows.get(members[0].sources[0].form) if len(members) == len(groups()[group]) else None
        )
        known = [task.expected_rows for task in members if task.expected_rows is not None]
        total += sum(known) if of_group is None else of_group
        complete = complete and (of_group is not None or len(known) == len(members))
    return f"{total:,}" if complete else f"≥{total:,}" if total else "?"


def _paragraph(text: str) -> str:
    return folded(text, terminal_width() or WIDTH)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], align: str = "l") -> str:
    return terminal_table(header, rows, align, width=terminal_width() or WIDTH)


def data_check_text(report: DataReport, full: bool) -> str:
    """The report as tables, and its totals as sentences; but for `full` only what is not as published."""
    subsets = [one for one in report.subsets if full or (not one.missing and _is_unsound(one))]
    subsets.sort(key=lambda one: (not one.problem, not one.broken, not one.duplicates))  # the worst first
    counts = ("rows", "scored", "few_shot", "broken", "unselected")
    files = [(f"{one.source}/{one.file}", *(str(getattr(one, name)) for name in counts)) for one in report.files]
    groups_of = [
        (one.group, one.form, str(one.rows), str(one.few_shot), str(one.expected), "differs" if one.differs() else "")
        for one in report.groups
        if full or one.differs()
    ]
    header = ("file", "rows", "evaluated", "few-shot", "broken", "unselected")
    parts = [
        _listed_rows(report.listed, full),
        terminal_table(header, files, align="lr") if full else "",
        _shortened([_subset_cells(one) for one in subsets], COLUMNS, "lrrrrrl", full),
        _shortened(groups_of, ("group", "data", "items", "few-shot", "published", ""), "llrrrl", full),
        _totals(report),
    ]
    return "\n\n".join(filter(None, parts))


def _shortened(rows: Sequence[tuple[str, ...]], header: tuple[str, ...], align: str, full: bool) -> str:
    """A table, but for `full` of its first rows; "" without rows."""
    shown = rows if full else rows[:FIRST]
    more = f"\n... and {len(rows) - len(shown)} more: --full shows them." if len(shown) < len(rows) else ""
    return terminal_table(header, shown, align=align) + more if rows else ""


def _listed_rows(listed: Sequence[ListedRow], full: bool) -> str:
    """The rows that are not scored; but for `full` those of a source of which the same is said are one line."""
    alike: dict[tuple[str, ...], list[ListedRow]] = {}
    for number, row in enumerate(listed):
        said = f"column {row.column!r} {row.reason} (value: {row.value})" if row.column else row.reason
        alike.setdefault((row.kind, row.source, row.task, said, str(number) if full else ""), []).append(row)
    cells = []
    for (kind, source, task, said, _), rows in alike.items():
        first, more = rows[0], f" and {len(rows) - 1} more" if rows[1:] else ""
        place = f"{first.file} ({counted(first.rows, 'row')})" if first.row is None else f"{first.file}:{first.row}"
        cells.append((kind, source, place + more, task, said))
    return _shortened(cells, ("", "source", "row", "task", "what"), "l", full)


def _is_unsound(one: SubsetCounts) -> bool:
    return bool(one.problem or one.broken or one.duplicates or one.differs())


def _subset_cells(one: SubsetCounts) -> tuple[str, ...]:
    numbers = (one.scored, one.few_shot, one.broken, one.duplicates)
    note = "no data" if one.missing else one.problem or ("differs" if one.differs() else "")
    return one.task, *map(str, numbers), "?" if one.expected is None else str(one.expected), note


def _totals(report: DataReport) -> str:
    rows, scored, shots, broken, rest = (
        sum(getattr(one, name) for one in report.files)
        for name in ("rows", "scored", "few_shot", "broken", "unselected")
    )
    read = [one for one in report.subsets if not one.missing]
    stopped = sum(bool(one.problem) for one in read)
    problems = f"Subsets with a problem: {stopped} (named above).\n" if stopped else ""
    return (
        f"{problems}"
        f"Subsets with data: {len(read)} of {len(report.subsets)}, with other row counts than published: "
        f"{sum(one.differs() for one in read)}.\n"
        f"{counted(rows, 'row')} in {counted(len(report.files), 'file')} = {scored} evaluated, as "
        f"{counted(sum(one.scored for one in report.subsets), 'item')}, + {shots} few-shot + {broken} broken\n"
        f"+ {rest} that none of these tasks reads.\n"
        f"{sum(one.duplicates for one in report.subsets)} of the items and few-shot rows are duplicates."
    )
