"""Declaration of a suite's metrics: their names in results, roles and ranges, and whether higher is better.

A suite's `names.py` has the declarations, without heavy imports; its benchmark tables, LightEval metrics and reports
use them.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

Range = tuple[float, float]  # the lowest and the highest score that there can be; an end may be infinite
SHARE: Range = (0.0, 1.0)
PERCENT: Range = (0.0, 100.0)
NOT_NEGATIVE: Range = (0.0, math.inf)
DEN, SUMS = "_den", "_sums"  # suffixes of columns of details: how often a row counts, its part of a corpus score
Role = Literal["headline", "companion", "count", "bound"]


@dataclass(frozen=True)
class Declared:
    """The declaration of one metric.

    Attributes:
        role: "headline" (the number of the paper's table), "companion" (a variant), "count" (a number or share of
            items), or "bound" (the score of a trivial answer).
        higher_is_better: Whether higher values are better.
        range: Of an item's score, and so of a mean.
        of_sums: For corpus scores, "module:name" of the function [..., P] -> [...] of its items' summed statistics.
    """

    role: Role = "companion"
    higher_is_better: bool = True
    range: Range = SHARE
    of_sums: str = ""


Metrics = dict[str, Declared]


def declare(
    headline: str,
    *others: str,
    counts: Collection[str] = (),
    bounds: Collection[str] = (),
    lower: Collection[str] = (),
    ranges: Mapping[str, Range] | None = None,
    sums: Mapping[str, str] | None = None,
) -> Metrics:
    """Declare the metrics of one set, in the order of tables: the headline, then the others.

    Args:
        lower: Names of metrics for which lower is better.
        ranges: Metric -> range, if it is not 0 to 1.
        sums: Corpus score -> the function of its sums.

    Raises:
        ValueError: A name is duplicated, or a role is given to an unknown name.
    """
    names, limits, sums = (headline, *others), dict(ranges or {}), sums or {}
    if len(set(names)) < len(names) or not {*counts, *bounds, *lower, *limits, *sums} <= set(names):
        raise ValueError(f"names must be different, and roles must be of these: {', '.join(names)}")
    roles: dict[str, Role] = dict.fromkeys(counts, "count") | dict.fromkeys(bounds, "bound") | {headline: "headline"}
    return {
        name: Declared(roles.get(name, "companion"), name not in lower, limits.get(name, SHARE), sums.get(name, ""))
        for name in names
    }


# The metrics of multiple-choice and multi-select questions of any suite, each set's headline first.
MULTIPLE_CHOICE = declare("acc_norm", "acc")
MULTI_SELECT = declare("gold_probability_mass", "gold_set_match")
# Of generated replies; no other metric has these names, so that no average mixes both forms.
CHOICE_REPLIES = declare(
    *("acc_strict", "acc_lenient", "invalid_strict", "invalid_lenient"),
    counts=["invalid_strict", "invalid_lenient"],
    lower=["invalid_strict", "invalid_lenient"],
)
