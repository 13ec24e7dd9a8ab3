"""AynVQA's tables of a run: the organisers' numbers in their order, a row a form; the joint form is apart.

Overview of ImageEval 2026, arXiv 2608.30475: models are ranked by contrastive instability. Ours: the standard errors.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from cultureval.metrics.m2cqa.names import (
    AYNVQA_JOINT,
    CFHR,
    COMBINED_ACC,
    CONTRASTIVE_INSTABILITY,
    INVALID_RATE,
    JOINT_ACC,
    JOINT_INVALID_RATE,
    Q_MINUS_ACC,
    Q_PLUS_ACC,
)
from cultureval.reports.m2cqa.table import UNIT, profile_notes
from cultureval.runs.means import estimate
from cultureval.runs.record import Run, TaskRecord
from cultureval.runs.table import Column, Row, SuiteTable, cell_of, with_mean_of_rows
from cultureval.tasks.catalogue import all_tasks

COLUMNS = {
    CONTRASTIVE_INSTABILITY: "instability",
    COMBINED_ACC: "combined",
    CFHR: "CFHR",
    Q_PLUS_ACC: "Q+",
    Q_MINUS_ACC: "Q-",
    INVALID_RATE: "invalid",
}
JOINT_COLUMNS = {JOINT_ACC: "accuracy", JOINT_INVALID_RATE: "invalid"}
LOWER = ("instability", "CFHR", "invalid")
LANGUAGES = {"en": "English", "msa": "MSA"}


def tables(run: Run) -> list[SuiteTable]:
    """A table with a row for each form and language, and one of the joint form."""
    records = list(run.tasks_of("aynvqa"))
    joint = [record for record in records if record.group == AYNVQA_JOINT]
    judged = [record for record in records if record.group != AYNVQA_JOINT]
    found = []
    if judged:
        notes = profile_notes(run, judged, COLUMNS)
        rows = [_row(run, one, COLUMNS) for one in judged]
        table = SuiteTable("AynVQA", UNIT, _header("Form", COLUMNS), rows, notes)
        tasks = {label(one): one.task for one in judged}
        known = [task for task in all_tasks().values() if task.suite == "aynvqa" and task.group != AYNVQA_JOINT]
        named = "all forms and languages" if len(judged) == len(known) else ""
        main = CONTRASTIVE_INSTABILITY
        found.append(with_mean_of_rows(run, table, COLUMNS[main], tasks, main, named))
    if joint:
        unit = "0 to 1; the true one of three (chance 0.333), not comparable with the others"
        rows = [_row(run, one, JOINT_COLUMNS) for one in joint]
        table = SuiteTable("AynVQA, joint form", unit, _header("Language", JOINT_COLUMNS), rows)
        tasks = {label(one): one.task for one in joint}
        found.append(with_mean_of_rows(run, table, JOINT_COLUMNS[JOINT_ACC], tasks, JOINT_ACC))
    return found


def _header(first: str, columns: Mapping[str, str]) -> list[Column | str]:
    return [first, *(Column(name, lower=name in LOWER) for name in columns.values())]


def _row(run: Run, record: TaskRecord, columns: Iterable[str]) -> Row:
    cells = {metric: cell_of(estimate(run, record, metric), digits=3) for metric in columns}
    return Row(label(record), [replace(cell, asked=record.items_with(name)) for name, cell in cells.items()])


def label(record: TaskRecord) -> str:
    """What a task's row is called."""
    language = LANGUAGES.get(record.subset, record.subset)
    return language if record.group == AYNVQA_JOINT else f"{record.domain}, {language}"
