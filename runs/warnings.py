"""What a reader of a run's scores must know: what is missing, unscored, cut or reused, and what to do about it."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from cultureval.metrics.code.report import NO_SANDBOX
from cultureval.metrics.declared import SHARE, bounds_of_mean
from cultureval.runs.files import more_tasks
from cultureval.runs.judged import (
    DOUBTED,
    CriterionScore,
    JudgeScores,
    bounded_mean,
    incomplete,
    is_of_judge,
    judge_scores,
    total,
)
from cultureval.runs.means import members_of
from cultureval.runs.record import Run, TaskRecord
from cultureval.runs.task_records import is_sample
from cultureval.runtime.errors import counted
from cultureval.runtime.rounding import printed_or_na
from cultureval.runtime.rows_report import AGAIN, KINDS
from cultureval.tasks.catalogue import all_tasks, declared_metric, groups

OF_TASKS = (
    "unchecked",
    "impossible",
    "rejudged",
    "superseded",
    "in_older",
    "apart",
    "alone",
)  # what a run says of tasks besides its record
UNPARSABLE = 0.02  # shares of answers above this are told
NAMED = 3  # groups that a sentence names


class RunWarning(str):
    """A sentence about a run, which every view of it shows.

    Attributes:
        kind: Of the problem, such as `limited`.
        mark: The same in a word or two, for beside the model's name; "" for what does not touch the scores.
    """

    kind: str
    mark: str

    def __new__(cls, text: str, kind: str, mark: str = "") -> "RunWarning":
        """A sentence with its kind."""
        found = super().__new__(cls, text)
        found.kind, found.mark = kind, mark
        return found


def run_warnings(run: Run) -> list[RunWarning]:
    """A sentence for each kind of problem, with the groups of tasks that have it, and what to do."""
    tasks = list(run.record.tasks.values())
    found = [(name, sentence) for name, problem in PROBLEMS.items() for sentence in problem.check(run, tasks)]
    return [RunWarning(sentence, name, _mark(name, run, tasks)) for name, sentence in found]


def narrowed(run: Run, keep: Callable[[str], bool]) -> Run:
    """A run with what it says of some tasks alone, for a view of these: `keep` takes a task's name with `|k`.

    Scores of all tasks stay.
    """
    record = run.record
    parts = {
        name: {task: one for task, one in getattr(record, name).items() if keep(task)}
        for name in ("tasks", "unscorable", "unanswered")
    }
    known = {name: {task: why for task, why in getattr(run, name).items() if keep(task)} for name in OF_TASKS}
    claims = tuple(claim for claim in run.claims if keep(claim.task))
    changed = record.model_copy(update={**parts, "missing": tuple(filter(keep, record.missing))})
    return replace(run, record=changed, claims=claims, **known)


def task_warnings(run: Run, name: str) -> list[RunWarning]:
    """What a reader of one score must know, in every view of it: `name` is a task's or an average's, with `|k`."""
    record, shots = run.record, name.partition("|")[2]
    lacking = {task: f"{task.partition('|')[0]}|{shots}" for task in (*record.missing, *record.unscorable)}
    members = members_of(name, [*run.scores, *record.unanswered, *lacking.values()])
    found = run_warnings(narrowed(run, lambda task: lacking.get(task, task) in {name, *(members or ())}))
    return [one for one in found if members is not None or one.kind != "in_part"]  # one task is no mean of subsets


def suite_of(task: str) -> str:
    """The suite of a task (`|k` may follow), by the catalogue; "" of others."""
    known = all_tasks().get(task.partition("|")[0])
    return known.suite if known else ""


def is_partial(warnings: Iterable[RunWarning]) -> bool:
    """Whether a run is of other rows than published, so that it does not stand among the rows of papers."""
    return any(one.kind in PROBLEMS and PROBLEMS[one.kind].partial for one in warnings)


def leaves_items_out(warnings: Iterable[RunWarning]) -> bool:
    """Whether a run's means are of fewer items than it was asked, so that none of them is called the best."""
    return any(one.kind in PROBLEMS and PROBLEMS[one.kind].leaves_out for one in warnings)


