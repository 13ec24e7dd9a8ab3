"""The numbers of a comparison: metrics of every cell with its regime, and paired differences of CFHR.

Paper: arXiv 2602.05437, Table 2 (cells), Table 7 (differences of CFHR), Figure 3 (regimes of Q+ accuracy and CFHR).
Our own: the thresholds between the regimes, which the paper only names.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cultureval.metrics.m2cqa.counterfactual import metrics_of_counts, report_of_counts
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
    Profile,
)
from cultureval.metrics.m2cqa.statement_items import ROLES
from cultureval.metrics.paired_tests import Floats
from cultureval.metrics.proportions import wilson_interval
from cultureval.reports.comparison.compared_models import ComparedTask, Side
from cultureval.reports.comparison.paired_runs import (
    Pairs,
    RowTasks,
    TestedDifference,
    pair_sides,
    tested_differences,
)
from cultureval.reports.comparison.report import row_record
from cultureval.runs.items import details_columns, item_scores
from cultureval.runs.means import interval_of
from cultureval.runtime.errors import CulturevalError, shown_names
from cultureval.tasks.m2cqa.benchmarks import DIALECTS, PROMPTS, VARIETIES

Row = dict[str, Any]
FALSE_STATEMENTS = len(ROLES) - 1
OF_MODELS, OF_PROMPTS = "models", "prompts"  # levels of differences
VALUES = (
    *(Q_PLUS_ACC, f"{Q_PLUS_ACC}_stderr", Q_MINUS_ACC, F1, COMBINED_ACC, CFHR, f"{CFHR}_stderr"),
    *(INVALID_RATE, CFHR_VALID_ONLY, *COUNTS),
)
LOW, HIGH = f"{CFHR}_low", f"{CFHR}_high"
N_ASKED, N_UNSCORED = "n_asked", "n_unscored"  # items that were asked; that CFHR has no score of
OF_CELLS = (*VALUES, LOW, HIGH, N_ASKED, N_UNSCORED)
CELL_COLUMNS = ("model", "prompt", "variety", *OF_CELLS, "regime", "size_b")
# Columns of a difference in other words than the general comparison's.
RENAMED = {"delta": "difference", "ci_low": "low", "ci_high": "high", "n_items": "clusters"}
BREAKDOWN_COLUMNS = ("model", "prompt", "variety", "field", "value", N_ITEMS, N_Q_PLUS, N_UNSCORED, CFHR, LOW, HIGH)
FIELDS = ("country", "category")
GROUP = "m2cqa:"
Prompted = Mapping[tuple[str, str], Side]  # model and prompt -> their tasks by variety


@dataclass(frozen=True)
class CountedCell:
    """What the metrics count of one model's verdicts on one task.

    Attributes:
        model: Name of the model in the tables.
        prompt: Key of `PROMPTS`.
        variety: Key of `VARIETIES`.
        counts: [N, 8] of the items, as of `item_counts`.
        scored: [N] whether CFHR has a score of an item: not of one whose Q+ is unreadable.
        asked: Items that were asked, also those without an answer.
        fields: "country" and "category", where the data have them -> [N] the items' values, "" where unknown.
    """

    model: str
    prompt: str
    variety: str
    counts: Floats
    scored: NDArray[np.bool_]
    asked: int
    fields: Mapping[str, Sequence[str]] = field(default_factory=dict)


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


def cell_rows(cells: Sequence[CountedCell], borders: Borders, sizes: Mapping[str, float]) -> list[Row]:
    """The metrics of every cell, and of the paper's Dialect rows: the unweighted means of ajp and arz.

    A Dialect row's standard error is a mean too, an upper bound, since both dialects have the same items.
    """
    rows: dict[tuple[str, str, str], Row] = {}
    for cell in cells:
        unscored = cell.asked - int(cell.scored.sum())
        known = {N_ASKED: cell.asked, N_UNSCORED: unscored} | report_of_counts(cell.counts, FALSE_STATEMENTS)
        rows[cell.model, cell.prompt, cell.variety] = known
    for model, prompt in dict.fromkeys((cell.model, cell.prompt) for cell in cells):
        pair = [rows.get((model, prompt, variety)) for variety in DIALECTS]
        if all(pair):
            rows[model, prompt, "dialect"] = {name: _mean(*(row[name] for row in pair)) for name in pair[0]}
    for row in rows.values():
        ends = interval_of(f"{GROUP}{next(iter(PROMPTS))}_{DIALECTS[0]}", CFHR, row[CFHR], row[f"{CFHR}_stderr"])
        row |= dict(zip((LOW, HIGH), ends or (None, None), strict=True))
    return [
        {"model": model, "prompt": prompt, "variety": variety}
        | {name: values[name] for name in OF_CELLS}
        | {"regime": borders.regime(values[Q_PLUS_ACC], values[CFHR]), "size_b": sizes.get(model)}
        for (model, prompt, variety), values in rows.items()
    ]


def breakdown_rows(cells: Sequence[CountedCell]) -> list[Row]:
    """CFHR of every cell by country and by category, where the data have them, with Wilson's intervals."""
    rows = []
    for cell in cells:
        for name, values in cell.fields.items():
            for value in sorted(set(values)):
                of_value = np.array(values) == value
                here, unscored = cell.counts[of_value], int((~cell.scored[of_value]).sum())
                hits, rate = int(here[:, 0].sum()), float(metrics_of_counts(here.sum(axis=0), FALSE_STATEMENTS)[CFHR])
                known = None if np.isnan(rate) else rate
                row: Row = {"model": cell.model, "prompt": cell.prompt, "variety": cell.variety, "field": name}
                row |= {"value": value or "unknown", N_ITEMS: len(here), N_Q_PLUS: hits}
                rows.append(row | {N_UNSCORED: unscored, CFHR: known} | _interval(known, hits))
    return rows


