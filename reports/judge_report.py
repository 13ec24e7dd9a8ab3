"""Judges' verdicts on saved answers: their files and the report."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cultureval.judge_prompts.templates import judge_template
from cultureval.metrics.judges.items import metric_prefix, row_metrics
from cultureval.metrics.judges.judge import judge_signature
from cultureval.metrics.judges.settings import JudgeSettings
from cultureval.metrics.judges.verdicts import (
    Judgement,
    JudgeVerdict,
    label_shares,
    metric_part,
    numbers_of_judge,
    reuse_line,
    summarize,
    unscored_lines,
)
from cultureval.reports.judge_saved import Job, judge_jobs
from cultureval.runs.files import part_of
from cultureval.runs.load_runs import read_file
from cultureval.runs.record import RunRecord
from cultureval.runs.recording import reused_verdicts, run_record
from cultureval.runs.signature import signature_of_line
from cultureval.runs.writing import date_of_now, write_derived, write_results, write_summary
from cultureval.runtime import processes
from cultureval.runtime.rounding import printed_or_na
from cultureval.runtime.servers.costs import COUNTS, Budget


def judge_and_save(
    judges: Sequence[JudgeSettings], work: Sequence[Job], part: Mapping[str, Any]
) -> tuple[str, Path | None, list[str]]:
    """Judge all jobs and write the verdicts, and the report on them, next to the old results.

    Returns:
        (report, path, stopped): the printed text; the last file that holds it, None if nothing was judged; and why
        judges stopped early, one line each. A spent budget is only in the report.
    """
    started = time.time()
    processes.finish()  # a judge's concurrency does not grow with processes
    budgets = judge_jobs(judges, work)
    stopped: dict[str, Judgement] = {}
    for job in work:
        for (name, _), found in job.found.items():
            if found.stopped:
                stopped.setdefault(name, found)
    judged = [job for job in work if any(found.says_something for found in job.found.values())]
    files = write_judgements(judges, judged, part, started)
    reasons = [str(found.stopped) for found in stopped.values() if found.failed]
    report = judgements_report(judges, work, budgets, files)
    summaries = [write_summary(file, report) for file in files]
    return report, summaries[-1] if summaries else None, reasons


def judgements_report(
    judges: Sequence[JudgeSettings], work: Sequence[Job], budgets: Mapping[str, Budget], files: Sequence[Path]
) -> str:
    """The report: means with bounds, counts, reasons, signatures, cost, files."""
    pairs = dict.fromkeys(key for job in work for key in job.found)
    lines: list[str] = []
    for key in pairs:
        lines += _table(key, [job for job in work if key in job.found])
    lines += unscored_lines([one for job in work for found in job.found.values() for one in found.verdicts])
    lines += _origins(judges, work)
    lines += ["Signatures:", *(f"  {line}" for line in _signatures(judges, work))]
    for name, budget in budgets.items():
        guessed = f" ({budget.unmetered} answers without a token count: estimated)" if budget.unmetered else ""
        lines.append(
            f"{name}: {budget}{guessed}, {budget.counts[COUNTS[0]]:,} tokens in, {budget.counts[COUNTS[1]]:,} out"
        )
    return "\n".join([*lines, *(f"Results: {file}" for file in files)])


def _origins(judges: Sequence[JudgeSettings], work: Sequence[Job]) -> list[str]:
    """For each judge, how many verdicts are of earlier runs, and whether another model could pass for it."""
    lines = []
    for one in judges:
        found = [judgement for job in work for (name, _), judgement in job.found.items() if name == one.name]
        if line := reuse_line([verdict for judgement in found for verdict in judgement.verdicts]):
            lines.append(f"{one.name}: {line}")
    return lines


def _table(key: tuple[str, str], work: Sequence[Job]) -> list[str]:
    name, row = key[0], judge_template(key[1])
    means = ": mean ± standard error" if row.criteria else ""
    part = any(job.found[key].stopped for job in work)
    lines = [f"judge {name}, {row.name}{', INCOMPLETE' if part else ''}{means}"]
    for job in work:
        found = job.found[key]
        not_in_sample = [JudgeVerdict("", outcome="not_asked")] * (job.rows - len(found.verdicts))
        values = summarize([*found.verdicts, *not_in_sample], row.criteria)
        counts = f"scored {values['n_parsed']}/{values['n_items']}, flagged {values['n_flagged']}"
        counts += f" ({values['n_parsed_unflagged']} scored without them)" if values["n_flagged"] else ""
        counts += f", judged in part ({len(found.verdicts):,} of {job.rows:,})" if not_in_sample else ""
        counts += f", wrong script {values['n_wrong_script']}" if values["n_wrong_script"] else ""
        if row.form == "label":
            shares = label_shares([one.label for one in found.verdicts], row.labels)
            cells = [f"{label} {100 * share:.1f}%" for label, share in shares.items() if share or label == "unknown"]
        else:
            cells = [f"{criterion} {_cell(values, metric_part(criterion))}" for criterion in row.criteria]
        lines.append("  ".join([f"  {job.task.label}  {job.task.task}", *cells, counts]))
        if found.stopped:
            lines.append(f"    {_incomplete(found)}")
    return lines


def _incomplete(found: Judgement) -> str:
    """What a judge that stopped early has left undone."""
    counts = found.outcomes()
    return (
        f"INCOMPLETE, no scores to compare: {counts['not_asked']} of {counts.total()} items were not asked "
        f"({found.stopped}). The means are of {counts['scored']} items; those of all are between the bounds."
    )


def _cell(values: Mapping[str, float], part: str) -> str:
    return f"{printed_or_na(values[part])} ± {printed_or_na(values[f'{part}_stderr'])}"


def write_judgements(
    judges: Sequence[JudgeSettings], work: Sequence[Job], part: Mapping[str, Any], started: float
) -> list[Path]:
    """Write the verdicts as LightEval's files: one results file per model, one details file per task.

    Args:
        started: When the command began, in seconds since 1970.
    """
    groups: dict[tuple[Path, str, str], list[Job]] = {}
    for job in work:
        groups.setdefault((job.task.root, job.task.model, job.task.told), []).append(job)
    files = []
    for jobs in groups.values():
        date, run = date_of_now(), jobs[0].task
        for job in jobs:
            write_derived(job.task, date, job.table, _row_metrics(job))
        judged = read_file(run.results_file) if run.results_file.is_file() else None
        old = judged.content if judged else {}
        content = {
            "config_general": {**part_of(old, "config_general"), "judged": _provenance(judges, jobs, part)},
            "results": {job.task.task: _task_metrics(job) for job in jobs},
            "versions": {job.task.task: part_of(old, "versions").get(job.task.task) for job in jobs},
            "config_tasks": {job.task.task: part_of(old, "config_tasks").get(job.task.task) for job in jobs},
        }
        record = _record(judges, jobs, judged.record if judged else RunRecord(schema=0), started)
        files.append(write_results(run.root, run.model, date, content, record))
    return files


def _record(judges: Sequence[JudgeSettings], jobs: Sequence[Job], before: RunRecord, started: float) -> RunRecord:
    """The record of judging: of the judged tasks and their model what the record of their run says, and the judges."""
    tasks = {
        job.task.task: before.tasks[job.task.task].model_copy(update=_counts(job))
        for job in jobs
        if job.task.task in before.tasks
    }
    lines = _signatures(judges, jobs)
    pairs = dict.fromkeys(key for job in jobs for key in job.found)
    signatures = [signature_of_line("/".join(pair), line) for pair, line in zip(pairs, lines, strict=True)]
    return run_record(started, tasks, signatures, before.model, seeds=before.seeds)


def _counts(job: Job) -> dict[str, Any]:
    """What the record of a judged task says of its rows and verdicts."""
    verdicts = [verdict for found in job.found.values() for verdict in found.verdicts]
    reused = reused_verdicts([verdict.reused for verdict in verdicts if verdict.reused])
    return {"rows": len(job.table), "scored": {}, **reused}


def _provenance(judges: Sequence[JudgeSettings], jobs: Sequence[Job], part: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "details": sorted({str(job.task.file.relative_to(job.task.root)) for job in jobs}),
        "judges": [one.model_dump(exclude={"concurrency", "timeout_s", "max_retries"}) for one in judges],
        "signatures": _signatures(judges, jobs),
        "served_models": sorted({name for job in jobs for found in job.found.values() for name in found.served_models}),
        **part,
    }


def _signatures(judges: Sequence[JudgeSettings], jobs: Sequence[Job]) -> list[str]:
    """A line for each judge and template, in the order of the jobs."""
    settings = {one.name: one for one in judges}
    found = {key: judgement.identity for job in jobs for key, judgement in job.found.items()}
    return [
        judge_signature(settings[name], judge_template(template), identity)
        for (name, template), identity in found.items()
    ]


def _task_metrics(job: Job) -> dict[str, float]:
    values: dict[str, float] = {}
    for (name, template), found in job.found.items():
        row = judge_template(template)
        labels = row.labels if row.form == "label" else {}
        values |= numbers_of_judge(metric_prefix(name, row), found.verdicts, row.criteria, labels)
    return values


def _row_metrics(job: Job) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{} for _ in range(len(job.table))]
    for (name, template), found in job.found.items():
        row = judge_template(template)
        for metrics, verdict in zip(rows, found.verdicts, strict=True):
            metrics |= row_metrics(metric_prefix(name, row), row.criteria, verdict)
    return rows