def _mark(kind: str, run: Run, tasks: list[TaskRecord]) -> str:
    if kind == "limited":
        return f"limit {' and '.join(map(str, _limits(tasks)))}"
    if kind == "judged_in_part":
        return incomplete(judge_scores(run, tasks))
    return PROBLEMS[kind].mark


def run_notes(run: Run) -> list[str]:
    """The notes on the data, each once: the first task that has it, how many more do, and the note."""
    tasks_of: dict[str, list[str]] = {}
    for task in run.record.tasks.values():
        for note in task.notes:
            tasks_of.setdefault(note, []).append(task.task)
    return [f"{names[0]}{more_tasks(names[1:])}: {note}" for note, names in tasks_of.items()]


Checks = Iterable[str]


def _superseded(run: Run, tasks: list[TaskRecord]) -> Checks:
    if run.superseded:
        first, *others = run.superseded
        yield (
            f"The newest of several runs: {first} has {run.superseded[first]}{more_tasks(others)}. Older scores of the "
            "same tasks are left out."
        )


def _apart(run: Run, tasks: list[TaskRecord]) -> Checks:
    if run.apart:
        first, *others = run.apart
        yield (
            f"An older run of the model differs in how it was made, and stands alone: {first}{more_tasks(others)} in "
            f"that of {run.apart[first]}. To see or compare it, name its results file."
        )


def _claims(run: Run, tasks: list[TaskRecord]) -> Checks:
    if run.claims:
        yield (
            f"{run.claimed}. The numbers here are those of the details, and the run is not ranked: the results file "
            "or its details were changed, or are not of one run."
        )


def _told_of_first(what: str, reasons: Mapping[str, str], more: str = "") -> Checks:
    """A sentence on tasks, by name, with the reason of the first of them; none without tasks."""
    if reasons:
        first, *others = reasons
        yield f"{what}: {first}{more_tasks(others)}: {reasons[first]}.{more}"


def _impossible(run: Run, tasks: list[TaskRecord]) -> Checks:
    return _told_of_first("Scores that these answers do not give", run.impossible)


def _unchecked(run: Run, tasks: list[TaskRecord]) -> Checks:
    return _told_of_first("Scores that are not checked against their items", run.unchecked)


def _samples(run: Run, tasks: list[TaskRecord]) -> Checks:
    if found := [task.task for task in tasks if is_sample(task)]:
        which = "" if len(found) == len(tasks) else f" of {found[0]}{more_tasks(found[1:])}"
        yield f"The data{which} are the shipped samples, a few synthetic rows: these scores are for trying things out."


def _judgements_alone(run: Run, tasks: list[TaskRecord]) -> Checks:
    if run.alone:
        first, *others = run.alone
        which = "" if len(run.alone) == len(tasks) else f" of {first}{more_tasks(others)}"
        gone = run.alone[first]
        yield f"Only a judge's scores{which}: the results of the run that was judged are not there ({gone})."


def _incomplete(run: Run, tasks: list[TaskRecord]) -> Checks:
    if missing := run.record.missing:
        yield (
            f"Incomplete, so not comparable: {_named(_groups(missing))} ({counted(len(missing), 'task')} without "
            "data). `cultureval mirror SUITE` fetches them or says where they are."
        )


def _unscorable(run: Run, tasks: list[TaskRecord]) -> Checks:
    tasks_of: dict[str, list[str]] = {}
    for task, reason in run.record.unscorable.items():
        tasks_of.setdefault(reason, []).append(task)
    whole = {task.group for task in tasks}  # but for the subsets that are left out
    for reason, names in tasks_of.items():
        shown = [name.partition("|")[0] if group in whole else group for name in names for group in _groups([name])]
        yield f"Left out, since they cannot be scored: {_named(dict.fromkeys(shown))}. {reason}"


