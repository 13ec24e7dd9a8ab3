"""`cultureval export`: our tasks as files of other harnesses."""

from pathlib import Path
from typing import Annotated

import typer

from cultureval.runtime.errors import CulturevalError
from cultureval.scripts.custom_suites import WithCustomSuites

export = typer.Typer(
    help="Writes our tasks as files of other harnesses. Example: cultureval export lm-eval --where",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@export.callback()
def harnesses() -> None:
    """Each harness is a command."""


@export.command("lm-eval", cls=WithCustomSuites)
def lm_eval(
    to: Annotated[Path | None, typer.Option(help="Folder to write the tasks to, a YAML file each.")] = None,
    where: Annotated[bool, typer.Option("--where", help="Print the folder of the installed tasks.")] = False,
    suite: Annotated[list[str] | None, typer.Option(help="Only this suite (repeatable).")] = None,
) -> None:
    """Tasks for lm-evaluation-harness. Example: lm_eval --include_path "$(cultureval export lm-eval --where)" ..."""
    from cultureval.tasks.catalogue import require_suites, suites
    from cultureval.tasks.harnesses.lm_eval_files import INCLUDE_PATH, write_task_files

    if where == (to is not None) or (where and suite):
        raise CulturevalError("Say either --where, or --to DIR (with --suite NAME for some suites only).")
    if to is None:
        print(INCLUDE_PATH)
        return
    require_suites(suite or ())
    count = write_task_files(to, suite or suites())
    print(f"{count} files in {to}. Run them with: lm_eval --include_path {to} --tasks NAME ...")
