"""`cultureval eval` and `run`: models are evaluated, also as a plan says."""

import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.exceptions

from cultureval.runtime.data.hub import go_offline_if_unreachable
from cultureval.runtime.errors import BatchWritten, CulturevalError, DryRun, ProblemList, counted
from cultureval.runtime.printing import print_note, print_result, print_text, terminal_width
from cultureval.runtime.saving import Saving, require_folder
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.scripts.options import AsJson, Columns, Data, Form, OutputDir
from cultureval.tasks.cvlue.gallery import TASKS
from cultureval.tasks.options import evaluation_settings
from cultureval.tasks.selection import with_shots

Tasks = Annotated[
    list[str], typer.Argument(metavar="TASKS...", help="Tasks, groups, suites or files; TASK|2 is 2-shot.")
]
Manifests = Annotated[list[Path] | None, typer.Option(metavar="FILE", help="Leave out rows by an audit's manifest.")]
ModelArgs = Annotated[
    str | None,
    typer.Option(metavar="NAME=VALUE,...", help="Model settings: dtype, device, batch_size, ..."),
]
TaskArgs = Annotated[
    str | None,
    typer.Option(metavar="NAME=VALUE,...", help="As `cultureval tasks SUITE` lists them."),
]


def evaluate(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Hub id, folder, openai/gpt-4o, http://HOST/v1#NAME, or YAML file.")
    ],
    tasks: Tasks,
    data: Data = None,
    form: Form = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="At most N rows of each task.")] = None,
    num_fewshot: Annotated[int | None, typer.Option(min=0, metavar="N", help="N examples in each prompt.")] = None,
    model_args: ModelArgs = None,
    task_args: TaskArgs = None,
    columns: Columns = None,
    manifest: Manifests = None,
    skip_unscorable: Annotated[
        bool, typer.Option("--skip-unscorable", help="Leave out tasks without scorer or judge.")
    ] = False,
    output_dir: OutputDir = "results",
    log_samples: Annotated[bool, typer.Option(help="Write a row of details for each sample.")] = True,
    resume: Annotated[
        bool | None, typer.Option("--resume/--no-resume", help="Reuse answers of an interrupted run.")
    ] = None,
    as_json: AsJson = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Servers: count requests, tokens and cost.")] = False,
    budget: Annotated[float | None, typer.Option(min=0, metavar="USD", help="Servers: stop at this cost.")] = None,
    batch_out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the requests as a batch, and stop.")
    ] = None,
    batch_in: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Answers of such a batch. Repeatable.")
    ] = None,
    push_to_hub: Annotated[
        str | None, typer.Option(metavar="ORG", help="Upload privately to this account of the hub.")
    ] = None,
    wandb: Annotated[bool, typer.Option("--wandb", help="Log to trackio or W&B (WANDB_PROJECT).")] = False,
) -> None:
    """Evaluates a model on tasks.

    Example: cultureval eval Qwen/Qwen3-8B qimma --model-args dtype=bfloat16
    """
    wrong = ProblemList()
    own = {"data_root": data, "form": form, "columns": columns, "manifest": manifest, "resume": resume}
    settings = evaluation_settings(wrong, model_args, task_args, **own)
    of_server = {"dry_run": dry_run or None, "budget": budget, "batch_out": batch_out, "batch_in": batch_in}
    of_server = {name: value for name, value in of_server.items() if value is not None}
    settings = settings.with_(model_settings=settings.model_settings | of_server)
    if problem := go_offline_if_unreachable():
        print_note(f"the hub does not answer ({problem}); models and data come from folders and the cache.")
    from cultureval.models.choice import check_model
    from cultureval.reports.evaluation import evaluate_tasks
    from cultureval.reports.summary_text import shown_run, summaries_json

    with use_settings(settings):
        if not wrong.found and _is_dual_encoder(model, tasks):
            unused = {"--limit": limit, "--num-fewshot": num_fewshot, "--push-to-hub": push_to_hub, "--wandb": wandb}
            if unknown := [option for option, value in unused.items() if value]:
                raise CulturevalError(f"A dual encoder ranks a whole gallery: leave {', '.join(unknown)} out.")
            return _evaluate_dual_encoder(model, tasks, output_dir)
        check, saving = partial(check_model, model), Saving(log_samples, push_to_hub, wandb)
        names = with_shots(tasks, num_fewshot)
        try:
            run = evaluate_tasks(model, check, names, limit, output_dir, saving, skip_unscorable, wrong)
        except BatchWritten as written:
            return print_note(f"{written}.")
        except DryRun as estimate:
            return print_text(str(estimate))
    print_result(summaries_json([run.run]) if as_json else shown_run(run.run, terminal_width()), run.path)
    if run.problems:
        raise CulturevalError(f"Results and details are saved, but {'; '.join(run.problems)}.")


