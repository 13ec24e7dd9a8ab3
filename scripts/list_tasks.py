"""`cultureval tasks`: lists the tasks."""

import json as json_format
from typing import Annotated, Any

import typer

from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import all_tasks, suites
from cultureval.tasks.registration import unknown_name_hint, use_custom_suites

MOST_NAMES = 8  # of metrics in a cell
COLUMNS = ("task", "task_type", "metrics", "source", "expected_rows")


def list_tasks(
    suite: Annotated[str | None, typer.Option(help="Only the tasks of this suite.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON list of objects and nothing else.")] = False,
    custom_suites: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODULE_OR_PATH", help="A suite that is not installed: a module, .py file or folder. Repeatable."
        ),
    ] = None,
) -> None:
    """Lists the tasks: name, type, metrics, source, rows. Example: cultureval tasks --suite qimma --json"""
    use_custom_suites(custom_suites)
    if suite is not None and suite not in suites():
        known = ", ".join(suites())
        raise CulturevalError(f"There is no suite {suite!r}; the suites are {known}.{unknown_name_hint()}")
    records = [task.as_record() for task in all_tasks().values() if suite in (None, task.suite)]
    if json:
        print(json_format.dumps(records, ensure_ascii=False, indent=2))
    else:
        from cultureval.reports.terminal_tables import terminal_table

        print(terminal_table(COLUMNS, [[_cell(record[column]) for column in COLUMNS] for record in records]))


def _cell(value: Any) -> str:
    if value is None:
        return "?"
    if not isinstance(value, list):
        return str(value)
    return ", ".join(value if len(value) <= MOST_NAMES else [*value[:4], f"{len(value) - 4} more"])
