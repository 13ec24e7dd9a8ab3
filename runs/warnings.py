"""Warnings about a run's scores, shown once above its numbers: a table of kinds."""

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
from cultureval.tasks.catalogue import declared_metric, group_of, groups, known_task, name_and_shots

UNSCORED = 0.01  # warn above this share of items without a score
CUT = UNREADABLE = 0.02  # likewise of cut prompts or answers, and of unreadable replies
NAMED = 3  # most groups in a sentence
INVALID = ("invalid_strict", "invalid_rate", "joint_invalid_rate", "unparsable")  # rates of unreadable replies
CHOICE = ("acc", "acc_norm", "acc_strict")  # accuracies of one of k options
Tasks = list[TaskRecord]


class Warning(NamedTuple):
    """A warning about a run, which every view shows once.

    Attributes:
        kind: One of `KINDS`, such as `limit`.
        sentence: What, how much, and what to do.
        mark: The warning in a word or two, for beside the model's name.
    """

    kind: str
    sentence: str
    mark: str


def warnings(run: Run, tasks: Collection[str] | None = None) -> list[Warning]:
    """The warnings about a run, or about some of its tasks (with `|k`); at most one a kind."""
    chosen = [task for name, task in run.record.tasks.items() if tasks is None or name in tasks]
    found = []
    for kind, (check, sentence) in KINDS.items():
        if (tasks is None or check is not _missing) and (text := check(run, chosen)):
            found.append(Warning(kind, sentence.format(text), f"limit {text}" if kind == "limit" else kind))
    return found


def _unverified(run: Run, tasks: Tasks) -> str:
    found = [task.task for task in tasks if task.task in run.unverified]
    return f"{shown_names(found, 1)}: {run.unverified[found[0]]}" if found else ""


def _differs(run: Run, tasks: Tasks) -> str:
    names = {task.task for task in tasks}
    found = [difference for difference in run.differs if difference.task in names]
    if not found:
        return ""
    first, shown = found[0], shown_names([*dict.fromkeys(difference.task for difference in found)], 1)
    return f"{shown}: {first.metric} {first.in_file:.6g}, of the items {first.of_items:.6g}"


def _samples(run: Run, tasks: Tasks) -> str:
    found = [task.task for task in tasks if is_sample(task)]
    return "are" if found and len(found) == len(tasks) else f"of {shown_names(found, 1)} are" if found else ""


def _limit(run: Run, tasks: Tasks) -> str:
    return " and ".join(f"{limit:,}" for limit in sorted({task.limit for task in tasks if task.limit is not None}))


def _missing(run: Run, tasks: Tasks) -> str:
    record, known = run.record, groups()
    gaps = [f"no data of {_groups(record.missing)} (`cultureval fetch SUITE` fetches them)"] if record.missing else []
    for reason in dict.fromkeys(record.unscorable.values()):
        names = [name for name, why in record.unscorable.items() if why == reason]
        gaps.append(f"{_groups(names)} cannot be scored ({reason.rstrip('.')})")
    present = Counter(group for group, _ in {(task.group, task.subset) for task in tasks})
    sizes = {group: (count, len(known.get(group, ()))) for group, count in present.items()}
    parts = [f"{group} {count} of {size} subsets" for group, (count, size) in sizes.items() if count < size]
    return "; ".join([*gaps, *([shown_names(parts, NAMED)] if parts else [])])


def _other_rows(run: Run, tasks: Tasks) -> str:
    problems: dict[str, list[str]] = {}  # kind of difference -> tasks
    for task in (task for task in tasks if not is_sample(task)):
        known = known_task(task.task)
        rows, published = _rows(run, task)
        if task.other_data:
            problems.setdefault(task.other_data.rstrip("."), [])
        if task.skipped_rows:
            problems.setdefault("broken rows left out", []).append(f"{task.task} {task.skipped_rows:,}")
        if rows != published:
            problems.setdefault("numbers of rows", []).append(f"{task.task} {rows:,} of {published:,}")
        if known and known.sources and task.form not in ("", known.sources[0].form):
            problems.setdefault(f"in the form {task.form!r}", []).append(task.task)
    return "; ".join(f"{problem}: {shown_names(names, 1)}" if names else problem for problem, names in problems.items())


def _rows(run: Run, task: TaskRecord) -> tuple[int, int]:
    """The asked and the published number of rows of a task; (0, 0) with a limit, or where one is unknown."""
    known = known_task(task.task)
    published = known.expected("curated" if task.form == "curated" else "original") if known else task.expected_rows
    if published is None or task.limit is not None:
        return 0, 0
    if run.record.schema_:
        return task.rows + task.refused, published
    of_task = run.items[(run.items["task"] == task.task).to_numpy()]  # without our record the limit may be unknown
    return (int(of_task["item"].nunique()), published) if len(of_task) else (0, 0)


