"""CVLUE's tables of a run, as the paper's Table 10: one row a task, Chinese and English apart, the macro-average.

The macro-average is that of CVLUE's contest: eleven numbers of the four Chinese tasks with equal weights.
Ours: retrieval by generative models is in small galleries, which a line below the table says; the macro-average's
standard error, an upper bound, since numbers of one task are of the same items.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cultureval.metrics.cvlue.names import KS, MACRO
from cultureval.metrics.cvlue.submissions import macro_average
from cultureval.reports.paper_numbers import published_rows, published_scores
from cultureval.runs.files import details_of_run
from cultureval.runs.means import Estimate, percentage
from cultureval.runs.record import Run, TaskRecord
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


def tables(run: Run) -> list[SuiteTable]:
    """The Chinese tasks with their macro-average, and the English counterparts, where any of them was run."""
    found = []
    for shots in dict.fromkeys(task.shots for task in run.tasks_of(SUITE)):
        tasks = {task.group: task for task in run.tasks_of(SUITE) if task.shots == shots}
        found += [_table(run, tasks, "cvlue", ROWS, shots), _table(run, tasks, "cvlue_en", ENGLISH_ROWS, shots)]
    return [table for table in found if table.rows]


def macro_estimate(numbers: Mapping[str, Estimate]) -> Estimate | None:
    """The contest's macro-average of eleven numbers, None unless all are there.

    Its standard error takes a task's numbers as fully correlated and tasks as independent, an upper bound.

    Args:
        numbers: By `<task>:<metric>`, such as `vd:R@5`.
    """
    wanted = {task: [f"{task}:{metric}" for metric in metrics] for task, metrics in MACRO.items()}
    if not all(name in numbers for names in wanted.values() for name in names):
        return None
    count = sum(map(len, wanted.values()))
    scores = {task: {metric: numbers[f"{task}:{metric}"].value for metric in MACRO[task]} for task in MACRO}
    errors = [[numbers[name].stderr for name in names] for names in wanted.values()]
    known = all(error is not None for task in errors for error in task)
    rows = {name.partition("@")[0]: numbers[name].n for names in wanted.values() for name in names}  # of the table
    n = None if None in rows.values() else sum(one or 0 for one in rows.values())
    return Estimate(macro_average(scores), math.hypot(*map(sum, errors)) / count if known else None, n)


def _table(run: Run, tasks: Mapping[str, TaskRecord], prefix: str, shown: Shown, shots: int) -> SuiteTable:
    published, rows, notes = published_scores(PUBLISHED, run.model), [], []
    numbers: dict[str, Estimate] = {}
    for label, (part, kind, metrics) in shown.items():
        if record := tasks.get(f"{prefix}_{part}"):
            found = {metric: percent_of(run, record, metric) for metric in metrics}
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
    coverage, macro = Coverage(sum(name in numbers for name in names), len(names)), macro_estimate(numbers)
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


def percent_of(run: Run, record: TaskRecord, metric: str) -> Estimate | None:
    """In percent; of a dual encoder with the number of the direction's queries, of which its rows are both."""
    found = percentage(run, record, metric)
    if found is None or metric not in RECALLS["TR"] + RECALLS["IR"] or run.record.model.backend != DUAL_ENCODER:
        return found
    queries = run.value(record.task, "gallery_images" if metric in RECALLS["TR"] else "gallery_captions")
    return found._replace(n=None if queries is None else int(queries))


def _gallery_note(run: Run, record: TaskRecord) -> list[str]:
    """In how many images captions were searched."""
    images = run.value(record.task, "gallery_images")
    if images is None or run.record.model.backend == DUAL_ENCODER:
        return []
    return [f"TR, IR: retrieval in galleries of {images:.3g} images; the paper's is the whole test split."]


def _box_note(run: Run, record: TaskRecord) -> list[str]:
    """Whether the boxes were read in another format than the model writes, where the run's details are there."""
    from cultureval.reports.cvlue.box_formats import MOST_ROWS, misread_boxes

    problem = misread_boxes(details_of_run(run, record.task, MOST_ROWS))
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
