"""Judges' scores of a run, typed: the only reader of the names of judges' metrics (`judge_<judge>_<template>_...`)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cultureval.metrics.judges.items import JUDGED, own_templates, short_names, suite_templates
from cultureval.metrics.judges.verdicts import UNSCORED
from cultureval.runs.means import ROUNDING, Estimate
from cultureval.runs.record import Run, SignatureRecord, TaskRecord
from cultureval.runs.rows import owner_of
from cultureval.runtime.rounding import printed, printed_or_na
from cultureval.tasks.catalogue import all_tasks, kind_of

MISSING_LOW, MISSING, UNFLAGGED = "_missing_as_1", "_missing_as_", "_unflagged"  # ends of metrics' names
COUNTS = ("n_items", "n_parsed", "n_unscored", "n_not_asked", "n_flagged", "n_parsed_unflagged")
_LINES = re.compile(r"^judge\(|\) \+ judge\(")  # as `metrics.judges.lighteval.signatures_of_judges` joins them
_LINE = re.compile(r"judge:(.*?),model:.*?,template:([^,#]*)#")
Scores = Mapping[str, float | None]
DOUBTED = 0.02  # shares of a judge's verdicts that are unscored, or of flagged texts, above which means are bounded
BOUNDS_NOTE = "No scores to compare: in [ ] the bounds of the mean, with the lowest or highest for all other items."


@dataclass(frozen=True)
class CriterionScore:
    """A judge's score of a task by one criterion.

    Attributes:
        criterion: As in the metric's name: `fluency`.
        mean: Over the items that it scored; None where it scored none.
        low: The mean if all others had the lowest score; None where the file does not say.
        high: If they had the highest.
        unflagged: The mean without flagged texts.
    """

    criterion: str
    mean: Estimate | None
    low: float | None
    high: float | None
    unflagged: float | None


@dataclass(frozen=True)
class JudgeScores:
    """What a judge made of a task by one template.

    Attributes:
        task: With `|k`.
        judge: Its name.
        template: As in the metric's name: `image_reference`.
        items: That it had to score.
        scored: That it scored.
        unscored: That it did not, for whatever reason.
        not_asked: Of them, those that it was not asked about, since it stopped.
        flagged: Texts that look like attempts to influence it.
        scored_unflagged: Of the others, those that it scored.
        by_reason: Of the unscored, how many for which reason, as in `metrics.judges.verdicts.UNSCORED`.
        criteria: Its scores.
    """

    task: str
    judge: str
    template: str
    items: int
    scored: int
    unscored: int
    not_asked: int
    flagged: int
    scored_unflagged: int
    by_reason: Mapping[str, int]
    criteria: Mapping[str, CriterionScore]

    @property
    def failed(self) -> int:
        """How many it was asked about and did not score."""
        return self.unscored - self.not_asked

    @property
    def is_doubted(self) -> bool:
        """Whether it left out so many items that its means are told with their bounds, and compared with none."""
        return self.not_asked > 0 or self.failed > DOUBTED * self.items


def judge_scores(run: Run, records: Iterable[TaskRecord] | None = None) -> list[JudgeScores]:
    """The judges' scores of some tasks of a run, in the order of the tasks and of their metrics.

    Args:
        records: Tasks of it; None: all.
    """
    records = run.record.tasks.values() if records is None else records
    return [
        found
        for record in records
        for prefix in _prefixes(run.scores.get(record.task, {}))
        if (found := _scores(run, record, prefix))
    ]


def added_scores(values: Scores, later: Scores, rows: int, unverified: bool = False) -> Scores:
    """What a later judgement of a task adds to its scores: all that its judges say, but for what fuller ones say.

    Of two judgements by one judge and template that counts which asked about more items, of these the later one. Items
    that a judge was not asked about, as those that a sample leaves out, count as its unscored ones do.

    Args:
        values: The task's scores before.
        later: In the results file of the judgement.
        unverified: Whether it alone lacks its verdicts: then it replaces none, since no view has its items.
    """
    prefixes = _prefixes(later)
    later = {name: value for name, value in later.items() if owner_of(name, prefixes)} if unverified else later
    known = _prefixes(values) if unverified else ()
    kept = [one for one in prefixes if one not in known and _asked(later, one) >= _asked(values, one)]
    found = {}
    for prefix in kept:
        own = {name: value for name, value in later.items() if owner_of(name, prefixes) == prefix}
        found |= _of_all_items(own, prefix, rows - int(own.get(f"{prefix}_n_items") or 0))
    of_none = {name: value for name, value in later.items() if not owner_of(name, prefixes) and name.startswith(JUDGED)}
    return of_none | found


def told_otherwise(values: Scores, later: Scores) -> str:
    """The first mean of a later judgement that the bounds of the one that it replaces exclude; "" for none.

    Where it only adds verdicts that the earlier one lacks, its means are within those bounds.

    Args:
        values: A task's scores before.
        later: As of `added_scores`.
    """
    for metric in (name.removesuffix(MISSING_LOW) for name in later if name.endswith(MISSING_LOW)):
        (least, most), (low, high) = (_bounds_of(some, metric) for some in (values, later))
        if None not in (least, most, low, high) and not least - ROUNDING <= low <= high <= most + ROUNDING:
            now, before = (printed_or_na(some.get(metric), 4) for some in (later, values))
            return f"{metric} is {now} here, and was {before} by an earlier one"
    return ""


def _bounds_of(values: Scores, metric: str) -> tuple[float | None, float | None]:
    """The lowest and the highest that a judge's mean can be; None where the file does not say."""
    ends = [one for key, one in values.items() if key.startswith(f"{metric}{MISSING}") and one is not None]
    return min(ends, default=None), max(ends, default=None)


