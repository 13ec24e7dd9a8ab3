"""The commands `eval`, `show` and `score` as functions, for notebooks and programs (`docs/library.ipynb`)."""

import time
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.runtime.errors import CulturevalError, did_you_mean
from cultureval.runtime.settings import Settings, current_settings, field_names, use_settings

if TYPE_CHECKING:
    from cultureval.runs.loading import Results, Run
    from cultureval.tasks.suite import Suite


def evaluate(
    model: str | Path,
    tasks: str | Iterable[str],
    *,
    data: str | Path | None = None,
    limit: int | None = None,
    output_dir: str | Path = "results",
    model_settings: Mapping[str, Any] | None = None,
    skip_unscorable: bool = False,
    **options: Any,
) -> "Run":
    """Evaluates a model, as `cultureval eval` does, and returns its results.

    Results, details and summary are in `output_dir`; answers are in the journal, so that the same call after an
    interruption repeats only what was in flight.

    Args:
        model: As of the command: hub id, folder, provider's model, server's address, or YAML file with settings.
        tasks: A task, group or suite, or several; `TASK|2` is 2-shot.
        data: Data root (`DIR/<org>/<name>`) or "samples"; None: `CULTUREVAL_DATA`, else the hub.
        limit: At most this many rows of each task, at least 1; None: all.
        output_dir: Output folder.
        model_settings: Settings of the model, over those of its file, such as `{"device": "cpu"}`.
        skip_unscorable: Whether tasks that cannot be scored are left out instead of stopping the run.
        **options: Further options of the command or of a suite by their names in code, such as `form="original"`
            or `parity="paper"`.

    Returns:
        The run: `run.score(task, metric)` with `value`, `error`, `n`, `low`, `high`; `run.record`, `run.file`.

    Raises:
        CulturevalError: An argument or option is wrong, something that the run needs is missing (all that is, in one
            message, before a model is loaded), a row is broken, or the model fails.
        BatchWritten: `batch_out` is among the model's settings, and the requests are in its files.
        DryRun: `dry_run` is among them; the error's text tells requests, tokens and cost.
    """
    names = _task_names(tasks)
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        raise CulturevalError(f"`limit` is {limit!r}: give a whole number from 1 on, or None for all rows.")
    _require_names(model=model, output_dir=output_dir)
    if not isinstance(model_settings, Mapping | None):
        raise CulturevalError(f"`model_settings` is {model_settings!r}: give a dictionary of settings and values.")
    from cultureval.models.choice import check_model
    from cultureval.reports.evaluation import evaluate_tasks
    from cultureval.runtime.data.hub import go_offline_if_unreachable

    settings = _settings(options | ({} if data is None else {"data_root": str(data)}), model_settings)
    go_offline_if_unreachable()
    with use_settings(settings):
        check = partial(check_model, str(model))
        saved = evaluate_tasks(str(model), check, names, limit, str(output_dir), skip_unscorable=skip_unscorable)
    if saved.problems:
        raise CulturevalError(f"Results and details are saved in {output_dir}, but {'; '.join(saved.problems)}.")
    return saved.run


def _require_names(**given: object) -> None:
    """Raises a CulturevalError for an argument that is neither a name nor a path."""
    for name, value in given.items():
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
    given = [paths] if isinstance(paths, str | Path) else list(paths) if isinstance(paths, Iterable) else [paths]
    from cultureval.runs.loading import load

    for one in given or [""]:
        _require_names(path=one)
    return load(*given, strict=strict)


def score(
    name: str,
    pred: str | Path | Iterable[str | Path],
    *,
    gold: str | Path | None = None,
    output_dir: str | Path = "results/score",
    model_name: str | None = None,
    **options: Any,
) -> "list[Run]":
    """Scores answers that were made elsewhere, as `cultureval score` does.

    Args:
        name: A format (`cvlue-vqa`, `aynvqa`, ... as `cultureval score --help` lists them), or a suite that takes
            outputs (`alqasida`).
        pred: A file of answers or a submission, or several; folders are searched.
        gold: The gold file of an official format, or a folder with the released layout.
        output_dir: Where results files, tables and plots are written.
        model_name: Name in the results; None: that of the submission's file or folder.
        **options: As of `evaluate`.

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
    folder = Path(output_dir)
    with use_settings(_settings(options, None)):
        from cultureval.runs.files import results_below
        from cultureval.runs.loading import load
        from cultureval.runtime.saving import require_folder

        suite, takes_gold = _scorer_of(name)
        if takes_gold != (gold is not None):
            needed = "needs a gold file (`gold`)" if takes_gold else "takes no `gold`, which its outputs name"
            raise CulturevalError(f"{name} {needed}.")
        require_folder(folder)
        folder.mkdir(parents=True, exist_ok=True)
        before = set(results_below(folder))
        problems = _scored(suite, name, [Path(file) for file in files], gold, folder, model_name)
        written = [file for file in results_below(folder) if file not in before]
        if problems:
            raise CulturevalError("\n".join([f"What was scored is in {folder}. Not scored:", *problems]))
        return [load(file, strict=True).runs[0] for file in written]


def _settings(options: Mapping[str, Any], model_settings: Mapping[str, Any] | None) -> Settings:
    """The current settings under options of the commands and of suites, by their names in code."""
    settings = current_settings()
    own = {name: value for name, value in options.items() if name in field_names()}
    of_suites = {name: value for name, value in options.items() if name not in own}
    if model_settings:
        own["model_settings"] = settings.model_settings | dict(model_settings)
    settings = settings.with_(suite=of_suites, **own)
    if of_suites:
        from cultureval.tasks.options import read_data_options

        read_data_options(settings)  # an unknown name or value is told before anything is loaded
    return settings


def _scorer_of(name: str) -> "tuple[Suite, bool]":
    """The suite of a format, and whether it scores against a gold file."""
    from cultureval.tasks.catalogue import all_suites

    known: dict[str, tuple[Suite, bool]] = {}
    for suite in all_suites().values():
        if suite.submissions:
            known |= dict.fromkeys(suite.scorers(), (suite, True))
        if suite.outputs:
            known[suite.name] = (suite, False)
    if name not in known:
        raise CulturevalError(f"There is no format {name!r}.{did_you_mean(name, known)} There are {', '.join(known)}.")
    return known[name]


def _scored(
    suite: "Suite", name: str, files: list[Path], gold: str | Path | None, folder: Path, model_name: str | None
) -> list[str]:
    """Scores the files and writes results files; returns what could not be scored."""
    if gold is None:
        suite.part("outputs")(files, folder)
        return []
    from cultureval.reports.submissions import save_submissions

    started = time.time()
    found = suite.scorers()[name](Path(gold), files, folder)
    save_submissions(found, Path(gold), folder, started, model_name)
    return list(found.problems)
