"""CVLUE's tables of a run, as the paper's Table 10: one row a task, Chinese and English apart, the macro-average.

The macro-average is that of CVLUE's contest: eleven numbers of the four Chinese tasks with equal weights.
Ours: retrieval by generative models is in small galleries, which a line below the table says; the macro-average's
standard error, an upper bound, since numbers of one task are of the same items.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from cultureval.metrics.cvlue.grounding import FAMILIES, Box, iou, predicted_boxes
from cultureval.metrics.cvlue.names import KS, MACRO
from cultureval.metrics.cvlue.submissions import macro_average
from cultureval.reports.paper_numbers import published_rows, published_scores
from cultureval.runs.files import details_of_run
from cultureval.runs.means import Estimate, percentage
from cultureval.runs.record import Run, TaskRecord
from cultureval.runs.rows import saved_reply
from cultureval.runs.table import (
    NO_AVERAGE,
    Cell,
    Column,
    Coverage,
    Row,
    SuiteTable,
    cell_of,
    table_of_cells,
)
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import described

SUITE = "cvlue"
PUBLISHED = Path(__file__).with_name("published.csv")
DIGITS = 1  # as in the paper
DUAL_ENCODER = "dual encoder"  # the backend in records of `cultureval retrieval`
RECALLS = {direction: tuple(f"{direction}@{k}" for k in KS) for direction in ("TR", "IR", "R")}
# Row -> (the group's name after `cvlue_` or `cvlue_en_`, what is shown, its metrics), as the paper's table.
ROWS: Mapping[str, tuple[str, str, Sequence[str]]] = {
    "VQA": ("vqa", "accuracy", ("accuracy_loose",)),
    "VG": ("vg", "mean IoU", ("iou",)),
    "VD": ("vd", "recall", RECALLS["R"]),
    "TR": ("itr", "recall", RECALLS["TR"]),
    "IR": ("itr", "recall", RECALLS["IR"]),
}
ENGLISH_ROWS = ROWS | {"VQA": ("vqa", "accuracy", ("vqa_accuracy",))}
TITLES = {
    "cvlue": "CVLUE, Chinese, percent",
    "cvlue_en": "English, percent (VQA v2 val, RefCOCOg, VisDial 1.0 val, COCO 5K)",
}
NAMES = {"cvlue": "CVLUE, Chinese", "cvlue_en": "CVLUE, English counterparts"}
MAIN = Column("Macro")
Shown = Mapping[str, tuple[str, str, Sequence[str]]]
COLUMNS = ("metric", "score or @1", "@5", "@10")
OTHER_SPLITS = {
    "cvlue": "The paper's numbers are of a test split that was not released.",
    "cvlue_en": "The paper's numbers for VQA v2 and VisDial are of their test splits.",
}
MOST_ROWS = 500
MOST_MISREAD = 0.5  # share of replies without a box, or with one that cannot be meant
MARGIN = 0.05  # of a side: a box that reaches further out of the image is not in pixels of it
LEAST_AREA = 0.0005  # of the image: smaller boxes are numbers of another unit
BETTER = 0.15  # of mean IoU, by which another format must overlap more


class Fit(NamedTuple):
    """How the replies look in a format: shares of readable and of plausible boxes, and the mean IoU."""

    readable: float
    plausible: float
    overlap: float


def tables(run: Run) -> list[SuiteTable]:
    """The Chinese tasks with their macro-average, and the English counterparts, where any of them was run."""
    found = []
    for shots in dict.fromkeys(task.shots for task in run.tasks_of(SUITE)):
        tasks = {task.group: task for task in run.tasks_of(SUITE) if task.shots == shots}
        found += [_table(run, tasks, "cvlue", ROWS, shots), _table(run, tasks, "cvlue_en", ENGLISH_ROWS, shots)]
    return [table for table in found if table.rows]


def macro_estimate(numbers: Mapping[str, Estimate], asked: Mapping[str, int] | None = None) -> Estimate | None:
    """The contest's macro-average of eleven numbers, None unless all are there.

    Its standard error takes a task's numbers as fully correlated and tasks as independent, an upper bound.

    Args:
        numbers: By `<task>:<metric>`, such as `vd:R@5`.
        asked: How many rows each task has: a row of a gallery gives TR and IR, one of a dual encoder's either; None: no
            rows are counted.
    """
    wanted = {task: [f"{task}:{metric}" for metric in metrics] for task, metrics in MACRO.items()}
    if not all(name in numbers for names in wanted.values() for name in names):
        return None
    count = sum(map(len, wanted.values()))
    scores = {task: {metric: numbers[f"{task}:{metric}"].value for metric in MACRO[task]} for task in MACRO}
    errors = [[numbers[name].stderr for name in names] for names in wanted.values()]
    known = all(error is not None for task in errors for error in task)
    n = None if asked is None else 0
    for task, names in wanted.items():
        rows = [*{name.partition("@")[0]: numbers[name].n for name in names}.values()]
        n = None if n is None or None in rows else n + (sum(rows) if sum(rows) <= asked[task] else max(rows))
    return Estimate(macro_average(scores), math.hypot(*map(sum, errors)) / count if known else None, n)


def _table(run: Run, tasks: Mapping[str, TaskRecord], prefix: str, shown: Shown, shots: int) -> SuiteTable:
    published, rows, notes = published_scores(PUBLISHED, run.model), [], []
    numbers: dict[str, Estimate] = {}
    for label, (part, kind, metrics) in shown.items():
        if record := tasks.get(f"{prefix}_{part}"):
            found = {metric: percentage(run, record, metric) for metric in metrics}
            numbers |= {f"{part}:{metric}": score for metric, score in found.items() if score is not None}
            papers = {metric: published.get(f"{record.group}:{metric}") for metric in found}
            columns = _columns(label, kind, metrics)
            cells = [
                replace(cell_of(score, papers[metric], DIGITS), column=column)
                for column, (metric, score) in zip(columns, found.items(), strict=True)
            ]
            rows.append(Row(label, (kind, *cells, *[None] * (len(KS) - len(cells)))))
            notes += _gallery_note(run, record) + (_box_note(run, record) if part == "vg" else [])
    if rows and prefix == "cvlue":
        rows.append(_macro_row(numbers, tasks))
    if any(isinstance(cell, Cell) and cell.published is not None for row in rows for cell in row.cells):
        notes.append(OTHER_SPLITS[prefix])
    title = TITLES[prefix] + (f", {shots}-shot" if shots else "")
    main = {"main": MAIN, "order": [MAIN]} if prefix == "cvlue" else {}
    notes = list(dict.fromkeys(notes))
    return SuiteTable(NAMES[prefix], "percent", ("Task", *COLUMNS), rows, notes, title, **main)


def _macro_row(numbers: Mapping[str, Estimate], tasks: Mapping[str, TaskRecord]) -> Row:
    names = [f"{task}:{metric}" for task, metrics in MACRO.items() for metric in metrics]
    asked = {name.partition("_")[2]: record.n for name, record in tasks.items()}
    coverage, macro = Coverage(sum(name in numbers for name in names), len(names)), macro_estimate(numbers, asked)
    cell = cell_of(macro, digits=DIGITS) if macro else Cell(None, words=NO_AVERAGE)
    parts = {
        (tasks[f"cvlue_{part}"].task, metric): 1.0
        for part, metrics in MACRO.items()
        for metric in (metrics if macro else ())
    }
    return Row(MAIN.name, (coverage, replace(cell, column=MAIN, parts=parts), None, None))


def _columns(label: str, kind: str, metrics: Sequence[str]) -> list[Column]:
    """Where a row's numbers stand in one row a model."""
    if len(metrics) == 1:
        return [Column(kind, label)]
    return [Column(f"@{metric.partition('@')[2]}", label) for metric in metrics]


