"""`cultureval judge`: saved answers judged by any judge; the verdicts are details of a later date beside the run's."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.judge_prompts.templates import JudgeTemplate, judge_template, templates_beside
from cultureval.metrics.judges.asking import Asker, CostEstimate, open_askers
from cultureval.metrics.judges.items import (
    JudgeItem,
    JudgeVerdict,
    item_of,
    lines_about,
    metric_part,
    metric_prefix,
    row_metrics,
)
from cultureval.metrics.judges.judge import Verdicts, estimate, judge_items, judge_signature, judge_with_all, takes
from cultureval.metrics.judges.settings import JudgeSettings
from cultureval.reports.submissions import save_run
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.files import DERIVED, model_folder, output_folder, read_details
from cultureval.runs.loading import Run, load
from cultureval.runs.recording import run_record
from cultureval.runs.rows import saved_image, saved_reply
from cultureval.runs.scores import Score
from cultureval.runs.signature import signature_of_line
from cultureval.runs.writing import write_summary
from cultureval.runtime import processes
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.rounding import printed
from cultureval.runtime.servers.costs import COUNTS
from cultureval.tasks.catalogue import all_suites
from cultureval.tasks.selection import sampled_rows

if TYPE_CHECKING:
    import pyarrow

UNKNOWN = "unknown"  # the label of an item that got none


@dataclass
class Job:
    """A task of a run to judge.

    Attributes:
        run: The run.
        task: With `|k`.
        table: The details' rows that are judged.
        questions: Template -> an item a row.
        found: (judge, template) -> a verdict a row.
    """

    run: Run
    task: str
    table: "pyarrow.Table"
    questions: dict[str, list[JudgeItem]]
    found: Verdicts = field(default_factory=dict)


def saved_jobs(paths: Sequence[Path], label: bool, sample: int | None, seed: int) -> list[Job]:
    """The jobs for judges in saved results.

    Args:
        paths: Output folders or results files.
        label: Label questions and captions instead of scoring answers.
        sample: Number of random rows per task; None: all.

    Raises:
        CulturevalError: A path has no results, or the details have no such items.
    """
    all_suites()  # those that are not installed hold templates, which can be imported from here on
    jobs = [_job(run, task, label, sample, seed) for run in load(*paths).runs for task in run.details]
    if not (work := [job for job in jobs if job.questions]):
        what = "questions or captions to label" if label else "answers that a judge can score"
        raise CulturevalError(f"The details have no {what}: tasks whose kinds name judge templates do.")
    return work


def _job(run: Run, task: str, label: bool, sample: int | None, seed: int) -> Job:
    table = read_details(run.details[task])
    docs = table.column("doc").to_pylist()
    # Details of retrieval have no id of LightEval's, which is the place in the data.
    ids = [str(doc.get("id", place)) for place, doc in enumerate(docs)]
    answered = [place for place, doc in enumerate(docs) if not specific_of(doc).get("unscored")]
    chosen = sampled_rows([ids[place] for place in answered], task, sample, seed)
    table = table.take([answered[place] for place in chosen])
    rows = table.select(["doc", "model_response"]).to_pylist()
    known = [specific_of(row["doc"]).get("judge") or {"templates": [], "slots": {}} for row in rows]
    names = dict.fromkeys(name for one in known for name in (_labels_of(one) if label else one["templates"] or ()))
    questions: dict[str, list[JudgeItem]] = {}
    for name in names:
        questions[name] = [
            item_of(
                f"{task}/{row['doc'].get('id', place)}",
                one["slots"],
                judge_template(name),
                saved_reply(row["model_response"]),
                [saved_image(image) for image in row["doc"].get("images") or ()],
            )
            for place, (row, one) in enumerate(zip(rows, known, strict=True))
        ]
    return Job(run, task, table, questions)


def _labels_of(row: Mapping[str, Any]) -> list[str]:
    """The labelling templates, beside those of a row, whose slots the row fills (a question, a caption in MSA)."""
    filled = {slot for slot, text in (row["slots"] or {}).items() if text}
    beside = [other for name in row["templates"] or () for other in templates_beside(judge_template(name))]
    labelling = [other.name for other in beside if other.form in ("label", "line") and filled.issuperset(other.slots)]
    return list(dict.fromkeys(labelling))


def estimates(judges: Sequence[JudgeSettings], work: Sequence[Job]) -> str:
    """Estimated calls and cost, a line for each judge, task and template, and the sums; judges must all answer."""
    lines = []
    for name, judge in open_askers(judges).items():
        total = CostEstimate()
        for job in work:
            for template, items in job.questions.items():
                if takes(judge.settings, judge_template(template)):
                    found = estimate(judge, template, items)
                    total += found
                    lines.append(f"{name}  {job.run.name}  {job.task}  {template}: {found}")
        lines.append(f"{name}  total: {total}")
    asked_twice = [judge_template(name) for name in dict.fromkeys(name for job in work for name in job.questions)]
    lines += [
        f"Each {row.short} needs a second, shorter call, which is not counted." for row in asked_twice if row.then
    ]
    return "\n".join([*lines, "Nothing was judged."])


def judge_and_save(
    judges: Sequence[JudgeSettings], work: Sequence[Job], part: Mapping[str, Any]
) -> tuple[str, Path | None, list[str]]:
    """Judges all jobs and writes the verdicts, and the report on them, next to the old results.

    Args:
        judges: With distinct names; all must answer.
        work: As of `saved_jobs`.
        part: `sample` and `seed`, as they are saved.

    Returns:
        (report, path, stopped): the printed text; the last file that holds it, None if nothing was judged; and why
        judges stopped early, one line each. A spent budget is only in the report.

    Raises:
        CulturevalError: Some judges do not answer; nothing was judged.
    """
    started = time.time()
    processes.finish()  # a judge's concurrency does not grow with processes
    askers = open_askers(judges)
    _judge_all(askers, work)
    judged = [job for job in work if any(map(_says_something, job.found.values()))]
    groups: dict[tuple[Path | None, str], list[Job]] = {}
    for job in judged:
        groups.setdefault((output_folder(job.run.files[job.task]), job.run.name), []).append(job)
    saved = [_write(askers, jobs, part, started) for jobs in groups.values()]
    scores = {id(job): one[job.task] for jobs, (_, one) in zip(groups.values(), saved, strict=True) for job in jobs}
    lines = _tables(work, scores)
    for name, judge in askers.items():
        verdicts = [one for job in work for key, found in job.found.items() if key[0] == name for one in found]
        lines += [f"{name}: {line}" for line in lines_about(verdicts)]
        guessed = f" ({judge.budget.unmetered} answers without a token count: estimated)" * bool(judge.budget.unmetered)
        tokens_in, tokens_out = (judge.budget.counts[count] for count in COUNTS[:2])
        lines.append(f"{name}: {judge.budget}{guessed}, {tokens_in:,} tokens in, {tokens_out:,} out")
    lines += ["Signatures:", *(f"  {line}" for line in _signatures(askers, work).values())]
    report = "\n".join([*lines, *(f"Results: {file}" for file, _ in saved)])
    summaries = [write_summary(file, report) for file, _ in saved]
    stopped = [f"the judge {name}: {judge.stopped}" for name, judge in askers.items() if judge.failed]
    return report, summaries[-1] if summaries else None, stopped


def _says_something(verdicts: Sequence[JudgeVerdict]) -> bool:
    """Whether the judge replied, readably or not, or no item could be judged: else there is nothing to tell."""
    outcomes = {verdict.outcome for verdict in verdicts}
    return bool(outcomes - {"no_answer", "not_asked", "unusable"}) or outcomes == {"unusable"}


def _judge_all(askers: Mapping[str, Asker], work: Sequence[Job]) -> None:
    """Fills each job's `found`."""
    for job in work:
        job.found = judge_with_all(askers, job.questions)
        for first in [judge_template(name) for name in job.questions]:
            if not first.then:
                continue
            second = judge_template(first.name.removesuffix(first.text.path.name[:-4]) + first.then)
            for name, judge in askers.items():  # once more: from a free text (a topic) to one of the second's labels
                slots = {"categories": "\n".join(second.labels)}
                items = [
                    replace(item, slots={**item.slots} | slots | {first.short: verdict.label or ""})
                    for item, verdict in zip(job.questions[first.name], job.found[name, first.name], strict=True)
                ]
                job.found[name, second.name] = judge_items(judge, second.name, items)


