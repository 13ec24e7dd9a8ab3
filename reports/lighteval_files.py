"""The form in which LightEval keeps a run: results file and details; written here for all that is no run of its own."""

import math
import re
from typing import Any


def results_table(results: dict[str, Any]) -> str:
    """LightEval's table, in which an undefined value is "n/a"."""
    from lighteval.utils.utils import make_results_table

    return re.sub(r"(?<=\|)( *)nan(?= *\|)", r"\1n/a", make_results_table(results), flags=re.IGNORECASE)


def undefined_as_null(scores: dict[str, dict[str, float | None]]) -> None:
    """Replaces undefined values (nan) by None: null in the results file, where NaN is no JSON."""
    for values in scores.values():
        values.update({name: None for name, value in values.items() if value is not None and math.isnan(value)})