def _in_part(run: Run, tasks: list[TaskRecord]) -> Checks:
    parts = _parts(tasks)
    if found := [f"{_told_group(*place)} {count} of {len(groups()[place[0]])}" for place, count in parts.items()]:
        others = dict.fromkeys(group for group, k in map(_group_and_shots, run.in_older) if (group, k) in parts)
        more = f" The page and `compare` add the subsets of older runs to {_named(others)}." if others else ""
        yield f"Means of some subsets only, which are not comparable with those of all: {_named(found)}.{more}"


def _parts(tasks: list[TaskRecord]) -> dict[tuple[str, int], int]:
    """How many subsets there are of groups, with a number of examples, of which not all are."""
    names = {(task.group, task.shots, task.task.partition("|")[0]) for task in tasks}
    present = Counter((group, shots) for group, shots, _ in names)
    return {place: count for place, count in present.items() if count < len(groups().get(place[0], ()))}


def _told_group(group: str, shots: int) -> str:
    """How a sentence names what is counted of a group: with and without examples apart."""
    return f"{group} ({shots}-shot)" if shots else group


def _group_and_shots(name: str) -> tuple[str, int]:
    task, _, shots = name.partition("|")
    return task.partition(":")[0], int(shots) if shots.isdecimal() else 0


def _other_tasks(run: Run, tasks: list[TaskRecord]) -> Checks:
    parts = _parts(tasks)  # of which `_in_part` says it
    if found := [one for one in run.in_older if _group_and_shots(one) not in parts]:
        first, *others = found
        yield f"Older runs of the model have other tasks: {first}{more_tasks(others)}. The page and `compare` add them."


def _without_judges(run: Run, tasks: list[TaskRecord]) -> Checks:
    for judge, reason in run.record.unjudged.items():
        found = [task.task for task in tasks if any(is_of_judge(name, judge, task.suite) for name in task.left_out)]
        if found:
            yield (
                f"The scores of the judge {judge} are left out: {_named(_groups(found))}. {reason} "
                "`cultureval judge RESULTS` judges the saved answers later."
            )


def _limited(run: Run, tasks: list[TaskRecord]) -> Checks:
    if limits := _limits(tasks):
        asked = f"{' or '.join(f'{limit:,}' for limit in limits)} row{'s' * (limits != [1])}"
        yield (
            f"At most {asked} of a task were asked (--limit): these scores are for trying things out; "
            "run without it for scores to report."
        )


def _limits(tasks: list[TaskRecord]) -> list[int]:
    return sorted({task.limit for task in tasks if task.limit is not None})


def _skipped(run: Run, tasks: list[TaskRecord]) -> Checks:
    counts = _counted(tasks, lambda task: task.skipped_rows)
    read = sum(_rows_read(task) for task in tasks if _told_group(task.group, task.shots) in counts)
    if counts:
        yield (
            f"{sum(counts.values()):,} of {read:,} rows left out: {_shares(counts)}. "
            "The results file lists them with the reasons."
        )


def _rows_read(task: TaskRecord) -> int:
    """The rows of a task's data, broken ones and those beyond a limit included."""
    rows = task.row_counts.get("scored", task.rows) + task.row_counts.get("not_asked", 0)
    return rows + task.refused + task.skipped_rows


def _repeated(run: Run, tasks: list[TaskRecord]) -> Checks:
    return _told(
        _counted(tasks, lambda task: task.duplicate_rows),
        "{total} with the same question as an earlier one: {shares}. They are scored, and count as one in the errors; "
        "`cultureval check SUITE --rows FILE` lists them.",
    )


def _unread(run: Run, tasks: list[TaskRecord]) -> Checks:
    found = {f"{task.source}/{file}" for task in tasks for file in task.unread_files}
    if found:
        yield (
            f"{counted(len(found), 'data file')} that no task reads: {_named(sorted(found), 'file')}. A copy, another "
            "name or another split: rename it, or move it out of the folder."
        )


