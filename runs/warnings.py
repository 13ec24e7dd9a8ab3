"""What a reader of a run's scores must know, once, above its numbers: a table of kinds."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from cultureval.runs.files import read_details
from cultureval.runs.frame import leaf
from cultureval.runs.loading import Run
from cultureval.runs.record import TaskRecord, is_sample
from cultureval.runs.scores import counts_of
from cultureval.runtime.errors import CulturevalError, counted
from cultureval.tasks.catalogue import declared_metric, groups, known_task, name_and_shots

UNSCORED = 0.01  # a share of the asked items without a score, above which it is told
CUT = UNREADABLE = 0.02  # the same of cut prompts or answers, and of unreadable replies
NAMED = 3  # groups that a sentence names
INVALID = ("invalid_strict", "invalid_rate", "joint_invalid_rate", "unparsable")  # rates of unreadable replies
CHOICE = ("acc", "acc_norm", "acc_strict")  # accuracies of one of k options
JUDGED = "judge_"
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
    told = {kind: check(run, some) for kind, check in KINDS.items() if tasks is None or check is not _missing}
    limits = f"limit {' and '.join(_limits(some))}"
    return [Warning(kind, said, limits if kind == "limit" else kind) for kind, said in told.items() if said]


def _unverified(run: Run, tasks: Tasks) -> str:
    found = {task.task: run.unverified[task.task] for task in tasks if task.task in run.unverified}
    if not found:
        return ""
    task, why = next(iter(found.items()))
    return f"Not verified, so not ranked: {_first(found)}: {why.replace(str(run.details.get(task)), 'its details')}."


def _differs(run: Run, tasks: Tasks) -> str:
    names = {task.task for task in tasks}
    for one in run.differs:
        if one.task in names:
            alike = _first(dict.fromkeys(each.task for each in run.differs if each.task in names))
            values = f"{one.metric} {one.in_file:.6g}, of the items {one.of_items:.6g}"
            return f"The results file states other scores than its items give, which are shown: {alike}: {values}."
    return ""


def _samples(run: Run, tasks: Tasks) -> str:
    found = [task.task for task in tasks if is_sample(task)]
    which = "" if len(found) == len(tasks) else f" of {_first(found)}" if found else ""
    return f"The data{which} are the shipped samples, made-up rows: these scores try things out." if found else ""


def _limit(run: Run, tasks: Tasks) -> str:
    asked = " or ".join(_limits(tasks))
    return f"Rows asked of a task: at most {asked} (--limit). These are not scores to report." if asked else ""


def _limits(tasks: Tasks) -> list[str]:
    return [f"{limit:,}" for limit in sorted({task.limit for task in tasks if task.limit is not None})]


def _missing(run: Run, tasks: Tasks) -> str:
    record, known = run.record, groups()
    told = [f"no data of {_groups(record.missing)} (`cultureval mirror SUITE` fetches them)"] if record.missing else []
    for reason in dict.fromkeys(record.unscorable.values()):
        names = [name for name, why in record.unscorable.items() if why == reason]
        told.append(f"{_groups(names)} cannot be scored ({reason.rstrip('.')})")
    present = Counter(group for group, _ in {(task.group, task.subset) for task in tasks})
    parts = {group: count for group, count in present.items() if count < len(known.get(group, ()))}
    told += [_named(f"{group} {count} of {len(known[group])} subsets" for group, count in parts.items())][: len(parts)]
    return f"Tasks are missing, so averages are not comparable: {'; '.join(told)}." if told else ""


def _other_rows(run: Run, tasks: Tasks) -> str:
    others = [task for task in tasks if not is_sample(task)]
    told = list(dict.fromkeys(task.other_data.rstrip(".") for task in others if task.other_data))
    broken = {task.task: task.skipped_rows for task in others if task.skipped_rows}
    told += [f"{_first(broken)}: {counted(rows, 'broken row')} left out" for rows in list(broken.values())[:1]]
    counts = {task.task: pair for task in others if (pair := _rows(run, task)) and pair[0] != pair[1]}
    told += [f"{_first(counts)}: {counted(rows, 'row')} of {all_:,}" for rows, all_ in list(counts.values())[:1]]
    forms = {task.task: task.form for task in others if task.form and task.form != _published_form(task)}
    told += [f"{_first(forms)} in the form {form!r}" for form in list(forms.values())[:1]]
    return f"Other rows than published: {'; '.join(told)}. Compare with runs on the same rows only." if told else ""


def _rows(run: Run, task: TaskRecord) -> tuple[int, int] | None:
    """The rows that a task without a limit asked, and those that are published; None where one is not known."""
    known = known_task(task.task)
    published = known.expected("curated" if task.form == "curated" else "original") if known else task.expected_rows
    if published is None or task.limit is not None:
        return None
    if run.record.schema_:
        return (task.rows + task.refused, published)
    of_task = run.items[(run.items["task"] == task.task).to_numpy()]  # a file without our record does not tell a limit
    return (int(of_task["item"].nunique()), published) if len(of_task) else None


def _published_form(task: TaskRecord) -> str:
    known = known_task(task.task)
    return known.sources[0].form if known and known.sources else task.form


def _unscored(run: Run, tasks: Tasks) -> str:
    headlines = {(task.task, task.headline) for task in tasks}
    told = _without_score(run, lambda task, metric: (task, metric) in headlines)
    return f"Asked items without a score: {told}. In ranks they count as the worst score." if told else ""


def _judged_in_part(run: Run, tasks: Tasks) -> str:
    names = {task.task for task in tasks}
    lacking = _without_score(run, lambda task, metric: task in names and metric.startswith(JUDGED))
    told = [f"scores missing: {lacking}"] if lacking else []
    told += [f"{judge} scored nothing ({reason.rstrip('.')})" for judge, reason in run.record.unjudged.items()]
    return f"Judged in part: {'; '.join(told)}. `cultureval judge RESULTS` judges the rest." if told else ""


def _without_score(run: Run, wanted: Callable[[str, str], bool]) -> str:
    """Which share of the asked items of some metrics has no score, where, and why; "" up to `UNSCORED`."""
    items = run.items
    counts = {place: pair for place, pair in counts_of(items, ["task", "metric"]).items() if wanted(*place)}
    lacking = Counter({place: asked - n for place, (n, asked) in counts.items() if n < asked})
    asked = sum(asked for _, asked in counts.values())
    if lacking.total() <= UNSCORED * asked:
        return ""
    rows = items[(items["num"].isna() & (items["den"] > 0)).to_numpy()]
    sizes = rows.groupby(["task", "metric", "reason"], observed=True).size()
    why: Counter[str] = Counter()
    for task, metric, reason, count in sizes.reset_index().itertuples(index=False, name=None):
        why[reason] += int(count) if (task, metric) in lacking else 0
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in why.most_common() if count)
    return f"{lacking.total() / asked:.1%} of {_groups(str(place[0]) for place in lacking)} ({reasons})"


def _mixed(run: Run, tasks: Tasks) -> str:
    names = run.record.model.served_models
    return f"Answers of several models are mixed: {_named(names)}. Run again with one." if len(names) > 1 else ""


def _cut(run: Run, tasks: Tasks) -> str:
    answers, prompts = (
        _high({task.task: getattr(task, name) / task.rows for task in tasks if task.rows}, CUT)
        for name in ("truncated", "cut_prompts")
    )
    told = [f"{what} of {found}" for what, found in (("answers", answers), ("prompts", prompts)) if found]
    return f"Cut at the limit of tokens: {'; '.join(told)}. Raise max_new_tokens or the context." if told else ""


def _unreadable(run: Run, tasks: Tasks) -> str:
    rates: dict[str, float] = {}
    for task in tasks:
        metric = next((name for name in INVALID if name in run.scores.get(task.task, ())), "")
        if declared := declared_metric(task.task, metric):
            rates[task.task] = run.scores[task.task][metric].value / declared.range[1]
    told = _high(rates, UNREADABLE)
    return f"Unreadable replies (strict reading, mean of subsets): {told}. Read some with `show`." if told else ""


def _high(rates: Mapping[str, float], least: float) -> str:
    """The mean rates of groups of tasks that are above a share, the highest first."""
    of_groups: dict[str, list[float]] = {}
    for task, rate in rates.items():
        of_groups.setdefault(_groups([task]), []).append(rate)
    means = ((math.fsum(some) / len(some), group) for group, some in of_groups.items())
    return _named(f"{group} {rate:.1%}" for rate, group in sorted(means, reverse=True) if rate > least)


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
    return f"At chance: {_named(told)}. That is nearly always the prompt or a parser, not the model." if told else ""


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


def _first(names: Iterable[str]) -> str:
    """The first of some tasks, and how many more there are."""
    first, *others = names
    return f"{first} and {counted(len(others), 'more task')}" if others else first


def _groups(names: Iterable[str]) -> str:
    return _named(dict.fromkeys(name_and_shots(name)[0].partition(":")[0] for name in names))


def _named(words: Iterable[str]) -> str:
    """The first words, and how many more there are."""
    listed = list(words)
    more = f" and {len(listed) - NAMED} more" if len(listed) > NAMED else ""
    return ", ".join(listed[:NAMED]) + more


KINDS: dict[str, Callable[[Run, Tasks], str]] = {  # in the order in which they are told; a kind's name is its mark
    "not verified": _unverified,
    "file differs": _differs,
    "samples": _samples,
    "limit": _limit,
    "tasks missing": _missing,
    "other rows": _other_rows,
    "items without score": _unscored,
    "mixed models": _mixed,
    "judged in part": _judged_in_part,
    "cut texts": _cut,
    "unreadable replies": _unreadable,
    "at chance": _at_chance,
}
