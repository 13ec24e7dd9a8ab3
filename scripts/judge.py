"""`cultureval judge`: saved results judged afterwards, by any judge, whole or in part; and their questions labelled."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.settings import current_settings, use_settings

if TYPE_CHECKING:
    import pyarrow

    from cultureval.metrics.judge import JudgeItem, Judgement, JudgeSettings, Purse
    from cultureval.reports.saved_results import SavedTask


def judge(
    results: Annotated[
        list[str],
        typer.Argument(metavar="[label] RESULTS...", help="Output folders, results files or details; `label` first."),
    ],
    judges: Annotated[
        list[str] | None, typer.Option("--judge", help="YAML file, or model id; default: CULTUREVAL_JUDGE. Repeatable.")
    ] = None,
    sample: Annotated[int | None, typer.Option(min=1, help="Judge this many items a task, drawn with --seed.")] = None,
    seed: Annotated[int, typer.Option(help="Of the sample; the same items for all models.")] = 0,
    dry_run: Annotated[
        bool, typer.Option(help="Print the number of calls and their estimated cost; ask nothing.")
    ] = False,
    budget: Annotated[float | None, typer.Option(min=0, help="The most that each judge's verdicts may cost.")] = None,
    resume: Annotated[
        bool | None,
        typer.Option(
            "--resume/--no-resume",
            help="Reuse the verdicts that are in the journal; default: CULTUREVAL_RESUME, else reuse them.",
        ),
    ] = None,
) -> None:
    """Judges saved answers, or labels their questions and captions. Example: cultureval judge results --judge gpt-4o"""
    from cultureval.metrics.judges.settings import configured_judges, find_judges
    from cultureval.reports.saved_results import find_saved_tasks

    label = results[0] == "label"
    paths = [Path(path).expanduser() for path in results[label:]]
    if not paths:
        raise CulturevalError(
            "Which results? Name an output folder, a results file or details: cultureval judge results"
        )
    found = find_judges(part for name in judges for part in name.split(",")) if judges else configured_judges()
    if not found:
        raise CulturevalError("Which judge? Give --judge (a YAML file or a model's id), or set CULTUREVAL_JUDGE.")
    asked = [one.with_budget(budget) for one in found]
    work = [job for task in find_saved_tasks(paths) if (job := _job(task, label, sample, seed)).questions]
    if not work:
        what = "questions or captions to label" if label else "answers that a judge can score"
        raise CulturevalError(f"The details hold no {what}: such tasks are those of JEEM.")
    with use_settings(current_settings().with_(resume=resume)):
        if dry_run:
            print(estimates(asked, work))
            return
        for one in asked:
            one.servers()  # a missing key is said before anything is read or asked
        stopped = judge_jobs(asked, work, {"sample": sample, "seed": seed if sample else None})
    if stopped:
        raise CulturevalError("; ".join(stopped) + ". What was judged is kept: the same command goes on from here.")


@dataclass
class Job:
    """One task's saved rows and what is asked about them.

    Attributes:
        task: Where they lie.
        table: The rows.
        questions: Name of a template -> the items, one a row.
        found: What became of them, by judge and template.
    """

    task: "SavedTask"
    table: "pyarrow.Table"
    questions: "dict[str, list[JudgeItem]]"
    found: "dict[tuple[str, str], Judgement]" = field(default_factory=dict)


def judge_jobs(judges: "Sequence[JudgeSettings]", work: Sequence[Job], part: Mapping[str, Any]) -> list[str]:
    """Judge all jobs, write what was found beside the old results, and print it.

    Args:
        judges: Who judges.
        work: What is judged.
        part: How the rows were drawn, for the results file.

    Returns:
        Why judges stopped before the end, a line each; a budget that was spent is printed, not returned.
    """
    from cultureval.metrics.judge import Purse, judge_with_all

    purses = {one.name: Purse(one) for one in judges}
    stopped: dict[str, Judgement] = {}
    for job in work:
        job.found = judge_with_all(judges, job.questions, purses=purses)
        if "jeem_topic" in job.questions:
            job.found |= _grouped_topics(judges, job, purses)
        for (name, _), found in job.found.items():
            if found.stopped:
                stopped.setdefault(name, found)
    judged = [job for job in work if any(found.outcomes()["scored"] for found in job.found.values())]
    files = write_judgements(judges, judged, part)
    print(report(judges, work, purses, files))
    return [str(found.stopped) for found in stopped.values() if found.failed]


def _grouped_topics(
    judges: "Sequence[JudgeSettings]", job: Job, purses: "Mapping[str, Purse]"
) -> "dict[tuple[str, str], Judgement]":
    """The second call of the topics: from a free topic to one of the paper's 13."""
    from dataclasses import replace

    from cultureval.judge_prompts.templates import TOPICS
    from cultureval.metrics.judge import judge_items

    grouped = {}
    for one in judges:
        topics = job.found[one.name, "jeem_topic"]
        items = [
            replace(item, slots=item.slots | {"topic": verdict.label or "", "categories": "\n".join(TOPICS)})
            for item, verdict in zip(job.questions["jeem_topic"], topics.verdicts, strict=True)
        ]
        grouped[one.name, "jeem_topic_group"] = judge_items(one, "jeem_topic_group", items, purse=purses[one.name])
    return grouped