def _refused(run: Run, tasks: list[TaskRecord]) -> Checks:
    asked = [*tasks, *run.record.unanswered.values()]
    found = _counted(asked, lambda task: task.refused)
    if not found:
        return
    more, bounded = _bounded(run, tasks, found)
    if others := sorted(found.keys() - bounded):
        more += (
            f" What the means would be with them is not known of {_named(others)}: their scores are no means of rows' "
            "scores with a lowest and a highest."
        )
    kinds = {kind: _counted(asked, partial(_refused_by, kind)) for kind in KINDS}
    parts = [f"{KINDS[kind]}, which are unscored: {_shares(counts)}." for kind, counts in kinds.items() if counts]
    told = {kind for kind, counts in kinds.items() if counts}
    again = "; ".join(advice for advice, of in AGAIN.items() if told & of)
    yield f"{' '.join(parts)}{more} The results file lists them with the reasons{'; ' * bool(again)}{again}."


def _refused_by(kind: str, task: TaskRecord) -> int:
    """Rows that one of them refused; older files have the server's alone."""
    return task.refused_by.get(kind, 0) if task.refused_by else task.refused * (kind == "server")


def _bounded(run: Run, tasks: list[TaskRecord], groups: Iterable[str]) -> tuple[str, set[str]]:
    """A sentence with the bounds of groups' means that rows without a score allow, and the groups that have some."""
    every = [*tasks, *run.record.unanswered.values()]
    of = {name: [one for one in every if _told_group(one.group, one.shots) == name] for name in groups}
    between = {name: span for name, tasks_ in of.items() if (span := _between(run, tasks_))}
    spans = [f"{group} from {low:.4g} to {high:.4g}" for group, (low, high) in between.items()]
    return f" With them, the means would be between: {_named(spans)}." if spans else "", set(between)


def _between(run: Run, tasks: list[TaskRecord]) -> tuple[float, float] | None:
    """The lowest and the highest mean of a group's headline that rows without a score allow; None where unknown."""
    spans = [_span(run, task) for task in tasks]
    known = [span for span in spans if span is not None]
    if len(known) < len(spans):
        return None
    low, high = (sum(ends) / len(known) for ends in zip(*known, strict=True))
    return low, high


def _span(run: Run, task: TaskRecord) -> tuple[float, float] | None:
    """The lowest and the highest mean of a task's headline that refused and unscored rows allow; None where unknown."""
    score, scored = run.value(task.task, task.headline), task.rows_with(task.headline)
    unscored, declared = task.rows - scored, declared_metric(task.task, task.headline)
    if not unscored and not task.refused:
        return None if score is None else (score, score)
    is_share = declared is not None and declared.range == SHARE and not declared.of
    if not unscored or not is_share or task.headline in task.not_means or score is None and scored:
        return None if unscored else task.bounds.get(task.headline)
    n = task.n_of(task.headline)  # of a rate, those that it counts; of the rest, it may count all
    return bounds_of_mean((score or 0.0) * n, n, task.n - task.items_with(task.headline), SHARE)


def _other_counts(run: Run, tasks: list[TaskRecord]) -> Checks:
    asked = {task.task: published_rows(task) for task in tasks if task.limit is None}
    counts = {task.task: task.rows + task.refused + task.skipped_rows for task in tasks if task.rows}
    found = [name for name, rows in asked.items() if rows and counts.get(name, rows) != rows]
    told = [
        f"{name} ({counted(counts[name], 'row')}, published: {asked[name]:,}){more_tasks(found[1:])}"
        for name in found[:1]
    ]
    sums = _other_sums([task for task in tasks if task.group not in _groups(found)])
    told += [_named(sums)] if sums else []
    if told:
        yield f"Other numbers of rows than published: {'; '.join(told)}. Compare with runs on the same data only."


