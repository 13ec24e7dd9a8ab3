"""`cultureval export`: our tasks as files of other harnesses."""

from pathlib import Path
from typing import Annotated

import typer

from cultureval.runtime.errors import CulturevalError
from cultureval.scripts.suite_options import WithCustomSuites, command_group

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
    from cultureval.tasks.catalogue import require_suites, suites
    from cultureval.tasks.harnesses.lm_eval_files import INCLUDE_PATH, write_task_files

    if where == (output_dir is not None) or (where and suite):
        raise CulturevalError("Say either --where, or --to DIR (with names of suites for these only).")
    if output_dir is None:
        print(INCLUDE_PATH)
        return
    require_suites(suite or ())
    count = write_task_files(output_dir, suite or suites())
    print(f"{count} files in {output_dir}. Run them with: lm_eval --include_path {output_dir} --tasks NAME ...")
