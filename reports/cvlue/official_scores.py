"""Submission files in CVLUE's official formats, scored by task, category and field: tables, plots, macro-average."""

import csv
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import Any

from cultureval.metrics.cvlue import submissions
from cultureval.metrics.cvlue.names import CONTEST, HEADLINES, MACRO
from cultureval.metrics.cvlue.submissions import ScoredItem, macro_average, means
from cultureval.metrics.standard_errors import clustered_interval, clustered_standard_error
from cultureval.reports.cvlue.category_plot import draw_categories
from cultureval.reports.submissions import ScoredSubmissions, ScoredTask
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.csv_files import write_csv
from cultureval.runtime.errors import CulturevalError, ProblemList, Problems, shown_names
from cultureval.runtime.rounding import printed

# File names in a folder of gold files or submissions, as in the released example.
GOLD_FILES = {"itr": ("IC/gold.json",), "vqa": ("VQA/gold.json",), "vg": ("VG/gold.json",), "vd": ("VD/gold.json",)}
PRED_FILES = {
    "itr": ("IC/i2t_submit.json", "IC/t2i_submit.json"),
    "vqa": ("VQA/submit_VQA.json",),
    "vg": ("VG/submit_VG.json",),
    "vd": ("VD/submit_VD.json",),
}
Row = dict[str, Any]
BOUNDS = ("_low", "_high")  # suffixes of the columns with the bounds of a metric's 95% interval
OTHER = "other"


@dataclass(frozen=True)
class Category:
    """One object category: its number (1 to 92), its names, and its semantic field's names."""

    number: int
    english: str
    chinese: str
    field: str
    field_chinese: str

    @property
    def label(self) -> str:
        """Its label in tables and plots."""
        return f"{self.chinese} {self.english}"

    @property
    def field_label(self) -> str:
        """Its field's label in tables and plots."""
        return f"{self.field_chinese} {self.field}"


def score_all(gold: Path, pred: Sequence[Path], output_dir: Path) -> ScoredSubmissions:
    """Scores the tasks of folders with the released layout that are there, and their macro-average; see `score_task`.

    Raises:
        CulturevalError: Nothing could be scored; all problems of all tasks.
    """
    found: dict[str, ScoredSubmissions] = {}
    problems, absent = ProblemList(), []
    for name in GOLD_FILES:
        if not any((path / file).is_file() for path in pred for file in PRED_FILES[name]):
            absent.append(f"cvlue-{name} is not submitted: there is no {' or '.join(PRED_FILES[name])}.")
            continue
        with problems.collecting():
            found[name] = score_task(name, gold, pred, output_dir)
    if not found:
        for sentence in absent:
            problems.add(CulturevalError(sentence))
        problems.raise_if_any()
    tasks = {task: scored for one in found.values() for _, of_one in one.submissions for task, scored in of_one.items()}
    totals = {name: _without_errors(tasks[f"cvlue_{name}"].scores) for name in found}
    text = "\n".join([*(one.text for one in found.values()), *absent, macro_text(totals, output_dir)])
    return ScoredSubmissions(text, [(pred, tasks)], list(problems.found))


def score_task(name: str, gold: Path, pred: Sequence[Path], output_dir: Path) -> ScoredSubmissions:
    """Scores one task and writes its tables (JSON, CSV) and plots.

    Args:
        name: "itr", "vqa", "vg" or "vd".
        gold: The gold file, or a folder with the released layout.
        pred: The submission file (ITR: one or two), or a folder.

    Returns:
        The table as text, and the scores of the task `cvlue_<name>`.

    Raises:
        CulturevalError: A file is missing, not in the official format, or does not match the gold file.
    """
    (answers,) = (submissions.read_json(path) for path in _files([gold], GOLD_FILES[name]))
    replies = [submissions.read_json(path) for path in _files(pred, PRED_FILES[name])]
    if name != "itr" and len(replies) != 1:
        raise CulturevalError(f"cvlue-{name} takes one prediction file, not {len(replies)}.")
    try:
        items = items_of(name, answers, replies)
    except CulturevalError as error:
        several = error.problems if isinstance(error, Problems) else (str(error),)
        problems = ProblemList()
        for problem in several:
            problems.add(CulturevalError(f"cvlue-{name}: {problem}"))
        problems.raise_if_any()
    text, every = write_tables(name, items, output_dir)
    notes = warnings_of(name, answers, replies)
    images = len({item.image for item in items})
    asked = images if name == "itr" else len(items)  # as in runs, where a row of retrieval is an image
    scored = ScoredTask(_scores(every), asked, images, unparsable=unanswered(name, replies), notes=notes)
    return ScoredSubmissions("\n".join([text, *notes]), [(pred, {f"cvlue_{name}": scored})])


