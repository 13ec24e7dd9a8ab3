"""`cultureval run`: a plan of many models and suites; what is finished is left out."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from cultureval.runtime.errors import CulturevalError, counted
from cultureval.runtime.printing import print_note
from cultureval.scripts.suite_options import WithSuiteOptions

# What the plan itself says, what nobody would read, and runs without scores.
NOT_IN_PLANS = {"output-dir", "json", "full", "help", "custom-suites", "dry-run", "batch-out"}


def run(
    plan: Annotated[Path, typer.Argument(metavar="PLAN.yaml", help="Models with their settings, and suites.")],
    status: Annotated[bool, typer.Option("--status", help="Only show how each run stands.")] = False,
    slurm: Annotated[bool, typer.Option("--slurm", help="Only write an array job script.")] = False,
    only: Annotated[list[int] | None, typer.Option(min=0, help="Run this number of --status. Repeatable.")] = None,
) -> None:
    """Runs models on suites as a YAML file says, unless they are finished. Example: cultureval run PLAN.yaml"""
    from cultureval.reports.plans.plan_file import read_plan, require_suites
    from cultureval.reports.plans.progress import status_table
    from cultureval.reports.plans.running import run_plan, write_array_job

    content, runs = read_plan(plan, eval_options())
    require_suites(runs, plan)
    if wrong := [number for number in only or () if number >= len(runs)]:
        raise CulturevalError(f"--only {wrong[0]}: {plan} has the runs 0 to {len(runs) - 1}.")
    if status:
        print(status_table(runs))
        return
    if slurm:
        print(shlex.join(["sbatch", str(write_array_job(content, runs, plan))]))
        return
    failed = run_plan([one for one in runs if not only or one.number in only], print_note)
    print(status_table(runs))
    print(f"Results: {Path(content.output_dir).expanduser().resolve()} (cultureval leaderboard makes their page)")
    if failed:
        names = ", ".join(one.name for one in failed)
        print_note(f"{len(failed)} of {counted(len(runs), 'run')} failed: {names}. The same command tries them again.")
        raise SystemExit(1)


def eval_options() -> dict[str, bool]:
    """The options of `cultureval eval` that a plan may give, without dashes in front -> whether it is a switch."""
    from cultureval.scripts.evaluate import evaluate

    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(cls=WithSuiteOptions)(evaluate)
    command = typer.main.get_command(app)
    found = {}
    for parameter in command.get_params(typer.Context(command)):
        if parameter.param_type_name == "option":
            for name in (*parameter.opts, *parameter.secondary_opts):
                found[name.lstrip("-")] = bool(getattr(parameter, "is_flag", False))
    return {name: switch for name, switch in found.items() if name not in NOT_IN_PLANS and len(name) > 1}
