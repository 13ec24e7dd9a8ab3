"""`cultureval eval`: LightEval's own pipeline on our tasks, with the model file that fits the model."""

import logging
import math
import re
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cultureval.runtime.data.data_options import DataOptions
from cultureval.runtime.data.hub import go_offline_if_unreachable
from cultureval.runtime.errors import SourceUnavailable
from cultureval.runtime.model_settings import read_model_settings
from cultureval.runtime.settings import Settings, current_settings, use_settings
from cultureval.runtime.signatures import combined_hash, installed_versions, signature
from cultureval.scripts.judge import criteria_table
from cultureval.scripts.output_folder import require_output_folder
from cultureval.scripts.task_selection import select_tasks
from cultureval.tasks.registration import use_custom_suites

if TYPE_CHECKING:
    from lighteval.pipeline import Pipeline

logger = logging.getLogger(__name__)


def evaluate(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Hub id, folder, or YAML file with settings (base_url: a server).")
    ],
    tasks: Annotated[
        list[str], typer.Argument(metavar="TASKS...", help="Tasks, groups, suites (qimma) or files; TASK|5 is 5-shot.")
    ],
    data: Annotated[str | None, typer.Option(help="Data root (DIR/<org>/<name>), or `samples`; default: hub.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="At most this many rows a task; items of several rows stay whole.")
    ] = None,
    output_dir: Annotated[str, typer.Option(help="Where results and details are written.")] = "results",
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, ...; default: cuda if there is one.")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16, float16, auto, 4bit, 8bit.")] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Prompts generated at once.")] = None,
    chat_template: Annotated[
        Literal["auto", "on", "off"] | None, typer.Option(help="auto: where the tokenizer has one.")
    ] = None,
    bad_rows: Annotated[
        Literal["error", "skip"] | None, typer.Option(help="What a broken row does: stop, or be left out and listed.")
    ] = None,
    form: Annotated[
        Literal["auto", "curated", "original"] | None, typer.Option(help="Copy of the data: QIMMA's or the original.")
    ] = None,
    box_format: Annotated[
        str | None,
        typer.Option(help="How the model writes boxes: qwen_vl, qwen2_vl, qwen2.5_vl, qwen3_vl, xyxy, xywh."),
    ] = None,
    custom_suites: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODULE_OR_PATH", help="A suite that is not installed: a module, .py file or folder. Repeatable."
        ),
    ] = None,
    resume: Annotated[
        bool | None,
        typer.Option(
            "--resume/--no-resume",
            help="Reuse the answers of an earlier, interrupted run; default: CULTUREVAL_RESUME, else reuse them.",
        ),
    ] = None,
) -> None:
    """Evaluates a model and writes LightEval's results and details. Example: cultureval eval MODEL qimma"""
    use_custom_suites(custom_suites)
    of_model = {"device": device, "dtype": dtype, "batch_size": batch_size, "chat_template": chat_template}
    settings = current_settings()
    resumes = settings.resume if resume is None else resume  # a bad value is said before the data are read
    settings = settings.with_({"box_format": box_format}, data_root=data, bad_rows=bad_rows, form=form, resume=resumes)
    with use_settings(with_model_settings(settings, of_model)):
        run_tasks(model, tasks, limit, output_dir)


def with_model_settings(settings: Settings, given: Mapping[str, Any]) -> Settings:
    """The settings with further ones of the model, over those that they hold; None is one that was not given."""
    told = {name: value for name, value in given.items() if value is not None}
    return settings.with_(model_settings=settings.model_settings | told) if told else settings


def run_tasks(model: str, tasks: list[str], limit: int | None, output_dir: str) -> None:
    """Runs tasks under the current settings, writes the results and prints table and summary."""
    if problem := go_offline_if_unreachable():
        _warn(f"the hub does not answer ({problem}); models and data come from folders and the cache.")
    require_output_folder(output_dir)
    quiet_libraries()
    from cultureval.tasks.options import read_data_options

    selected, missing = available_tasks(*select_tasks(tasks), read_data_options())
    warn_of_box_format(selected)
    pipeline = run_pipeline(model, selected, limit, output_dir)
    print(summary(pipeline, missing, output_dir))


def warn_of_box_format(tasks: list[str]) -> None:
    """Says which box format is assumed where tasks ask for boxes and nobody said how the model writes them."""
    from cultureval.tasks.catalogue import all_tasks
    from cultureval.tasks.cvlue.options import BOX_FORMAT

    grounding = [name for name in tasks if all_tasks()[name.partition("|")[0]].metric_set == "grounding"]
    if grounding and not BOX_FORMAT.given(current_settings()):
        assumed = f"{grounding[0]}: boxes are read as {BOX_FORMAT.default} writes them, as in the paper"
        _warn(f"{assumed}; --box-format says otherwise.")


