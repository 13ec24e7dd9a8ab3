"""How a suite declares its metrics once: their names in results, their roles, and which way is better.

A suite's `names.py` holds the declarations, without heavy imports; its tables of benchmarks, its LightEval metrics and
its reports take them from there.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

Role = Literal["headline", "companion", "count", "bound"]


@dataclass(frozen=True)
class Declared:
    """What is said of one metric.

    Attributes:
        role: The number of the paper's table ("headline"), another view of it ("companion"), how many items (or which
            share) something held for ("count"), what an answer without any effort scores ("bound").
        higher_is_better: Which way models improve.
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
    """The metrics of one set, by name, in the order of tables: the headline, then the others.

    Args:
        headline: The number of the paper's table.
        *others: All further names.
        counts: Which of them are counts.
        bounds: Which of them are bounds.
        lower: Of which of all of them lower values are better.

    Raises:
        ValueError: A name is declared twice, or a role is given to a name that is not declared.
    """
    names = (headline, *others)
    if len(set(names)) < len(names) or not {*counts, *bounds, *lower} <= set(names):
        raise ValueError(f"names must be different, and roles must be of these: {', '.join(names)}")
    roles: dict[str, Role] = dict.fromkeys(counts, "count") | dict.fromkeys(bounds, "bound") | {headline: "headline"}
    return {name: Declared(roles.get(name, "companion"), name not in lower) for name in names}
