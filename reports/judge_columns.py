"""Judges' scores in a results file, for headline tables: which judges there are, and their means."""

import re
from collections.abc import Sequence

from cultureval.reports.estimates import Estimate
from cultureval.reports.printed_numbers import printed, printed_or_na
from cultureval.reports.run_record import Run, TaskRecord


def judges_of(run: Run, records: Sequence[TaskRecord]) -> list[str]:
    """Names of the judges that scored some of the tasks (`judge_<judge>_<template>_<criterion>`).

    Args:
        run: A results file.
        records: Tasks of it.
    """
    templates = {template for record in records for template in templates_of(record.suite)}
    ends = "|".join(map(re.escape, sorted(templates, key=len, reverse=True)))
    pattern = re.compile(rf"judge_(?P<judge>.+?)_(?:{ends})_n_parsed")
    names = [name for record in records for name in run.scores.get(record.task, {})]
    return list(dict.fromkeys(found["judge"] for name in names if (found := pattern.fullmatch(name)))) if ends else []


def judged_in_part(run: Run, records: Sequence[TaskRecord], judge: str) -> str:
    """Words for the title of a judge's table, where the judge stopped before it was asked about all items; else ""."""
    values = [(name, value or 0) for record in records for name, value in run.scores.get(record.task, {}).items()]
    mine = [(name, value) for name, value in values if name.startswith(f"judge_{judge}_")]
    missing, items = (sum(value for name, value in mine if name.endswith(end)) for end in ("_n_not_asked", "_n_items"))
    return f", INCOMPLETE: {missing:g} of {items:g} verdicts were not asked for" if missing else ""


def bounded_mean(run: Run, records: Sequence[TaskRecord], judge: str, name: str) -> str | None:
    """A judge's mean of a criterion with its bounds, for a judge that was not asked about all items; None without any.

    Of several tasks, the unweighted means. The bounds are the means with the lowest and the highest score for each item
    without a score: the mean of all items is between them, whatever the judge would say.

    Args:
        run: A results file.
        records: Tasks of it.
        judge: The judge's name.
        name: Template and criterion as in the metric's name: `image_reference_fluency`.
    """
    metric = f"judge_{judge}_{name}"
    bounds = []
    for record in records:
        scores = run.scores.get(record.task, {})
        values = [value for one, value in scores.items() if one.startswith(f"{metric}_missing_as_")]
        known = [value for value in values if value is not None]
        if known:
            bounds.append((min(known), max(known)))
    if not bounds:
        return None
    means = [value for record in records if (value := run.value(record.task, metric)) is not None]
    low, high = (sum(ends) / len(bounds) for ends in zip(*bounds, strict=True))
    return f"{printed_or_na(sum(means) / len(means) if means else None)} [{printed(low, 2)}, {printed(high, 2)}]"


def judged_share(run: Run, records: Sequence[TaskRecord], judge: str, template: str) -> str:
    """How many of the items of some tasks have a score of a judge: `12 of 50`."""
    ends = ("n_parsed", "n_items")
    counts = [[run.value(one.task, f"judge_{judge}_{template}_{end}") or 0 for one in records] for end in ends]
    scored, items = map(sum, counts)
    return f"{scored:g} of {items:g}"


BOUNDS_NOTE = "No scores to compare: in [ ] the bounds of the mean, with the lowest or highest for all other items."


def templates_of(suite: str) -> list[str]:
    """The parts of metrics' names that are a suite's judge templates: those of its folder, or those its kinds name."""
    from cultureval.judge_prompts.templates import judge_template, own_templates
    from cultureval.tasks.catalogue import all_suites

    folder = suite.removesuffix("_dev")
    found = [row for row in own_templates().values() if row.name.startswith(f"{folder}_")]
    if not found and suite in all_suites():  # a suite of another package, whose templates are in that package
        kinds = all_suites()[suite].part("kinds").values()
        found = [judge_template(name) for kind in kinds for name in kind.judge_templates]
    return list(dict.fromkeys(row.short for row in found if row.criteria))


def criterion_estimate(run: Run, record: TaskRecord, judge: str, name: str) -> Estimate | None:
    """A judge's mean of a criterion over the items that it scored; None where it scored none.

    Args:
        run: A results file.
        record: A task of it.
        judge: The judge's name.
        name: Template and criterion as in the metric's name: `image_reference_fluency`.
    """
    value, stderr = (get(record.task, f"judge_{judge}_{name}") for get in (run.value, run.stderr))
    if value is None:
        return None
    template = max((one for one in templates_of(record.suite) if name.startswith(f"{one}_")), key=len)
    scored = run.value(record.task, f"judge_{judge}_{template}_n_parsed")
    return Estimate(value, stderr, None if scored is None else int(scored))
