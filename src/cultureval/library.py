"""The commands `eval`, `show` and `score` as functions, for notebooks and programs (`docs/library.ipynb`)."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cultureval.runtime.errors import CulturevalError, ProblemList
from cultureval.runtime.settings import field_names, use_settings, variable_of

if TYPE_CHECKING:
    from cultureval.runs.loading import Results, Run

# Options of lm-eval, of LightEval and of earlier versions -> option of `eval`, and the name in its `name=value,...`.
# Settings of models and of tasks need no line here.
OTHER_NAMES = {
    "max_samples": ("limit", ""),
    "output_path": ("output-dir", ""),
    "fewshot": ("num-fewshot", ""),
    "save_details": ("log-samples", ""),
    "results_org": ("push-to-hub", ""),
    "model_settings": ("model-args", ""),
    "gen_kwargs": ("model-args", ""),
    "apply_chat_template": ("model-args", "chat_template=on"),
    "system_instruction": ("model-args", "system_prompt"),
    "custom_tasks": ("custom-suites", ""),
    "include_path": ("custom-suites", ""),
    "parallelize": ("model-args", "device_map"),
}


def evaluate(
    model: str | Path,
    tasks: str | Iterable[str],
    *,
    data: str | Path | None = None,
    form: Literal["curated", "original", "mixed"] | None = None,
    limit: int | None = None,
    num_fewshot: int | None = None,
    model_args: Mapping[str, Any] | str | None = None,
    task_args: Mapping[str, Any] | str | None = None,
    columns: Mapping[str, str] | str | None = None,
    manifest: str | Path | Iterable[str | Path] | None = None,
    skip_unscorable: bool = False,
    output_dir: str | Path = "results",
    log_samples: bool = True,
    resume: bool | None = None,
    **unknown: Any,
) -> "Run":
    """Evaluates a model, as `cultureval eval` does, and returns its results.

    Results, details and summary are in `output_dir`. Answers are in the journal: the same call after an interruption
    asks only for the others.

    Args:
        model: As of the command: hub id, folder, provider's model, server's address, or YAML file.
        tasks: A task, group or suite, or several; `TASK|2` is 2-shot.
        data: Data root (`DIR/<org>/<name>`) or "samples"; None: `CULTUREVAL_DATA`, else the hub.
        form: QIMMA's curated copy, the original data, or each subset's that is there; None: `CULTUREVAL_FORM`.
        limit: At most this many rows of each task, at least 1; None: all.
        num_fewshot: Examples in each prompt of tasks without `|k`, at least 0; None: 0.
        model_args: Settings of the model, over those of its file, such as `{"device": "cpu"}` or "device=cpu".
        task_args: Options of suites, such as `{"parity": "sound"}` or "parity=sound".
        columns: Names of columns in the data, such as `{"question": "Frage"}`.
        manifest: Files of audits, whose discarded rows are left out.
        skip_unscorable: Whether tasks that cannot be scored are left out instead of stopping the run.
        output_dir: Output folder.
        log_samples: Whether details of each row are written, which `run.items` and `cultureval show` read.
        resume: Whether answers of an earlier run are reused; None: `CULTUREVAL_RESUME`, else True.
        **unknown: None is allowed; the error names the argument to use.

    Returns:
        The run: `run.score(task, metric)` with `value`, `error`, `n`, `low`, `high`; `run.record`, `run.file`.

    Raises:
        CulturevalError: An argument is wrong, something that the run needs is missing (all that is, in one
            message, before a model is loaded), a row is broken, or the model fails.
        BatchWritten: `batch_out` is among `model_args`, and the requests are in its files.
        DryRun: `dry_run` is among them; the error's text has requests, tokens and cost.
    """
    names = _task_names(tasks)
    _refuse_unknown(unknown)
    for name, number, least in (("limit", limit, 1), ("num_fewshot", num_fewshot, 0)):
        if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number < least):
            raise CulturevalError(f"`{name}` is {number!r}: give a whole number from {least} on, or None.")
    _require_names(model=model, output_dir=output_dir)
    from cultureval.models.choice import check_model
    from cultureval.reports.evaluation import evaluate_tasks
    from cultureval.runtime.data.hub import go_offline_if_unreachable
    from cultureval.runtime.saving import Saving
    from cultureval.tasks.options import evaluation_settings
    from cultureval.tasks.selection import with_shots

    own = {"data_root": data, "form": form, "columns": columns, "manifest": manifest, "resume": resume}
    wrong = ProblemList()
    settings = evaluation_settings(wrong, model_args, task_args, **own)
    wrong.raise_if_any()
    go_offline_if_unreachable()
    with use_settings(settings):
        check, names = partial(check_model, str(model)), with_shots(names, num_fewshot)
        saved = evaluate_tasks(str(model), check, names, limit, str(output_dir), Saving(log_samples), skip_unscorable)
    if saved.problems:
        raise CulturevalError(f"Results and details are saved in {output_dir}, but {'; '.join(saved.problems)}.")
    return saved.run


def our_name(name: str) -> tuple[str, str]:
    """The option of `cultureval eval` for another name, and the name in its `name=value,...`; "" where there is none.

    The other name is, or nearly is, an option of another harness or an earlier version, a setting of a model, or an
    option of a suite.
    """
    from lighteval.models.model_input import GenerationParameters

    from cultureval.models.server.settings import ServerModelConfig
    from cultureval.models.settings import HFModelSettings
    from cultureval.tasks.options import all_options

    classes = (HFModelSettings, ServerModelConfig, GenerationParameters)
    known = {setting: ("model-args", setting) for config in classes for setting in config.model_fields}
    known["on_refused"] = ("model-args", "on_refused")
    del known["model"], known["model_name"]  # the first argument
    known |= {option.name: ("task-args", option.name) for option in all_options()}
    known |= OTHER_NAMES
    name = name.lstrip("-").replace("-", "_")
    nearest = get_close_matches(name, known, n=1, cutoff=0.85)
    return known[nearest[0]] if nearest else ("", "")


def _refuse_unknown(arguments: Mapping[str, Any]) -> None:
    """Raises a CulturevalError for the first argument that `evaluate` does not have, with what to write."""
    for name in arguments:
        ours, of_args = our_name(name)
        ours = ours.replace("-", "_")
        setting = name if name in field_names() and name not in OTHER_NAMES else ours
        if setting in field_names() and setting not in signature(evaluate).parameters:
            raise CulturevalError(
                f"`evaluate` has no argument `{name}`. Set {variable_of(setting)} in the environment."
            )
        of_args, _, value = of_args.partition("=")
        value = f'"{value}"' if value else "..."
        hint = f'{ours}={{"{of_args}": {value}}}' if of_args else f"{ours}=..."
        raise CulturevalError(f"`evaluate` has no argument `{name}`.{f' Write {hint}.' if ours else ''}")


def _require_names(**arguments: object) -> None:
    """Raises a CulturevalError for an argument that is neither a name nor a path."""
    for name, value in arguments.items():
        if not isinstance(value, str | Path) or not str(value):
            raise CulturevalError(f"`{name}` is {value!r}: give a name or a path.")


def _task_names(tasks: str | Iterable[str]) -> list[str]:
    names = [tasks] if isinstance(tasks, str) else list(tasks) if isinstance(tasks, Iterable) else []
    if not names or not all(isinstance(name, str) and name for name in names):
        raise CulturevalError(f"`tasks` is {tasks!r}: give the name of a task, group or suite, or a list of names.")
    return names


def load_results(paths: str | Path | Iterable[str | Path], strict: bool = False) -> "Results":
    """Reads finished runs: of each model, version and way of running it the newest results of each task.

    Args:
        paths: A results file, an output folder or a folder in it, or several. Files of stock LightEval are read too.
        strict: Whether a file that cannot be read stops; else it is left out, and named in `left_out` of the result.

    Returns:
        `runs`, the newest first, and `items`, a pandas table of all item scores. A run has `score(task, metric)`,
        `scores`, `record`, `file`; `runs.warnings.warnings(run)` is what a reader must know.

    Raises:
        CulturevalError: There is no results file that can be read; all of them are named, with the reasons.
    """
    files = [paths] if isinstance(paths, str | Path) else list(paths) if isinstance(paths, Iterable) else [paths]
    from cultureval.runs.loading import load

    for file in files or [""]:
        _require_names(path=file)
    return load(*files, strict=strict)


def score(
    name: str,
    pred: str | Path | Iterable[str | Path],
    *,
    gold: str | Path | None = None,
    output_dir: str | Path = "results/score",
    model_name: str | None = None,
    task_args: Mapping[str, Any] | str | None = None,
) -> "list[Run]":
    """Scores answers that were made elsewhere, as `cultureval score` does.

    Args:
        name: A format (`cvlue-vqa`, `aynvqa`, ...; a wrong name lists all), or a suite that takes outputs
            (`alqasida`). Solutions of `humaneval` and `mbpp` are for the command alone.
        pred: A file of answers or a submission, or several; folders are searched.
        gold: The gold file of an official format, or a folder with the released layout.
        output_dir: Where results files, tables and plots are written.
        model_name: Name in the results; None: that of the submission's file or folder.
        task_args: Options of suites, as of `evaluate`.

    Returns:
        The runs that were written: one for each submission or model.

    Raises:
        CulturevalError: The format is unknown, a file cannot be read, or something could not be scored.
    """
    files = [pred] if isinstance(pred, str | Path) else list(pred) if isinstance(pred, Iterable) else [pred]
    if not files:
        raise CulturevalError("`pred` is empty: give a file of answers, or several.")
    _require_names(name=name, output_dir=output_dir, **({} if gold is None else {"gold": gold}))
    for file in files:
        _require_names(pred=file)
    from cultureval.reports.submissions import scorer_of
    from cultureval.runs.files import results_below
    from cultureval.runs.loading import load
    from cultureval.runtime.saving import require_folder
    from cultureval.tasks.options import evaluation_settings

    folder, wrong = Path(output_dir), ProblemList()
    settings = evaluation_settings(wrong, None, task_args)
    wrong.raise_if_any()
    with use_settings(settings):
        require_folder(folder)
        score_files = scorer_of(name, Path(gold) if gold is not None else None)
        folder.mkdir(parents=True, exist_ok=True)
        before = set(results_below(folder))
        _, problems = score_files([Path(file) for file in files], folder, model_name)
        written = [file for file in results_below(folder) if file not in before]
        if problems:
            raise CulturevalError("\n".join([f"What was scored is in {folder}. Not scored:", *problems]))
        return [load(file, strict=True).runs[0] for file in written]
