"""Summary below a run's table: skipped rows, incomplete groups, judges' means, signatures."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.runtime.lighteval_patches.run_results import details_of, scores_of
from cultureval.runtime.signatures import combined_hash, installed_versions, signature

if TYPE_CHECKING:
    from lighteval.pipeline import Pipeline


def run_summary(pipeline: "Pipeline", missing: list[str], output_dir: str) -> str:
    """The summary: skipped rows, incomplete groups, judges' means, signatures, paths of the files.

    Args:
        pipeline: After its run.
        missing: Requested tasks without data.
        output_dir: The output folder.
    """
    lines = []
    for name, task in pipeline.tasks_dict.items():
        report: dict[str, Any] = task.config.rows_report
        if report["skipped_rows"]:
            lines.append(f"{name}: {len(report['skipped_rows'])} broken rows skipped (listed in the results file).")
        lines += [f"{name}: {note}" for note in report["notes"]]
    if missing:
        groups = sorted({name.partition("|")[0].partition(":")[0] for name in missing})
        lines.append(f"Incomplete, so not comparable: {', '.join(groups)} ({len(missing)} tasks without data).")
    lines += left_out_of_means(pipeline)
    lines += filter(None, dict.fromkeys(task.config.rows_report["remark"] for task in pipeline.tasks_dict.values()))
    lines += judges_means(scores_of(pipeline))
    lines += ["Signatures:", *(f"  {line}" for line in signatures(pipeline))]
    lines.append(f"Results and details: {Path(output_dir).resolve()}")
    return "\n".join(lines)


def left_out_of_means(pipeline: "Pipeline") -> list[str]:
    """For each task, the rows (from 0) that some metrics exclude from their means, because they are nan.

    Judges' metrics have separate counts (`judges_means`).
    """
    lines = []
    for name, details in details_of(pipeline).items():
        left_out: dict[tuple[int, ...], list[str]] = {}
        for metric in (metric for metric in details[0].metric if not metric.startswith("judge_")):
            values = [detail.metric[metric] for detail in details]
            left_out.setdefault(tuple(row for row, value in enumerate(values) if value != value), []).append(metric)
        for rows, metrics in left_out.items():
            if rows:
                shown = ", ".join(map(str, rows[:10])) + (", ..." if len(rows) > 10 else "")
                who = metrics[0] if len(metrics) == 1 else f"{metrics[0]} and {len(metrics) - 1} more"
                lines.append(f"{name}: {who} exclude {len(rows)} of {len(details)} rows ({shown}); the others, none.")
    return lines


def judges_means(scores: Mapping[str, Mapping[str, float | None]]) -> list[str]:
    """Judges' scores of a run: a line for each judge and task with the mean of each criterion.

    Args:
        scores: Task -> metric -> value, as in LightEval's results; None if undefined.
    """
    lines = []
    for task, values in sorted(scores.items()):
        for prefix in [name.removesuffix("_n_parsed") for name in values if name.endswith("_n_parsed")]:
            criteria = [name.removesuffix("_missing_as_1") for name in values if name.endswith("_missing_as_1")]
            means = {
                name.removeprefix(f"{prefix}_"): values[name] for name in criteria if name.startswith(f"{prefix}_")
            }
            if task != "all" and means:
                cells = [f"{name} {'n/a' if mean is None else format(mean, '.2f')}" for name, mean in means.items()]
                scored = f"scored {values[f'{prefix}_n_parsed']:g}/{values[f'{prefix}_n_items']:g}"
                lines.append("  ".join([f"  {task}  {prefix}", *cells, scored]))
    return ["Judges' means, from 1 to 5 (the table above has their bounds and errors):", *lines] if lines else []


def signatures(pipeline: "Pipeline") -> list[str]:
    """One signature per task group: everything that its scores depend on."""
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
            scorer=_scorer_of(group.partition("/")[0]),
            judges=_judges_of(group.partition("/")[0]),
            **backend,
            **installed_versions(),
        )
        for group, members in reports.items()
    )


def _scorer_of(group: str) -> str | None:
    """The scoring models or programs of a group; None if it needs none."""
    from cultureval.tasks.catalogue import groups
    from cultureval.tasks.task_table import kind_of

    instrument = kind_of(groups()[group][0]).instrument
    return instrument.name() if instrument else None


def _judges_of(group: str) -> str | None:
    """The signature of the judges of a group; None without a fitting judge."""
    from cultureval.metrics.judges.optional_judges import signatures_of_judges
    from cultureval.tasks.catalogue import groups
    from cultureval.tasks.task_table import kind_of

    templates = dict.fromkeys(name for task in groups()[group] for name in kind_of(task).judge_templates)
    return signatures_of_judges(*templates) if templates else None