def _gallery_note(run: Run, record: TaskRecord) -> list[str]:
    """In how many images captions were searched."""
    images = run.value(record.task, "gallery_images")
    if images is None or run.record.model.backend == DUAL_ENCODER:
        return []
    return [f"TR, IR: retrieval in galleries of {images:.3g} images; the paper's is the whole test split."]


def _box_note(run: Run, record: TaskRecord) -> list[str]:
    """Whether the boxes were read in another format than the model writes, where the run's details are there.

    A hint: an error in it costs no table.
    """
    try:
        problem = misread_boxes(details_of_run(run, record.task, MOST_ROWS))
    except Exception as error:  # details of another version, or without what other formats are read by
        problem = f"whether another format fits the model's boxes better cannot be said: {described(error)}."
    return [f"VG: {problem}"] if problem else []


def published_tables() -> dict[str, list[SuiteTable]]:
    """Model -> its rows of Table 10; the paper has no macro-average."""
    found: dict[str, list[SuiteTable]] = {}
    for row in published_rows(PUBLISHED):
        for prefix, shown in {"cvlue": ROWS, "cvlue_en": ENGLISH_ROWS}.items():
            cells = {
                column: Cell(float(value), digits=DIGITS)
                for label, (part, kind, metrics) in shown.items()
                for column, metric in zip(_columns(label, kind, metrics), metrics, strict=True)
                if (value := row.get(f"{prefix}_{part}:{metric}"))
            }
            found.setdefault(row["model"], []).append(table_of_cells(NAMES[prefix], cells))
    return found