def published_rows(task: TaskRecord) -> int | None:
    """How many rows its published data have: by the catalogue, else by the run, which may have been edited."""
    known = all_tasks().get(task.task.partition("|")[0])
    if not known:
        return task.expected_rows
    if not task.form and task.expected_rows is None:  # which of the forms it is, nobody says
        forms = [known.expected(form) for form in ("original", "curated")]
        asked = task.rows + task.refused + task.skipped_rows
        return asked if asked in forms else next(filter(None, forms), None)
    return known.expected("curated" if task.form == "curated" else "original")


def _unselected(run: Run, tasks: list[TaskRecord]) -> Checks:
    found: dict[str, int] = {}
    for task in tasks:
        for why, count in task.not_selected.items():
            if why.startswith("no task"):  # every task that reads the file counts the same rows
                found[f"{task.source}: {why}"] = max(count, found.get(f"{task.source}: {why}", 0))
    if found:
        first, count = next(iter(found.items()))
        more = f" (and {len(found) - 1} more such names)" if found.keys() - {first} else ""
        yield (
            f"In no task: {counted(sum(found.values()), 'row')}; {count:,} of {first.rstrip('?')}{more}. "
            "`cultureval check SUITE` lists them; mend the names."
        )


def _other_sums(tasks: list[TaskRecord]) -> list[str]:
    """Groups of which the number of rows is published in all only, and is another here."""
    members: dict[tuple[str, int], list[TaskRecord]] = {}
    for task in tasks:
        members.setdefault((task.group, task.shots), []).append(task)
    found = []
    for (group, _), some in members.items():
        sums = [_published_sums(task) for task in some]
        wanted = {count: form for one in sums for count, form in one.items()}
        whole = len(some) == len(groups().get(group, ())) > 1 and all(task.limit is None for task in some)
        if not whole or not all(sums):
            continue
        rows = sum(task.rows + task.skipped_rows + task.refused for task in some)
        examples = sum((task.few_shot_rows or 0) + task.skipped_few_shot_rows for task in some)
        low, high = min(wanted), max(wanted)  # of two forms together the sum is between those of each
        if not any(low <= sum_ <= high for sum_ in (rows, rows + examples)):
            published = " or ".join(f"{count:,}{f' ({form})' * (low < high)}" for count, form in wanted.items())
            found.append(f"{group} has {rows:,} of {published}")
    return found


def _published_sums(task: TaskRecord) -> dict[int, str]:
    """How many rows the published data of a task's group have, as `published_rows`, with the form; {}: not known."""
    known = all_tasks().get(task.task.partition("|")[0])
    if not known or (task.form not in known.group_rows and task.expected_group_rows is not None):
        return {task.expected_group_rows: task.form} if task.expected_group_rows is not None else {}
    if not task.form:  # which it is, nobody says
        return {} if known.expected_rows else {count: form for form, count in known.group_rows.items()}
    return {known.group_rows[task.form]: task.form} if task.form in known.group_rows else {}


def _other_data(run: Run, tasks: list[TaskRecord]) -> Checks:
    told = [task for task in tasks if task.other_data and not is_sample(task)]
    yield from (f"{task.task}: {task.other_data}" for task in told)


def _unsandboxed(run: Run, tasks: list[TaskRecord]) -> Checks:
    if any(one.fields.get("scorer") == NO_SANDBOX for one in run.record.signatures):
        yield (
            "Programs of the model were judged without a sandbox: they could do anything, so trust neither scores nor "
            "machine."
        )


def _few_shot(run: Run, tasks: list[TaskRecord]) -> Checks:
    few = [task for task in tasks if task.few_shot_rows is not None and task.shots > task.few_shot_rows]
    found = few + [task for task in tasks if task.shots and task.skipped_few_shot_rows and task not in few]
    if found:
        yield (
            f"Few-shot examples are missing or broken: {_named(_groups(task.task for task in found))}. Mend them, or "
            "run with fewer (TASK|0)."
        )


def _unscored(run: Run, tasks: list[TaskRecord]) -> Checks:
    found = _counted(tasks, lambda task: task.rows - task.rows_with(task.headline))
    more, _ = _bounded(run, tasks, found)
    return _told(
        found,
        f"Rows that are not scored, and in no mean of the headline: {{shares}}.{more} `cultureval show RESULTS TASK` "
        "lists them. Where the scorer failed, running again mends it, which asks the model nothing twice; where an "
        "answer that the score rests on is unreadable, the item has none.",
    )


