"""`cultureval tasks`: lists suites, groups and tasks."""

import json as json_format
from typing import Annotated

import typer

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.scripts.options import SourcesFile, with_sources
from cultureval.tasks.catalogue import all_tasks, require_suites, suites
from cultureval.tasks.registration import unknown_name_hint


def list_tasks(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAMES...]", help="As of `eval`: suites, groups, tasks, files.")
    ] = None,
    suite: Annotated[str | None, typer.Option(help="Only this suite: its groups.")] = None,
    all: Annotated[bool, typer.Option("--all", help="List every task, not suites or groups.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the tasks as a JSON list and nothing else.")] = False,
    sources: SourcesFile = None,
) -> None:
    """Lists the suites, a suite's groups, or a group's subsets. Example: cultureval tasks --suite qimma"""
    with use_settings(with_sources(current_settings(), sources)):
        print(_listed(names or [], suite, all, json))


def _listed(names: list[str], suite: str | None, every: bool, json: bool) -> str:
    from cultureval.reports.task_list import groups_text, suite_text, suites_text
    from cultureval.tasks.selection import select_tasks

    if suite is not None:
        require_suites([suite], unknown_name_hint)
    named = [name.rpartition("|")[0] for name in select_tasks(names)[0]] if names else all_tasks()
    chosen = [one for one in dict.fromkeys(named) if suite in (None, all_tasks()[one].suite)]
    if not chosen:
        raise CulturevalError(f"{', '.join(names)} is not of the suite {suite}.")
    if json:
        return json_format.dumps([all_tasks()[one].as_record() for one in chosen], ensure_ascii=False, indent=2)
    whole = [suite] if suite and not names else [name for name in names if name in suites()]
    if every or len(whole) < len(names):
        return groups_text(chosen)
    return "\n\n".join(map(suite_text, whole)) or suites_text()