def fit_of(rows: Sequence[Mapping[str, Any]], family: str) -> Fit:
    """How the replies of a grounding task look when they are read in a format.

    Args:
        family: A key of `FAMILIES`.
    """
    readable = plausible = overlap = 0.0
    for row in rows:
        specific = {**specific_of(row["doc"]), "box_format": family}
        try:
            boxes = predicted_boxes(saved_reply(row["model_response"]), specific)
            overlap += iou(boxes[0], specific["box"]) if boxes else 0.0
        except ValueError:  # numbers that are no box, or an image that the format's processor does not take
            continue
        readable += bool(boxes)
        plausible += bool(boxes) and _is_plausible(boxes[0], specific["size"])
    return Fit(readable / len(rows), plausible / len(rows), overlap / len(rows))


def misread_boxes(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """A sentence, where most replies have no readable or plausible box or another format overlaps far more.

    Args:
        rows: Rows of the details of a grounding task; the first `MOST_ROWS` are read.
    """
    rows = rows[:MOST_ROWS]
    if not rows:
        return None
    used = str(specific_of(rows[0]["doc"])["box_format"])
    fits = {family: fit_of(rows, family) for family in FAMILIES}
    mine = fits[used]
    best = max(fits, key=lambda family: (fits[family].overlap, fits[family].plausible))
    better = fits[best].overlap >= mine.overlap + BETTER
    if mine.plausible >= 1 - MOST_MISREAD and not better:
        return None
    if mine.readable < 1 - MOST_MISREAD:
        problem = f"{1 - mine.readable:.0%} of the replies have no box that can be read"
    elif mine.plausible < 1 - MOST_MISREAD:
        problem = f"{1 - mine.plausible / mine.readable:.0%} of the boxes are outside the image or tiny"
    else:
        problem = f"the boxes overlap little with the gold ones (mean IoU {mine.overlap:.2f})"
    if best == used or not better:
        return f"Read as {used} writes boxes, {problem}; no other format fits better: look at the replies."
    found = f"read as {best} writes them, {fits[best].readable:.0%} have one, of mean IoU {fits[best].overlap:.2f}"
    return f"Read as {used} writes boxes, {problem}; {found}. Run again with --box-format {best}."


def _is_plausible(box: Box, size: Sequence[float]) -> bool:
    """Whether a box lies in the image, but for a margin, and is not tiny."""
    (x, y, across, down), (width, height) = box, size
    inside = min(x / width, y / height) >= -MARGIN and max((x + across) / width, (y + down) / height) <= 1 + MARGIN
    return inside and across * down >= LEAST_AREA * width * height