def _unjudged(run: Run, tasks: list[TaskRecord]) -> Checks:
    return _told(
        total(judge_scores(run, tasks), "failed"),
        "Verdicts without a judge's score: {shares}. Running again asks the judge again where its reply was the "
        "reason; `cultureval show RESULTS --full` has the bounds (`_missing_as_1`, `_missing_as_5`).",
    )


def _judged_in_part(run: Run, tasks: list[TaskRecord]) -> Checks:
    scores = judge_scores(run, tasks)
    if missing := total(scores, "not_asked"):
        yield (
            f"Judged in part, so its means are not comparable: {_shares(missing)} verdicts of "
            f"{sum(total(scores, 'items').values()):,g} were not asked for. `cultureval judge RESULTS` judges "
            "the rest, with a larger --budget if that was spent; `cultureval show RESULTS --full` has the bounds of "
            "the means of all."
        )


def _judges_of_one_name(run: Run, tasks: list[TaskRecord]) -> Checks:
    of: dict[str, dict[str, None]] = {}
    for one in run.record.signatures:
        if "/" in one.group:  # a judge and its template
            of.setdefault(one.group, {})[one.text] = None
    for name, lines in of.items():
        if len(lines) > 1:
            yield (
                f"Scores of {len(lines)} judges under one name, {name}: {' / '.join(lines)}. They are not comparable: "
                "judge all tasks by one of them, or give each a name of its own."
            )


def _rejudged(run: Run, tasks: list[TaskRecord]) -> Checks:
    older = " Older verdicts on the same answers are left out."
    return _told_of_first("The newest of several judgements", run.rejudged, older)


def _flagged(run: Run, tasks: list[TaskRecord]) -> Checks:
    scores = judge_scores(run, tasks)
    found = {f"{one.task} judge_{one.judge}_{one.template}": one.flagged for one in scores if one.flagged}
    if found:
        yield (
            f"Texts that look like attempts to influence the judge: {_shares(found)}. Their scores are in the means; "
            "`cultureval show RESULTS --full` has the means without them (`_unflagged`)."
        )


def _judges_bounds(run: Run, tasks: list[TaskRecord]) -> Checks:
    """What unscored verdicts and flagged texts can do to a judge's means: averages over a group's tasks."""
    of_judges: dict[tuple[str, str], list[JudgeScores]] = {}
    for one in judge_scores(run, tasks):
        group = one.task.partition("|")[0].partition(":")[0]
        of_judges.setdefault((group, f"judge_{one.judge}_{one.template}"), []).append(one)
    for (group, judge), some in of_judges.items():
        items, unscored, failed, flagged = (
            sum(getattr(one, name) for one in some) for name in ("items", "unscored", "failed", "flagged")
        )
        if max(failed, flagged) <= DOUBTED * items:
            continue
        counts = {kind: sum(one.by_reason.get(kind, 0) for one in some) for kind in some[0].by_reason}
        kinds = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in counts.items() if count)
        criteria = dict.fromkeys(name for one in some for name in one.criteria)
        found = {name: [one.criteria[name] for one in some if name in one.criteria] for name in criteria}
        spans = [f"{name} {span}" for name, scores in found.items() if (span := _judged_span(scores))]
        yield (
            f"{group}, {judge}: {unscored} of {items} verdicts are unscored{f' ({kinds})' if kinds else ''} and "
            f"{flagged} of flagged texts. Means [all unscored the lowest, the highest], without flagged texts: "
            f"{'; '.join(spans) or 'none'}."
        )


def _judged_span(scores: list[CriterionScore]) -> str:
    """A criterion's mean, its bounds and its mean without flagged texts, over tasks; "" where no bound is known."""
    span = bounded_mean(scores)
    unflagged = [one.unflagged for one in scores if one.unflagged is not None]
    return f"{span}, {printed_or_na(sum(unflagged) / len(unflagged) if unflagged else None)}" if span else ""


