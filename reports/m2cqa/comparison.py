"""`cultureval compare --suite m2cqa`: cells with the paper's regimes, and differences of CFHR.

Paper: arXiv 2602.05437, Table 2 (cells), Table 7 (differences), Figure 3 (regimes of Q+ accuracy and CFHR).
Ours: the borders of the regimes, which the paper only names.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cultureval.metrics.m2cqa.names import CFHR, COMBINED_ACC, F1, INVALID_RATE, Q_MINUS_ACC, Q_PLUS_ACC, Profile
from cultureval.reports.charts import FORMATS, Chart, Point, chart_files, chart_names, scatter
from cultureval.reports.comparison.differences import (
    Row,
    TwoRuns,
    differ_in_rows,
    items_of_both,
    load_sides,
    require_equal_protocols,
    warnings_of,
    with_holm,
)
from cultureval.reports.comparison.report import items_text, require_new_folder, row_record, tested_cells
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.frame import Parts
from cultureval.runs.loading import Run
from cultureval.runs.pairs import DRAWS, pair
from cultureval.runs.scores import items_of
from cultureval.runtime.csv_files import write_csv
from cultureval.runtime.errors import CulturevalError, escaped
from cultureval.runtime.rounding import printed_or_na
from cultureval.tasks.m2cqa.benchmarks import DIALECTS, PROMPTS, VARIETIES

if TYPE_CHECKING:
    import pandas

SUITE = "m2cqa"
DIALECT = "dialect"  # the paper's mean of both dialects
LABELS = {
    "en": "English · الإنجليزية",
    "msa": "MSA · العربية الفصحى",
    "ajp": "Levantine · الشامية",
    "arz": "Egyptian · المصرية",
}
METRICS = (Q_PLUS_ACC, Q_MINUS_ACC, F1, COMBINED_ACC, CFHR, INVALID_RATE)
HIGH_Q_PLUS, HIGH_CFHR = 0.8, 0.3  # from which accuracy on Q+ and CFHR count as high
NOT_GROUNDED, GROUNDED = ("conservative rejection", "frequent hallucination"), ("strong grounding", "over-acceptance")
OF_PROMPTS, OF_MODELS = "prompts", "models"
CELL_HEADER = ("Variety", "Model", "Q+", "Q-", "F1", "Combined", "CFHR", "Invalid", "95% of CFHR", "Right Q+", "Regime")
HEADER = ("Variety", "", "First", "Second", "Items", "Difference", "95% interval", "p", "p (Holm)")
Cell = Mapping[str, Any]


def regime(q_plus_acc: float | None, cfhr: float | None) -> str:
    """The paper's name (Figure 3) for a pair of values; "undefined" where one is missing. The borders are ours."""
    if cfhr is None or q_plus_acc is None:
        return "undefined"
    return (NOT_GROUNDED, GROUNDED)[q_plus_acc >= HIGH_Q_PLUS][cfhr >= HIGH_CFHR]


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
    allowed: Sequence[str] = (),
    draws: int = DRAWS,
    seed: int = 0,
    profile: Profile = "strict",
) -> tuple[str, list[Path]]:
    """The tables as text, and the files: with an output folder cells.csv, differences.csv and the figure.

    Args:
        paths: As of `load_sides`, but one run is enough: its prompts are compared.
        output_dir: A new or empty folder; None: nothing is written.
        allowed: Fields of the protocol that may differ between models.
        profile: How verdicts are parsed: strict, lenient or organisers.

    Raises:
        CulturevalError: The results have no runs of M2CQA, something differs that may not, or the folder is not empty.
    """
    require_new_folder(output_dir)
    runs, notes = load_sides(paths, least=1)
    sides = [side for run in runs for side in sides_of(run)]
    if not sides:
        raise CulturevalError(f"{', '.join(map(str, paths))}: no run of M2CQA. Run `cultureval eval MODEL m2cqa`.")
    cells = [cell for side in sides for cell in cells_of(side, profile)]
    rows = differences_of(sides, under(CFHR, profile), allowed, draws, seed, notes)
    lead = (
        f"Verdicts by the {profile} profile; scores from 0 to 1. A low CFHR with a low Q+ is rejection, not grounding."
    )
    warnings = warnings_of([run for run in runs if any(side.run is run for side in sides)])
    text = escaped("\n\n".join([*warnings, lead, *_cell_tables(cells), *_difference_tables(rows), *notes]), keep="\n")
    if not output_dir:
        return text, []
    files = [output_dir / "cells.csv", output_dir / "differences.csv"]
    write_csv(files[0], cells)
    write_csv(files[1], [row_record(row) | {"held": shared} for shared, row in rows])
    chart = regimes_chart(cells)
    return text, [*files, *(chart_files(chart, output_dir, FORMATS) if chart else ())]


