"""The numbers of a comparison: metrics of every cell with its regime, and paired differences of CFHR.

Paper: arXiv 2602.05437, Table 2 (cells), Table 7 (differences of CFHR), Figure 3 (regimes of Q+ accuracy and CFHR).
Our own: the thresholds between the regimes, which the paper only names.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from cultureval.metrics.m2cqa.names import (
    CFHR,
    CFHR_VALID_ONLY,
    COMBINED_ACC,
    COUNTS,
    F1,
    INVALID_RATE,
    N_ITEMS,
    N_Q_PLUS,
    Q_MINUS_ACC,
    Q_PLUS_ACC,
)
from cultureval.metrics.m2cqa.statement_items import cell_report, right_judgements
from cultureval.metrics.paired_tests import PairedSubset, compare_paired
from cultureval.metrics.proportions import holm, wilson_interval
from cultureval.reports.m2cqa.cells import CellVerdicts
from cultureval.tasks.m2cqa.benchmarks import DIALECTS, PROMPTS

Row = dict[str, Any]
Key = tuple[str, str, str]  # model, prompt, variety
VALUES = (
    *(Q_PLUS_ACC, f"{Q_PLUS_ACC}_stderr", Q_MINUS_ACC, F1, COMBINED_ACC, CFHR, f"{CFHR}_stderr"),
    *(INVALID_RATE, CFHR_VALID_ONLY, *COUNTS),
)
LOW, HIGH = f"{CFHR}_low", f"{CFHR}_high"
CELL_COLUMNS = ("model", "prompt", "variety", *VALUES, LOW, HIGH, "regime", "size_b")
DIFFERENCE_COLUMNS = (
    "variety",
    "held",
    "first",
    "second",
    "delta",
    "ci_low",
    "ci_high",
    "p_value",
    "p_holm",
    "identical",
    "n_items",
)
BREAKDOWN_COLUMNS = ("model", "prompt", "variety", "field", "value", N_ITEMS, N_Q_PLUS, CFHR, LOW, HIGH)


@dataclass(frozen=True)
class Borders:
    """Thresholds of "high": accuracy on Q+, and CFHR."""

    q_plus_acc: float
    cfhr: float

    def regime(self, q_plus_acc: float, cfhr: float | None) -> str:
        """The paper's name (Figure 3) for a pair of values; "undefined" without a CFHR."""
        if cfhr is None:
            return "undefined"
        if q_plus_acc >= self.q_plus_acc:
            return "over-acceptance" if cfhr >= self.cfhr else "strong grounding"
        return "frequent hallucination" if cfhr >= self.cfhr else "conservative rejection"


def cell_rows(cells: Sequence[CellVerdicts], borders: Borders, sizes: Mapping[str, float]) -> list[Row]:
    """The metrics of every cell, and of the paper's Dialect rows: the unweighted means of ajp and arz.

    The interval of CFHR is Wilson's, given the items with a correct Q+. A Dialect row's standard error and interval are
    means too, upper bounds, since both dialects have the same items.
    """
    rows = {}
    for cell in cells:
        report = cell_report(cell.verdicts)
        rows[cell.model, cell.prompt, cell.variety] = report | _interval(report[CFHR], report[N_Q_PLUS])
    for model, prompt in dict.fromkeys((cell.model, cell.prompt) for cell in cells):
        pair = [rows.get((model, prompt, variety)) for variety in DIALECTS]
        if all(pair):
            rows[model, prompt, "dialect"] = {
                name: _mean(pair[0][name], pair[1][name]) for name in (*VALUES, LOW, HIGH)
            }
    return [
        {"model": model, "prompt": prompt, "variety": variety}
        | {name: values[name] for name in (*VALUES, LOW, HIGH)}
        | {"regime": borders.regime(values[Q_PLUS_ACC], values[CFHR]), "size_b": sizes.get(model)}
        for (model, prompt, variety), values in rows.items()
    ]