def _unparsable(run: Run, tasks: list[TaskRecord]) -> Checks:
    rows = _counted(tasks, lambda task: task.rows)
    found = _counted(tasks, lambda task: task.unparsable)
    high = {group: count / rows[group] for group, count in found.items() if count > UNPARSABLE * rows[group]}
    worst = sorted(high.items(), key=lambda one: -one[1])
    if worst:
        yield (
            f"Unreadable answers: {_named(f'{group} {share:.1%}' for group, share in worst)}. Read some with "
            "`cultureval show RESULTS TASK`, and check the chat template and the limit of tokens."
        )


def _truncated(run: Run, tasks: list[TaskRecord]) -> Checks:
    return _told(
        _counted(tasks, lambda task: task.truncated),
        "Answers cut at the token limit, or at the end of the model's context: {shares}. Raise max_new_tokens "
        "(generation_parameters of the model's YAML file), or give it a longer context.",
    )


def _cut_prompts(run: Run, tasks: list[TaskRecord]) -> Checks:
    return _told(
        _counted(tasks, lambda task: task.cut_prompts),
        "Prompts too long for the model, which read their ends alone: {shares}. Give it a longer context.",
    )


def _short_limits(run: Run, tasks: list[TaskRecord]) -> Checks:
    return _told(
        _counted(tasks, lambda task: task.short_limits),
        "Rows whose answers could have fewer tokens than their task allows, since prompt and answer have to fit the "
        "model's context: {shares}. Give it a longer context.",
    )


def _reused(run: Run, tasks: list[TaskRecord]) -> Checks:
    found = [(task.reused, task.reused_since) for task in tasks]
    return _of_earlier_runs(found, sum(task.rows for task in tasks), "answer", "the model")


def _cost(run: Run, tasks: list[TaskRecord]) -> Checks:
    took = run.record.timing
    if took.cost:
        of_all = took.tokens_paid_in is not None or took.tokens_paid_out is not None  # not in older files
        paid = (took.tokens_paid_in, took.tokens_paid_out) if of_all else (took.tokens_in, took.tokens_out)
        cached = f" ({took.tokens_cached:,} cached)" if took.tokens_cached else ""
        reasoning = f" ({took.tokens_reasoning:,} of reasoning)" if took.tokens_reasoning else ""
        missing = f" ({counted(took.missing_usage, 'answer')} without counts: estimated)" if took.missing_usage else ""
        alone = run.record.options.get("resume") is False
        whose = "those of earlier runs not counted (--no-resume)" if alone else "those of earlier runs included"
        yield (
            f"All answers cost {took.cost:.4g}, {whose}: {paid[0] or 0:,} tokens of "
            f"prompts{cached}, {paid[1] or 0:,} of answers{reasoning}{missing}. The provider's bill counts."
        )


def _reused_verdicts(run: Run, tasks: list[TaskRecord]) -> Checks:
    found = [(task.verdicts_reused, task.verdicts_reused_since) for task in tasks]
    verdicts = sum(total(judge_scores(run, tasks), "items").values())
    return _of_earlier_runs(found, verdicts, "verdict", "the judges")


def _of_earlier_runs(found: list[tuple[int, str | None]], of_all: float, what: str, whom: str) -> Checks:
    """How many of all are of an earlier run, and the oldest date, from each task's (count, date)."""
    if count := sum(count for count, _ in found):
        dates = [date for _, date in found if date]
        since = f", oldest of {min(dates)}" if dates else ""
        total = f"{count:,} of {of_all:,g} {what}s" if of_all >= count else counted(count, what)
        yield f"{total} reused{since}; --no-resume asks {whom} again."


def _told(counts: Mapping[str, int], sentence: str, what: str = "row") -> Checks:
    """A sentence with the `total` of some counts of `what`, and their `shares` by group; none without counts."""
    return [sentence.format(total=counted(sum(counts.values()), what), shares=_shares(counts))] if counts else []


