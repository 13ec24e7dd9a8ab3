"""`cultureval tasks`: lists the tasks."""

import json as json_format
from typing import Annotated, Any

import typer

from cultureval.runtime.settings import current_settings, use_settings
from cultureval.scripts.options import SourcesFile, with_sources
from cultureval.tasks.catalogue import all_suites, all_tasks, require_suites
from cultureval.tasks.registration import unknown_name_hint

MOST_NAMES = 8  # of metrics in a cell
COLUMNS = ("task", "task_type", "metrics", "source", "expected_rows")


def list_tasks(
    suite: Annotated[str | None, typer.Option(help="Only the tasks of this suite.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON list of objects and nothing else.")] = False,
    sources: SourcesFile = None,
) -> None:
    """Lists the tasks: name, type, metrics, source, rows. Example: cultureval tasks --suite qimma --json"""
    with use_settings(with_sources(current_settings(), sources)):
        records = _records(suite)
        pages = {name: one.page for name, one in all_suites().items() if one.page and suite in (None, name)}
    if json:
        print(json_format.dumps(records, ensure_ascii=False, indent=2))
    else:
        from cultureval.reports.terminal_tables import terminal_table

        print(terminal_table(COLUMNS, [[_cell(record[column]) for column in COLUMNS] for record in records]))
        print("\n".join(f"{name}: {page}" for name, page in pages.items()))


def _records(suite: str | None) -> list[dict[str, Any]]:
    if suite is not None:
        require_suites([suite], unknown_name_hint)
    return [task.as_record() for task in all_tasks().values() if suite in (None, task.suite)]


def _cell(value: Any) -> str:
    if value is None:
        return "?"
    if not isinstance(value, list):
        return str(value)
    return ", ".join(value if len(value) <= MOST_NAMES else [*value[:4], f"{len(value) - 4} more"])