def regimes_chart(cells: Sequence[Cell]) -> Chart | None:
    """Each model as a point of Q+ accuracy and CFHR, panels of varieties and prompts; None without a CFHR."""
    shown = [cell for cell in cells if cell[CFHR] is not None and cell["variety"] in LABELS]
    short = chart_names(list(dict.fromkeys(cell["model"] for cell in shown)))
    points = [
        Point(
            cell["model"],
            *(cell[Q_PLUS_ACC], cell[CFHR], cell[f"{Q_PLUS_ACC}_error"], cell[f"{CFHR}_error"]),
            group=short[cell["model"]],
            panel=(PROMPTS[cell["prompt"]], LABELS[cell["variety"]]),
        )
        for variety in LABELS
        for cell in shown
        if cell["variety"] == variety
    ]
    axes = ("accuracy on Q+", "CFHR (lower is better)")
    note = f"The borders at {HIGH_Q_PLUS:g} and {HIGH_CFHR:g} are ours."
    borders = (HIGH_Q_PLUS, HIGH_CFHR)
    names = [
        (x, y, name, side)
        for x, side, regimes in ((-0.02, "left", NOT_GROUNDED), (1.02, "right", GROUNDED))
        for y, name in zip((-0.08, 1.08), regimes, strict=True)
    ]
    settings: dict[str, Any] = {"borders": borders, "names": names, "limits": (-0.15, 1.15), "note": note}
    return scatter("regimes", "Q+ accuracy and CFHR", axes, points, **settings) if points else None


def under(metric: str, profile: Profile) -> str:
    """The name of a metric as a profile of verdicts gives it."""
    return metric if profile == "strict" else f"{metric}_{profile}"


def sides_of(run: Run) -> Iterator[Side]:
    """The sides of a run, in the order of prompts; unverified tasks are left out."""
    tasks = [task for task in run.tasks_of(SUITE) if task.task not in run.unverified]
    for prompt, name in PROMPTS.items():
        for shots in dict.fromkeys(task.shots for task in tasks if task.domain == name):
            by_subset = {task.subset: task.task for task in tasks if (task.domain, task.shots) == (name, shots)}
            yield Side(run, prompt, shots, {name: by_subset[name] for name in VARIETIES if name in by_subset})


def parts_by_variety(tasks: Mapping[str, str], metric: str) -> dict[str, Parts]:
    """The parts of each variety's score, and of the paper's Dialect if the run has both dialects."""
    found: dict[str, Parts] = {variety: {(task, metric): 1.0} for variety, task in tasks.items()}
    if all(variety in tasks for variety in DIALECTS):
        found[DIALECT] = {(tasks[variety], metric): 1 / len(DIALECTS) for variety in DIALECTS}
    return found


def cells_of(side: Side, profile: Profile) -> Iterator[Cell]:
    """The metrics of each variety, as in Table 2; None where a metric is undefined or the profile has none."""
    parts = {name: parts_by_variety(side.tasks, under(name, profile)) for name in METRICS}
    for variety, rated in parts[CFHR].items():
        scores = {name: side.run.mean(parts[name][variety]) for name in METRICS}
        cell: dict[str, Any] = {"model": side.run.name, "prompt": side.prompt, "variety": variety}
        for name, score in scores.items():
            cell |= {name: score and score.value, f"{name}_error": score and score.error}
        rate, right, items = scores[CFHR], scores[Q_PLUS_ACC], items_of(side.run.items, rated)
        cell |= {"cfhr_low": rate and rate.low, "cfhr_high": rate and rate.high, "items": right and right.asked}
        cell["right_q_plus"] = float(items["den"][items["num"].notna().to_numpy()].sum())
        yield cell | {"regime": regime(cell[Q_PLUS_ACC], cell[CFHR])}


