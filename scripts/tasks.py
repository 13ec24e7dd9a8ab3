"""What is evaluated: `cultureval tasks`, `check` and `fetch`."""

import json as json_format
import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from cultureval.runtime.data.user_cache import write_json_lines
from cultureval.runtime.data_options import DataOptions
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.printing import print_note
from cultureval.runtime.progress import working
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.scripts.options import Columns, Data, Form, OnlyJson, data_settings
from cultureval.tasks.catalogue import suites
from cultureval.tasks.options import read_data_options

Names = Annotated[list[str] | None, typer.Argument(metavar="[NAMES...]", help="Suites, groups, tasks or files.")]
Checked = Annotated[
    list[str] | None, typer.Argument(metavar="[TASKS...]", help="As of `eval`, or proverbs.py; none: this machine.")
]


def list_tasks(
    names: Names = None,
    all: Annotated[bool, typer.Option("--all", help="List every task, not suites or groups.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print tasks and task args as JSON and nothing else.")] = False,
    lm_eval_path: Annotated[bool, typer.Option("--lm-eval-path", help="Print the folder of lm-eval's tasks.")] = False,
) -> None:
    """Lists the suites, a suite's groups and task args, or a group's tasks. Example: cultureval tasks qimma"""
    if lm_eval_path:
        from cultureval.tasks.harnesses.lm_eval_files import write_task_files

        return print(write_task_files())
    from cultureval.reports.task_list import tasks_json, tasks_text

    print(tasks_json(names or []) if json else tasks_text(names or [], every=all))


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
    tasks: Checked = None,
    data: Data = None,
    form: Form = None,
    full: Annotated[bool, typer.Option("--full", help="Print all subsets and broken rows, or all versions.")] = False,
    rows: Annotated[Path | None, typer.Option(help="Write all broken rows into this file, as JSON lines.")] = None,
    canonicals: Annotated[Literal["humaneval", "mbpp"] | None, typer.Option(help="Judge canonical solutions.")] = None,
    json: OnlyJson = False,
    columns: Columns = None,
) -> None:
    """Says which suites can run on this machine; of named tasks, reads every row and counts what is broken.

    Of the file of a benchmark (proverbs.py) it tries ten rows and prints the first prompt. Exit status 1: something is
    wrong. Example: cultureval check qimma --data DIR
    """
    with data_settings(data, form, columns=columns):
        if canonicals:
            text, fits = _canonicals(canonicals)
        elif not tasks:
            from cultureval.reports.doctor import machine_report

            with working("Looking at this machine"):
                text, fits = machine_report(full)
        elif any(name.endswith(".py") for name in tasks):
            text, fits = _benchmark_files(tasks)
        else:
            text, fits = _data(tasks, full, rows, json)
    print(text)
    raise typer.Exit(not fits)


def _data(tasks: list[str], full: bool, rows: Path | None, json: bool) -> tuple[str, bool]:
    """The counts of the rows of tasks, and whether all are sound; broken rows are written into the file `rows`."""
    from cultureval.reports.task_list import data_check_text
    from cultureval.tasks.checking import check_data

    found = check_data(tasks, read_data_options())
    if rows:
        write_json_lines(rows, [{"task": subset.task, "row": row} for subset in found for row in subset.broken])
    as_json = json_format.dumps(list(map(asdict, found)), ensure_ascii=False, indent=2) if json else ""
    return as_json or data_check_text(found, full), not any(subset.is_broken() for subset in found)


def _canonicals(dataset: str) -> tuple[str, bool]:
    from cultureval.tasks.qimma.code_data import load_problems

    with redirect_stdout(sys.stderr):  # what EvalPlus prints
        problems = load_problems(dataset)
        if problems.other_data:
            print_note(problems.other_data)
        from cultureval.reports.code.evaluation import canonicals_text

        return canonicals_text(problems)


def _benchmark_files(files: list[str]) -> tuple[str, bool]:
    """What a trial of benchmark files finds, and whether nothing is wrong."""
    with use_settings(current_settings().with_(custom_suites=",".join(files))):
        from cultureval.tasks.trial import try_file

        trials = [trial for file in files for trial in try_file(Path(file), read_data_options())]
    return "\n\n".join(trial.text for trial in trials), not any(trial.wrong for trial in trials)