def items_of(name: str, gold: Any, replies: Sequence[Any]) -> list[ScoredItem]:
    """The scored items of a task.

    Args:
        name: "itr", "vqa", "vg" or "vd".
        gold: Content of its gold file.
        replies: Contents of its submission files: one, or for "itr" up to two.

    Raises:
        CulturevalError: A content is not in the official format, or does not match the gold.
    """
    if name == "itr":
        return submissions.itr_items(gold, replies)
    scorers = {"vqa": submissions.vqa_items, "vg": submissions.vg_items, "vd": submissions.vd_items}
    return scorers[name](gold, replies[0])


def warnings_of(name: str, gold: Any, replies: Sequence[Any]) -> list[str]:
    """Sentences on a scored submission that looks like something else than it should; arguments as `items_of`."""
    if name == "itr":
        found = submissions.ranking_warnings(gold, replies)
        if len(replies) < len(PRED_FILES[name]):
            found.append(f"Only one of the two directions was submitted ({' and '.join(PRED_FILES[name])}).")
        return found
    if count := unanswered(name, replies):
        return [f"{count} of {len(replies[0])} answers are null, which counts as wrong."]
    return submissions.box_warnings(gold, replies[0]) if name == "vg" else []


def unanswered(name: str, replies: Sequence[Any]) -> int:
    """How many answers of a submission are null; arguments as `items_of`."""
    return sum(record["answer"] is None for record in replies[0]) if name == "vqa" else 0


