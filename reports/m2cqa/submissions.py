"""AynVQA's submissions: the organisers' CSV, read and scored as they do, and written from finished runs.

Verified (ImageEval2026-tasks, task1): the format (id, statement_index, prediction) and the metrics. A missing
prediction counts as wrong. Of two rows for one statement the last counts. Other ids and indices are ignored.
Ours: standard errors; an undefined rate is n/a, where the organisers' scorer prints 0.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from cultureval.metrics.declared import DEN
from cultureval.metrics.m2cqa.counterfactual import ROLES, WORDS, Statement, item_columns
from cultureval.metrics.m2cqa.names import (
    AYNVQA,
    AYNVQA_JOINT,
    CFHR,
    COMBINED_ACC,
    CONTRASTIVE_INSTABILITY,
    INVALID_RATE,
    Q_MINUS_ACC,
    Q_PLUS_ACC,
    headline_verdict,
)
from cultureval.metrics.m2cqa.statement_verdicts import organisers_verdict
from cultureval.reports.submissions import ScoredRow, ScoredSubmissions, ScoredTask, scores_of
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.files import read_details
from cultureval.runs.loading import Run, load
from cultureval.runs.scores import Score
from cultureval.runtime.csv_files import write_csv
from cultureval.runtime.data.row_files import read_rows
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.rounding import printed

COLUMNS = ("id", "statement_index", "prediction")
METRICS = (CONTRASTIVE_INSTABILITY, COMBINED_ACC, CFHR, Q_PLUS_ACC, Q_MINUS_ACC)
READABLE = ("true", "false")  # other verdicts are an empty cell, which counts as wrong
Row = dict[str, str]


class Gold(NamedTuple):
    """The gold file: each item's statements, and the index of the true statement."""

    path: Path
    statements: dict[str, list[str]]
    true: dict[str, int]


def score_aynvqa(gold: Path, pred: Sequence[Path], output_dir: Path) -> ScoredSubmissions:
    """Scores submissions, and runs, from which it writes submission files.

    Args:
        gold: A split with labels (task1b/test_en.jsonl).
        pred: CSV files of submissions; or output folders and results files of runs of the groups m2cqa_aynvqa.
        output_dir: Folder for the submission files of runs.

    Raises:
        CulturevalError: A file cannot be read or is in another format, or a run has none of the gold file's items.
    """
    answers = read_gold(gold)
    files = [path for path in pred if path.suffix.lower() == ".csv"]
    runs = [path for path in pred if path not in files]
    files += write_submissions(load(*runs).runs, answers, output_dir) if runs else []
    cells, notes, submissions = [], [], []
    task = task_of(answers)
    for file in files:
        predictions, problems = read_submission(file, answers)
        scored = replace(scored_submission(answers, predictions), notes=tuple(problems))
        found = scores_of(f"{task}|0", {"": scored.rows})[""]
        cells.append([file.name, *(_cell(found.get(name)) for name in METRICS), str(len(answers.true))])
        notes += [f"{file.name}: {problem}" for problem in problems]
        submissions.append(([file], {task: scored}))
    title = "AynVQA, 0 to 1: ranked by contrastive instability (lower is better, as for CFHR)"
    table = terminal_table(("Submission", *METRICS, "items"), cells, "lr", title)
    written = [f"Submission of a run: {file.resolve()}" for file in files if file not in pred]
    return ScoredSubmissions("\n".join([table, *notes, *written]), submissions)


def task_of(gold: Gold) -> str:
    """The task of the organisers' form in the language of the gold file's statements, or of its name."""
    arabic = any(re.search(r"[\u0621-\u064a]", text) for texts in gold.statements.values() for text in texts)
    return f"{AYNVQA}:{'msa' if arabic or gold.path.stem.endswith('_msa') else 'en'}"


def read_gold(path: Path) -> Gold:
    """The gold file.

    Raises:
        CulturevalError: It cannot be read, or an item has other labels than one true of three.
    """
    statements: dict[str, list[str]] = {}
    true: dict[str, int] = {}
    for number, row in enumerate(read_rows(path), 1):
        labels = row.get("labels")
        if "id" not in row or not isinstance(labels, list) or len(labels) != 3 or sum(map(bool, labels)) != 1:
            raise CulturevalError(
                f"{path}, line {number}: no `id`, or no `labels` with one true of three. Give a split with labels, "
                "such as task1b/test_en.jsonl."
            )
        item = str(row["id"]).strip()
        statements[item], true[item] = [str(text) for text in row.get("statements") or []], labels.index(True)
    return Gold(path, statements, true)