def _counted(tasks: Iterable[TaskRecord], count: Callable[[TaskRecord], int]) -> dict[str, int]:
    """The sum of a count over each group's tasks, where it is not 0."""
    sums: dict[str, int] = {}
    for task in tasks:
        name = _told_group(task.group, task.shots)
        sums[name] = sums.get(name, 0) + count(task)
    return {group: total for group, total in sums.items() if total}


def _groups(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(name.partition("|")[0].partition(":")[0] for name in names))


def _shares(counts: Mapping[str, float]) -> str:
    largest = sorted(counts.items(), key=lambda one: -one[1])
    return _named(f"{group} {count:,g}" for group, count in largest)


def _named(words: Iterable[str], what: str = "group") -> str:
    """The words of the first groups, and how many more groups there are."""
    listed = list(words)
    others = len(listed) - NAMED
    return ", ".join(listed[:NAMED]) + (f" and {counted(others, f'more {what}')}" if others > 0 else "")


class Problem(NamedTuple):
    """A kind of problem.

    Attributes:
        check: The sentences on a run that has it.
        mark: The same in a word or two, for beside the model's name; "" for what does not touch the scores.
        partial: Whether the run is of other rows than published, so that it does not stand among the rows of papers.
        leaves_out: Whether its means are of fewer items than it was asked, so that none of them is called the best.
    """

    check: Callable[[Run, list[TaskRecord]], Checks]
    mark: str = ""
    partial: bool = False
    leaves_out: bool = False


PROBLEMS = {  # in the order in which they are told
    "superseded": Problem(_superseded, "newest of its runs"),
    "apart": Problem(_apart),
    "claims": Problem(_claims, "edited", leaves_out=True),
    "unchecked": Problem(_unchecked, "not checked", leaves_out=True),
    "impossible": Problem(_impossible, "impossible scores", leaves_out=True),
    "samples": Problem(_samples, "samples", partial=True),
    "judgements_alone": Problem(_judgements_alone, "judgements only", partial=True, leaves_out=True),
    "incomplete": Problem(_incomplete, "incomplete", partial=True),
    "unscorable": Problem(_unscorable, "incomplete"),
    "in_part": Problem(_in_part, "some subsets"),
    "other_tasks": Problem(_other_tasks),
    "without_judges": Problem(_without_judges),
    "limited": Problem(_limited, "limit", partial=True),
    "skipped": Problem(_skipped, "rows left out", partial=True, leaves_out=True),
    "repeated": Problem(_repeated),
    "unread": Problem(_unread),
    "refused": Problem(_refused, "refusals", leaves_out=True),
    "unselected": Problem(_unselected),
    "other_counts": Problem(_other_counts, "other rows", partial=True),
    "other_data": Problem(_other_data, "other data", partial=True),
    "unsandboxed": Problem(_unsandboxed, "no sandbox"),
    "few_shot": Problem(_few_shot, "few-shot examples"),
    "unscored": Problem(_unscored, "unscored", leaves_out=True),
    # What a judge leaves out touches its own means, which tables bound, and a headline of it is `unscored`.
    "unjudged": Problem(_unjudged, "unscored verdicts"),
    "judged_in_part": Problem(_judged_in_part, "judged in part"),
    "judges_of_one_name": Problem(_judges_of_one_name, "mixed judges"),
    "rejudged": Problem(_rejudged, "newest of its judgements"),
    "flagged": Problem(_flagged, "flagged"),
    "judges_bounds": Problem(_judges_bounds),
    "unparsable": Problem(_unparsable, "unreadable"),
    "truncated": Problem(_truncated, "cut answers"),
    "cut_prompts": Problem(_cut_prompts, "cut prompts"),
    "short_limits": Problem(_short_limits, "shorter limits"),
    "reused": Problem(_reused),
    "reused_verdicts": Problem(_reused_verdicts),
    "cost": Problem(_cost),
}