def _is_dual_encoder(model: str, tasks: list[str]) -> bool:
    if not {*tasks} <= {*TASKS}:
        return False
    from cultureval.models.encoders.dual_encoder import is_dual_encoder

    return is_dual_encoder(model)


def _evaluate_dual_encoder(model: str, tasks: list[str], output_dir: str) -> None:
    """Recall of images and captions over the full gallery by a dual encoder."""
    from cultureval.models.encoders.dual_encoder import DualEncoder, encoder_settings
    from cultureval.reports.cvlue.retrieval import evaluate_retrieval
    from cultureval.tasks.cvlue.gallery import read_gallery

    settings = encoder_settings(model, current_settings().model_settings)
    galleries = {name: read_gallery(name) for name in tasks}
    require_folder(Path(output_dir))
    print_result(*evaluate_retrieval(galleries, DualEncoder(settings), Path(output_dir)))


def run(
    plan: Annotated[Path, typer.Argument(metavar="PLAN.yaml", help="Models with their settings, and suites.")],
    status: Annotated[bool, typer.Option("--status", help="Only show how each run stands.")] = False,
    slurm: Annotated[bool, typer.Option("--slurm", help="Only write an array job script.")] = False,
    only: Annotated[list[int] | None, typer.Option(min=0, help="Run this number of --status. Repeatable.")] = None,
) -> None:
    """Runs models on suites as a YAML file says, unless they are finished. Example: cultureval run PLAN.yaml"""
    from cultureval.reports.plans import read_plan, run_plan, status_table, write_array_job

    content, runs = read_plan(plan, check_options)
    if wrong := [number for number in only or () if number >= len(runs)]:
        raise CulturevalError(f"--only {wrong[0]}: {plan} has the runs 0 to {len(runs) - 1}.")
    if status:
        print(status_table(runs))
        return
    if slurm:
        print(shlex.join(["sbatch", str(write_array_job(content, runs, plan))]))
        return
    failed = run_plan([planned for number, planned in enumerate(runs) if not only or number in only], print_note)
    print(status_table(runs))
    print(f"Results: {content.output_dir.expanduser().resolve()} (cultureval leaderboard makes their page)")
    if failed:
        names = ", ".join(planned.name for planned in failed)
        print_note(f"{len(failed)} of {counted(len(runs), 'run')} failed: {names}. The same command tries them again.")
        raise SystemExit(1)


def check_options(model: str, suite: str, options: Sequence[str]) -> None:
    """Checks options of `cultureval eval` that a plan gives; CulturevalError where the command would not take them."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(evaluate)
    subject = f"`cultureval eval` does not take the options {shlex.join(options)}"
    if {"--help", "-h", "--dry-run", "--batch-out"} & {word.partition("=")[0] for word in options}:
        raise CulturevalError(f"{subject} in a plan: they give no scores.")
    try:
        params: dict[str, Any] = typer.main.get_command(app).make_context("eval", [*options, "--", model, suite]).params
    except typer.exceptions.TyperException as error:
        raise CulturevalError(f"{subject}: {error.format_message()}.") from error
    if (params["model"], params["tasks"]) != (model, [suite]):
        raise CulturevalError(f"{subject}: a word in them is no option.")
    wrong = ProblemList()
    evaluation_settings(wrong, params["model_args"], params["task_args"])
    wrong.raise_if_any()
