"""`cultureval compare --plan`: the smallest difference that so many items can show, before anything is run."""

import math
from collections.abc import Sequence

from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.errors import CulturevalError, escaped
from cultureval.runtime.printing import wrapped
from cultureval.tasks.catalogue import all_tasks, name_and_shots, rows_per_item
from cultureval.tasks.selection import tasks_named
from cultureval.tasks.suite import Task

HEADER = ("", "items", "smallest difference", "of all by Holm")


def plan(what: Sequence[str], discordant: float, power: float, tests: int | None) -> str:
    """The smallest differences of two accuracies that a paired test at 5 % finds, as text.

    Args:
        what: Numbers of items; or names of tasks, groups or suites, whose published rows are counted.
        discordant: Share of items that exactly one of the two models has right, 0 to 1.
        power: Chance of finding it.
        tests: Of the family; None: as many as there are rows.

    Raises:
        CulturevalError: A name is none of these, or a number is out of range.
    """
    if not (0 < discordant <= 1 and 0 < power < 1):
        raise CulturevalError("--discordant must be above 0 and at most 1, and --power between 0 and 1.")
    rows = [row for name in what for row in _items(name).items()]
    family, table = tests or len(rows), []
    for name, items in rows:
        found = [smallest_difference(items, discordant, count, power) for count in (1, family)]
        cells = ["none: too few items" if one is None or one > discordant else f"{one:.4f}" for one in found]
        table.append([name, f"{items:.0f}", *cells])
    lead = (
        f"The smallest difference of two models that a paired test at 5 % finds with {100 * power:.0f} % probability, "
        f"alone and as one of {family} tested together, where one model alone has {100 * discordant:g} % of the items "
        "right. On the scale of an item's score: 0.01 of an accuracy is one point."
    )
    return escaped(f"{wrapped(lead)}\n\n{terminal_table(HEADER, table, 'lr')}", keep="\n")


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


def _items(name: str) -> dict[str, float]:
    """The items of a number, or of each group that a name stands for."""
    if name.isdigit():
        if not int(name):
            raise CulturevalError("--plan 0: give the number of items of the test, 1 or more.")
        return {f"{name} items": int(name)}
    groups: dict[str, list[Task]] = {}
    for task in tasks_named(name):
        known = all_tasks()[name_and_shots(task)[0]]
        groups.setdefault(known.group, []).append(known)
    found = {group if len(tasks) > 1 else tasks[0].task: _items_of(tasks) for group, tasks in groups.items()}
    if unknown := [name for name, items in found.items() if not items]:
        raise CulturevalError(f"{unknown[0]}: its number of rows is not published; name a number of items instead.")
    return found


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
