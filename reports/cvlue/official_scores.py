"""Submission files in CVLUE's official formats, scored by task, category and field: tables and macro-average."""

import csv
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import Any

from cultureval.metrics.cvlue import submissions
from cultureval.metrics.cvlue.names import CONTEST, HEADLINES, MACRO
from cultureval.metrics.cvlue.submissions import ScoredItem, macro_average
from cultureval.reports.submissions import ScoredRow, ScoredSubmissions, ScoredTask, scores_of
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.frame import DEN
from cultureval.runtime.csv_files import write_csv
from cultureval.runtime.errors import CulturevalError, ProblemList, shown_names
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
OTHER = "other"


def score_all(gold: Path, pred: Sequence[Path], output_dir: Path) -> ScoredSubmissions:
    """Scores all submitted tasks of folders with the released layout, and their macro-average; see `score_task`.

    Raises:
        CulturevalError: No task could be scored; the message has all problems.
    """
    found: dict[str, ScoredSubmissions] = {}
    problems, not_submitted = ProblemList(), []
    for name in GOLD_FILES:
        if not any((path / file).is_file() for path in pred for file in PRED_FILES[name]):
            not_submitted.append(f"cvlue-{name} is not submitted: there is no {' or '.join(PRED_FILES[name])}.")
            continue
        with problems.collecting():
            found[name] = score_task(name, gold, pred, output_dir)
    if not found:
        for sentence in not_submitted:
            problems.add(CulturevalError(sentence))
        problems.raise_if_any()
    tasks = {
        task: scored
        for task_scores in found.values()
        for _, scored_tasks in task_scores.submissions
        for task, scored in scored_tasks.items()
    }
    totals = {name: means(name, tasks[f"cvlue_{name}"].rows) for name in found}
    text = "\n".join(
        [*(task_scores.text for task_scores in found.values()), *not_submitted, macro_text(totals, output_dir)]
    )
    return ScoredSubmissions(text, [(pred, tasks)], list(problems.found))


def score_task(name: str, gold: Path, pred: Sequence[Path], output_dir: Path) -> ScoredSubmissions:
    """Scores one task and writes its tables (JSON, CSV).

    Args:
        name: "itr", "vqa", "vg" or "vd".
        gold: The gold file, or a folder with the released layout.
        pred: The submission file (ITR: one or two), or a folder.

    Returns:
        The table of fields as text, and the scored rows of the task `cvlue_<name>`.

    Raises:
        CulturevalError: A file is missing, not in the official format, or does not match the gold file.
    """
    (answers,) = (submissions.read_json(path) for path in _files([gold], GOLD_FILES[name]))
    replies = [submissions.read_json(path) for path in _files(pred, PRED_FILES[name])]
    if name != "itr" and len(replies) != 1:
        raise CulturevalError(f"cvlue-{name} takes one prediction file, not {len(replies)}.")
    try:
        rows = rows_of(name, answers, replies)
    except CulturevalError as error:
        raise CulturevalError(f"cvlue-{name}: {error}") from error
    unanswered = sum(record["answer"] is None for record in replies[0]) if name == "vqa" else 0
    notes = _notes(name, replies, unanswered)
    text = "\n".join([write_tables(name, rows, output_dir), *notes])
    return ScoredSubmissions(text, [(pred, {f"cvlue_{name}": ScoredTask(rows, notes)})])


def rows_of(name: str, gold: Any, replies: Sequence[Any]) -> list[ScoredRow]:
    """The scored rows of a task, as in a run. In retrieval an image with all of its captions is one row.

    Args:
        name: "itr", "vqa", "vg" or "vd".
        gold: Content of its gold file.
        replies: Contents of its submission files: one, or for "itr" up to two.

    Raises:
        CulturevalError: A content is not in the official format, or does not match the gold.
    """
    if name == "itr":
        return _retrieval_rows(submissions.itr_items(gold, replies))
    scorers = {"vqa": submissions.vqa_items, "vg": submissions.vg_items, "vd": submissions.vd_items}
    items = scorers[name](gold, replies[0])
    records = gold["data"] if isinstance(gold, Mapping) else gold
    return [
        ScoredRow(id_of(name, record), item.scores, item.image) for record, item in zip(records, items, strict=True)
    ]


def _retrieval_rows(items: Sequence[ScoredItem]) -> list[ScoredRow]:
    """A row for each image: its recalls, and its captions' mean recalls with the number of captions as weight."""
    values: dict[str, dict[str, list[float]]] = {}
    for item in items:
        for metric, value in item.scores.items():
            values.setdefault(item.image, {}).setdefault(metric, []).append(value)
    return [
        ScoredRow(
            image,
            {metric: sum(captions) / len(captions) for metric, captions in scores.items()}
            | {metric + DEN: float(len(captions)) for metric, captions in scores.items()},
            image,
        )
        for image, scores in values.items()
    ]


def id_of(name: str, record: Mapping[str, Any]) -> str:
    """A gold record's id, as in the details of a run."""
    if name == "vd":
        return f"{record['image_id']}/{record.get('dialog_id', record.get('question'))}"
    return str(record[{"itr": "image", "vqa": "question_id", "vg": "ref_id"}[name]])


