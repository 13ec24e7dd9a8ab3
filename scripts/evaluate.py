"""`cultureval eval` and `run`: models are evaluated, also as a plan says."""

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
import typer.exceptions

from cultureval.runtime.data.hub import go_offline_if_unreachable
from cultureval.runtime.errors import BatchWritten, CulturevalError, DryRun, ProblemList, counted
from cultureval.runtime.printing import print_note, print_result, print_text, terminal_width
from cultureval.runtime.saving import Saving, require_folder
from cultureval.runtime.settings import Settings, current_settings, use_settings
from cultureval.scripts.options import (
    AsJson,
    Data,
    Device,
    Dtype,
    Form,
    Full,
    Manifests,
    OutputDir,
    PublicRun,
    PushToHub,
    Renamed,
    ResultsOrg,
    ResultsPathTemplate,
    SaveDetails,
    Tasks,
    Wandb,
)
from cultureval.scripts.suite_options import WithSuiteOptions
from cultureval.tasks.cvlue.gallery import TASKS

if TYPE_CHECKING:
    from cultureval.runs.loading import Run


def evaluate(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="Hub id, folder, provider's model (openai/gpt-4o), http://HOST/v1#NAME, or YAML file with settings.",
        ),
    ],
    tasks: Tasks,
    data: Data = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="At most this many rows per task; items of several rows stay complete.")
    ] = None,
    output_dir: OutputDir = "results",
    device: Device = None,
    dtype: Dtype = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Prompts per generation batch.")] = None,
    chat_template: Annotated[
        Literal["auto", "on", "off"] | None, typer.Option(help="auto: if the tokenizer has one.")
    ] = None,
    backend: Annotated[
        Literal["transformers", "vllm"] | None,
        typer.Option(help="vllm starts vLLM, from an environment of its own; default: transformers."),
    ] = None,
    vllm_args: Annotated[str | None, typer.Option(help="Further arguments of `vllm serve`, in quotes.")] = None,
    on_refused: Annotated[
        Literal["error", "unscored"] | None,
        typer.Option(help="A prompt that the model's server refuses stops the run, or is unscored and counted."),
    ] = None,
    form: Form = None,
    skip_unscorable: Annotated[
        bool,
        typer.Option(
            "--skip-unscorable",
            help="Run what can be scored; name what lacks its scorer or judge.",
        ),
    ] = False,
    renamed: Renamed = None,
    manifest: Manifests = None,
    full: Full = False,
    as_json: AsJson = False,
    batch_out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the requests as a batch (JSONL) instead of sending them.")
    ] = None,
    batch_in: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Answers of such a batch; several files: repeat it.")
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(min=0, help="Paid servers: the run stops when its answers have cost as much."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Servers: ask nothing; print how many requests, tokens, and their cost.")
    ] = False,
    resume: Annotated[
        bool | None,
        typer.Option(
            "--resume/--no-resume",
            help="Reuse the answers of an earlier, interrupted run; default: CULTUREVAL_RESUME, else reuse them.",
        ),
    ] = None,
    results_path_template: ResultsPathTemplate = None,
    save_details: SaveDetails = True,
    push_to_hub: PushToHub = False,
    public_run: PublicRun = False,
    results_org: ResultsOrg = None,
    wandb: Wandb = False,
) -> None:
    """Evaluates a model and writes LightEval's results and details. Example: cultureval eval MODEL qimma"""
    of_model = {"device": device, "dtype": dtype, "batch_size": batch_size, "chat_template": chat_template}
    of_model |= {"backend": backend, "vllm_args": vllm_args, "batch_out": batch_out, "batch_in": batch_in}
    of_model |= {"budget": budget, "dry_run": dry_run or None}
    settings, wrong = current_settings(), ProblemList()
    given = {"columns": renamed, "data_root": data, "form": form, "manifest": manifest}
    given |= {"resume": resume, "on_refused": on_refused}
    for name, value in given.items():
        with wrong.collecting():  # told with the other problems of the run
            settings = settings.with_(**{name: value})
    if problem := go_offline_if_unreachable():
        print_note(f"the hub does not answer ({problem}); models and data come from folders and the cache.")
    if not wrong.found and _is_dual_encoder(model, tasks):
        with use_settings(settings):
            return _evaluate_dual_encoder(model, tasks, output_dir, device, dtype, batch_size)
    saving = Saving(results_path_template, save_details, push_to_hub, public_run, results_org, wandb)
    from cultureval.models.choice import check_model
    from cultureval.reports.evaluation import evaluate_tasks

    with use_settings(with_model_settings(settings, of_model)):
        check = partial(check_model, model)
        try:
            run = evaluate_tasks(model, check, tasks, limit, output_dir, saving, skip_unscorable, wrong)
        except BatchWritten as written:
            return print_note(f"{written}.")
        except DryRun as told:
            return print_text(str(told))
    print_run(run.run, run.path, full, as_json)
    if run.problems:
        raise CulturevalError(f"Results and details are saved, but {'; '.join(run.problems)}.")