def _job(task: "SavedTask", label: bool, sample: int | None, seed: int) -> Job:
    from cultureval.judge_prompts.templates import judge_template
    from cultureval.metrics.judges.items import item_of
    from cultureval.reports.saved_results import saved_image

    table = task.table()
    docs = table.column("doc").to_pylist()
    chosen = drawn([str(doc["id"]) for doc in docs], task.task, sample, seed)
    table = table.take(chosen)
    docs, responses = [docs[index] for index in chosen], table.column("model_response").to_pylist()
    known = [(doc.get("specific") or {}).get("judge") or {"templates": [], "slots": {}} for doc in docs]
    names = list(
        dict.fromkeys(name for row in known for name in (_labels_of(row) if label else row["templates"] or ()))
    )
    questions: dict[str, list[JudgeItem]] = {}
    for name in names:
        questions[name] = [
            item_of(
                f"{task.task}/{doc['id']}",
                row["slots"],
                judge_template(name),
                _reply(response),
                [saved_image(image) for image in doc.get("images") or ()],
                (doc.get("specific") or {}).get("cluster") or "",
            )
            for doc, row, response in zip(docs, known, responses, strict=True)
        ]
    return Job(task, table, questions)


def _labels_of(row: Mapping[str, Any]) -> list[str]:
    """The labelling templates that fit a row: questions have types, captions in MSA have topics."""
    slots = row["slots"] or {}
    wanted = {"question": "jeem_question_type", "caption_msa": "jeem_topic"}
    return [template for slot, template in wanted.items() if slots.get(slot)]


def _reply(response: Mapping[str, Any]) -> str:
    texts = response.get("text_post_processed") or response.get("text") or [""]
    return texts[0] or ""


def drawn(ids: Sequence[str], task: str, sample: int | None, seed: int) -> list[int]:
    """Places of the rows that are judged, in order.

    The draw depends on the seed, the task and each row's id alone, so that all models are judged on the same items and
    a larger sample contains a smaller one.
    """
    if sample is None or sample >= len(ids):
        return list(range(len(ids)))
    order = sorted(range(len(ids)), key=lambda place: hashlib.sha256(f"{seed}|{task}|{ids[place]}".encode()).digest())
    return sorted(order[:sample])


def estimates(judges: "Sequence[JudgeSettings]", work: Sequence[Job]) -> str:
    """What judging would take, a line for each judge, task and template, and the sums."""
    from cultureval.judge_prompts.templates import judge_template
    from cultureval.metrics.judge import estimate, takes
    from cultureval.runtime.journal import open_journal

    journal, lines = open_journal(), []
    for one in judges:
        sums: Counter[str] = Counter()
        for job in work:
            for name, items in job.questions.items():
                if not takes(one, judge_template(name)):
                    continue
                found = vars(estimate(one, name, items, journal))
                sums.update(found)
                lines.append(f"{one.name}  {job.task.model}  {job.task.task}  {name}: {_estimate_line(one, found)}")
        lines.append(f"{one.name}  in all: {_estimate_line(one, sums)}")
    if any("jeem_topic" in job.questions for job in work):
        lines.append("Topics take a second, shorter call each, which is not counted.")
    lines.append("Nothing was asked.")
    return "\n".join(lines)


def _estimate_line(settings: "JudgeSettings", found: Mapping[str, Any]) -> str:
    if settings.input_token_price or settings.output_token_price:
        cost = f"cost about {found['cost']:.4g}, at most {found['most']:.4g}"
    else:
        cost = f"about {found['input_tokens']:,} tokens of prompts (no prices are set)"
    return f"{found['calls']} calls ({found['known']} known, {found['unusable']} unusable), {cost}"


def write_judgements(judges: "Sequence[JudgeSettings]", work: Sequence[Job], part: Mapping[str, Any]) -> list[Path]:
    """Write the verdicts as LightEval's files: one results file a model, one details file a task, dated now."""
    from cultureval.reports.lighteval_files import undefined_as_null
    from cultureval.reports.saved_results import write_derived, write_results

    groups: dict[tuple[Path, str], list[Job]] = {}
    for job in work:
        groups.setdefault((job.task.root, job.task.model), []).append(job)
    files = []
    for jobs in groups.values():
        date = datetime.now().isoformat().replace(":", "-")
        for job in jobs:
            write_derived(job.task, date, job.table, _row_metrics(job))
        old, values = jobs[0].task.results(), {job.task.task: _task_metrics(job) for job in jobs}
        undefined_as_null(values)
        content = {
            "config_general": old.get("config_general", {}) | {"judged": _provenance(judges, jobs, part)},
            "results": values,
            "versions": {job.task.task: old.get("versions", {}).get(job.task.task) for job in jobs},
            "config_tasks": {job.task.task: old.get("config_tasks", {}).get(job.task.task) for job in jobs},
        }
        files.append(write_results(jobs[0].task, date, content))
    return files