def available_tasks(selected: list[str], explicit: set[str], options: DataOptions) -> tuple[list[str], list[str]]:
    """Splits the tasks into those whose data are here and, of groups under a data root, those whose data are not.

    A lab mirrors the subsets that it needs: asking for a group runs those that the data root holds and names the rest.

    Raises:
        SourceUnavailable: A task named one by one has no data, or none of them has.
    """
    from cultureval.tasks.catalogue import all_tasks
    from cultureval.tasks.reading import find_subset

    if options.root is None:
        return selected, []
    present, missing, first_error = [], [], None
    for name in selected:
        try:
            find_subset(all_tasks()[name.partition("|")[0]], options)
            present.append(name)
        except SourceUnavailable as error:
            if name in explicit:
                raise
            first_error = first_error or error
            missing.append(name)
    if first_error and not present:
        raise first_error
    if missing:
        _warn(f"{len(missing)} of {len(selected)} tasks have no data under {options.root} and are left out.")
    return present, missing


def run_pipeline(model: str, tasks: list[str], limit: int | None, output_dir: str) -> "Pipeline":
    """Runs LightEval's pipeline under its custom launcher, shows its table and saves its files."""
    from cultureval.runtime.lighteval_patches.start_up import prepare_lighteval
    from cultureval.tasks.own_tasks import OWN_TASKS

    prepare_lighteval(OWN_TASKS)
    check_instruments(tasks)
    limit = whole_items(limit, tasks)
    from lighteval.logging.evaluation_tracker import EvaluationTracker
    from lighteval.models.custom.custom_model import CustomModelConfig
    from lighteval.pipeline import ParallelismManager, Pipeline, PipelineParameters

    pipeline = Pipeline(
        tasks=",".join(tasks),
        pipeline_parameters=PipelineParameters(
            launcher_type=ParallelismManager.CUSTOM, custom_tasks_directory="cultureval.tasks", max_samples=limit
        ),
        evaluation_tracker=EvaluationTracker(output_dir=output_dir, save_details=True),
        model_config=CustomModelConfig(model_name=model, model_definition_file_path=str(model_file(model))),
    )
    pipeline.evaluate()
    if pipeline.is_main_process():
        from cultureval.tasks.catalogue import means_of_subsets

        scores = pipeline.evaluation_tracker.metrics_logger.metric_aggregated
        scores.update(means_of_subsets(scores))
        print(results_table(pipeline.get_results()))
        undefined_as_null(scores)
    pipeline.save_and_push_results()
    return pipeline


def whole_items(limit: int | None, tasks: list[str]) -> int | None:
    """The limit, raised to whole items where tasks have several rows an item (M2CQA: three statements)."""
    from cultureval.tasks.task_table import kind_of

    size = math.lcm(*(kind_of(name).rows_per_item for name in tasks))
    if limit is None or limit % size == 0:
        return limit
    raised = size * math.ceil(limit / size)
    _warn(f"--limit {limit} would cut an item of {size} rows; it is raised to {raised}.")
    return raised


def results_table(results: dict[str, Any]) -> str:
    """LightEval's table, in which an undefined value is "n/a"."""
    from lighteval.utils.utils import make_results_table

    return re.sub(r"(?<=\|)( *)nan(?= *\|)", r"\1n/a", make_results_table(results), flags=re.IGNORECASE)


def undefined_as_null(scores: dict[str, dict[str, float | None]]) -> None:
    """Replaces undefined values (nan) by None: null in the results file, where NaN is no JSON."""
    for values in scores.values():
        values.update({name: None for name, value in values.items() if value is not None and math.isnan(value)})


def quiet_libraries() -> None:
    """Turns off what LightEval's libraries say of each of a hundred small files; it hides the model's progress."""
    import datasets

    datasets.disable_progress_bars()
    logging.getLogger("huggingface_hub.repocard").setLevel(logging.ERROR)


def model_file(model: str) -> Path:
    """The model file for `lighteval custom`: that of servers for a YAML file with `base_url`, else transformers'."""
    name = "openai_api.py" if "base_url" in read_model_settings(model) else "hf.py"
    return Path(str(files("cultureval.models"))) / name


