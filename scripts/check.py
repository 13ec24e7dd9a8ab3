"""`cultureval check`: reads all rows of tasks' data without a model."""

import json as json_format
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cultureval.runtime.data.user_cache import write_json_lines
from cultureval.scripts.options import Data, Form, OnlyJson, SourcesFile, Tasks, data_settings
from cultureval.tasks.options import read_data_options


def check(
    tasks: Tasks,
    data: Data = None,
    form: Form = None,
    full: Annotated[bool, typer.Option("--full", help="Print all subsets, files and listed rows.")] = False,
    rows: Annotated[Path | None, typer.Option(help="Write all listed rows into this file, as JSON lines.")] = None,
    json: OnlyJson = False,
    sources: SourcesFile = None,
) -> None:
    """Reads every row of the tasks' data and lists what is broken, duplicate or read by no task.

    Exit status 1: a row is broken, or the examples of TASK|2 are too few. Example: cultureval check qimma --data DIR
    """
    with data_settings(data, form, sources):
        from cultureval.reports.data_check import data_check_text
        from cultureval.tasks.checking import check_data

        report = check_data(tasks, read_data_options())
    if rows:
        write_json_lines(rows, map(asdict, report.listed))
    print(json_format.dumps(asdict(report), ensure_ascii=False, indent=2) if json else data_check_text(report, full))
    if report.is_broken():
        raise typer.Exit(1)
