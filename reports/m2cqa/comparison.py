"""`cultureval compare m2cqa`: cells with the paper's regimes, and differences of CFHR between prompts and models.

Paper: arXiv 2602.05437, Table 2 (cells), Table 7 (differences), Figure 3 (regimes of Q+ accuracy and CFHR), Figures 5
and 8 (CFHR against model size). Our own: the thresholds between the regimes, which the paper only names.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cultureval.metrics.m2cqa.names import CFHR, COMBINED_ACC, F1, INVALID_RATE, Q_MINUS_ACC, Q_PLUS_ACC, Profile
from cultureval.reports.charts import Chart, chart_files
from cultureval.reports.comparison.differences import (
    Row,
    TwoRuns,
    asked_otherwise,
    items_by_place,
    load_sides,
    of_both,
    require_equal_protocols,
    warnings_of,
    with_holm,
)
from cultureval.reports.comparison.report import items_text, p_text, require_own_folder, row_record
from cultureval.reports.m2cqa.charts import regimes, size_charts
from cultureval.reports.model_sizes import model_sizes
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.frame import Parts
from cultureval.runs.loading import Run
from cultureval.runs.pairs import DRAWS, difference, pair_items
from cultureval.runs.scores import items_of
from cultureval.runtime.csv_files import write_csv
from cultureval.runtime.errors import CulturevalError, escaped
from cultureval.runtime.rounding import printed_or_na
from cultureval.tasks.m2cqa.benchmarks import DIALECTS, PROMPTS, VARIETIES

if TYPE_CHECKING:
    import pandas

SUITE = "m2cqa"
DIALECT = "dialect"  # the paper's mean of both dialects
METRICS = (Q_PLUS_ACC, Q_MINUS_ACC, F1, COMBINED_ACC, CFHR, INVALID_RATE)
OF_PROMPTS, OF_MODELS = "prompts", "models"
CELL_HEADER = ("Variety", "Model", "Q+", "Q-", "F1", "Combined", "CFHR", "Invalid", "95% of CFHR", "Right Q+", "Regime")
HEADER = ("Variety", "", "First", "Second", "Items", "Difference", "95% interval", "p", "p (Holm)")


class Borders(NamedTuple):
    """Thresholds of "high": accuracy on Q+, and CFHR."""

    q_plus_acc: float
    cfhr: float

    def regime(self, q_plus_acc: float | None, cfhr: float | None) -> str:
        """The paper's name (Figure 3) for a pair of values; "undefined" without one of them."""
        if cfhr is None or q_plus_acc is None:
            return "undefined"
        if q_plus_acc >= self.q_plus_acc:
            return "over-acceptance" if cfhr >= self.cfhr else "strong grounding"
        return "frequent hallucination" if cfhr >= self.cfhr else "conservative rejection"


BORDERS = Borders(0.8, 0.3)


class Side(NamedTuple):
    """A run under one prompt: its tasks, by variety."""

    run: Run
    prompt: str
    shots: int
    tasks: dict[str, str]

    @property
    def name(self) -> str:
        """The run and the prompt, and the number of examples where there are any."""
        return f"{self.run.name} {self.prompt}" + (f" {self.shots}-shot" if self.shots else "")


def compare_m2cqa(
    paths: Sequence[Path],
    output_dir: Path | None,
    profile: Profile = "strict",
    draws: int = DRAWS,
    seed: int = 0,
    sizes: Sequence[str] = (),
    borders: Borders = BORDERS,
    allowed: Sequence[str] = (),
    formats: Sequence[str] = (),
) -> tuple[str, list[Path]]:
    """The tables as text, and the files: with an output folder cells.csv, differences.csv and the figures.

    Args:
        paths: As of `load_sides`, but one run is enough: its prompts are compared.
        output_dir: A new or empty folder; None: nothing is written.
        profile: How verdicts are parsed: strict, tolerant, lenient or organisers.
        sizes: MODEL=BILLIONS of parameters, for names without a size.
        borders: Of the regimes.
        allowed: Fields of the protocol that may differ between models.

    Raises:
        CulturevalError: The results have no runs of M2CQA, something differs that may not, or the folder is not empty.
    """
    runs, notes = load_sides(paths, least=1)
    sides = [side for run in runs for side in sides_of(run)]
    if not sides:
        raise CulturevalError(f"{', '.join(map(str, paths))}: no run of M2CQA. Run `cultureval eval MODEL m2cqa`.")
    require_own_folder(output_dir, {"suite": SUITE})
    cells = [cell for side in sides for cell in cells_of(side, profile, borders)]
    rows = differences_of(sides, under(CFHR, profile), allowed, draws, seed, notes)
    known = model_sizes({side.run.name for side in sides}, sizes)
    cells = [cell | {"size_b": known.get(cell["model"])} for cell in cells]
    lead = (
        f"Verdicts by the {profile} profile; scores from 0 to 1. A low CFHR with a low Q+ is rejection, not grounding."
    )
    tables = [*_cell_tables(cells), *_difference_tables(rows)]
    text = "\n\n".join([*warnings_of(list(dict.fromkeys(side.run for side in sides))), lead, *tables, *notes])
    charts = [*regimes(cells, borders), *size_charts(cells)] if formats else []
    return escaped(text, keep="\n"), _write(output_dir, cells, rows, charts, formats) if output_dir else []


