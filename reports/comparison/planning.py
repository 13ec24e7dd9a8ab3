"""`cultureval compare --plan`: the smallest difference that a test with a number of items can find."""

import math
from collections.abc import Sequence

from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.printing import wrapped

HEADER = ("items", "smallest difference", "of all by Holm")


def plan(counts: Sequence[str], discordant: float, power: float, tests: int | None) -> str:
    """The smallest differences of two accuracies that a paired test at 5 % finds, as text.

    Args:
        counts: Numbers of items.
        discordant: Share of items that exactly one of the two models has right, 0 to 1.
        power: Chance of finding it.
        tests: Of the family; None: as many as there are counts.

    Raises:
        CulturevalError: A number is out of range.
    """
    if not (0 < discordant <= 1 and 0 < power < 1):
        raise CulturevalError("--discordant must be above 0 and at most 1, and --power between 0 and 1.")
    if wrong := [count for count in counts if not count.isdecimal() or not int(count)]:
        raise CulturevalError(f"--plan {wrong[0]}: give the number of items of the test, 1 or more.")
    family, rows = tests or len(counts), []
    for count in counts:
        found = [smallest_difference(int(count), discordant, number, power) for number in (1, family)]
        rows.append([count, *("too few" if least is None or least > discordant else f"{least:.4f}" for least in found)])
    lead = (
        f"The smallest difference of two models that a paired test at 5 % finds with {100 * power:.0f} % probability: "
        f"as a single test, and as one of {family} tests. On {100 * discordant:g} % of the items exactly one of the "
        "two models is right. The scale is that of an item's score: 0.01 of an accuracy is one point."
    )
    return f"{wrapped(lead)}\n\n{terminal_table(HEADER, rows, 'r')}"


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