def _notes(name: str, replies: Sequence[Any], unanswered: int) -> list[str]:
    """Sentences on missing parts of a submission."""
    if name == "itr" and len(replies) < len(PRED_FILES[name]):
        return [f"Only one of the two directions was submitted ({' and '.join(PRED_FILES[name])})."]
    if unanswered:
        return [f"{unanswered} of {len(replies[0])} answers are null, which counts as wrong."]
    return []


def write_tables(name: str, rows: Sequence[ScoredRow], output_dir: Path) -> str:
    """Writes a task's scores by field and category as JSON and CSV; returns those by field as text."""
    output_dir.mkdir(parents=True, exist_ok=True)
    table = breakdown(name, rows)
    stem = output_dir / f"cvlue-{name}"
    write_csv(stem.with_suffix(".csv"), table, encoding="utf-8-sig")
    stem.with_suffix(".json").write_text(json.dumps(table, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    beside = {f"{metric}{end}" for metric in HEADLINES[name] for end in ("_low", "_high")}
    shown = [column for column in table[0] if not column.endswith(("_stderr", "_low", "_high")) or column in beside]
    cells = [[_cell(row[column]) for column in shown] for row in table if row["level"] != "category"]
    return f"\ncvlue-{name}\n{terminal_table(shown, cells, 'llr')}"


SUBMISSIONS = {"cvlue": score_all} | {f"cvlue-{name}": partial(score_task, name) for name in GOLD_FILES}


def means(name: str, rows: Sequence[ScoredRow]) -> dict[str, float]:
    """The mean of every metric of a task."""
    return {metric: score.value for metric, score in scores_of(f"cvlue_{name}|0", {"": rows})[""].items()}


def breakdown(name: str, rows: Sequence[ScoredRow]) -> list[Row]:
    """Means of all items, then of the 15 fields and 92 categories that have items, in Table 4's order.

    A row has `level` (all, field, category), `name`, `items` and four columns for each metric: `<metric>`,
    `<metric>_stderr`, and the ends of its 95% interval, `<metric>_low` and `<metric>_high`. Errors are clustered by
    image, and None for a single image.
    """
    known = [*categories().values(), {"field": OTHER, "category": OTHER}]
    levels = [("all", "all"), *((level, category[level]) for level in ("field", "category") for category in known)]
    groups: dict[tuple[str, str], list[ScoredRow]] = {level: [] for level in levels}
    for row in rows:
        labels = {"all": "all"} | category_of(row.cluster)
        for level in labels.items():
            groups[level].append(row)
    scores = scores_of(f"cvlue_{name}|0", {"\t".join(level): members for level, members in groups.items() if members})
    metrics, table = list(scores["all\tall"]), list[Row]()
    for key, found in scores.items():
        kind, _, label = key.partition("\t")
        table.append({"level": kind, "name": label, "items": len(groups[kind, label])})
        for metric in metrics:
            score = found.get(metric)
            ends = {"": "value", "_stderr": "error", "_low": "low", "_high": "high"}
            table[-1] |= {f"{metric}{end}": score and getattr(score, field) for end, field in ends.items()}
    return table


def macro_text(totals: Mapping[str, Mapping[str, float]], output_dir: Path) -> str:
    """Writes the contest's macro-average of eleven numbers, by both versions of the scorers, and returns its text.

    Args:
        totals: Task ("itr", ...) -> metric -> mean. If a number is missing, there is no average.
    """
    parts = [(task, name) for task, names in MACRO.items() for name in names]
    if missing := [f"{task} {name}" for task, name in parts if name not in totals.get(task, {})]:
        return f"\nNo macro-average: {len(missing)} of {len(parts)} numbers are missing ({shown_names(missing)})."
    released, contest = macro_average(totals, MACRO), macro_average(totals, CONTEST)
    content = {"macro_average": released, "macro_average_contest_2024": contest, "tasks": totals}
    (output_dir / "cvlue.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return (
        f"\nMacro-average of 11 numbers, released scorers: {printed(released, 4)}\n"
        f"With the 2024 contest's (exact answers, IoU without +1): {printed(contest, 4)}"
    )


def _files(paths: Sequence[Path], names: Sequence[str]) -> list[Path]:
    """The paths that are files, and the files with the released names in folders."""
    files = [path / name for path in paths if path.is_dir() for name in names if (path / name).is_file()]
    files += [path for path in paths if not path.is_dir()]
    if not files:
        raise CulturevalError(f"{paths[0]} has none of {', '.join(names)}.")
    return files


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return printed(value, 4) if isinstance(value, float) else str(value)


@cache
def categories() -> dict[int, dict[str, str]]:
    """All categories by number (1 to 92): the names of the `category` and of its semantic `field`."""
    with (Path(__file__).parent / "categories.csv").open(encoding="utf-8", newline="") as file:
        return {
            int(row["number"]): {
                "field": f"{row['field_chinese']} {row['field']}",
                "category": f"{row['chinese']} {row['english']}",
            }
            for row in csv.DictReader(file)
        }


def category_of(image: str) -> dict[str, str]:
    """The category of an image by its released path (`images/val/A/84-suona/A-84-326.png`); else "other"."""
    number = re.match(r"(\d{1,2})-", PurePosixPath(image).parent.name)
    return (categories().get(int(number[1])) if number else None) or {"field": OTHER, "category": OTHER}