def _write(
    askers: Mapping[str, Asker], jobs: Sequence[Job], part: Mapping[str, Any], started: float
) -> tuple[Path, dict[str, dict[str, Score]]]:
    """Writes the verdicts on one run: a details file a task, and a results file that names the judged details."""
    run, file = jobs[0].run, jobs[0].run.files[jobs[0].task]
    root, model = output_folder(file), model_folder(file)
    if root is None or model is None:
        raise CulturevalError(f"{file} is in no output folder: judge results/<model>/results_<date>.json in one.")
    lines = _signatures(askers, jobs)
    signatures = [signature_of_line("/".join(key), line) for key, line in lines.items()]
    judged = {
        "details": sorted(str(run.details[job.task].absolute().relative_to(root)) for job in jobs),
        "judges": [
            judge.settings.model_dump(exclude={"concurrency", "timeout_s", "max_retries"}) for judge in askers.values()
        ],
        "signatures": list(lines.values()),
        "served_models": sorted({judge.served for judge in askers.values() if judge.served}),
        **part,
    }
    record = run_record(started, {}, signatures, run.record.model, seeds=run.record.seeds)
    details = {job.task: _details(job) for job in jobs}
    return save_run(root, model, details, record, {"model_name": run.model, "judged": judged})


def _signatures(askers: Mapping[str, Asker], jobs: Sequence[Job]) -> dict[tuple[str, str], str]:
    """A line for each judge and template, in the order of the jobs."""
    keys = dict.fromkeys(key for job in jobs for key in job.found)
    return {
        (name, template): judge_signature(askers[name].settings, judge_template(template), askers[name].identity)
        for name, template in keys
    }