def breakdown_rows(cells: Sequence[CellVerdicts]) -> list[Row]:
    """CFHR of every cell by country and by category, where the data have them, with Wilson's intervals."""
    rows = []
    for cell in cells:
        right, rejected = right_judgements(cell.verdicts)
        fooled = right & ~rejected.all(axis=1)
        for name, values in cell.fields.items():
            for value in sorted(set(values)):
                here = np.array(values) == value
                hits, items = int(right[here].sum()), int(here.sum())
                rate = float(fooled[here].sum() / hits) if hits else None
                row: Row = {"model": cell.model, "prompt": cell.prompt, "variety": cell.variety, "field": name}
                row |= {"value": value or "unknown", N_ITEMS: items, N_Q_PLUS: hits, CFHR: rate}
                rows.append(row | _interval(rate, hits))
    return rows


def _interval(rate: float | None, hits: float | None) -> dict[str, float | None]:
    if rate is None or not hits:
        return {LOW: None, HIGH: None}
    low, high = wilson_interval(round(rate * hits), int(hits))
    return {LOW: low, HIGH: high}


def difference_rows(cells: Sequence[CellVerdicts], draws: int, seed: int) -> list[Row]:
    """CFHR of every pair of prompts of a model, and of every pair of models under a prompt, variety by variety.

    The difference is first minus second on the items of both; interval and p-value are those of `compare_paired`, in
    Dialect rows of the mean of both dialects, an item drawn in both at once. `p_holm` is adjusted for all differences
    of models, or of prompts. Cells with the same verdicts are `identical` and have no test.
    """
    of_cell: dict[Key, list[CellVerdicts]] = {(cell.model, cell.prompt, cell.variety): [cell] for cell in cells}
    dialects: dict[Key, list[CellVerdicts]] = {}
    for model, prompt in dict.fromkeys((cell.model, cell.prompt) for cell in cells):
        members = [of_cell.get((model, prompt, variety), []) for variety in DIALECTS]
        if all(members):
            dialects[model, prompt, "dialect"] = [cell for one in members for cell in one]
    rows = [_difference(*pair, found, draws, seed) for found in (of_cell, dialects) for pair in _pairs(found)]
    for of_models in (True, False):
        family = [row for row in rows if (row["held"] in PROMPTS) == of_models and row["p_value"] is not None]
        for row, adjusted in zip(family, holm([row["p_value"] for row in family]), strict=True):
            row["p_holm"] = adjusted
    return rows


def _pairs(keys: Collection[Key]) -> Iterator[tuple[Key, Key]]:
    for first, second in combinations(keys, 2):
        if first[2] == second[2] and (first[0] == second[0]) != (first[1] == second[1]):
            yield first, second


def _difference(first: Key, second: Key, cells: Mapping[Key, Sequence[CellVerdicts]], draws: int, seed: int) -> Row:
    same_model = first[0] == second[0]
    row: Row = dict.fromkeys(DIFFERENCE_COLUMNS) | {"identical": False, "n_items": 0}
    row |= {"held": first[0] if same_model else first[1], "variety": first[2]}
    row |= {"first": first[1 if same_model else 0], "second": second[1 if same_model else 0]}
    pairs = list(zip(cells[first], cells[second], strict=True))
    shared = [sorted({*one.ids} & {*other.ids}) for one, other in pairs]
    if not all(shared):
        return row
    subsets = [
        PairedSubset(_fooled(one, ids), _fooled(other, ids), clusters=ids)
        for (one, other), ids in zip(pairs, shared, strict=True)
    ]
    found = compare_paired(subsets, draws, seed)
    row |= {"n_items": found.clusters, "identical": found.identical and not math.isnan(found.difference)}
    if math.isnan(found.difference):
        return row
    row["delta"] = found.difference
    return row if found.identical else row | {"ci_low": found.low, "ci_high": found.high, "p_value": found.p_value}


def _fooled(cell: CellVerdicts, ids: Sequence[str]) -> np.ndarray:
    """[N, 2] what CFHR is the ratio of: items with a correct Q+ and an accepted Q-, items with a correct Q+."""
    right, rejected = cell.on(ids)
    return np.column_stack([right & ~rejected.all(axis=1), right])


def _mean(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else (first + second) / 2