def with_model_settings(settings: Settings, given: Mapping[str, Any]) -> Settings:
    """The settings with the given model settings on top; None values are ignored."""
    changed = {name: value for name, value in given.items() if value is not None}
    return settings.with_(model_settings=settings.model_settings | changed)


def print_run(run: "Run", path: Path, full: bool = False, as_json: bool = False) -> None:
    """Prints a run that is on the disk, and the path of its file: a summary, all scores (`full`) or JSON."""
    from cultureval.reports.summary_text import shown_run, summaries_json

    print_result(summaries_json([run]) if as_json else shown_run(run, terminal_width(), full), path)


def _evaluate_dual_encoder(
    model: str, tasks: list[str], output_dir: str, device: str | None, dtype: str | None, batch_size: int | None
) -> None:
    """Recall of images and captions over the full gallery by a dual encoder."""
    from cultureval.models.encoders.dual_encoder import DualEncoder, EncoderSettings
    from cultureval.reports.cvlue.retrieval import evaluate_retrieval
    from cultureval.tasks.cvlue.gallery import read_gallery

    galleries = {name: read_gallery(name) for name in tasks}
    require_folder(Path(output_dir))
    given = {"device": device, "dtype": dtype, "batch_size": batch_size}
    encoder = DualEncoder(EncoderSettings(model, **{name: value for name, value in given.items() if value}))
    print_result(*evaluate_retrieval(galleries, encoder, Path(output_dir)))


def _is_dual_encoder(model: str, tasks: list[str]) -> bool:
    if not {*tasks} <= {*TASKS}:
        return False
    from cultureval.models.encoders.dual_encoder import is_dual_encoder

    return is_dual_encoder(model)


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
    failed = run_plan([one for number, one in enumerate(runs) if not only or number in only], print_note)
    print(status_table(runs))
    print(f"Results: {content.output_dir.expanduser().resolve()} (cultureval leaderboard makes their page)")
    if failed:
        names = ", ".join(one.name for one in failed)
        print_note(f"{len(failed)} of {counted(len(runs), 'run')} failed: {names}. The same command tries them again.")
        raise SystemExit(1)


def check_options(model: str, suite: str, options: Sequence[str]) -> None:
    """Checks options of `cultureval eval` that a plan gives; CulturevalError where the command would not take them."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(cls=WithSuiteOptions)(evaluate)
    told = f"`cultureval eval` does not take the options {shlex.join(options)}"
    if {"--help", "-h", "--dry-run", "--batch-out"} & {word.partition("=")[0] for word in options}:
        raise CulturevalError(f"{told} in a plan: they give no scores.")
    try:
        given = typer.main.get_command(app).make_context("eval", [*options, "--", model, suite]).params
    except typer.exceptions.TyperException as error:
        raise CulturevalError(f"{told}: {error.format_message()}.") from error
    if (given["model"], given["tasks"]) != (model, [suite]):
        raise CulturevalError(f"{told}: a word in them is no option.")