def _asked(values: Scores, prefix: str) -> float:
    """How many items a judge was asked about."""
    return (values.get(f"{prefix}_n_items") or 0) - (values.get(f"{prefix}_n_not_asked") or 0)


def _of_all_items(values: Scores, prefix: str, missing: int) -> Scores:
    """A judge's numbers of a task, with some items more that it was not asked about."""
    if missing <= 0:
        return values
    found, items = dict(values), values.get(f"{prefix}_n_items") or 0
    for count in ("n_items", "n_unscored", "n_not_asked"):
        found[f"{prefix}_{count}"] = (values.get(f"{prefix}_{count}") or 0) + missing
    for name, value in values.items():
        end = name.rpartition(MISSING)[2]
        if MISSING in name and end.isdigit() and value is not None:
            found[name] = (items * value + missing * int(end)) / (items + missing)
    return found


def is_of_judge(metric: str, judge: str, suite: str) -> bool:
    """Whether a metric is of a judge, and not of one whose name only begins like it (`far`, `far_2`)."""
    rest = metric.removeprefix(f"{JUDGED}{judge}_")
    return rest != metric and any(rest.startswith(f"{template}_") for template in templates_of(suite))


def signs(signature: SignatureRecord, metric: str, task: str) -> bool:
    """Whether a judge's signature, of the group `judge/template`, is of a metric of a task (`|k` may follow); of other
    packages' templates by the judge. Of two templates of one name in metrics it is the one that the task asks by.
    """
    judge, _, template = signature.group.partition("/")
    known = own_templates().get(template)
    if not template or not metric.startswith(f"{JUDGED}{judge}_{f'{known.short}_' if known else ''}"):
        return False
    bare = task.partition("|")[0]
    asked = kind_of(bare).judge_templates if bare in all_tasks() else ()
    return template in asked or known is None or known.short not in short_names(asked)


def judges_of(run: Run, task: str, metric: str, told: str) -> str | None:
    """The signatures of the judges that a task's metric is of; None of other metrics, and where nobody tells them.

    Args:
        told: Of the judges that were asked while the model answered, as its signature has them; "" without.
    """
    if not metric.startswith(JUDGED):
        return None
    later = [one.text.replace("|", ",") for one in run.record.signatures if signs(one, metric, task)]
    lines = {line: found for line in _LINES.split(told.removesuffix(")")) if (found := _LINE.match(line))}
    groups = {
        line: SignatureRecord(group="/".join(found.groups()), fields={}, text=line) for line, found in lines.items()
    }
    during = [line for line, one in groups.items() if signs(one, metric, task)]
    return "; ".join(sorted(later or during)) or None


