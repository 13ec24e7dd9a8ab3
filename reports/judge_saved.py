"""Judge saved answers with any judge: choose rows, estimate costs, ask."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.judge_prompts.templates import following, judge_template, templates_beside
from cultureval.metrics.judges.identity import identities_of, judge_identity
from cultureval.metrics.judges.items import item_of
from cultureval.metrics.judges.judge import estimate, judge_items, judge_with_all, takes
from cultureval.metrics.judges.settings import JudgeSettings
from cultureval.metrics.judges.verdicts import JudgeItem, Judgement
from cultureval.runs.files import SavedTask, find_saved_tasks, read_details
from cultureval.runs.rows import saved_image, saved_reply
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.servers.costs import Budget
from cultureval.tasks.catalogue import all_suites
from cultureval.tasks.selection import sampled_rows

if TYPE_CHECKING:
    import pyarrow


@dataclass
class Job:
    """The rows of a task that are judged, of how many, template -> their items, judge and template -> judgement."""

    task: SavedTask
    table: "pyarrow.Table"
    rows: int
    questions: dict[str, list[JudgeItem]]
    found: dict[tuple[str, str], Judgement] = field(default_factory=dict)


def saved_jobs(paths: Sequence[Path], label: bool, sample: int | None, seed: int) -> list[Job]:
    """The jobs for judges in saved results.

    Args:
        paths: Output folders, results files or details.
        label: Label questions and captions instead of scoring answers.
        sample: Number of random rows per task; None: all.

    Raises:
        CulturevalError: A path has no details, or the details have no such items.
    """
    all_suites()  # those that are not installed hold templates, which can be imported from here on
    work = [job for task in find_saved_tasks(paths) if (job := _job(task, label, sample, seed)).questions]
    if not work:
        what = "questions or captions to label" if label else "answers that a judge can score"
        raise CulturevalError(f"The details have no {what}: tasks whose kinds name judge templates do.")
    return work


def judge_jobs(judges: Sequence[JudgeSettings], work: Sequence[Job]) -> dict[str, Budget]:
    """Judge all jobs; the judgements are in each job's `found`.

    Args:
        judges: With distinct names.

    Returns:
        Name of a judge -> its cost.

    Raises:
        CulturevalError: Some judges do not answer; nothing was judged.
    """
    budgets = {one.name: Budget(one) for one in judges}
    identities = identities_of(judges)
    for job in work:
        job.found = judge_with_all(judges, job.questions, budgets=budgets, identities=identities)
        for first in map(judge_template, [*job.questions]):
            if not (second := following(first)):
                continue
            for one in judges:  # once more: from a free text (a topic) to one of the second template's labels
                verdicts = job.found[one.name, first.name].verdicts
                slots = {"categories": "\n".join(second.labels)}
                items = [
                    replace(item, slots=item.slots | slots | {first.short: verdict.label or ""})
                    for item, verdict in zip(job.questions[first.name], verdicts, strict=True)
                ]
                budget, identity = budgets[one.name], identities[one.name]
                judged = judge_items(one, second.name, items, budget=budget, identity=identity)
                job.found[one.name, second.name] = judged
    return budgets


def estimates(judges: Sequence[JudgeSettings], work: Sequence[Job]) -> str:
    """Estimated calls and cost, a line for each judge, task and template, and the sums.

    Judges are asked only who they are, since the journal's verdicts are theirs or not.
    """
    lines = []
    for one in judges:
        try:
            identity = judge_identity(one)
        except CulturevalError as error:
            identity = None
            lines.append(f"{one.name}  all verdicts count as new, since it is not known whose they are. {error}")
        sums: Counter[str] = Counter()
        for job in work:
            for name, items in job.questions.items():
                if not takes(one, judge_template(name)):
                    continue
                found = vars(estimate(one, name, items, None, identity))
                sums.update(found)
                lines.append(f"{one.name}  {job.task.label}  {job.task.task}  {name}: {_estimate_line(one, found)}")
        lines.append(f"{one.name}  total: {_estimate_line(one, sums)}")
    asked_twice = [judge_template(name) for name in dict.fromkeys(name for job in work for name in job.questions)]
    lines += [
        f"Each {row.short} needs a second, shorter call, which is not counted." for row in asked_twice if row.then
    ]
    lines.append("Nothing was judged.")
    return "\n".join(lines)


def _estimate_line(settings: JudgeSettings, found: Mapping[str, Any]) -> str:
    if settings.input_token_price or settings.output_token_price:
        cost = f"cost about {found['cost']:.4g}, at most {found['most']:.4g}"
    else:
        cost = f"about {found['input_tokens']:,} tokens of prompts (no prices are set)"
    return f"{found['calls']} calls ({found['known']} known, {found['unusable']} unusable), {cost}"


def _job(task: SavedTask, label: bool, sample: int | None, seed: int) -> Job:
    table = read_details(task.file)
    docs = table.column("doc").to_pylist()
    # Details of retrieval have no id of LightEval's, which is the place in the data.
    names_of_docs = [str(doc.get("id", place)) for place, doc in enumerate(docs)]
    chosen = sampled_rows(names_of_docs, task.task, sample, seed)
    table = table.take(chosen)
    docs, responses = [docs[index] for index in chosen], table.column("model_response").to_pylist()
    known = [specific_of(doc).get("judge") or {"templates": [], "slots": {}} for doc in docs]
    names = list(
        dict.fromkeys(name for row in known for name in (_labels_of(row) if label else row["templates"] or ()))
    )
    questions: dict[str, list[JudgeItem]] = {}
    for name in names:
        questions[name] = [
            item_of(
                f"{task.task}/{names_of_docs[place]}",
                row["slots"],
                judge_template(name),
                saved_reply(response),
                [saved_image(image) for image in doc.get("images") or ()],
                specific_of(doc).get("cluster") or "",
            )
            for place, doc, row, response in zip(chosen, docs, known, responses, strict=True)
        ]
    return Job(task, table, len(names_of_docs), questions)


def _labels_of(row: Mapping[str, Any]) -> list[str]:
    """The labelling templates, beside those of a row, whose slots the row fills (a question, a caption in MSA)."""
    filled = {slot for slot, text in (row["slots"] or {}).items() if text}
    beside = [other for name in row["templates"] or () for other in templates_beside(judge_template(name))]
    labelling = [other.name for other in beside if other.form in ("label", "line") and filled.issuperset(other.slots)]
    return list(dict.fromkeys(labelling))