def _interval(rate: float | None, hits: float | None) -> dict[str, float | None]:
    if rate is None or not hits:
        return {LOW: None, HIGH: None}
    low, high = wilson_interval(round(rate * hits), int(hits))
    return {LOW: low, HIGH: high}


def paired_prompts(prompted: Prompted, metric: str, allowed: Sequence[str]) -> list[Pairs]:
    """Every two models under a prompt, with as many examples where any have as many, and every two prompts of a model.

    Args:
        prompted: As of `by_prompt`.
        metric: CFHR, under a profile.
        allowed: What may differ, as of `pair_sides`; two prompts of a model differ in their prompts.

    Raises:
        CulturevalError: What may not differ does.
    """
    models, prompts = (dict.fromkeys(names) for names in zip(*prompted, strict=True))
    found: list[Pairs] = []
    for prompt in prompts:
        members = [side for (_, name), side in prompted.items() if name == prompt]
        of_shots = {shots: [side for side in members if _shots(side) == shots] for shots in map(_shots, members)}
        parts = [alike for alike in of_shots.values() if len(alike) > 1] if "prompts" not in allowed else []
        for part in parts or [members]:
            found += pair_sides(part, [metric], allowed, needed=False)
        if parts and (alone := [side.name for side in members if not any(side in part for part in parts)]):
            found[-1].notes.append(f"not compared: {shown_names(alone)}: no other model has as many examples.")
    for model in models:
        members = [side for (name, _), side in prompted.items() if name == model]
        for pairs in pair_sides(members, [metric], [*allowed, "prompts"], needed=False):
            found.append(pairs._replace(incompatible=[one for one in pairs.incompatible if one.kind != "prompts"]))
    return found


def _shots(side: Side) -> str:
    return next(iter(side.tasks.values())).saved.task.partition("|")[2]


def differences_of(prompted: Prompted, pairs: Sequence[Pairs], draws: int, seed: int) -> list[TestedDifference]:
    """The differences of CFHR of pairs, variety by variety, and of the paper's Dialect, the mean of both dialects.

    A Dialect row draws an item in both dialects at once. The level, among whose rows p-values are adjusted, is
    differences of models, or of prompts.
    """
    places = {side.name: key for key, side in prompted.items()}
    return tested_differences(pairs, draws, seed, partial(_row_tasks, places=places))