def _write(
    folder: Path,
    cells: Sequence[Mapping[str, Any]],
    rows: Sequence[tuple[str, Row]],
    charts: Sequence[Chart],
    formats: Sequence[str],
) -> list[Path]:
    """Writes cells.csv, differences.csv and the figures; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / "cells.csv", folder / "differences.csv"]
    write_csv(files[0], cells)
    write_csv(files[1], [row_record(row) | {"held": held} for held, row in rows])
    return [*files, *(file for chart in charts for file in chart_files(chart, folder, formats))]


def under(metric: str, profile: Profile) -> str:
    """The name of a metric as a profile of verdicts gives it."""
    return metric if profile == "strict" else f"{metric}_{profile}"


def sides_of(run: Run) -> Iterator[Side]:
    """The sides of a run, in the order of prompts; unverified tasks are left out."""
    tasks = [task for task in run.tasks_of(SUITE) if f"{task.task}" not in run.unverified]
    for prompt, name in PROMPTS.items():
        for shots in dict.fromkeys(task.shots for task in tasks if task.domain == name):
            own = {task.subset: task.task for task in tasks if (task.domain, task.shots) == (name, shots)}
            yield Side(run, prompt, shots, {variety: own[variety] for variety in VARIETIES if variety in own})


def parts_by_variety(tasks: Mapping[str, str], metric: str) -> dict[str, Parts]:
    """The parts of each variety's score, and of the paper's Dialect where both dialects are there."""
    found: dict[str, Parts] = {variety: {(task, metric): 1.0} for variety, task in tasks.items()}
    if all(variety in tasks for variety in DIALECTS):
        found[DIALECT] = {(tasks[variety], metric): 1 / len(DIALECTS) for variety in DIALECTS}
    return found


def cells_of(side: Side, profile: Profile, borders: Borders) -> Iterator[dict[str, Any]]:
    """The metrics of each variety, as in Table 2; None where a metric is undefined, or not of the profile."""
    by_metric = {name: parts_by_variety(side.tasks, under(name, profile)) for name in METRICS}
    for variety, rated in by_metric[CFHR].items():
        scores = {name: side.run.mean(by_metric[name][variety]) for name in METRICS}
        cell: dict[str, Any] = {"model": side.run.name, "prompt": side.prompt, "variety": variety}
        for name, score in scores.items():
            cell |= {name: score and score.value, f"{name}_error": score and score.error}
        rate, right = scores[CFHR], scores[Q_PLUS_ACC]
        cell |= {"cfhr_low": rate and rate.low, "cfhr_high": rate and rate.high}
        cell |= {"items": right.asked if right else None, "right_q_plus": _right(side.run, rated)}
        yield cell | {"regime": borders.regime(cell[Q_PLUS_ACC], cell[CFHR])}


def _right(run: Run, parts: Parts) -> float:
    """The items of a CFHR: those whose true statement was accepted."""
    items = items_of(run.items, parts)
    return float(items["den"][items["num"].notna().to_numpy()].sum())


def differences_of(
    sides: Sequence[Side], metric: str, allowed: Sequence[str], draws: int, seed: int, notes: list[str]
) -> list[tuple[str, Row]]:
    """The differences of a metric, variety by variety, each with what both sides share: a model, or a prompt.

    They are of every two prompts of a model, and of every two models under a prompt. The p-values of prompts are
    adjusted by Holm among themselves, as are those of models.

    Args:
        notes: Gets sentences on what is not compared.

    Raises:
        CulturevalError: Two models under a prompt differ in a field of the protocol that is not allowed.
    """
    import pandas

    found: list[tuple[str, Row]] = []
    for level, one, other in _pairs(sides):
        held = one.run.name if level == OF_PROMPTS else one.prompt
        tasks = {variety: one.tasks[variety] for variety in one.tasks if variety in other.tasks}
        items = items_by_place([_as(side, tasks, metric) for side in (one, other)])
        if level == OF_MODELS:
            require_equal_protocols([TwoRuns(one.run, other.run, items, [])], allowed)
        for variety, task in tasks.items():
            if asked_otherwise((one.run, (task, metric)), (other.run, (other.tasks[variety], metric))):
                items[task, metric] = of_both(items[task, metric])
        names = (one.name, other.name)
        both = pair_items(pandas.concat(list(items.values()), ignore_index=True), *names) if items else None
        for variety, parts in parts_by_variety(tasks, metric).items():
            result = difference(both, parts, draws, seed) if both else None
            if result is None:
                notes.append(f"not compared: {one.name} / {other.name}, {variety}: a side has no item with a score.")
                continue
            scores = (one.run.mean(parts), other.run.mean(parts_by_variety(other.tasks, metric)[variety]))
            found.append((held, Row(level, variety, metric, *names, parts, scores, result)))
    adjusted = with_holm([row for _, row in found], [row.level for _, row in found])
    return [(held, row) for (held, _), row in zip(found, adjusted, strict=True)]


def _pairs(sides: Sequence[Side]) -> Iterator[tuple[str, Side, Side]]:
    for one, other in combinations(sides, 2):
        if one.run is other.run and one.shots == other.shots:
            yield OF_PROMPTS, one, other
        elif one.run is not other.run and (one.prompt, one.shots) == (other.prompt, other.shots):
            yield OF_MODELS, one, other


def _as(side: Side, tasks: Mapping[str, str], metric: str) -> "pandas.DataFrame":
    """The items of a side as a run of its name, in tasks of these names, which both sides share."""
    renamed = {side.tasks[variety]: task for variety, task in tasks.items()}
    items = side.run.items
    rows = items[(items["task"].isin(list(renamed)) & (items["metric"] == metric)).to_numpy()]
    return rows.assign(run=side.name, task=rows["task"].astype(object).map(renamed))


def _cell_tables(cells: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A table like Table 2 for each prompt."""
    for prompt, name in PROMPTS.items():
        rows = []
        for variety in (*VARIETIES, DIALECT):
            for cell in cells:
                if (cell["prompt"], cell["variety"]) == (prompt, variety):
                    scores = [printed_or_na(cell[metric], 3) for metric in METRICS]
                    ends = _interval(cell["cfhr_low"], cell["cfhr_high"])
                    right = f"{cell['right_q_plus']:g} of {cell['items'] or 0}"
                    rows.append([variety, cell["model"], *scores, ends, right, cell["regime"]])
        if rows:
            yield terminal_table(CELL_HEADER, rows, "llrrrrrrrrl", name)


def _difference_tables(rows: Sequence[tuple[str, Row]]) -> Iterator[str]:
    """Tables of differences like Table 7."""
    short: dict[str, Callable[[str, str], str]] = {
        OF_PROMPTS: lambda name, held: name.removeprefix(f"{held} "),
        OF_MODELS: lambda name, held: name.replace(f" {held}", ""),
    }
    for level, name_of in short.items():
        table = []
        for held, row in rows:
            if row.level == level:
                found = row.pair
                ends = "identical" if found.test == "identical" else _interval(found.low, found.high)
                names = [name_of(name, held) for name in (row.first, row.second)]
                numbers = [printed_or_na(found.difference, 3, True), ends, p_text(found.p), p_text(row.p_holm)]
                table.append([row.name, held, *names, items_text(row), *numbers])
        if table:
            yield terminal_table(HEADER, table, "llllrrlll", f"Differences of CFHR between {level}, first minus second")


def _interval(low: float | None, high: float | None) -> str:
    return "n/a" if low is None or high is None else f"[{printed_or_na(low, 3)}, {printed_or_na(high, 3)}]"