def by_judge(scores: Iterable[JudgeScores]) -> dict[str, list[JudgeScores]]:
    """The scores of each judge that scored something."""
    found: dict[str, list[JudgeScores]] = {}
    for one in scores:
        found.setdefault(one.judge, []).append(one)
    return found


def total(scores: Iterable[JudgeScores], count: str) -> dict[str, int]:
    """Group of tasks -> the sum of a count of its judges (`unscored`, `not_asked`, ...), where it is not 0."""
    sums: dict[str, int] = {}
    for one in scores:
        group = one.task.partition("|")[0].partition(":")[0]
        sums[group] = sums.get(group, 0) + getattr(one, count)
    return {group: value for group, value in sums.items() if value}


def incomplete(scores: Sequence[JudgeScores]) -> str:
    """Words for a judge's title or mark, where it was not asked about all items: `judged in part (12 of 300)`."""
    missing, items = sum(one.not_asked for one in scores), sum(one.items for one in scores)
    return f"judged in part ({items - missing:,} of {items:,})" if missing else ""


def bounded_mean(scores: Sequence[CriterionScore]) -> str | None:
    """The unweighted mean of a criterion over some tasks with its bounds: `3.10 [2.00, 4.50]`, `n/a [1.00, 5.00]` of no
    scored item; None where no bound is known.

    The bounds are the means with the lowest and the highest score for each item without a score: the mean of all items
    is between them, whatever the judge would say.
    """
    known = [(one.low, one.high) for one in scores if one.low is not None and one.high is not None]
    if not known:
        return None
    means = [one.mean.value for one in scores if one.mean]
    low, high = (sum(ends) / len(known) for ends in zip(*known, strict=True))
    mean = sum(means) / len(means) if means else None
    return f"{printed_or_na(mean)} [{printed(low, 2)}, {printed(high, 2)}]"


def templates_of(suite: str) -> list[str]:
    """The parts of metrics' names that are a suite's judge templates: those of its folder, or those its kinds name."""
    from cultureval.tasks.catalogue import all_suites

    found = suite_templates(suite)
    if not found and suite in all_suites():  # a suite of another package, whose templates are in that package
        kinds = all_suites()[suite].part("kinds").values()
        found = short_names(name for kind in kinds for name in kind.judge_templates)
    return found


def _prefixes(names: Iterable[str]) -> list[str]:
    """The beginnings, one a judge and template, of the names that judges' counts have."""
    judged = [name for name in names if name.startswith(JUDGED)]
    found = [name.removesuffix(f"_{end}") for name in judged for end in COUNTS if name.endswith(f"_{end}")]
    return list(dict.fromkeys(found))


def _scores(run: Run, record: TaskRecord, prefix: str) -> JudgeScores | None:
    templates = [one for one in templates_of(record.suite) if prefix.endswith(f"_{one}")]
    if not templates:
        return None
    template, values = max(templates, key=len), run.scores[record.task]

    def count(name: str) -> int:
        return int(values.get(f"{prefix}_{name}") or 0)

    names = [name for name in values if f"{name}{MISSING_LOW}" in values or f"{name}_stderr" in values]
    criteria = [name.removeprefix(f"{prefix}_") for name in names if name.startswith(f"{prefix}_")]
    return JudgeScores(
        record.task,
        prefix.removeprefix(JUDGED).removesuffix(f"_{template}"),
        template,
        *map(count, COUNTS),
        {kind: count(f"n_{kind}") for kind in UNSCORED},
        {name: _criterion(run, record, f"{prefix}_{name}", name, count("n_parsed")) for name in criteria},
    )


def _criterion(run: Run, record: TaskRecord, metric: str, name: str, scored: int) -> CriterionScore:
    values = run.scores[record.task]
    value = values.get(metric)
    return CriterionScore(
        name,
        None if value is None else Estimate(value, values.get(f"{metric}_stderr"), scored),
        *_bounds_of(values, metric),
        values.get(f"{metric}{UNFLAGGED}"),
    )