def differences_of(
    sides: Sequence[Side], metric: str, allowed: Sequence[str], draws: int, seed: int, notes: list[str]
) -> list[tuple[str, Row]]:
    """The differences of a metric in each variety, each with the model or the prompt that both sides share.

    Every two prompts of a model are compared, and every two models under a prompt. Holm adjusts the p-values of
    prompts together, and those of models together.

    Args:
        notes: The function adds a sentence for each comparison that is left out.

    Raises:
        CulturevalError: Two models under a prompt differ in a field of the protocol that is not allowed.
    """
    import pandas

    shared: list[str] = []
    rows: list[Row] = []
    for level, first, second in _pairs(sides):
        tasks = {variety: first.tasks[variety] for variety in first.tasks if variety in second.tasks}
        items = _items_of(first, second, tasks, metric)
        if level == OF_MODELS:
            require_equal_protocols([TwoRuns(first.run, second.run, [], items, [])], allowed)
        names = (first.name, second.name)
        for variety, parts in parts_by_variety(tasks, metric).items():
            frames = [items[place] for place in parts if place in items]
            result = pair(pandas.concat(frames, ignore_index=True), *names, parts, draws, seed) if frames else None
            if result is None:
                notes.append(f"not compared: {first.name} / {second.name}, {variety}: a side has no item with a score.")
                continue
            scores = (first.run.mean(parts), second.run.mean(parts_by_variety(second.tasks, metric)[variety]))
            shared.append(first.run.name if level == OF_PROMPTS else first.prompt)
            rows.append(Row(level, variety, metric, *names, parts, scores, result))
    return list(zip(shared, with_holm(rows, lambda row: row.level), strict=True))


def _items_of(
    first: Side, second: Side, tasks: Mapping[str, str], metric: str
) -> dict[tuple[str, str], "pandas.DataFrame"]:
    """The items of two sides by run and task; tasks have the first side's names."""
    frames = []
    for side in (first, second):
        renamed = {side.tasks[variety]: task for variety, task in tasks.items()}
        rows = items_of(side.run.items, dict.fromkeys(((task, metric) for task in renamed), 1.0))
        frames.append(rows.assign(run=side.name, task=rows["task"].astype(object).map(renamed)))
    tasks_of_second = {task: second.tasks[variety] for variety, task in tasks.items()}
    return items_of_both(
        frames, lambda place: differ_in_rows((first.run, place), (second.run, (tasks_of_second[place[0]], place[1])))
    )


def _pairs(sides: Sequence[Side]) -> Iterator[tuple[str, Side, Side]]:
    for first, second in combinations(sides, 2):
        if first.run is second.run and first.shots == second.shots:
            yield OF_PROMPTS, first, second
        elif first.run is not second.run and (first.prompt, first.shots) == (second.prompt, second.shots):
            yield OF_MODELS, first, second


def _cell_tables(cells: Sequence[Cell]) -> Iterator[str]:
    """A table like Table 2 for each prompt."""
    for prompt, name in PROMPTS.items():
        rows = []
        for cell in sorted(cells, key=lambda cell: [*VARIETIES, DIALECT].index(cell["variety"])):
            if cell["prompt"] == prompt:
                low, high = (printed_or_na(cell[end], 3) for end in ("cfhr_low", "cfhr_high"))
                ends = "n/a" if cell["cfhr_low"] is None else f"[{low}, {high}]"
                right = f"{cell['right_q_plus']:g} of {cell['items'] or 0}"
                scores = [printed_or_na(cell[metric], 3) for metric in METRICS]
                rows.append([cell["variety"], cell["model"], *scores, ends, right, cell["regime"]])
        if rows:
            yield terminal_table(CELL_HEADER, rows, "llrrrrrrrrl", name)


def _difference_tables(rows: Sequence[tuple[str, Row]]) -> Iterator[str]:
    """Tables of differences like Table 7."""
    for level in (OF_PROMPTS, OF_MODELS):
        table = []
        for shared, row in rows:
            if row.level == level:
                names = [f" {name} ".replace(f" {shared} ", " ").strip() for name in (row.first, row.second)]
                table.append([row.name, shared, *names, items_text(row), *tested_cells(row, 3)])
        if table:
            yield terminal_table(HEADER, table, "llllrrlll", f"Differences of CFHR between {level}, first minus second")