def write_tables(name: str, items: Sequence[ScoredItem], output_dir: Path) -> tuple[str, Row]:
    """Writes a task's scores by field and category as JSON, CSV and plots; returns the table as text and its first row.

    Args:
        name: "itr", "vqa", "vg" or "vd".
    """
    output_dir.mkdir(parents=True, exist_ok=True)
    rows = breakdown(items)
    stem = output_dir / f"cvlue-{name}"
    write_csv(stem.with_suffix(".csv"), rows, encoding="utf-8-sig")
    stem.with_suffix(".json").write_text(json.dumps(rows, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    headlines = HEADLINES[name]
    for metric in headlines:
        if rows[0].get(metric) is not None:
            # One plot per task; for retrieval, one per direction.
            place = stem if len(headlines) == 1 else stem.with_name(f"{stem.name}-{metric[:2].lower()}")
            draw_categories(rows[1:], metric, f"CVLUE {name.upper()}: {metric}", place)
    beside = {f"{metric}{end}" for metric in headlines for end in BOUNDS}
    shown = [column for column in rows[0] if not column.endswith(("_stderr", *BOUNDS)) or column in beside]
    table = terminal_table(shown, [[_cell(row[column]) for column in shown] for row in rows], "llr")
    return f"\ncvlue-{name}\n{table}", rows[0]


SUBMISSIONS = {"cvlue": score_all} | {f"cvlue-{name}": partial(score_task, name) for name in GOLD_FILES}


def _scores(row: Row) -> dict[str, float]:
    """The means and standard errors of a row of `breakdown`; nan where undefined."""
    beside = ("level", "name", "items")
    values = {name: value for name, value in row.items() if name not in beside and not name.endswith(BOUNDS)}
    return {name: math.nan if value is None else value for name, value in values.items()}


def _without_errors(scores: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in scores.items() if not name.endswith("_stderr")}


def breakdown(items: Sequence[ScoredItem]) -> list[Row]:
    """Rows of means: all items first, then the 15 fields and the 92 categories that have items, in Table 4's order.

    A row has `level` (all, field, category), `name`, `items` and for each metric a column, one of its standard error,
    `<metric>_stderr`, and the bounds of its 95% interval, `<metric>_low` and `<metric>_high`, clustered by image; None
    where there is one image.
    """
    groups: dict[tuple[str, str], list[ScoredItem]] = {("all", "all"): list(items)}
    order = list(categories().values())
    fields = dict.fromkeys(category.field_label for category in order)
    groups |= {("field", name): [] for name in (*fields, OTHER)}
    groups |= {("category", category.label): [] for category in order} | {("category", OTHER): []}
    for item in items:
        category = category_of(item.image)
        groups["field", category.field_label if category else OTHER].append(item)
        groups["category", category.label if category else OTHER].append(item)
    rows = [
        {"level": level, "name": name, "items": len(members)} | _with_errors(members)
        for (level, name), members in groups.items()
        if members
    ]
    columns = list(rows[0])
    return [{column: row.get(column) for column in columns} for row in rows]


def _with_errors(items: Sequence[ScoredItem]) -> Row:
    row: Row = {}
    for name, mean in means(items).items():
        scored = [item for item in items if name in item.scores]
        values, images = [item.scores[name] for item in scored], [item.image for item in scored]
        bounds = None if name == "mean_rank" else (0, 1)
        beside = (clustered_standard_error(values, images, bounds), *clustered_interval(values, images))
        columns = zip(("_stderr", *BOUNDS), beside, strict=True)
        row |= {name: mean} | {f"{name}{end}": None if math.isnan(value) else value for end, value in columns}
    return row


def macro_text(totals: Mapping[str, Mapping[str, float]], output_dir: Path) -> str:
    """Writes the contest's macro-average of eleven numbers, by both versions of the scorers, and returns its text.

    Args:
        totals: By task ("itr", ...) the means by metric.

    Returns:
        Also where some of the numbers are missing, and then without an average.
    """
    wanted = [(task, name) for task, names in MACRO.items() for name in names]
    if missing := [f"{task} {name}" for task, name in wanted if name not in totals.get(task, {})]:
        return f"\nNo macro-average: {len(missing)} of {len(wanted)} numbers are missing ({shown_names(missing)})."
    numbers = {
        "macro_average": macro_average(totals, MACRO),
        "macro_average_contest_2024": macro_average(totals, CONTEST),
    }
    text = json.dumps(numbers | {"tasks": totals}, indent=2) + "\n"
    (output_dir / "cvlue.json").write_text(text, encoding="utf-8")
    return (
        f"\nMacro-average of 11 numbers, released scorers: {printed(numbers['macro_average'], 4)}\n"
        "With the 2024 contest's (exact answers, IoU without +1): "
        f"{printed(numbers['macro_average_contest_2024'], 4)}"
    )


def _files(given: Sequence[Path], names: Sequence[str]) -> list[Path]:
    """The given files, and files with the released names in given folders."""
    files = [path / name for path in given if path.is_dir() for name in names if (path / name).is_file()]
    files += [path for path in given if not path.is_dir()]
    if not files:
        raise CulturevalError(f"{given[0]} has none of {', '.join(names)}.")
    return files


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return printed(value, 4) if isinstance(value, float) else str(value)


@cache
def categories() -> dict[int, Category]:
    """All categories by number."""
    with (Path(__file__).parent / "categories.csv").open(encoding="utf-8", newline="") as file:
        rows = [Category(**row | {"number": int(row["number"])}) for row in csv.DictReader(file)]
    return {row.number: row for row in rows}


def category_of(image: str) -> Category | None:
    """The category of an image by its released path (`images/val/A/84-suona/A-84-326.png`); None without a number."""
    number = re.match(r"(\d{1,2})-", PurePosixPath(image).parent.name)
    return categories().get(int(number[1])) if number else None
