"""Compare models on CVLUE: the eleven numbers of each run, paired differences, and the paper's Table 10.

The paper's test split was not released, so its numbers stand apart and no difference to them is computed.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from cultureval.metrics.cvlue.names import KS, MACRO, RECALLS
from cultureval.metrics.paired_tests import PairedSubset, compare_paired
from cultureval.metrics.proportions import holm
from cultureval.reports.cvlue.headline import PUBLISHED
from cultureval.reports.printed_numbers import printed
from cultureval.reports.published import published_rows
from cultureval.reports.saved_results import SavedTask, find_saved_tasks, names_of_runs
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.csv_files import write_csv
from cultureval.runtime.doc_specific import specific_of
from cultureval.runtime.errors import CulturevalError

Row = dict[str, Any]
NUMBERS = {f"cvlue_{task}": metrics for task, metrics in MACRO.items()} | {
    "cvlue_en_vqa": ("vqa_accuracy",),
    "cvlue_en_vg": ("iou",),
    "cvlue_en_vd": tuple(f"R@{k}" for k in KS),
    "cvlue_en_itr": RECALLS,
}
MUST_AGREE = ("source", "revision", "limit", "gallery")
OTHER_SPLIT = (
    "The paper's Table 10, percent, of another test split, which was not released (English: hidden test splits)"
)
SCORE_COLUMNS = ("model", "date", "task", "metric", "score", "stderr", "items", "split")
DIFFERENCE_COLUMNS = ("task", "metric", "first", "second", "difference", "low", "high", "p", "p_holm", "items")


@dataclass(frozen=True)
class ScoredTask:
    """A task of a run.

    Attributes:
        model: The name of its run, as of `names_of_runs`.
        date: Of the run.
        task: `cvlue_vg`.
        scores: The run's scores and standard errors, 0 to 1.
        items: Item -> (its cluster, its rows' weight, its scores by metric).
        made: What the scores depend on besides the model, by name.
    """

    model: str
    date: str
    task: str
    scores: Mapping[str, float | None]
    items: Mapping[str, tuple[str, float, Mapping[str, float]]]
    made: Mapping[str, Any]


def compare_runs_of_cvlue(results: Sequence[Path], output_dir: Path, force: bool) -> tuple[str, list[str]]:
    """Writes scores.csv and differences.csv of saved runs.

    Args:
        results: Output folders or results files.
        output_dir: Output folder; created if missing.
        force: Compare runs of different data, on the items that both have.

    Returns:
        (text, notes): the tables as text; what differs between the runs.

    Raises:
        CulturevalError: No run of CVLUE, or runs of different data without `force`.
    """
    tasks = read_tasks(results)
    notes = list(mismatches(tasks))
    serious = [note for note, must_agree in notes if must_agree]
    if serious and not force:
        raise CulturevalError(f"{serious[0]} Scores of different data are not comparable; --force overrides this.")
    differences = difference_rows(tasks)
    write_csv(output_dir / "scores.csv", [*score_rows(tasks), *paper_rows()], SCORE_COLUMNS)
    write_csv(output_dir / "differences.csv", differences, DIFFERENCE_COLUMNS)
    parts = [_scores_table(tasks), _paper_table(), _differences_table(differences)]
    return "\n\n".join(part for part in parts if part), [note for note, _ in notes]


def read_tasks(paths: Sequence[Path]) -> list[ScoredTask]:
    """The tasks of CVLUE and its English counterparts in saved runs; of each model and folder the newest.

    Raises:
        CulturevalError: There are none.
    """
    saved = [task for task in find_saved_tasks(paths) if task.task.partition("|")[0] in NUMBERS]
    if not saved:
        raise CulturevalError(
            f"{', '.join(map(str, paths))}: no run of CVLUE with details; run `cultureval eval MODEL cvlue`."
        )
    names = names_of_runs(saved)
    return [_read(task, names[task.root, task.model]) for task in saved]


def mismatches(tasks: Sequence[ScoredTask]) -> Iterator[tuple[str, bool]]:
    """Sentences on what two runs of a task have not in common, each with whether the data differ."""
    for first, second in _pairs(tasks):
        for name, value in first.made.items():
            if value != (other := second.made[name]):
                what = f"{first.task}: {name} is {value!r} for {first.model} but {other!r} for {second.model}."
                yield what, name in MUST_AGREE


def difference_rows(tasks: Sequence[ScoredTask]) -> list[Row]:
    """The paired differences of every two runs of a task, on the items that both have.

    Interval and p-value are those of `compare_paired`, clustered by image; `p_holm` is adjusted over all rows.
    """
    rows = [_difference(first, second, metric) for first, second in _pairs(tasks) for metric in NUMBERS[first.task]]
    tested = [row for row in rows if row["p"] is not None]
    for row, adjusted in zip(tested, holm([row["p"] for row in tested]), strict=True):
        row["p_holm"] = adjusted
    return rows


def score_rows(tasks: Sequence[ScoredTask]) -> list[Row]:
    """A row for each number of each run, 0 to 1."""
    return [
        {
            **{"model": task.model, "date": task.date, "task": task.task, "metric": metric, "split": "of the run"},
            **{"score": task.scores.get(metric), "stderr": task.scores.get(f"{metric}_stderr")},
            "items": len(task.items),
        }
        for task in tasks
        for metric in NUMBERS[task.task]
    ]


def paper_rows() -> list[Row]:
    """The paper's numbers, 0 to 1, marked as of another split."""
    rows = []
    for published in published_rows(PUBLISHED):
        for column, cell in published.items():
            task, _, metric = column.partition(":")
            if metric and cell:
                about = {"model": published["model"], "task": task, "metric": metric, "score": float(cell) / 100}
                rows.append(dict.fromkeys(SCORE_COLUMNS) | about | {"split": "the paper's, not released"})
    return rows


def _read(saved: SavedTask, model: str) -> ScoredTask:
    task, content = saved.task.partition("|")[0], saved.results()
    items, rows = {}, saved.table().to_pylist()
    for row in rows:
        specific = specific_of(row["doc"])
        # A row of a gallery is an image, and its share of hits in the other direction that of its captions.
        weight = float(len(row["doc"]["gold_index"])) if "gallery" in specific else 1.0
        cluster = specific.get("cluster") or specific.get("image_path") or specific["id"]
        items[str(specific["id"])] = (str(cluster), weight, row["metric"])
    report = (content.get("config_tasks") or {}).get(saved.task, {}).get("rows_report") or {}
    limit = (content.get("config_general") or {}).get("max_samples")
    made = {"source": report.get("source"), "revision": report.get("revision"), "limit": limit}
    galleries = {"gallery" in specific_of(row["doc"]) for row in rows} if task.endswith("_itr") else set()
    made |= {"prompt": report.get("prompt"), "gallery": "20 images" if True in galleries else "all images"}
    scores = (content.get("results") or {}).get(saved.task, {})
    return ScoredTask(model, saved.date, task, scores, items, made)


def _pairs(tasks: Sequence[ScoredTask]) -> Iterator[tuple[ScoredTask, ScoredTask]]:
    return ((first, second) for first, second in combinations(tasks, 2) if first.task == second.task)


def _difference(first: ScoredTask, second: ScoredTask, metric: str) -> Row:
    pairs, clusters = [], []
    for item, (cluster, weight, scores) in first.items.items():
        values = (scores.get(metric), second.items[item][2].get(metric)) if item in second.items else (None, None)
        if None not in values and not any(map(math.isnan, values)):
            pairs.append([*values, weight if metric.startswith("IR@") else 1.0])
            clusters.append(cluster)
    row: Row = dict.fromkeys(DIFFERENCE_COLUMNS)
    row |= {"task": first.task, "metric": metric, "first": first.model, "second": second.model, "items": len(pairs)}
    if pairs:
        ours, theirs, weights = np.array(pairs, dtype=np.float64).T
        sides = [np.column_stack([values * weights, weights]) for values in (ours, theirs)]
        found = compare_paired([PairedSubset(*sides, clusters=clusters)])
        row |= {"difference": found.difference, "low": found.low, "high": found.high}
        row["p"] = None if found.identical else found.p_value
    return row


def _scores_table(tasks: Sequence[ScoredTask]) -> str:
    models = list(dict.fromkeys(task.model for task in tasks))
    of = {(task.model, task.task): task.scores for task in tasks}
    rows = []
    for name, metrics in NUMBERS.items():
        if any(task.task == name for task in tasks):
            rows += [
                [name, metric, *(_cell(of.get((model, name), {}), metric) for model in models)] for metric in metrics
            ]
    macros = [_macro({task: of.get((model, task), {}) for task in NUMBERS}) for model in models]
    rows.append(["macro-average", "11 numbers", *macros])
    return terminal_table(("Task", "metric", *models), rows, "ll" + "r" * len(models), "Runs, percent")


def _macro(scores: Mapping[str, Mapping[str, float | None]]) -> str:
    values = [scores[f"cvlue_{task}"].get(metric) for task, metrics in MACRO.items() for metric in metrics]
    known = [value for value in values if value is not None]
    return printed(100 * sum(known) / len(known), 1) if len(known) == len(values) else f"{len(known)}/{len(values)}"


def _cell(scores: Mapping[str, float | None], metric: str) -> str:
    value, error = scores.get(metric), scores.get(f"{metric}_stderr")
    if value is None:
        return "-"
    return printed(100 * value, 1) + (f" ±{printed(100 * error, 1)}" if error is not None else "")


def _paper_table() -> str:
    rows = published_rows(PUBLISHED)
    columns = [column for column in rows[0] if ":" in column]
    table = [[*column.split(":"), *(row[column] or "-" for row in rows)] for column in columns]
    return terminal_table(
        ("Task", "metric", *(row["model"] for row in rows)), table, "ll" + "r" * len(rows), OTHER_SPLIT
    )


def _differences_table(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    table = [[row["task"], row["metric"], row["first"], row["second"], *_told(row), str(row["items"])] for row in rows]
    header = ("Task", "metric", "first", "second", "difference", "95% interval", "p", "p (Holm)", "items")
    title = "First minus second on the items of both, percentage points; paired, clustered by image"
    return terminal_table(header, table, "llllrlrrr", title)


def _told(row: Row) -> list[str]:
    if row["difference"] is None:
        return ["no shared items", "", "", ""]
    if row["low"] == row["high"] == 0:
        return ["0.0", "identical on every item", "", ""]
    low, high = ("" if row[name] is None else printed(100 * row[name], 1, signed=True) for name in ("low", "high"))
    p_values = ["-" if row[name] is None else f"{row[name]:.3f}" for name in ("p", "p_holm")]
    difference = printed(100 * row["difference"], 1, signed=True)
    return [difference, f"[{low}, {high}]" if low else "-", *p_values]
