"""`cultureval compare --plan`: the smallest difference that so many items can show, before anything is run."""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from cultureval.reports.comparison.differences import ALL, SUBSET, compare, load_sides, metrics_of
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.loading import Run
from cultureval.runtime.errors import CulturevalError, escaped
from cultureval.runtime.printing import wrapped
from cultureval.tasks.catalogue import all_tasks, name_and_shots, rows_per_item
from cultureval.tasks.selection import tasks_named
from cultureval.tasks.suite import Task

HEADER = ("", "items", "variance", "smallest difference", "of all by Holm", "variance from")
DRAWS = 1  # the tests' p-values are not used


class Planned(NamedTuple):
    """What is known of a score before it is compared.

    Attributes:
        name: Of a group, a task, or the number of items.
        items: Their number; of a mean of subsets the number that a single set needs for the same error.
        variance: Of an item's difference; for accuracies the share of items that exactly one model has right.
        source: Where the variance is from.
        largest: The largest difference that there can be; of accuracies their variance.
    """

    name: str
    items: float
    variance: float
    source: str
    largest: float = math.inf


def plan(what: Sequence[str], discordant: float, power: float, tests: int | None) -> str:
    """The smallest differences that a paired test at 5 % finds, as text.

    Args:
        what: Numbers of items; names of tasks, groups or suites, whose published rows are counted; or results of runs:
            two tell the variance of their difference, one alone an upper bound.
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
    if not rows:
        raise CulturevalError(f"{', '.join(what)}: no score varies over the items; give a number of items instead.")
    family = tests or len(rows)
    table = []
    for row in rows:
        found = [smallest_difference(row.items, row.variance, count, power) for count in (1, family)]
        cells = ["none: too few items" if one is None or one > row.largest else f"{one:.4f}" for one in found]
        table.append([row.name, f"{row.items:.0f}", f"{row.variance:.4f}", *cells, row.source])
    lead = (
        f"The smallest difference of two models that a paired test at 5 % finds with {100 * power:.0f} % probability, "
        f"alone and as one of {family} tested together. On the scale of an item's score: 0.01 of an accuracy is one "
        "point. Where no runs tell the variance, every score is taken for an accuracy."
    )
    return escaped(f"{wrapped(lead)}\n\n{terminal_table(HEADER, table, 'lrrrrl')}", keep="\n")


def smallest_difference(items: float, variance: float, tests: int = 1, power: float = 0.8) -> float | None:
    """The smallest difference of two scores that a paired test finds with the given power.

    It solves d = (z_a sqrt(v) + z_b sqrt(v - d^2)) / sqrt(n) (Connor, Biometrics 43, 1987).

    Args:
        items: n; with clusters the effective number, n over the design effect.
        variance: v of an item's difference, above 0; for accuracies the share of items that one model alone has right.
        tests: Of the family; each is tested at 0.05 / `tests` (Bonferroni, the worst case of Holm).
        power: Chance of finding it.

    Returns:
        The difference, on the scale of an item's score; None where there are too few items to find any.
    """
    from scipy.stats import norm

    significant, found = norm.isf(0.025 / tests), norm.ppf(power)
    if items < significant**2 + 1:  # even if all differing items were on one side
        return None
    spread = items + found**2  # the root of that equation, which is quadratic in d
    difference = math.sqrt(variance) * (significant * math.sqrt(items) + found * math.sqrt(spread - significant**2))
    return float(difference / spread)


def _assumed(name: str, discordant: float) -> Iterator[Planned]:
    source = f"--discordant {discordant:g}"
    if name.isdigit():
        if not int(name):
            raise CulturevalError("--plan 0: give the number of items of the test, 1 or more.")
        yield Planned(f"{name} item{'' if int(name) == 1 else 's'}", int(name), discordant, source, discordant)
        return
    groups: dict[str, list[Task]] = {}
    for task in tasks_named(name):
        known = all_tasks()[name_and_shots(task)[0]]
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
    runs = load_sides(paths, least=1)[0]
    if len(runs) == 1:
        yield from _of_one(runs[0])
    for first, second in combinations(runs, 2):
        for row in compare([first, second], (), [ALL], DRAWS).rows:
            if row.level != SUBSET and row.pair.error:
                variance = row.pair.error**2 * row.pair.items
                largest = variance if row.pair.test == "McNemar mid-p" else math.inf
                yield Planned(row.name, row.pair.items, variance, f"{row.first} and {row.second}", largest)


def _of_one(run: Run) -> Iterator[Planned]:
    """From one run: the variance of the difference to a model whose answers have nothing to do with its."""
    for task in run.files:
        for metric in metrics_of(run, task):
            score = run.score(task, metric)
            if score and score.error:
                yield Planned(task, score.n, 2 * score.error**2 * score.n, f"{run.name} alone: an upper bound")