def _details(job: Job) -> "pyarrow.Table":
    """The judged rows with the verdicts in place of their metrics."""
    import pyarrow

    rows: list[dict[str, Any]] = [{} for _ in range(len(job.table))]
    for (name, template), found in job.found.items():
        row = judge_template(template)
        for metrics, verdict in zip(rows, found, strict=True):
            metrics |= row_metrics(metric_prefix(name, row), row.criteria, verdict) | _label_metrics(name, row, verdict)
    table = job.table.set_column(job.table.column_names.index("metric"), "metric", pyarrow.array(rows))
    return table.replace_schema_metadata({DERIVED: job.run.details[job.task].name.encode("utf-8")})


def _labels(row: JudgeTemplate) -> dict[str, str]:
    """The labels that a template gives -> their English spellings, with `UNKNOWN`; {} where it gives scores."""
    names = {label: (others or (label,))[0] for label, others in row.labels.items()} | {UNKNOWN: UNKNOWN}
    return names if row.form == "label" else {}


def _label_metrics(judge: str, row: JudgeTemplate, verdict: JudgeVerdict) -> dict[str, float]:
    """Whether an item has each label of a template: the means are shares of all items."""
    given = verdict.label or UNKNOWN
    return {f"{metric_prefix(judge, row)}_{name}": float(label == given) for label, name in _labels(row).items()}


def _tables(work: Sequence[Job], scores: Mapping[int, Mapping[str, Score]]) -> list[str]:
    """For each judge and template a table of the tasks' means, and what a judge that stopped early has left undone."""
    lines: list[str] = []
    for name, template in dict.fromkeys(key for job in work for key in job.found):
        row, rows = judge_template(template), []
        parts = [*_labels(row).values()] or [metric_part(criterion) for criterion in row.criteria]
        for job in work:
            if not (found := job.found.get((name, template))):
                continue
            of_task = scores.get(id(job), {})
            for part in parts:
                score = of_task.get(f"{metric_prefix(name, row)}_{part}")
                if score and (score.value or not _labels(row)):
                    rows.append([job.run.name, job.task, part, *_cells(score, bool(_labels(row)))])
            if undone := [one for one in found if one.outcome == "not_asked"]:
                lines.append(f"INCOMPLETE: {job.task}, {len(undone)} of {len(found)} {undone[0].reason}")
        if rows:
            title = f"judge {name}, {row.name}:"
            lines.append(terminal_table(["model", "task", "", "mean", "error", "scored"], rows, "lllr", title))
    return lines


def _cells(score: Score, share: bool) -> list[str]:
    scored = f"{score.n:,} of {score.asked:,}"
    if share:
        return [f"{100 * score.value:.1f}%", "", scored]
    return [printed(score.value, 2), "" if score.error is None else f"± {printed(score.error, 2)}", scored]