def _unscored(run: Run, tasks: Tasks) -> str:
    headlines = {(task.task, task.headline) for task in tasks}
    return _without_score(run, lambda task, metric: (task, metric) in headlines)


def _judged_in_part(run: Run, tasks: Tasks) -> str:
    names = {task.task for task in tasks}
    missing = _without_score(run, lambda task, metric: task in names and metric.startswith("judge_"))
    problems = [f"scores missing: {missing}"] if missing else []
    unjudged = [f"{judge} scored nothing ({reason.rstrip('.')})" for judge, reason in run.record.unjudged.items()]
    return "; ".join([*problems, *unjudged])


def _without_score(run: Run, wanted: Callable[[str, str], bool]) -> str:
    """Groups with more than `UNSCORED` of their items without a score, with shares and reasons."""
    items = run.items[(run.items["den"] > 0).to_numpy()]
    place, places = places_of(items)
    items = items[np.array([wanted(*pair) for pair in places], bool)[place]]
    groups = items["task"].map({task: _groups([task]) for task in items["task"].cat.categories})
    shares = []
    for group, of_group in items.groupby(groups, sort=False):
        reasons = of_group["reason"][of_group["num"].isna().to_numpy()].value_counts()
        if reasons.sum() > UNSCORED * len(of_group):
            why = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
            shares.append(f"{reasons.sum() / len(of_group):.1%} of {group} ({why})")
    return shown_names(shares, NAMED)


def _mixed(run: Run, tasks: Tasks) -> str:
    names = run.record.model.served_models
    return shown_names(names, NAMED) if len(names) > 1 else ""


def _cut(run: Run, tasks: Tasks) -> str:
    problems = []
    for noun, name in (("answers", "truncated"), ("prompts", "cut_prompts")):
        rates = {task.task: getattr(task, name) / task.rows for task in tasks if task.rows}
        problems += [f"{noun} of {found}" for found in [_high(rates, CUT)] if found]
    return "; ".join(problems)


def _unreadable(run: Run, tasks: Tasks) -> str:
    rates: dict[str, float] = {}
    for task in tasks:
        metric = next((name for name in INVALID if name in run.scores.get(task.task, ())), "")
        if declared := declared_metric(task.task, metric):
            rates[task.task] = run.scores[task.task][metric].value / declared.range[1]
    return _high(rates, UNREADABLE)


def _high(rates: Mapping[str, float], least: float) -> str:
    """The groups of tasks with a mean rate above `least`, the highest first."""
    of_groups: dict[str, list[float]] = {}
    for task, rate in rates.items():
        of_groups.setdefault(_groups([task]), []).append(rate)
    means = ((math.fsum(of_group) / len(of_group), group) for group, of_group in of_groups.items())
    return shown_names([f"{group} {rate:.1%}" for rate, group in sorted(means, reverse=True) if rate > least], NAMED)


def _at_chance(run: Run, tasks: Tasks) -> str:
    of_groups: dict[tuple[str, str], list[str]] = {}
    for task in tasks:
        if task.headline in CHOICE and task.task in run.details:
            group = f"{task.group}|{task.shots}" if task.shots else task.group
            of_groups.setdefault((group, task.headline), []).append(task.task)
    at_chance = []
    for (group, metric), names in of_groups.items():
        weights = run.weights(names, metric)
        score = run.mean(weights)
        if score is None or score.low is None or score.high is None or score.low > 1 / 2:
            continue
        shares = [share for name in names if (share := _share_of_guesses(run.details[name]))]
        chance = math.fsum(map(math.prod, zip(shares, weights.values(), strict=False)))
        if len(shares) == len(names) and score.low <= chance <= score.high:
            at_chance.append(f"{group} {score.value:.2f} (guessing gives {chance:.2f})")
    return shown_names(at_chance, NAMED)


def _share_of_guesses(details: Path) -> float | None:
    """The mean of 1/k over items with one right option of k; None for other tasks."""
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
        return None  # several right options: another chance level
    counts = compute.list_value_length(choices)
    return float(compute.mean(compute.divide(1.0, counts)).as_py()) if compute.min(counts).as_py() > 1 else None


def _groups(names: Iterable[str]) -> str:
    return shown_names([*dict.fromkeys(group_of(name_and_shots(name)[0]) for name in names)], NAMED)


# In the order of display: kind, which is also the mark -> check ("" for nothing), sentence.
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
