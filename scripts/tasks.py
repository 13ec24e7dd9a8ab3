"""What is evaluated: `cultureval tasks`, `check` and `fetch`."""

import json as json_format
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from cultureval.runtime.data.user_cache import write_json_lines
from cultureval.runtime.data_options import DataOptions
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.progress import working
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.scripts.code import check_canonicals
from cultureval.scripts.options import Data, Form, OnlyJson, Renamed, data_settings
from cultureval.tasks.catalogue import all_tasks, name_and_shots, require_suites, suites
from cultureval.tasks.options import read_data_options


def list_tasks(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAMES...]", help="As of `eval`: suites, groups, tasks, files.")
    ] = None,
    suite: Annotated[str | None, typer.Option(help="Only this suite: its groups.")] = None,
    all: Annotated[bool, typer.Option("--all", help="List every task, not suites or groups.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the tasks as a JSON list and nothing else.")] = False,
    lm_eval_path: Annotated[
        bool, typer.Option("--lm-eval-path", help="Write the tasks for lm-evaluation-harness and print their folder.")
    ] = False,
) -> None:
    """Lists the suites, a suite's groups, or a group's subsets. Example: cultureval tasks --suite qimma"""
    if lm_eval_path:
        from cultureval.tasks.harnesses.lm_eval_files import write_task_files

        return print(write_task_files())
    print(_listed(names or [], suite, all, json))


def _listed(names: list[str], suite: str | None, every: bool, json: bool) -> str:
    from cultureval.reports.task_list import groups_text, suite_text, suites_text
    from cultureval.tasks.selection import select_tasks

    if suite is not None:
        require_suites([suite])
    named = [name_and_shots(name)[0] for name in select_tasks(names)[0]] if names else all_tasks()
    chosen = [one for one in dict.fromkeys(named) if suite in (None, all_tasks()[one].suite)]
    if not chosen:
        raise CulturevalError(f"{', '.join(names)} is not of the suite {suite}.")
    if json:
        return json_format.dumps([all_tasks()[one].as_record() for one in chosen], ensure_ascii=False, indent=2)
    whole = [suite] if suite and not names else [name for name in names if name in suites()]
    if every or len(whole) < len(names):
        return groups_text(chosen)
    return "\n\n".join(map(suite_text, whole)) or suites_text()


def fetch(
    output_dir: Annotated[Path, typer.Option(help="Folder to fill; use it later as --data DIR.")],
    suite: Annotated[list[str] | None, typer.Argument(help="Suites; default: all.")] = None,
) -> None:
    """Copies the suites' data and scoring models, resumes, verifies counts.

    Example: cultureval fetch qimma --output-dir DIR
    """
    from cultureval.reports.task_list import data_check_text
    from cultureval.tasks.checking import check_data
    from cultureval.tasks.mirroring import mirror_suites

    lines, complete = mirror_suites(suite, output_dir)
    found = check_data(suite or suites(), DataOptions(root=output_dir.resolve(), form="mixed"))
    print("\n".join(lines), data_check_text(found, full=True), sep="\n\n")
    if not complete:
        raise CulturevalError("Some sources could not be fetched (see above). The same command resumes.")


def check(
    tasks: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TASKS...]", help="Tasks, groups, suites or files (proverbs.py); none: this machine."),
    ] = None,
    data: Data = None,
    form: Form = None,
    full: Annotated[bool, typer.Option("--full", help="Print all subsets and broken rows, or all versions.")] = False,
    rows: Annotated[Path | None, typer.Option(help="Write all broken rows into this file, as JSON lines.")] = None,
    canonicals: Annotated[
        Literal["humaneval", "mbpp"] | None, typer.Option(help="Judge the canonical solutions of this code data set.")
    ] = None,
    json: OnlyJson = False,
    renamed: Renamed = None,
) -> None:
    """Says which suites can run on this machine; of named tasks, reads every row and counts what is broken.

    Of the file of a benchmark (proverbs.py) it tries ten rows and prints the first prompt. Exit status 1: something is
    wrong. Example: cultureval check qimma --data DIR
    """
    if canonicals:
        raise typer.Exit(not check_canonicals(canonicals, data))
    with data_settings(data, form, renamed=renamed):
        if not tasks:
            return _check_machine(full)
        if any(name.endswith(".py") for name in tasks):
            return _try_files(tasks, data)
        from cultureval.reports.task_list import data_check_text
        from cultureval.tasks.checking import check_data

        subsets = check_data(tasks, read_data_options())
    if rows:
        write_json_lines(rows, [{"task": one.task, "row": row} for one in subsets for row in one.broken])
    found = json_format.dumps(list(map(asdict, subsets)), ensure_ascii=False, indent=2)
    print(found if json else data_check_text(subsets, full))
    if any(one.is_broken() for one in subsets):
        raise typer.Exit(1)


def _check_machine(full: bool) -> None:
    from cultureval.reports.doctor import machine_report

    with working("Looking at this machine"):
        text, fits = machine_report(full)
    print(text)
    raise typer.Exit(not fits)


def _try_files(files: list[str], data: str | None) -> None:
    with use_settings(current_settings().with_(data_root=data, custom_suites=",".join(files))):
        from cultureval.tasks.trial import try_file

        trials = [one for file in files for one in try_file(Path(file), read_data_options())]
    print("\n\n".join(one.text for one in trials))
    if any(one.wrong for one in trials):
        raise typer.Exit(1)
