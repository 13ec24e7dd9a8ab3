"""`cultureval compare --plan`: the smallest difference that so many items can show, before anything is run."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cultureval.metrics.paired_tests import smallest_difference
from cultureval.metrics.standard_errors import clustered_standard_error
from cultureval.reports.comparison.compared_models import Side, sides_of
from cultureval.reports.comparison.paired_runs import SUBSET, metrics_of, pair_sides, tested_differences
from cultureval.reports.terminal_tables import terminal_table, wrapped
from cultureval.runs.items import item_scores
from cultureval.runtime.errors import CulturevalError, escaped, shown_names
from cultureval.runtime.printing import print_note
from cultureval.tasks.catalogue import all_tasks, rows_per_item
from cultureval.tasks.selection import tasks_named
from cultureval.tasks.suite import Task

HEADER = ("", "items", "variance", "smallest difference", "of all by Holm", "variance from")
DRAWS = 2000


@dataclass(frozen=True)
class Planned:
    """What is known of a score before it is compared.

    Attributes:
        name: Of a group, a task, or the number of items.
        items: Their number; of an average over subsets the number that a single set needs for the same error.
        variance: Of an item's difference; for accuracies the share of items that exactly one model has right. 0: the
            runs do not tell it.
        source: Where the variance is from.
        largest: The largest difference that there can be; of any score infinite.
    """

    name: str
    items: float
    variance: float
    source: str
    largest: float = math.inf


def plan(what: Sequence[str], discordant: float, power: float, tests: int | None) -> str:
    """The smallest differences that a paired test at 5% finds, as text.

    Args:
        what: Numbers of items; names of tasks, groups or suites, whose published rows are counted; or results of runs,
            whose items tell the variance: two runs that of their difference, one alone an upper bound.
        discordant: Share of items that exactly one of the two models has right, where no runs tell it; 0 to 1.
        power: Chance of finding it.
        tests: Of the family; None: as many as there are rows.

    Raises:
        CulturevalError: A name is none of these, or a number is out of range.
    """
    if not (0 < discordant <= 1 and 0 < power < 1):
        raise CulturevalError("--discordant must be above 0 and at most 1, and --power between 0 and 1.")
    paths = [Path(name) for name in what if not name.isdigit() and Path(name).exists()]
    rows = [row for name in what if Path(name) not in paths for row in _assumed(name, discordant)]
    rows += list(_of_runs(paths)) if paths else []
    alike, rows = [row.name for row in rows if not row.variance], [row for row in rows if row.variance]
    if not rows:
        raise CulturevalError(f"{', '.join(what)}: no score varies over the items; give a number of items instead.")
    if alike:
        print_note(f"Left out, since they do not vary over the items: {shown_names(alike)}.")
    family = tests or len(rows)
    table = []
    for row in rows:
        found = [smallest_difference(row.items, row.variance, count, power) for count in (1, family)]
        cells = ["none: too few items" if one is None or one > row.largest else f"{one:.4f}" for one in found]
        table.append([row.name, f"{row.items:.0f}", f"{row.variance:.4f}", *cells, row.source])
    together = "1 difference is" if family == 1 else f"{family} differences are"
    lead = (
        f"The smallest difference of two models that a paired test at 5% finds with {100 * power:.0f}% probability, and"
        f" where {together} tested together. On the scale of an item's score: 0.01 of an accuracy is one "
        "point. Where no runs tell the variance, every score is taken for an accuracy."
    )
    return escaped(f"{wrapped(lead)}\n\n{terminal_table(HEADER, table, 'lrrrrl')}", keep="\n")


def _assumed(name: str, discordant: float) -> Iterator[Planned]:
    source = f"--discordant {discordant:g}"
    if name.isdigit():
        if not int(name):
            raise CulturevalError("--plan 0: give the number of items of the test, 1 or more.")
        yield Planned(f"{name} item{'' if int(name) == 1 else 's'}", int(name), discordant, source, discordant)
        return
    groups: dict[str, list[Task]] = {}
    for task in tasks_named(name):
        known = all_tasks()[task.partition("|")[0]]
        groups.setdefault(known.group, []).append(known)
    for group, tasks in groups.items():
        items = _items_of(tasks)
        if not items:
            raise CulturevalError(f"{group}: its number of rows is not published; name a number of items instead.")
        yield Planned(group if len(tasks) > 1 else tasks[0].task, items, discordant, source, discordant)


def _items_of(tasks: Sequence[Task]) -> float:
    """How many items a single set needs for the error that the mean of a group's tasks has; 0 where nobody knows.

    Tasks that ask the same items in other languages or forms may answer them alike: together they tell as much as one.
    """
    counts: dict[str, list[float]] = {}
    for task in tasks:
        items = (task.expected_rows or 0) / rows_per_item(task.task)
        counts.setdefault(task.shared_items or task.task, []).append(items)
    if not all(map(all, counts.values())):
        return float(max(tasks[0].group_rows.values(), default=0))
    return len(tasks) ** 2 / sum(len(some) ** 2 / min(some) for some in counts.values())


def _of_runs(paths: Sequence[Path]) -> Iterator[Planned]:
    sides = sides_of(paths)
    for sentence in dict.fromkeys(sentence for side in sides for sentence in side.unread):
        print_note(sentence)
    if len(sides) == 1:
        yield from _of_one(sides[0])
        return
    pairs = pair_sides(sides, (), ("items", "prompts", "scorers"))
    for row in tested_differences(pairs, DRAWS, seed=0):
        if row.level != SUBSET:
            variance = (row.result.stderr or 0.0) ** 2 * row.result.items
            most = math.inf if row.result.flips is None else variance  # of right and wrong answers
            yield Planned(row.name, row.result.items, variance, f"{row.first} and {row.second}", most)


def _of_one(side: Side) -> Iterator[Planned]:
    """From one run: the variance of the difference to a model whose answers have nothing to do with its."""
    for name, task in side.tasks.items():
        for metric in metrics_of(task, ()):
            items = item_scores(task.saved.file, name, metric)
            values = [] if items is None else items.values()
            clusters = [] if items is None else [cluster or place for place, cluster in enumerate(items.clusters)]
            known = [(value, cluster) for value, cluster in zip(values, clusters, strict=True) if value == value]
            if len(known) > 1:
                error = clustered_standard_error(*zip(*known, strict=True))
                yield Planned(name, len(known), 2 * error**2 * len(known), f"{side.name} alone: an upper bound")
