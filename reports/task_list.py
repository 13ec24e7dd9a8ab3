"""What `cultureval tasks` and `check` print: suites, groups and subsets, and of their data what is not as published."""

from collections.abc import Iterable, Sequence

from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.errors import shown_names
from cultureval.runtime.printing import folded, terminal_width
from cultureval.tasks.catalogue import all_suites, all_tasks, groups
from cultureval.tasks.checking import SubsetCounts, other_sums
from cultureval.tasks.suite import Suite, Task

WIDTH = 80  # cells, where standard output is no terminal
MOST_NAMED = 8  # of metrics
HINTS = (
    "Rows are the published ones: ≥ where only some tasks' numbers are known, ? where none is. `cultureval tasks "
    "SUITE` lists a suite's groups, `cultureval tasks GROUP` a group's tasks, `cultureval tasks --all` every task; "
    "`--json` prints them as JSON."
)
FIRST = 10  # subsets and broken rows that are shown without --full
COLUMNS = ("subset", "source", "rows", "few-shot", "broken", "duplicate", "published", "")


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
        rows.append((group, tasks[0].kind.task_type, str(len(tasks)), _rows(tasks), tasks[0].metrics[0]))
    suite = all_suites()[name]
    parts = [_paragraph(suite.title), _table(("group", "type", "tasks", "rows", "first metric"), rows, "llrrl")]
    if suite.options:
        options = [(one.name, _default(one.default), one.help.replace("`", "")) for one in suite.options]
        parts.append(_table(("--task-args", "default", "meaning"), options, "lll"))
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
    facts = [("type", first.kind.task_type), ("metrics", shown_names(first.metrics, MOST_NAMED))]
    facts += [("rows", _rows(tasks) + copy), *([("source", sources[0])] if len({*sources}) == 1 else [])]
    name = first.group if several else first.task
    parts = [_paragraph(f"{name}: {', '.join(dict.fromkeys(task.benchmark for task in tasks))}"), _table((), facts)]
    counts = ["?" if task.expected_rows is None else f"{task.expected_rows:,}" for task in tasks]
    columns = [[task.task for task in tasks], *([sources] if len({*sources}) > 1 else []), counts]
    rows = list(zip(*columns, strict=True))
    header = ("task", "source", "rows") if len(columns) > 2 else ("task", "rows")
    return "\n".join([*parts, "", _table(header, rows, "l" * (len(header) - 1) + "r")] if several else parts)


def _default(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


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


def data_check_text(subsets: Sequence[SubsetCounts], full: bool) -> str:
    """A line a subset that is not as published (all with `full`), its broken rows, and totals as sentences."""
    chosen = [one for one in subsets if full or one.problem or one.broken or one.duplicates or one.differs()]
    cells = [
        (
            *(one.task, one.source, *map(str, (one.rows, one.few_shot, len(one.broken), one.duplicates))),
            *("?" if one.expected is None else str(one.expected), "no data" if one.missing else one.problem),
        )
        for one in (chosen if full else chosen[:FIRST])
    ]
    parts = [terminal_table(COLUMNS, cells, align="llrrrrrl")] if cells else []
    broken = [f"{one.task}, {row}" for one in subsets for row in one.broken]
    shown = broken if full else broken[:FIRST]
    hidden = len(broken) - len(shown) + len(chosen) - len(cells)
    more = f"... and {hidden} more lines: `check --full` shows all, `--rows FILE` writes the broken rows."
    hint = [more] if hidden else []
    read = [one for one in subsets if not one.missing]
    totals = (
        f"Subsets with data: {len(read)} of {len(subsets)}, with other row counts than published: "
        f"{sum(one.differs() for one in read)}. {sum(one.rows for one in read):,} rows to evaluate, "
        f"{sum(one.few_shot for one in read):,} few-shot examples, {len(broken):,} broken rows, "
        f"{sum(one.duplicates for one in read):,} duplicates."
    )
    return "\n\n".join(filter(None, [*parts, "\n".join([*shown, *hint]), "\n".join(other_sums(subsets)), totals]))
