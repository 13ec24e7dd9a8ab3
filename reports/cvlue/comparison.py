"""What CVLUE adds to the comparison of runs: its eleven numbers with their macro-average, and the paper's Table 10.

The paper's test split was not released, so its numbers stand apart and no difference to them is computed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cultureval.metrics.cvlue.names import KS, MACRO, RECALLS
from cultureval.reports.comparison.compared_models import Side, sides_of
from cultureval.reports.comparison.report import compare_all
from cultureval.reports.cvlue.table import DIGITS, PUBLISHED, macro_estimate
from cultureval.runs.paper_numbers import published_rows
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.comparable import record_of
from cultureval.runs.means import Estimate, percentage
from cultureval.runs.table import of_shots
from cultureval.runtime.csv_files import write_csv
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.rounding import printed

Row = dict[str, Any]
NUMBERS = {f"cvlue_{task}": metrics for task, metrics in MACRO.items()} | {
    "cvlue_en_vqa": ("vqa_accuracy",),
    "cvlue_en_vg": ("iou",),
    "cvlue_en_vd": tuple(f"R@{k}" for k in KS),
    "cvlue_en_itr": RECALLS,
}
METRICS = tuple(dict.fromkeys(metric for metrics in NUMBERS.values() for metric in metrics))
OTHER_SPLIT = (
    "The paper's Table 10, percent, of another test split, which was not released (English: hidden test splits)"
)
SCORE_COLUMNS = ("model", "date", "task", "metric", "score", "stderr", "items", "split")


def compare_runs_of_cvlue(
    results: Sequence[Path], output_dir: Path, allowed: Sequence[str] = ()
) -> tuple[str, list[str]]:
    """Writes scores.csv of saved runs of CVLUE, and what `compare_all` writes of their differences.

    Args:
        results: Output folders or results files.
        allowed: What may differ between the runs, as of `compare_all`.

    Returns:
        (text, notes): the tables as text; what is not in them, and what differs between the runs.

    Raises:
        CulturevalError: No run of CVLUE, or something differs that may not.
    """
    sides = [side for side in map(_of_cvlue, sides_of(results)) if side.tasks]
    if not sides:
        raise CulturevalError(
            f"{', '.join(map(str, results))}: no run of CVLUE with details; run `cultureval eval MODEL cvlue`."
        )
    found = compare_all(results, output_dir, METRICS, allowed, most_items=0, sides=sides)
    rows = [row for side in sides for row in score_rows(side)]
    write_csv(output_dir / "scores.csv", [*rows, *paper_rows()], SCORE_COLUMNS)
    parts = [
        *_scores_tables([side.name for side in sides], rows),
        _paper_table(),
        found.text if found.document["differences"] else "",
    ]
    return "\n\n".join(part for part in parts if part), found.notes


def score_rows(side: Side) -> list[Row]:
    """A row for each number of a model, 0 to 1, with the items that its standard error counts."""
    rows = []
    for name, task in side.tasks.items():
        for metric in NUMBERS[name.partition("|")[0]]:
            found = percentage(task.run, record_of(task.run, name), metric) if task.run else None
            value, error, count = found or (None, None, None)
            score = {"score": value and value / 100, "stderr": error and error / 100, "items": count}
            about = {"model": side.name, "date": task.saved.date, "task": name.removesuffix("|0"), "metric": metric}
            rows.append(about | score | {"split": "of the run"})
    return rows


def paper_rows() -> list[Row]:
    """The paper's numbers, 0 to 1, marked as of another split."""
    rows = []
    for published in published_rows(PUBLISHED):
        for column, cell in published.items():
            task, _, metric = column.partition(":")
            if metric and cell:
                about = {"model": published["model"], "task": task, "metric": metric, "score": float(cell) / 100}
                rows.append(about | {"split": "the paper's, not released"})
    return rows


def _of_cvlue(side: Side) -> Side:
    return replace(side, tasks={name: task for name, task in side.tasks.items() if name.partition("|")[0] in NUMBERS})


def _scores_tables(models: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    """One for each number of examples."""
    for shots in dict.fromkeys(row["task"].partition("|")[2] for row in rows):
        own = [row | {"task": row["task"].partition("|")[0]} for row in rows if row["task"].partition("|")[2] == shots]
        yield _scores_table(models, own, of_shots(shots))


def _scores_table(models: Sequence[str], rows: Sequence[Row], shots: str) -> str:
    of = {
        (row["model"], row["task"], row["metric"]): Estimate(100 * row["score"], row["stderr"] and 100 * row["stderr"])
        for row in rows
        if row["score"] is not None
    }
    places = [
        (name, metric) for name in NUMBERS if any(row["task"] == name for row in rows) for metric in NUMBERS[name]
    ]
    table = [[*place, *(_cell(of.get((model, *place))) for model in models)] for place in places]
    table.append(["macro-average", "11 numbers", *(_macro(of, model) for model in models)])
    return terminal_table(("Task", "metric", *models), table, "ll" + "r" * len(models), f"Runs, percent{shots}")


def _macro(of: Mapping[tuple[str, str, str], Estimate], model: str) -> str:
    wanted = {f"{task}:{metric}": (model, f"cvlue_{task}", metric) for task, found in MACRO.items() for metric in found}
    known = {name: of[place] for name, place in wanted.items() if place in of}
    macro = macro_estimate(known)
    return _cell(macro) if macro else f"{len(known)}/{len(wanted)}"


def _cell(found: Estimate | None) -> str:
    error = "" if found is None or found.stderr is None else f" ±{printed(found.stderr, DIGITS)}"
    return "-" if found is None else printed(found.value, DIGITS) + error


def _paper_table() -> str:
    rows = published_rows(PUBLISHED)
    columns = [column for column in rows[0] if ":" in column]
    table = [[*column.split(":"), *(row[column] or "-" for row in rows)] for column in columns]
    return terminal_table(
        ("Task", "metric", *(row["model"] for row in rows)), table, "ll" + "r" * len(rows), OTHER_SPLIT
    )