def _provenance(judges: "Sequence[JudgeSettings]", jobs: Sequence[Job], part: Mapping[str, Any]) -> dict[str, Any]:
    pairs = dict.fromkeys(key for job in jobs for key in job.found)
    return {
        "details": sorted({str(job.task.file.relative_to(job.task.root)) for job in jobs}),
        "judges": [one.model_dump(exclude={"concurrency", "timeout_s", "give_up_s", "backoff_s"}) for one in judges],
        "signatures": _signatures(judges, pairs),
        "served_models": sorted({name for job in jobs for found in job.found.values() for name in found.served_models}),
        **part,
    }


def _signatures(judges: "Sequence[JudgeSettings]", pairs: Iterable[tuple[str, str]]) -> list[str]:
    from cultureval.judge_prompts.templates import judge_template
    from cultureval.metrics.judge import judge_signature

    settings = {one.name: one for one in judges}
    return [judge_signature(settings[name], judge_template(template)) for name, template in pairs]


def _task_metrics(job: Job) -> dict[str, float]:
    from cultureval.judge_prompts.templates import judge_template
    from cultureval.metrics.judge import summarize
    from cultureval.metrics.judges.items import metric_prefix

    values: dict[str, float] = {}
    for (name, template), found in job.found.items():
        row = judge_template(template)
        prefix = metric_prefix(name, row)
        values |= {
            f"{prefix}_{key}": value for key, value in summarize(found.verdicts, row.criteria, row.highest).items()
        }
        if row.form == "label":
            values |= {f"{prefix}_{key}": value for key, value in label_shares(found, row.labels).items()}
    return values


def label_shares(found: "Judgement", labels: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Share of each label among all items, under its first further spelling (its English name), and of "unknown"."""
    counts = Counter(verdict.label or "unknown" for verdict in found.verdicts)
    names = {label: (others or (label,))[0] for label, others in labels.items()} | {"unknown": "unknown"}
    total = max(1, len(found.verdicts))
    return {name: counts[label] / total for label, name in names.items()}


def _row_metrics(job: Job) -> list[dict[str, Any]]:
    from cultureval.judge_prompts.templates import judge_template
    from cultureval.metrics.judges.items import metric_prefix, row_metrics

    rows: list[dict[str, Any]] = [{} for _ in range(len(job.table))]
    for (name, template), found in job.found.items():
        row = judge_template(template)
        for metrics, verdict in zip(rows, found.verdicts, strict=True):
            metrics |= row_metrics(metric_prefix(name, row), row.criteria, verdict)
    return rows


def report(
    judges: "Sequence[JudgeSettings]", work: Sequence[Job], purses: "Mapping[str, Purse]", files: Sequence[Path]
) -> str:
    """What a reader wants to see: means with bounds, counts, reasons, signatures, cost, files."""
    from cultureval.metrics.judges.verdicts import unscored_lines

    pairs = dict.fromkeys(key for job in work for key in job.found)
    lines: list[str] = []
    for key in pairs:
        lines += _table(key, [job for job in work if key in job.found])
    lines += unscored_lines([one for job in work for found in job.found.values() for one in found.verdicts])
    lines += ["Signatures:", *(f"  {line}" for line in _signatures(judges, pairs))]
    for name, purse in purses.items():
        guessed = f" ({purse.unmetered} answers without a token count: estimated)" if purse.unmetered else ""
        lines.append(f"{name}: {purse}{guessed}, {purse.input_tokens:,} tokens in, {purse.output_tokens:,} out")
    return "\n".join([*lines, *(f"Results: {file}" for file in files)])


def _table(key: tuple[str, str], work: Sequence[Job]) -> list[str]:
    from cultureval.judge_prompts.templates import judge_template
    from cultureval.metrics.judge import metric_part, summarize

    name, row = key[0], judge_template(key[1])
    means = ": mean ± standard error [unscored as the lowest, as the highest]" if row.criteria else ""
    lines = [f"judge {name}, {row.name}{means}"]
    for job in work:
        found = job.found[key]
        values = summarize(found.verdicts, row.criteria, row.highest)
        counts = f"scored {values['n_parsed']}/{values['n_items']}, flagged {values['n_flagged']}"
        counts += f", wrong script {values['n_wrong_script']}" if values["n_wrong_script"] else ""
        if row.form == "label":
            shares = label_shares(found, row.labels)
            cells = [f"{label} {100 * share:.1f}%" for label, share in shares.items() if share or label == "unknown"]
        else:
            cells = [
                f"{criterion} {_cell(values, metric_part(criterion), row.top(criterion))}" for criterion in row.criteria
            ]
        lines.append("  ".join([f"  {job.task.model}  {job.task.task}", *cells, counts]))
    return lines


def _cell(values: Mapping[str, float], part: str, highest: int) -> str:
    low, high = values[f"{part}_missing_as_1"], values[f"{part}_missing_as_{highest}"]
    return f"{values[part]:.2f} ± {values[f'{part}_stderr']:.2f} [{low:.2f}, {high:.2f}]"