def _row_tasks(pairs: Pairs, places: Mapping[str, tuple[str, str]]) -> Iterator[RowTasks]:
    level = OF_PROMPTS if places[pairs.first][0] == places[pairs.second][0] else OF_MODELS
    dialects = []
    for task in pairs.tasks:
        _, variety = prompt_and_variety(task.task)
        yield level, variety, task.metric, [(task, 1.0)]
        dialects += [(task, 1.0)] if variety in DIALECTS else []
    if len(dialects) == len(DIALECTS):
        yield level, "dialect", pairs.tasks[0].metric, dialects


def difference_rows(prompted: Prompted, differences: Sequence[TestedDifference]) -> list[Row]:
    """The rows of differences.csv: `held` is the model whose prompts, or the prompt whose models, are compared."""
    places = {side.name: key for key, side in prompted.items()}
    rows = []
    for one in differences:
        record = row_record(one)
        first, second = places[one.first], places[one.second]
        held, names = (
            (first[0], (first[1], second[1])) if one.level == OF_PROMPTS else (first[1], (first[0], second[0]))
        )
        row: Row = {"variety": record.pop("name"), "held": held, "first": names[0], "second": names[1]}
        row |= {ours: record.pop(name) for ours, name in RENAMED.items()}
        rows.append(row | {name: value for name, value in record.items() if name not in row})
    return rows


def _mean(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else (first + second) / 2


def under_profile(metric: str, profile: Profile) -> str:
    """The name of a metric as a profile of verdicts gives it."""
    return metric if profile == "strict" else f"{metric}_{profile}"


def by_prompt(sides: Sequence[Side]) -> dict[tuple[str, str], Side]:
    """The tasks of M2CQA of models, a side for each prompt, in the order of models, prompts and varieties.

    What a model was asked with examples stands as a model of its own, which says so.

    Args:
        sides: Models with tasks of any suite.

    Raises:
        CulturevalError: There is a task that M2CQA does not have.
    """
    found: dict[tuple[str, str], Side] = {}
    for side in sides:
        for name, task in side.tasks.items():
            if name.startswith(GROUP):
                prompt, variety = prompt_and_variety(name)
                if prompt not in PROMPTS or variety not in VARIETIES:
                    raise CulturevalError(f"{task.saved.file}: {name!r} is not a task of M2CQA.")
                shots = name.partition("|")[2]
                model = side.name if shots in ("", "0") else f"{side.name}, {shots}-shot"
                found.setdefault((model, prompt), Side(f"{model} {prompt}", {}, side.path)).tasks[variety] = task
    order, varieties = [*PROMPTS], [*VARIETIES]
    return {
        key: replace(found[key], tasks=dict(sorted(found[key].tasks.items(), key=lambda one: varieties.index(one[0]))))
        for key in sorted(found, key=lambda key: (key[0], order.index(key[1])))
    }


def prompt_and_variety(task: str) -> tuple[str, str]:
    """Of a task's name: `m2cqa:answer_reason_en|0` is of `answer_reason` and `en`."""
    prompt, _, variety = task.removeprefix(GROUP).partition("|")[0].rpartition("_")
    return prompt, variety


def read_cells(prompted: Prompted, profile: Profile) -> list[CountedCell]:
    """The cells of models, in order, under a profile of verdicts.

    Raises:
        CulturevalError: The details are not of our M2CQA tasks.
    """
    return [_read_cell(task, model, profile) for (model, _), side in prompted.items() for task in side.tasks.values()]


def _read_cell(compared: ComparedTask, model: str, profile: Profile) -> CountedCell:
    file, task = compared.saved.file, compared.saved.task
    try:  # F1 is the one that is made of all counts
        items, rates = (item_scores(file, task, under_profile(name, profile)) for name in (F1, CFHR))
    except CulturevalError as error:
        raise CulturevalError(f"{file}: {error}") from error
    if items is None or rates is None:
        raise CulturevalError(f"{file} has no verdicts of M2CQA. Run the task again.")
    columns = details_columns(file, [f"doc.specific.{name}" for name in FIELDS])
    values = {
        name: [column[rows[0]] or "" for rows in items.rows]
        for name, column in zip(FIELDS, columns.values(), strict=True)
        if column and any(column)
    }
    asked = max(compared.record.n if compared.record else 0, len(items.keys))
    return CountedCell(model, *prompt_and_variety(task), items.parts, rates.scored, asked, values)
