"""`cultureval judge`: judges saved answers, and saves the verdicts as details of a later date beside the run's."""

import time
from collections.abc import Iterator, Mapping, Sequence
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
from cultureval.metrics.judges.settings import JudgeSettings, judge_identity
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.files import DERIVED, model_folder, output_folder, read_details
from cultureval.runs.loading import Run, load
from cultureval.runs.recording import run_record
from cultureval.runs.rows import saved_image, saved_reply
from cultureval.runs.scores import Score
from cultureval.runs.signature import signature_of_line
from cultureval.runs.writing import save_run, write_summary
from cultureval.runtime import processes
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.rounding import printed
from cultureval.runtime.servers.costs import COUNTS
from cultureval.runtime.servers.identity import ServerIdentity
from cultureval.tasks.catalogue import all_suites
from cultureval.tasks.selection import sampled_rows

if TYPE_CHECKING:
    import pyarrow

UNKNOWN = "unknown"  # the label of an item without a label


@dataclass
class Job:
    """A task of a run to judge.

    Attributes:
        run: The run.
        task: With `|k`.
        table: The details' rows that are judged.
        questions: Template -> an item for each row.
        found: (judge, template) -> a verdict for each row.
        scores: Metric -> its score, once the verdicts are written.
    """

    run: Run
    task: str
    table: "pyarrow.Table"
    questions: dict[str, list[JudgeItem]]
    found: Verdicts = field(default_factory=dict)
    scores: Mapping[str, Score] = field(default_factory=dict)


def saved_jobs(paths: Sequence[Path], label: bool, sample: int | None, seed: int) -> list[Job]:
    """The jobs for judges from saved results.

    Args:
        paths: Output folders or results files.
        label: Label questions and captions instead of scoring answers.
        sample: Number of random rows of each task; None: all.

    Raises:
        CulturevalError: A path has no results, or the details have no such items.
    """
    all_suites()  # loads custom suites, which may have templates
    jobs = [_job(run, task, label, sample, seed) for run in load(*paths).runs for task in run.details]
    if not (work := [job for job in jobs if job.questions]):
        content = "questions or captions to label" if label else "answers that a judge can score"
        raise CulturevalError(f"The details have no {content}. Name results of a suite with judge templates.")
    return work


def _job(run: Run, task: str, label: bool, sample: int | None, seed: int) -> Job:
    table = read_details(run.details[task])
    docs = table.column("doc").to_pylist()
    # Details of retrieval have no LightEval id (the row's index in the data).
    ids = [str(doc.get("id", place)) for place, doc in enumerate(docs)]
    answered = [place for place, doc in enumerate(docs) if not specific_of(doc).get("unscored")]
    chosen = [answered[place] for place in sampled_rows([ids[place] for place in answered], task, sample, seed)]
    table = table.take(chosen)
    rows = [
        (ids[place], docs[place], specific_of(docs[place]), saved_reply(response))
        for place, response in zip(chosen, table.column("model_response").to_pylist(), strict=True)
    ]
    fields = [specific.get("judge") or {"templates": [], "slots": {}} for _, _, specific, _ in rows]
    names = dict.fromkeys(name for row in fields for name in (_labels_of(row) if label else row["templates"] or ()))
    questions = {
        name: [
            item_of(
                f"{task}/{item}",
                row["slots"],
                judge_template(name),
                reply,
                [saved_image(image) for image in doc.get("images") or ()],
            )
            for (item, doc, _, reply), row in zip(rows, fields, strict=True)
        ]
        for name in names
    }
    return Job(run, task, table, questions)


def _labels_of(row: Mapping[str, Any]) -> list[str]:
    """The labelling templates beside a row's templates, if the row fills their slots (a question, a caption in MSA)."""
    filled = {slot for slot, text in (row["slots"] or {}).items() if text}
    templates = [template for name in row["templates"] or () for template in templates_beside(judge_template(name))]
    labelling = [
        template.name
        for template in templates
        if template.form in ("label", "line") and filled.issuperset(template.slots)
    ]
    return list(dict.fromkeys(labelling))


def estimates(judges: Sequence[JudgeSettings], work: Sequence[Job]) -> str:
    """Estimated calls and cost: a line for each judge, task and template, and totals.

    Only the judges' identity is requested, to find their verdicts in the journal.
    """
    lines = []
    for settings in judges:
        identity, total = ServerIdentity(settings.model, root="not asked"), CostEstimate()  # its journal is empty
        try:
            identity = judge_identity(settings)
        except CulturevalError as error:
            lines.append(f"{settings.name}  the judge did not answer, so all verdicts count as new: {error}")
        judge = Asker(settings, identity)
        for job in work:
            for name, items in job.questions.items():
                if takes(settings, judge_template(name)):
                    found = estimate(judge, name, items)
                    total += found
                    lines.append(f"{settings.name}  {job.run.name}  {job.task}  {name}: {found}")
        lines.append(f"{settings.name}  total: {total}")
    names = dict.fromkeys(name for job in work for name in job.questions)
    twice = [row.short for row in map(judge_template, names) if row.then]
    lines += [f"Each {short} needs a second, shorter call. It is not counted." for short in twice]
    return "\n".join([*lines, "Nothing was judged."])


