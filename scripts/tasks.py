"""What is evaluated: `cultureval tasks`, `check`, `mirror`, `new-benchmark` and `export`."""

import json as json_format
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cultureval.runtime.data.user_cache import write_json_lines
from cultureval.runtime.errors import CulturevalError
from cultureval.scripts.options import Data, Form, OnlyJson, Renamed, Tasks, data_settings
from cultureval.scripts.suite_options import WithCustomSuites, command_group
from cultureval.tasks.catalogue import all_tasks, name_and_shots, require_suites, suites
from cultureval.tasks.options import read_data_options
from cultureval.tasks.registration import unknown_name_hint


def list_tasks(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAMES...]", help="As of `eval`: suites, groups, tasks, files.")
    ] = None,
    suite: Annotated[str | None, typer.Option(help="Only this suite: its groups.")] = None,
    all: Annotated[bool, typer.Option("--all", help="List every task, not suites or groups.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the tasks as a JSON list and nothing else.")] = False,
) -> None:
    """Lists the suites, a suite's groups, or a group's subsets. Example: cultureval tasks --suite qimma"""
    print(_listed(names or [], suite, all, json))


def _listed(names: list[str], suite: str | None, every: bool, json: bool) -> str:
    from cultureval.reports.task_list import groups_text, suite_text, suites_text
    from cultureval.tasks.selection import select_tasks

    if suite is not None:
        require_suites([suite], unknown_name_hint)
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


def new_benchmark(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the package, the suite and its first benchmark.")
    ],
    labels: Annotated[str, typer.Option(help="The labels of options, in order; the model scores these.")] = "A B C D",
    language: Annotated[str, typer.Option(help="ISO 639 code of its language.")] = "en",
    output_dir: Annotated[Path, typer.Option(help="Folder in which it is created.")] = Path(),
) -> None:
    """Writes a small benchmark that already runs. Example: cultureval new-benchmark my_suite --language fa"""
    from cultureval.tasks.new_suite import write_suite

    folder = write_suite(name, labels.split(), language, output_dir)
    place, samples = shlex.quote(str(folder)), shlex.quote(str(folder / "samples"))
    print(f"Written: {folder}, a package with the suite {name!r}. Try it, then add your rows and texts:")
    print(f"  cultureval eval MODEL {name} --custom-suites {place} --data {samples}")
    print(f"  python -m pytest {place}    # after pip install pytest")
    print(f"  pip install --editable {place}    # then --custom-suites is not needed")


def mirror(
    output_dir: Annotated[Path, typer.Option(help="Folder to fill; use it later as --data DIR.")],
    suite: Annotated[list[str] | None, typer.Argument(help="Suites; default: all.")] = None,
) -> None:
    """Copies the suites' data and scoring models, resumes, verifies counts.

    Example: cultureval mirror qimma --output-dir DIR
    """
    from cultureval.tasks.mirroring import mirror_suites

    lines, complete = mirror_suites(suite, output_dir)
    print("\n".join(lines))
    if not complete:
        raise CulturevalError("Some sources could not be fetched (see above). The same command resumes.")


def check(
    tasks: Tasks,
    data: Data = None,
    form: Form = None,
    full: Annotated[bool, typer.Option("--full", help="Print all subsets and broken rows.")] = False,
    rows: Annotated[Path | None, typer.Option(help="Write all broken rows into this file, as JSON lines.")] = None,
    json: OnlyJson = False,
    renamed: Renamed = None,
) -> None:
    """Reads every row of the tasks' data and counts what is broken or duplicate.

    Exit status 1: a row is broken, or the examples of TASK|2 are too few. Example: cultureval check qimma --data DIR
    """
    with data_settings(data, form, renamed=renamed):
        from cultureval.reports.task_list import data_check_text
        from cultureval.tasks.checking import check_data

        subsets = check_data(tasks, read_data_options())
    if rows:
        write_json_lines(rows, [{"task": one.task, "row": row} for one in subsets for row in one.broken])
    found = json_format.dumps(list(map(asdict, subsets)), ensure_ascii=False, indent=2)
    print(found if json else data_check_text(subsets, full))
    if any(one.is_broken() for one in subsets):
        raise typer.Exit(1)


export = command_group("Writes our tasks as files of other harnesses. Example: cultureval export lm-eval --where")


@export.callback()
def harnesses() -> None:
    """Each harness is a command."""


@export.command("lm-eval", cls=WithCustomSuites)
def lm_eval(
    suite: Annotated[list[str] | None, typer.Argument(metavar="[SUITE]...", help="Only these suites.")] = None,
    output_dir: Annotated[
        Path | None, typer.Option("--output-dir", "--to", help="Output folder of the tasks, a YAML file each.")
    ] = None,
    where: Annotated[bool, typer.Option("--where", help="Print the folder of the installed tasks.")] = False,
) -> None:
    """Tasks for lm-evaluation-harness. Example: lm_eval --include_path "$(cultureval export lm-eval --where)" ..."""
    from cultureval.tasks.harnesses.lm_eval_files import INCLUDE_PATH, write_task_files

    if where == (output_dir is not None) or (where and suite):
        raise CulturevalError("Say either --where, or --to DIR (with names of suites for these only).")
    if output_dir is None:
        print(INCLUDE_PATH)
        return
    require_suites(suite or ())
    count = write_task_files(output_dir, suite or suites())
    print(f"{count} files in {output_dir}. Run them with: lm_eval --include_path {output_dir} --tasks NAME ...")
