"""Output of `cultureval tasks` and `check`: suites, groups and subsets, and data that differ from the published."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.errors import shown_names
from cultureval.runtime.printing import folded, terminal_width
from cultureval.tasks.catalogue import all_suites, all_tasks, groups, name_and_shots, suites
from cultureval.tasks.checking import SubsetCounts, differing_sums
from cultureval.tasks.selection import select_tasks
from cultureval.tasks.suite import Suite, Task

WIDTH = 80  # cells, where standard output is no terminal
MOST_NAMED = 8  # of metrics
HINTS = (
    "Rows are published numbers; ≥: known for some tasks only, ?: unknown. `cultureval tasks SUITE` lists a suite's "
    "groups and task args, `cultureval tasks GROUP` a group's tasks, `cultureval tasks --all` every task; `--json` "
    "prints JSON."
)
FIRST = 10  # subsets and broken rows that are shown without --full
COLUMNS = ("subset", "source", "rows", "few-shot", "broken", "duplicate", "published", "")


def tasks_text(names: Sequence[str], every: bool = False) -> str:
    """The suites; or the groups and task args of the named suites; or the tasks of other names, group by group.

    Args:
        names: As of `eval`: suites, groups, tasks, files.
        every: List every task.

    Raises:
        CulturevalError: A name is unknown.
    """
    if every or not all(name in suites() for name in names):
        return groups_text(_selected(names))
    return "\n\n".join(map(suite_text, names)) or suites_text()


def tasks_json(names: Sequence[str]) -> str:
    """The tasks of these names (none: all) and the task args of their suites, as JSON."""
    tasks = [all_tasks()[name] for name in _selected(names)]
    args = [{"suite": name, **arg} for name in dict.fromkeys(task.suite for task in tasks) for arg in task_args(name)]
    return json.dumps({"tasks": [task.as_record() for task in tasks], "task_args": args}, ensure_ascii=False, indent=2)


def _selected(names: Sequence[str]) -> list[str]:
    found = map(name_and_shots, select_tasks(list(names))[0] if names else all_tasks())
    return list(dict.fromkeys(name for name, _ in found))


def task_args(suite: str) -> list[dict[str, Any]]:
    """The options of a suite, as `eval --task-args` takes them: name, variable, allowed values, default and help."""
    return [
        {
            "name": option.name,
            "variable": option.variable,
            "values": list(option.values),
            "default": ",".join(option.default) if isinstance(option.default, tuple) else option.default,
            "help": option.help.replace("`", ""),
        }
        for option in all_suites()[suite].options
    ]


def suites_text() -> str:
    """A line for each suite: what it measures, its tasks and rows, what a run needs, its languages."""
    rows = []
    for name, suite in all_suites().items():
        tasks = [task for task in all_tasks().values() if task.suite == name]
        languages = ", ".join(sorted({task.language for task in tasks}))
        cells = [suite.title, str(len(tasks)), _rows(tasks), _needs(suite, tasks), languages]
        rows.append([name, *cells])
    header = ("suite", "what it measures", "tasks", "rows", "needs", "languages")
    return "\n".join([_table(header, rows, "llrrll"), "", _paragraph(HINTS)])


def suite_text(name: str) -> str:
    """A line a group of the suite, the tasks of the only one, its task args, and where its documentation is."""
    rows = []
    for group, members in groups(name).items():
        tasks = [all_tasks()[member] for member in members]
        rows.append((group, tasks[0].kind.task_type, str(len(tasks)), _rows(tasks), tasks[0].metrics[0]))
    suite = all_suites()[name]
    parts = [_paragraph(suite.title), _table(("group", "type", "tasks", "rows", "first metric"), rows, "llrrl")]
    if len(rows) == 1:
        parts.append(groups_text(groups(name)[rows[0][0]]))
    args = [(f"{one['name']}={one['default']}", _meaning(one)) for one in task_args(name)]
    parts += [_table(("task arg=default", "meaning"), args)] if args else []
    more = f"More on {name}: {suite.page}"
    return "\n\n".join([*parts, *([more] if suite.page else [])])


def _meaning(arg: Mapping[str, Any]) -> str:
    return f"{arg['help']}." + (f" Values: {', '.join(arg['values'])}." if arg["values"] else "")


def groups_text(names: Iterable[str]) -> str:
    """The tasks of these names by group: the group's facts, then a line for each task."""
    tasks = [all_tasks()[name] for name in names]
    return "\n\n".join(
        _group_text([task for task in tasks if task.group == group])
        for group in dict.fromkeys(task.group for task in tasks)
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


def _needs(suite: Suite, tasks: Sequence[Task]) -> str:
    """What a run of the tasks needs: a kind of model, scorers, access to data."""
    needs = ["vision model" if any(task.images for task in tasks) else "text model"]
    kinds = [task.kind for task in tasks]
    needs += ["log-probabilities"] if any(kind.generation_size < 0 for kind in kinds) else []
    instruments = [kind.instrument.needs for kind in kinds if kind.instrument and kind.instrument.needs]
    needs += dict.fromkeys(", ".join(instruments).split(", ") if instruments else ())
    needs += ["gated data"] if all(task.sources[0].gated for task in tasks) else []
    return ", ".join(needs)


def _rows(tasks: Sequence[Task]) -> str:
    """The published number of rows: of whole groups in the preferred form if known, else the sum of subsets."""
    total, complete = 0, True
    for group in dict.fromkeys(task.group for task in tasks):
        members = [task for task in tasks if task.group == group]
        of_group = (
            members[0].group_rows.get(members[0].sources[0].form) if len(members) == len(groups()[group]) else None
        )
        counts = [task.expected_rows for task in members if task.expected_rows is not None]
        total += sum(counts) if of_group is None else of_group
        complete = complete and (of_group is not None or len(counts) == len(members))
    return f"{total:,}" if complete else f"≥{total:,}" if total else "?"


def _paragraph(text: str) -> str:
    return folded(text, terminal_width() or WIDTH)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], align: str = "l") -> str:
    return terminal_table(header, rows, align, width=terminal_width() or WIDTH)