def check_instruments(tasks: list[str]) -> None:
    """Loads what scoring needs besides the model's answers, so that a missing piece stops the run before it starts."""
    from cultureval.metrics.judges.optional_judges import check_judges
    from cultureval.tasks.task_table import kind_of

    kinds = [kind_of(name) for name in tasks]
    for instrument in dict.fromkeys(kind.instrument for kind in kinds):
        if instrument:
            instrument.check()
    if any(kind.judge_templates for kind in kinds):
        check_judges()


def summary(pipeline: "Pipeline", missing: list[str], output_dir: str) -> str:
    """What a reader of the table must know: rows left out, groups that are not whole, where the files lie."""
    lines = []
    for name, task in pipeline.tasks_dict.items():
        report: dict[str, Any] = task.config.rows_report
        if report["skipped_rows"]:
            lines.append(f"{name}: {len(report['skipped_rows'])} broken rows skipped (listed in the results file).")
        lines += [f"{name}: {note}" for note in report["notes"]]
    if missing:
        groups = sorted({name.partition("|")[0].partition(":")[0] for name in missing})
        lines.append(f"Not whole, so not comparable: {', '.join(groups)} ({len(missing)} tasks without data).")
    lines += left_out_of_means(pipeline)
    remarks = dict.fromkeys(task.config.rows_report["remark"] for task in pipeline.tasks_dict.values())
    lines += filter(None, remarks)
    lines += criteria_table(pipeline.evaluation_tracker.metrics_logger.metric_aggregated)
    lines += ["Signatures:", *(f"  {line}" for line in signatures(pipeline))]
    lines.append(f"Results and details: {Path(output_dir).resolve()}")
    return "\n".join(lines)


def left_out_of_means(pipeline: "Pipeline") -> list[str]:
    """For each task, the rows (counted from 0) that some metrics leave out of their means, where they are nan.

    Judges' metrics have counts of their own (`criteria_table`).
    """
    lines = []
    for name, details in pipeline.evaluation_tracker.details_logger.details.items():
        left_out: dict[tuple[int, ...], list[str]] = {}
        for metric in (metric for metric in details[0].metric if not metric.startswith("judge_")):
            values = [detail.metric[metric] for detail in details]
            left_out.setdefault(tuple(row for row, value in enumerate(values) if value != value), []).append(metric)
        for rows, metrics in left_out.items():
            if rows:
                shown = ", ".join(map(str, rows[:10])) + (", ..." if len(rows) > 10 else "")
                who = metrics[0] if len(metrics) == 1 else f"{metrics[0]} and {len(metrics) - 1} more"
                lines.append(f"{name}: {who} leave out {len(rows)} of {len(details)} rows ({shown}); the others, none.")
    return lines


def signatures(pipeline: "Pipeline") -> list[str]:
    """One signature for each group that was run: all that its scores depend on."""
    reports: dict[str, list[dict[str, Any]]] = {}
    for name, task in pipeline.tasks_dict.items():
        group, few_shot = name.partition("|")[0].partition(":")[0], name.partition("|")[2]
        reports.setdefault(f"{group}/{few_shot}-shot/v{task.version}", []).append(task.config.rows_report)
    backend = getattr(pipeline.model, "signature_fields", dict)()
    return sorted(
        signature(
            task=group,
            subsets=len(members),
            rows=sum(report["rows"] for report in members),
            limit=pipeline.pipeline_parameters.max_samples,
            data=",".join(sorted({f"{report['source']}@{report['revision'][:8]}" for report in members})),
            form=",".join(sorted({report["form"] for report in members})),
            rows_hash=combined_hash(report["fingerprint"] for report in members),
            prompt=",".join(sorted({report["prompt"] for report in members})),
            scorer=scorer_of(group.partition("/")[0]),
            judges=judges_of(group.partition("/")[0]),
            **backend,
            **installed_versions(),
        )
        for group, members in reports.items()
    )


def scorer_of(group: str) -> str | None:
    """What scores a group's answers besides the answers themselves; None where scores need nothing else."""
    from cultureval.tasks.catalogue import groups
    from cultureval.tasks.task_table import kind_of

    instrument = kind_of(groups()[group][0]).instrument
    return instrument.name() if instrument else None


def judges_of(group: str) -> str | None:
    """The judges that score a group's answers, and how they are asked; None where none is configured or fits."""
    from cultureval.metrics.judges.optional_judges import signatures_of_judges
    from cultureval.tasks.catalogue import groups
    from cultureval.tasks.task_table import kind_of

    templates = dict.fromkeys(name for task in groups()[group] for name in kind_of(task).judge_templates)
    return signatures_of_judges(*templates) if templates else None


def _warn(text: str) -> None:
    print(f"cultureval: {text}", file=sys.stderr)
