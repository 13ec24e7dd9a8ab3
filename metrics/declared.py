"""Declaration of a suite's metrics: their names in results, their roles, and whether higher is better.

A suite's `names.py` has the declarations, without heavy imports; its benchmark tables, LightEval metrics and reports
use them.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

Role = Literal["headline", "companion", "count", "bound"]


@dataclass(frozen=True)
class Declared:
    """The declaration of one metric.

    Attributes:
        role: "headline" (the number of the paper's table), "companion" (a variant), "count" (a number or share of
            items), or "bound" (the score of a trivial answer).
        higher_is_better: Whether higher values are better.
    """

    role: Role = "companion"
    higher_is_better: bool = True


Metrics = dict[str, Declared]


def declare(
    headline: str,
    *others: str,
    counts: Collection[str] = (),
    bounds: Collection[str] = (),
    lower: Collection[str] = (),
) -> Metrics:
    """Declare the metrics of one set, in the order of tables: the headline, then the others.

    Args:
        headline: Name of the headline metric.
        *others: The other names.
        counts: Names of counts.
        bounds: Names of bounds.
        lower: Names of metrics for which lower is better.

    Raises:
        ValueError: A name is duplicated, or a role is given to an unknown name.
    """
    names = (headline, *others)
    if len(set(names)) < len(names) or not {*counts, *bounds, *lower} <= set(names):
        raise ValueError(f"names must be different, and roles must be of these: {', '.join(names)}")
    roles: dict[str, Role] = dict.fromkeys(counts, "count") | dict.fromkeys(bounds, "bound") | {headline: "headline"}
    return {name: Declared(roles.get(name, "companion"), name not in lower) for name in names}