def read_submission(path: Path, gold: Gold) -> tuple[dict[tuple[str, int], str], list[str]]:
    """The predictions of a submission by item and statement, and sentences on missing and ignored ones.

    Raises:
        CulturevalError: It cannot be read, or a column is missing.
    """
    import pandas

    try:
        rows = pandas.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise CulturevalError(f"The submission {path} cannot be read: {error}") from error
    if missing := [name for name in COLUMNS if name not in rows]:
        raise CulturevalError(
            f"The submission {path} has no column {', '.join(missing)}; columns found: {', '.join(rows)}."
        )
    rows["id"] = rows["id"].str.strip()
    is_index = rows["statement_index"].str.fullmatch(r"\s*\+?0*[012]\s*")  # the organisers' int() reads 1, " 1" and 01
    of_gold = rows[rows["id"].isin(gold.true) & is_index]
    last = of_gold.assign(place=of_gold["statement_index"].astype(int)).drop_duplicates(["id", "place"], keep="last")
    predictions = {
        (item, place): text for item, place, text in last[["id", "place", "prediction"]].itertuples(index=False)
    }
    unreadable = sum(organisers_verdict(text) is None for text in predictions.values())
    elsewhere, repeated, absent = len(rows) - len(of_gold), len(of_gold) - len(last), 3 * len(gold.true) - len(last)
    problems = {
        f"{elsewhere} of {len(rows)} rows are of no statement (0, 1, 2) of a gold item.": elsewhere,
        f"{repeated} of {len(rows)} rows are repeated, of which the last counts.": repeated,
        f"{absent} of {3 * len(gold.true)} predictions are missing, and count as wrong.": absent,
        f"{unreadable} of {len(last)} predictions hold no verdict, and count as wrong.": unreadable,
    }
    return predictions, [sentence for sentence, count in problems.items() if count]


def scored_submission(gold: Gold, predictions: Mapping[tuple[str, int], str]) -> ScoredTask:
    """The organisers' metrics of a submission. The row of an item's true statement has the item's metrics, as in runs.

    Args:
        predictions: By item and statement; a missing prediction is wrong.
    """
    statements, rows = [], []
    for item, true in gold.true.items():
        false_roles = iter(ROLES[1:])
        for place in range(len(ROLES)):
            text = predictions.get((item, place), "")
            role = ROLES[0] if place == true else next(false_roles)
            statements.append(Statement(item, role, WORDS[organisers_verdict(text)]))
            rows.append(ScoredRow(f"{item}/{place}", {}, item, text))
    columns = item_columns(statements)
    found = []
    for place, row in enumerate(rows):
        metric: dict[str, float | None] = {}
        for name in (*METRICS, INVALID_RATE):
            score, den = (column[place] for column in columns[name][:2])
            metric |= {name: None if math.isnan(score) else score, name + DEN: den}
        found.append(row._replace(metric=metric))
    return ScoredTask(found)


def write_submissions(runs: Sequence[Run], gold: Gold, output_dir: Path) -> list[Path]:
    """Writes a submission file for each task of the runs with the gold file's statements.

    Raises:
        CulturevalError: The runs have no such task.
    """
    files = []
    for run in runs:
        for task, details in run.details.items():
            group = task.partition(":")[0]
            if group.startswith(AYNVQA) and group != AYNVQA_JOINT and (rows := _rows(details, task, gold)):
                name = re.sub(r"[^\w.-]+", "_", f"{run.name}_{task.partition('|')[0]}")
                output_dir.mkdir(parents=True, exist_ok=True)
                files.append(output_dir / f"{name}.csv")
                write_csv(files[-1], rows, COLUMNS, exact=True)
    if not files:
        raise CulturevalError(
            f"{', '.join(run.name for run in runs)}: no run of {AYNVQA} on the statements of {gold.path}. Is it the "
            "same split and language? The joint form has no verdicts on single statements."
        )
    return files


def _rows(details: Path, task: str, gold: Gold) -> list[Row]:
    """The rows of a task's submission; [] if the gold file does not have its statements."""
    key = headline_verdict(task)
    rows = []
    for row in read_details(details).to_pylist():
        specific = specific_of(row["doc"])
        item, index = specific["item_id"], specific["statement_index"]
        if gold.statements.get(item, [])[index : index + 1] != [specific["statement"]]:
            return []
        verdict = row["metric"][key]
        prediction = verdict if verdict in READABLE else ""
        rows.append({"id": item, "statement_index": str(index), "prediction": prediction})
    order = {item: place for place, item in enumerate(gold.true)}
    return sorted(rows, key=lambda row: (order[row["id"]], row["statement_index"]))


def _cell(score: Score | None) -> str:
    if score is None:
        return "n/a"
    return printed(score.value, 4) + ("" if score.error is None else f" ± {printed(score.error, 4)}")


SUBMISSIONS = {"aynvqa": score_aynvqa}
