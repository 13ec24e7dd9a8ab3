"""The numbers of a comparison: metrics of every cell with its regime, and paired differences of CFHR.

Paper: arXiv 2602.05437, Table 2 (cells), Table 7 (differences of CFHR), Figure 3 (regimes of Q+ accuracy and CFHR).
Our own: the thresholds between the regimes, which the paper only names.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from cultureval.metrics.m2cqa.counterfactual import cfhr_replicates, percentile_difference
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
from cultureval.metrics.proportions import holm, newcombe_interval, wilson_interval
from cultureval.reports.m2cqa.cells import Cell
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
    "skipped",
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


@dataclass(frozen=True)
class Sampled:
    """A CFHR in the sample and in shared resamples of its items; nan if undefined."""

    ids: tuple[str, ...]
    point: float
    draws: np.ndarray


def cell_rows(cells: Sequence[Cell], borders: Borders, sizes: Mapping[str, float]) -> list[Row]:
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


def breakdown_rows(cells: Sequence[Cell]) -> list[Row]:
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


def difference_rows(cells: Sequence[Cell], iterations: int, seed: int) -> list[Row]:
    """CFHR of every pair of prompts of a model, and of every pair of models under a prompt, variety by variety.

    The difference is first minus second; each resample draws the items once for both (paper, appendix A.5). `skipped`
    counts the resamples without a correct Q+ in either. `p_holm` is adjusted for all differences of models, or of
    prompts. Cells with the same verdicts are `identical` and have no test. Where no resample varies (both CFHR are 0 or
    1), the interval is Newcombe's.
    """
    sampled = {(cell.model, cell.prompt, cell.variety): _sample(cell, cell.ids, iterations, seed) for cell in cells}
    of_cell = {(cell.model, cell.prompt, cell.variety): cell for cell in cells}
    rows = [_difference(*pair, sampled, of_cell, iterations, seed) for pair in _pairs(sampled)]
    dialects = _dialects(sampled)
    rows += [_difference(*pair, dialects, {}, iterations, seed) for pair in _pairs(dialects)]
    for of_models in (True, False):
        family = [row for row in rows if (row["held"] in PROMPTS) == of_models and row["p_value"] is not None]
        for row, adjusted in zip(family, holm([row["p_value"] for row in family]), strict=True):
            row["p_holm"] = adjusted
    return rows


def _pairs(keys: Mapping[Key, Sampled]) -> Iterator[tuple[Key, Key]]:
    for first, second in combinations(keys, 2):
        if first[2] == second[2] and (first[0] == second[0]) != (first[1] == second[1]):
            yield first, second


def _sample(cell: Cell, ids: tuple[str, ...], iterations: int, seed: int) -> Sampled:
    point, draws = cfhr_replicates([cell.on(ids)], iterations, seed)
    return Sampled(ids, float(point[0]), draws[:, 0])


def _dialects(sampled: Mapping[Key, Sampled]) -> dict[Key, Sampled]:
    """Means of the CFHR of both dialects, if both have the same items, since resamples must be shared."""
    means = {}
    for model, prompt in dict.fromkeys((model, prompt) for model, prompt, _ in sampled):
        pair = [sampled.get((model, prompt, variety)) for variety in DIALECTS]
        if all(pair) and pair[0].ids == pair[1].ids:
            point, draws = (pair[0].point + pair[1].point) / 2, (pair[0].draws + pair[1].draws) / 2
            means[model, prompt, "dialect"] = Sampled(pair[0].ids, point, draws)
    return means


def _difference(
    first: Key, second: Key, sampled: Mapping[Key, Sampled], cells: Mapping[Key, Cell], iterations: int, seed: int
) -> Row:
    a, b = sampled[first], sampled[second]
    if a.ids != b.ids and first in cells:
        shared = tuple(sorted(set(a.ids) & set(b.ids)))
        if shared:
            a, b = (_sample(cells[key], shared, iterations, seed) for key in (first, second))
    if a.ids == b.ids:
        draws = a.draws - b.draws
        values = percentile_difference(a.point - b.point, draws) | {"skipped": int(np.isnan(draws).sum())}
        if np.nanmax(draws, initial=-2) - np.nanmin(draws, initial=2) == 0:
            values |= _without_variation([cells[key].on(a.ids) for key in (first, second) if key in cells])
    else:
        values = dict.fromkeys(("delta", "ci_low", "ci_high", "p_value", "skipped"))
    same_model = first[0] == second[0]
    names = {"held": first[0] if same_model else first[1], "variety": first[2]}
    names |= {"first": first[1 if same_model else 0], "second": second[1 if same_model else 0]}
    names |= {"p_holm": None, "identical": False}
    return names | values | {"n_items": len(a.ids) if a.ids == b.ids else 0}


def _without_variation(pair: Sequence[tuple[np.ndarray, np.ndarray]]) -> Row:
    """What replaces interval and p-value of a difference that no resample changes; of means, nothing is known."""
    if not pair:
        return {"ci_low": None, "ci_high": None, "p_value": None}
    if all(np.array_equal(one, other) for one, other in zip(*pair, strict=True)):
        return {"ci_low": None, "ci_high": None, "p_value": None, "identical": True}
    counts = [(int((right & ~rejected.all(axis=1)).sum()), int(right.sum())) for right, rejected in pair]
    low, high = newcombe_interval(*counts)
    return {"ci_low": low, "ci_high": high}


def _mean(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else (first + second) / 2
