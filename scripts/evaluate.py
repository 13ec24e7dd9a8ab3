"""`cultureval eval`: LightEval's pipeline on our tasks, with the model file for the model."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cultureval.reports.terminal_tables import terminal_width
from cultureval.runtime.data.hub import go_offline_if_unreachable
from cultureval.runtime.errors import BatchWritten, CulturevalError, DryRun
from cultureval.runtime.gc_pause import no_collection
from cultureval.runtime.printing import print_note, print_result
from cultureval.runtime.saving import Saving
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
    PushToTensorboard,
    ResultsOrg,
    ResultsPathTemplate,
    SaveDetails,
    SourcesFile,
    Tasks,
    Wandb,
    with_sources,
)

if TYPE_CHECKING:
    from cultureval.runs.record import Run


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
        Literal["auto", "transformers", "vllm"] | None,
        typer.Option(help="auto: choices by transformers; texts by vLLM where there is one and an accelerator."),
    ] = None,
    tensor_parallel: Annotated[int | None, typer.Option(min=1, help="vLLM: GPUs for one copy of the model.")] = None,
    data_parallel: Annotated[int | None, typer.Option(min=1, help="vLLM: copies of the model.")] = None,
    vllm_args: Annotated[str | None, typer.Option(help="Further arguments of `vllm serve`, in quotes.")] = None,
    bad_rows: Annotated[
        Literal["error", "skip"] | None, typer.Option(help="A broken row stops the run, or is skipped and listed.")
    ] = None,
    on_refused: Annotated[
        Literal["error", "unscored"] | None,
        typer.Option(help="A prompt that the model's server refuses stops the run, or is unscored and counted."),
    ] = None,
    on_change: Annotated[
        Literal["stop", "continue"] | None,
        typer.Option(help="A server that changes its model stops the run, or both models are taken, marked as mixed."),
    ] = None,
    form: Form = None,
    skip_unscorable: Annotated[
        bool,
        typer.Option(
            "--skip-unscorable",
            help="Run what can be scored; name what lacks its scorer or judge.",
        ),
    ] = False,
    sources: SourcesFile = None,
    manifest: Manifests = None,
    full: Full = False,
    as_json: AsJson = False,
    batch_out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the requests as a batch (JSONL) instead of sending them.")
    ] = None,
    batch_in: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Answers of such a batch; several files: repeat it.")
    ] = None,
    batch_missing: Annotated[
        Literal["unscored", "ask"] | None, typer.Option(help="Requests without an answer in --batch-in.")
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(min=0, help="Paid servers: the most that all answers may cost; the run stops before more."),
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
    push_to_tensorboard: PushToTensorboard = False,
    public_run: PublicRun = False,
    results_org: ResultsOrg = None,
    wandb: Wandb = False,
) -> None:
    """Evaluates a model and writes LightEval's results and details. Example: cultureval eval MODEL qimma"""
    of_model = {"device": device, "dtype": dtype, "batch_size": batch_size, "chat_template": chat_template}
    of_model |= {"backend": backend, "tensor_parallel": tensor_parallel, "data_parallel": data_parallel}
    of_model |= {"vllm_args": vllm_args, "batch_out": batch_out, "batch_in": batch_in, "batch_missing": batch_missing}
    of_model |= {"budget": budget, "dry_run": dry_run or None}
    settings = with_sources(current_settings(), sources)
    chosen = ",".join(map(str, manifest)) if manifest else None
    settings = settings.with_(data_root=data, bad_rows=bad_rows, form=form, resume=resume, manifest=chosen)
    settings = settings.with_(on_refused=on_refused, on_change=on_change)
    if problem := go_offline_if_unreachable():
        print_note(f"the hub does not answer ({problem}); models and data come from folders and the cache.")
    saving = Saving(
        results_path_template, save_details, push_to_hub, push_to_tensorboard, public_run, results_org, wandb
    )
    with no_collection():
        from cultureval.models.preflight import check_model
        from cultureval.reports.evaluation import evaluate_tasks

    with use_settings(with_model_settings(settings, of_model)):
        check = partial(check_model, model)
        try:
            run = evaluate_tasks(model, check, tasks, limit, output_dir, saving, skip_unscorable)
        except BatchWritten as written:
            return print_note(f"{written}.")
        except DryRun as told:
            return print(told)
    print_run(run.run, run.path, full, as_json)
    if run.problems:
        raise CulturevalError(f"Results and details are saved, but {'; '.join(run.problems)}.")


def with_model_settings(settings: Settings, given: Mapping[str, Any]) -> Settings:
    """The settings with the given model settings on top; None values are ignored."""
    changed = {name: value for name, value in given.items() if value is not None}
    try:
        return settings.with_(model_settings=settings.model_settings | changed) if changed else settings
    except CulturevalError:
        return settings  # the checks before the run read the variable again, and report it with all others


def print_run(run: "Run", path: Path, full: bool = False, as_json: bool = False) -> None:
    """Prints a run that is on the disk, and the path of its file: a summary, all scores (`full`) or JSON."""
    from cultureval.reports.summary_text import shown_run, summaries_json

    print_result(summaries_json([("", run)]) if as_json else shown_run(run, terminal_width(), full), path)
