"""What a reader of a run's scores must know, once, above its numbers: a table of kinds."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cultureval.runs.files import read_details
from cultureval.runs.frame import leaf
from cultureval.runs.loading import Run
from cultureval.runs.record import TaskRecord, is_sample
from cultureval.runs.scores import places_of
from cultureval.runtime.errors import CulturevalError, shown_names
from cultureval.tasks.catalogue import declared_metric, groups, known_task, name_and_shots

UNSCORED = 0.01  # a share of the asked items without a score, above which it is told
CUT = UNREADABLE = 0.02  # the same of cut prompts or answers, and of unreadable replies
NAMED = 3  # groups that a sentence names
INVALID = ("invalid_strict", "invalid_rate", "joint_invalid_rate", "unparsable")  # rates of unreadable replies
CHOICE = ("acc", "acc_norm", "acc_strict")  # accuracies of one of k options
Tasks = list[TaskRecord]


class Warning(NamedTuple):
    """A sentence about a run, which every view of it shows once.

    Attributes:
        kind: Of the problem, such as `limit`; one of `KINDS`.
        sentence: What, how much, and what to do.
        mark: The same in a word or two, for beside the model's name.
    """

    kind: str
    sentence: str
    mark: str


def warnings(run: Run, tasks: Collection[str] | None = None) -> list[Warning]:
    """What a reader of a run's scores, or of some tasks' (with `|k`), must know; at most one sentence a kind."""
    some = [task for name, task in run.record.tasks.items() if tasks is None or name in tasks]
    found = []
    for kind, (check, sentence) in KINDS.items():
        if (tasks is None or check is not _missing) and (told := check(run, some)):
            found.append(Warning(kind, sentence.format(told), f"limit {told}" if kind == "limit" else kind))
    return found


def _unverified(run: Run, tasks: Tasks) -> str:
    found = [task.task for task in tasks if task.task in run.unverified]
    return f"{shown_names(found, 1)}: {run.unverified[found[0]]}" if found else ""


def _differs(run: Run, tasks: Tasks) -> str:
    found = [one for one in run.differs if one.task in {task.task for task in tasks}]
    names = shown_names([*dict.fromkeys(one.task for one in found)], 1)
    told = [f"{names}: {one.metric} {one.in_file:.6g}, of the items {one.of_items:.6g}" for one in found]
    return told[0] if told else ""


def _samples(run: Run, tasks: Tasks) -> str:
    found = [task.task for task in tasks if is_sample(task)]
    return "are" if found and len(found) == len(tasks) else f"of {shown_names(found, 1)} are" if found else ""


def _limit(run: Run, tasks: Tasks) -> str:
    return " and ".join(f"{limit:,}" for limit in sorted({task.limit for task in tasks if task.limit is not None}))


def _missing(run: Run, tasks: Tasks) -> str:
    record, known = run.record, groups()
    told = [f"no data of {_groups(record.missing)} (`cultureval fetch SUITE` fetches them)"] if record.missing else []
    for reason in dict.fromkeys(record.unscorable.values()):
        names = [name for name, why in record.unscorable.items() if why == reason]
        told.append(f"{_groups(names)} cannot be scored ({reason.rstrip('.')})")
    present = Counter(group for group, _ in {(task.group, task.subset) for task in tasks})
    sizes = {group: (count, len(known.get(group, ()))) for group, count in present.items()}
    parts = [f"{group} {count} of {size} subsets" for group, (count, size) in sizes.items() if count < size]
    return "; ".join([*told, *([shown_names(parts, NAMED)] if parts else [])])


def _other_rows(run: Run, tasks: Tasks) -> str:
    told: dict[str, list[str]] = {}  # how rows differ -> the tasks
    for task in (one for one in tasks if not is_sample(one)):
        known = known_task(task.task)
        rows, published = _rows(run, task)
        if task.other_data:
            told.setdefault(task.other_data.rstrip("."), [])
        if task.skipped_rows:
            told.setdefault("broken rows left out", []).append(f"{task.task} {task.skipped_rows:,}")
        if rows != published:
            told.setdefault("numbers of rows", []).append(f"{task.task} {rows:,} of {published:,}")
        if known and known.sources and task.form not in ("", known.sources[0].form):
            told.setdefault(f"in the form {task.form!r}", []).append(task.task)
    return "; ".join(f"{what}: {shown_names(names, 1)}" if names else what for what, names in told.items())


def _rows(run: Run, task: TaskRecord) -> tuple[int, int]:
    """The rows that a task without a limit asked, and those that are published; twice 0 where one is not known."""
    known = known_task(task.task)
    published = known.expected("curated" if task.form == "curated" else "original") if known else task.expected_rows
    if published is None or task.limit is not None:
        return 0, 0
    if run.record.schema_:
        return task.rows + task.refused, published
    of_task = run.items[(run.items["task"] == task.task).to_numpy()]  # a file without our record does not tell a limit
    return (int(of_task["item"].nunique()), published) if len(of_task) else (0, 0)


def _unscored(run: Run, tasks: Tasks) -> str:
    headlines = {(task.task, task.headline) for task in tasks}
    return _without_score(run, lambda task, metric: (task, metric) in headlines)


def _judged_in_part(run: Run, tasks: Tasks) -> str:
    names = {task.task for task in tasks}
    lacking = _without_score(run, lambda task, metric: task in names and metric.startswith("judge_"))
    told = [f"scores missing: {lacking}"] if lacking else []
    silent = [f"{judge} scored nothing ({reason.rstrip('.')})" for judge, reason in run.record.unjudged.items()]
    return "; ".join([*told, *silent])


def _without_score(run: Run, wanted: Callable[[str, str], bool]) -> str:
    """Groups with more than `UNSCORED` of the asked items of some metrics without a score, their shares, and why."""
    items = run.items[(run.items["den"] > 0).to_numpy()]
    place, places = places_of(items)
    items = items[np.array([wanted(*one) for one in places], bool)[place]]
    groups = items["task"].map({task: _groups([task]) for task in items["task"].cat.categories})
    told = []
    for group, of_group in items.groupby(groups, sort=False):
        reasons = of_group["reason"][of_group["num"].isna().to_numpy()].value_counts()
        if reasons.sum() > UNSCORED * len(of_group):
            why = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
            told.append(f"{reasons.sum() / len(of_group):.1%} of {group} ({why})")
    return shown_names(told, NAMED)


def _mixed(run: Run, tasks: Tasks) -> str:
    names = run.record.model.served_models
    return shown_names(names, NAMED) if len(names) > 1 else ""


def _cut(run: Run, tasks: Tasks) -> str:
    told = []
    for what, name in (("answers", "truncated"), ("prompts", "cut_prompts")):
        rates = {task.task: getattr(task, name) / task.rows for task in tasks if task.rows}
        told += [f"{what} of {found}" for found in [_high(rates, CUT)] if found]
    return "; ".join(told)


def _unreadable(run: Run, tasks: Tasks) -> str:
    rates: dict[str, float] = {}
    for task in tasks:
        metric = next((name for name in INVALID if name in run.scores.get(task.task, ())), "")
        if declared := declared_metric(task.task, metric):
            rates[task.task] = run.scores[task.task][metric].value / declared.range[1]
    return _high(rates, UNREADABLE)


def _high(rates: Mapping[str, float], least: float) -> str:
    """The mean rates of groups of tasks that are above a share, the highest first."""
    of_groups: dict[str, list[float]] = {}
    for task, rate in rates.items():
        of_groups.setdefault(_groups([task]), []).append(rate)
    means = ((math.fsum(some) / len(some), group) for group, some in of_groups.items())
    return shown_names([f"{group} {rate:.1%}" for rate, group in sorted(means, reverse=True) if rate > least], NAMED)


def _at_chance(run: Run, tasks: Tasks) -> str:
    of_groups: dict[tuple[str, str], list[str]] = {}
    for task in tasks:
        if task.headline in CHOICE and task.task in run.details:
            of_groups.setdefault((task.group, task.headline), []).append(task.task)
    told = []
    for (group, metric), names in of_groups.items():
        score = run.mean({(name, metric): 1 / len(names) for name in names})
        if score is None or score.low is None or score.high is None or score.low > 1 / 2:
            continue
        shares = [share for name in names if (share := _share_of_guesses(run.details[name]))]
        chance = math.fsum(shares) / len(names)
        if len(shares) == len(names) and score.low <= chance <= score.high:
            told.append(f"{group} {score.value:.2f} of {1 / chance:.3g} options")
    return shown_names(told, NAMED)


def _share_of_guesses(details: Path) -> float | None:
    """The mean of 1/k over items with one right of k options; None of other tasks."""
    import pyarrow
    import pyarrow.compute as compute

    try:
        table = read_details(details, ["doc.choices", "doc.gold_index"])
    except CulturevalError:
        return None
    choices, gold = leaf(table, "doc.choices"), leaf(table, "doc.gold_index")
    if choices is None or gold is None or not len(choices):
        return None
    if pyarrow.types.is_list(gold.type) and compute.max(compute.list_value_length(gold)).as_py() != 1:
        return None  # several right options, of which an accuracy has another chance
    counts = compute.list_value_length(choices)
    return float(compute.mean(compute.divide(1.0, counts)).as_py()) if compute.min(counts).as_py() > 1 else None


def _groups(names: Iterable[str]) -> str:
    return shown_names([*dict.fromkeys(name_and_shots(name)[0].partition(":")[0] for name in names)], NAMED)


# In the order in which they are told: a kind, whose name is its mark; what is found, "" for nothing; the sentence.
KINDS: dict[str, tuple[Callable[[Run, Tasks], str], str]] = {
    "not verified": (_unverified, "Not verified, so not ranked: {}."),
    "file differs": (_differs, "The results file states other scores than its items give, which are shown: {}."),
    "samples": (_samples, "The data {} the shipped samples, made-up rows: these scores try things out."),
    "limit": (_limit, "Rows asked of a task: at most {} (--limit). These are not scores to report."),
    "tasks missing": (_missing, "Tasks are missing, so averages are not comparable: {}."),
    "other rows": (_other_rows, "Other rows than published: {}. Compare with runs on the same rows only."),
    "items without score": (_unscored, "Asked items without a score: {}. In ranks they count as the worst score."),
    "mixed models": (_mixed, "Answers of several models are mixed: {}. Run again with one."),
    "judged in part": (_judged_in_part, "Judged in part: {}. `cultureval judge RESULTS` judges the rest."),
    "cut texts": (_cut, "Cut at the limit of tokens: {}. Raise max_new_tokens or the context."),
    "unreadable replies": (
        _unreadable,
        "Unreadable replies (strict reading, mean of subsets): {}. Read some with `show`.",
    ),
    "at chance": (_at_chance, "At chance: {}. That is nearly always the prompt or a parser, not the model."),
}
