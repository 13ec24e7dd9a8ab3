"""`cultureval score`: submission files in a benchmark's official format against its gold files."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.cvlue.categories import OTHER, categories, category_of

if TYPE_CHECKING:
    from cultureval.metrics.cvlue.submissions import ScoredItem

# Below a folder of gold files or submissions: the names of the released example.
GOLD_FILES = {"itr": ("IC/gold.json",), "vqa": ("VQA/gold.json",), "vg": ("VG/gold.json",), "vd": ("VD/gold.json",)}
PRED_FILES = {
    "itr": ("IC/i2t_submit.json", "IC/t2i_submit.json"),
    "vqa": ("VQA/submit_VQA.json",),
    "vg": ("VG/submit_VG.json",),
    "vd": ("VD/submit_VD.json",),
}
TASKS = ("cvlue", *(f"cvlue-{name}" for name in GOLD_FILES))
HEADLINES = {"itr": ("TR@1", "IR@1"), "vqa": ("accuracy_loose",), "vg": ("iou",), "vd": ("R@1",)}
Row = dict[str, Any]


def score(
    task: Annotated[str, typer.Argument(metavar="TASK", help=f"{', '.join(TASKS)}; cvlue is all four of a folder.")],
    gold: Annotated[Path, typer.Option(help="The gold file, or a folder laid out as the released one.")],
    pred: Annotated[list[Path], typer.Option(help="The submission file (ITR: one or two), or a folder of them.")],
    output_dir: Annotated[Path, typer.Option(help="Where tables (JSON, CSV) and plots go.")] = Path("results/score"),
) -> None:
    """Scores submissions by task, category and field. Example: cultureval score cvlue-vqa --gold G --pred P"""
    if task not in TASKS:
        raise CulturevalError(f"There is nothing to score by the name {task!r}; there are {', '.join(TASKS)}.")
    names = list(GOLD_FILES) if task == "cvlue" else [task.removeprefix("cvlue-")]
    totals = {name: score_task(name, gold, pred, output_dir) for name in names}
    if task == "cvlue":
        print_macro(totals, output_dir)
    print(f"Tables and plots: {output_dir.resolve()}")


def score_task(name: str, gold: Path, pred: Sequence[Path], output_dir: Path) -> dict[str, float]:
    """Scores one task, prints and writes its tables and plot, and gives the means by metric."""
    from cultureval.metrics.cvlue import submissions as official
    from cultureval.reports.csv_files import write_csv
    from cultureval.reports.cvlue.category_plot import draw_categories

    (answers,) = (official.read_json(path) for path in _files([gold], GOLD_FILES[name]))
    replies = [official.read_json(path) for path in _files(pred, PRED_FILES[name])]
    if name == "itr":
        items = official.itr_items(answers, replies)
    elif len(replies) == 1:
        scorers = {"vqa": official.vqa_items, "vg": official.vg_items, "vd": official.vd_items}
        items = scorers[name](answers, replies[0])
    else:
        raise CulturevalError(f"cvlue-{name} takes one prediction file, not {len(replies)}.")
    rows = breakdown(items)
    print(f"\ncvlue-{name}\n{table(rows)}")
    output_dir.mkdir(parents=True, exist_ok=True)
    stem = output_dir / f"cvlue-{name}"
    write_csv(stem.with_suffix(".csv"), rows, encoding="utf-8-sig")
    stem.with_suffix(".json").write_text(json.dumps(rows, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    for metric in HEADLINES[name]:
        if rows[0].get(metric) is not None:
            # One plot a task, but one a direction of retrieval.
            place = stem if len(HEADLINES[name]) == 1 else stem.with_name(f"{stem.name}-{metric[:2].lower()}")
            draw_categories(rows[1:], metric, f"CVLUE {name.upper()}: {metric}", place)
    return official.means(items)


def breakdown(items: Sequence["ScoredItem"]) -> list[Row]:
    """Rows of means: all items first, then the 15 fields and the 92 categories that have items, in Table 4's order.

    A row has `level` (all, field, category), `name`, `items` and a column for each metric.
    """
    from cultureval.metrics.cvlue.submissions import means

    groups: dict[tuple[str, str], list[Any]] = {("all", "all"): list(items)}
    order = list(categories().values())
    fields = dict.fromkeys(category.field_label for category in order)
    groups |= {("field", name): [] for name in (*fields, OTHER)}
    groups |= {("category", category.label): [] for category in order} | {("category", OTHER): []}
    for item in items:
        category = category_of(item.image)
        groups["field", category.field_label if category else OTHER].append(item)
        groups["category", category.label if category else OTHER].append(item)
    rows = [
        {"level": level, "name": name, "items": len(members)} | means(members)
        for (level, name), members in groups.items()
        if members
    ]
    columns = list(rows[0])
    return [{column: row.get(column) for column in columns} for row in rows]


def print_macro(totals: dict[str, dict[str, float]], output_dir: Path) -> None:
    """Prints and writes the contest's macro-average of eleven numbers, by both generations of scorers."""
    from cultureval.metrics.cvlue.submissions import CONTEST, MACRO, macro_average

    numbers = {
        "macro_average": macro_average(totals, MACRO),
        "macro_average_contest_2024": macro_average(totals, CONTEST),
    }
    print(f"\nMacro-average of 11 numbers, released scorers: {numbers['macro_average']:.4f}")
    print(f"With the 2024 contest's (exact answers, IoU without +1): {numbers['macro_average_contest_2024']:.4f}")
    text = json.dumps(numbers | {"tasks": totals}, indent=2) + "\n"
    (output_dir / "cvlue.json").write_text(text, encoding="utf-8")


def table(rows: Sequence[Row]) -> str:
    """The rows as a table for printing."""
    from cultureval.reports.terminal_tables import terminal_table

    return terminal_table(list(rows[0]), [[_cell(value) for value in row.values()] for row in rows], "llr")


def _files(given: Sequence[Path], names: Sequence[str]) -> list[Path]:
    """The files themselves, or those of the released names below a folder."""
    files = [path / name for path in given if path.is_dir() for name in names if (path / name).is_file()]
    files += [path for path in given if not path.is_dir()]
    if not files:
        raise CulturevalError(f"{given[0]} holds none of {', '.join(names)}.")
    return files


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if isinstance(value, float) else str(value)