def data_check_text(subsets: Sequence[SubsetCounts], full: bool) -> str:
    """A line for each subset that differs from the published (all with `full`), broken rows, and totals."""
    chosen = [
        subset for subset in subsets if full or subset.problem or subset.broken or subset.duplicates or subset.differs()
    ]
    cells = [
        (
            subset.task,
            subset.source,
            *map(str, (subset.rows, subset.few_shot, len(subset.broken), subset.duplicates)),
            "?" if subset.expected is None else str(subset.expected),
            "no data" if subset.missing else subset.problem,
        )
        for subset in (chosen if full else chosen[:FIRST])
    ]
    parts = [terminal_table(COLUMNS, cells, align="llrrrrrl")] if cells else []
    broken = [f"{subset.task}, {row}" for subset in subsets for row in subset.broken]
    shown = broken if full else broken[:FIRST]
    hidden = len(broken) - len(shown) + len(chosen) - len(cells)
    more = f"... and {hidden} more lines: `check --full` shows all, `--rows FILE` writes the broken rows."
    hint = [more] if hidden else []
    read = [subset for subset in subsets if not subset.missing]
    totals = (
        f"Subsets with data: {len(read)} of {len(subsets)}, with other row counts than published: "
        f"{sum(subset.differs() for subset in read)}. {sum(subset.rows for subset in read):,} rows to evaluate, "
        f"{sum(subset.few_shot for subset in read):,} few-shot examples, {len(broken):,} broken rows, "
        f"{sum(subset.duplicates for subset in read):,} duplicates."
    )
    return "\n\n".join(filter(None, [*parts, "\n".join([*shown, *hint]), "\n".join(differing_sums(subsets)), totals]))