def judge_and_save(
    judges: Sequence[JudgeSettings], work: Sequence[Job], part: Mapping[str, Any]
) -> tuple[str, Path | None, list[str]]:
    """Judges all jobs, and writes the verdicts and a report beside the run's results.

    Args:
        judges: With distinct names.
        part: `sample` and `seed`, saved with the verdicts.

    Returns:
        (report, path, stopped): the printed text; the last file with it, None if nothing was judged; and a line for
        each judge that stopped early. A spent budget is only in the report.

    Raises:
        CulturevalError: Some judges do not answer; nothing was judged.
    """
    started = time.time()
    processes.finish()  # a judge's concurrency does not grow with processes
    askers = open_askers(judges)
    _judge_all(askers, work)
    groups: dict[tuple[Path | None, str], list[Job]] = {}
    for job in work:
        if any(map(_has_outcomes, job.found.values())):
            groups.setdefault((output_folder(job.run.files[job.task]), job.run.name), []).append(job)
    files = [_write(askers, jobs, part, started) for jobs in groups.values()]
    lines = ["Signatures:", *(f"  {line}" for line in _signatures(askers, work).values())]
    report = "\n".join([*_tables(work), *lines, *_costs(askers, work), *(f"Results: {file}" for file in files)])
    summaries = [write_summary(file, report) for file in files]
    stopped = [f"the judge {name}: {judge.stopped}" for name, judge in askers.items() if judge.failed]
    return report, summaries[-1] if summaries else None, stopped


def _has_outcomes(verdicts: Sequence[JudgeVerdict]) -> bool:
    """Whether the verdicts are worth saving: the judge replied, or no item could be judged."""
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
            for name, judge in askers.items():  # the second call maps a free text (a topic) to a label
                slots = {"categories": "\n".join(second.labels)}
                items = [
                    replace(item, slots={**item.slots} | slots | {first.short: verdict.label or ""})
                    for item, verdict in zip(job.questions[first.name], job.found[name, first.name], strict=True)
                ]
                job.found[name, second.name] = judge_items(judge, second.name, items)


def _write(askers: Mapping[str, Asker], jobs: Sequence[Job], part: Mapping[str, Any], started: float) -> Path:
    """Writes the verdicts on a run: a details file for each task, and a results file with the judged details' paths."""
    run, file = jobs[0].run, jobs[0].run.files[jobs[0].task]
    root, model = output_folder(file), model_folder(file)
    if root is None or model is None:
        raise CulturevalError(f"{file} is in no output folder. Move it to <output folder>/results/<model>/ first.")
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
    saved = save_run(root, model, details, record, {"model_name": run.model, "judged": judged})
    for job in jobs:
        job.scores = saved.scores[job.task]
    return saved.file


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
    """A template's labels and `UNKNOWN` -> English spellings; {} for a template that gives scores."""
    names = {label: (spellings or (label,))[0] for label, spellings in row.labels.items()} | {UNKNOWN: UNKNOWN}
    return names if row.form == "label" else {}


def _label_metrics(judge: str, row: JudgeTemplate, verdict: JudgeVerdict) -> dict[str, float]:
    """1.0 for the item's label, 0.0 for the template's other labels; means are shares of all items."""
    found = verdict.label or UNKNOWN
    return {f"{metric_prefix(judge, row)}_{name}": float(label == found) for label, name in _labels(row).items()}


def _tables(work: Sequence[Job]) -> list[str]:
    """A table of the tasks' means for each judge and template, and lines on items that were not asked."""
    lines: list[str] = []
    for judge, template in dict.fromkeys(key for job in work for key in job.found):
        row, rows = judge_template(template), []
        labels = [*_labels(row).values()]
        for job in (job for job in work if (judge, template) in job.found):
            for part in labels or map(metric_part, row.criteria):
                score = job.scores.get(f"{metric_prefix(judge, row)}_{part}")
                if score and (score.value or not labels):
                    error = "" if score.error is None else f"± {printed(score.error, 2)}"
                    counts = f"{score.n:,} of {score.asked:,}"
                    rows.append([job.run.name, job.task, part, printed(score.value, 2), error, counts])
            if undone := [verdict for verdict in job.found[judge, template] if verdict.outcome == "not_asked"]:
                lines.append(f"INCOMPLETE: {job.task}, {len(undone)} of {len(job.table)} {undone[0].reason}")
        if rows:
            title = f"judge {judge}, {row.name}:"
            lines.append(terminal_table(["model", "task", "", "mean", "error", "scored"], rows, "lllr", title))
    return lines


def _costs(askers: Mapping[str, Asker], work: Sequence[Job]) -> Iterator[str]:
    """Lines on each judge's reused verdicts, unscored items, and cost."""
    for name, judge in askers.items():
        verdicts = [verdict for job in work for key, found in job.found.items() if key[0] == name for verdict in found]
        yield from (f"{name}: {line}" for line in lines_about(verdicts))
        budget = judge.budget
        guessed = f" ({budget.unmetered} answers without a token count: estimated)" if budget.unmetered else ""
        tokens_in, tokens_out = (budget.counts[count] for count in COUNTS[:2])
        yield f"{name}: {budget}{guessed}, {tokens_in:,} tokens in, {tokens_out:,} out"
