"""JEEM's tables of a run, as the paper's Tables 3 and 5: varieties by reference metric, and by judge's criterion.

Paper: arXiv 2503.21910, section 5. Its tables hold no average over varieties, so neither do ours. Ours: the standard
errors. Beside BLEU-4 stands the paper's BLEU, whose order it does not name.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cultureval.reports.paper_numbers import published_rows, published_rows_of
from cultureval.runs.judged import (
    BOUNDS_NOTE,
    JudgeScores,
    bounded_mean,
    by_judge,
    incomplete,
    judge_scores,
)
from cultureval.runs.means import estimate
from cultureval.runs.record import Run, TaskRecord
from cultureval.runs.table import Cell, Column, Row, SuiteTable, cell_of, table_of_cells, with_mean_of_rows

CAPTIONS, ANSWERS = Path(__file__).with_name("table_3.csv"), Path(__file__).with_name("table_5.csv")
# The paper's codes of varieties -> their names.
NAMES = {"MSA": "MSA", "JO": "Jordan", "AE": "Emirates", "EG": "Egypt", "MA": "Morocco"}
VARIETIES = (*NAMES.values(),)
# Metric -> (column, the paper's column in Table 3).
METRICS = {
    "bleu_4": ("BLEU-4", "bleu"),
    "cider": ("CIDEr", "cider"),
    "rouge_l": ("ROUGE-L", "rouge"),
    "bertscore_recall": ("BERTScore", "bertscore"),
}
CRITERIA = {
    "consistency": "Consist.",
    "relevance": "Relevance",
    "fluency": "Fluency",
    "dialect_authenticity": "Dialect",
}
BY_JUDGE = "JEEM, captions and answers by judge"
# Template -> what a row of its scores is called.
SETTINGS = {"image_reference": "with image", "reference": "reference only", "vqa": "answers"}
MAIN = "cider"  # the first metric of the tasks; ours: its mean over varieties, by which models are ranked
PAPERS_JUDGE = "GPT-4"
Published = Mapping[str, float]


def tables(run: Run) -> list[SuiteTable]:
    """Reference metrics of captions, then each judge's scores; of answers, which the paper only judges, without one."""
    records = sorted(run.tasks_of("jeem"), key=lambda record: VARIETIES.index(variety_of(record)))
    found = []
    for shots in dict.fromkeys(record.shots for record in records):
        asked = [record for record in records if record.shots == shots]
        captions = [record for record in asked if record.group == "jeem_caption"]
        answers = [record for record in asked if record.group == "jeem_vqa"]
        scores = judge_scores(run, asked)
        published = published_varieties(CAPTIONS, run.model)
        found.append(_metric_table(run, "captions", captions, published))
        if not scores:
            found.append(_metric_table(run, "answers", answers, {}))
        found += [_judge_table(run, *of_judge) for of_judge in by_judge(scores).items()]
    return [table for table in found if table.rows]


def published_varieties(file: Path, model: str) -> dict[str, Published]:
    """Variety -> column -> the number of a paper's table (`CAPTIONS`, `ANSWERS`) for a run's model; {}: it has none."""
    return {NAMES[row["variety"]]: _numbers(row) for row in published_rows_of(file, model)}


def _numbers(row: Mapping[str, str]) -> Published:
    return {name: float(cell) for name, cell in row.items() if cell and name not in ("variety", "model")}


def variety_of(record: TaskRecord) -> str:
    """The name of a task's variety, as Morocco of `jeem_vqa:ma|0`."""
    return NAMES[record.task.partition("|")[0].partition(":")[2].upper()]


def _metric_table(run: Run, what: str, records: Sequence[TaskRecord], published: Mapping[str, Published]) -> SuiteTable:
    rows = []
    for record in records:
        paper = published.get(variety_of(record), {})
        found = {name: estimate(run, record, name) for name in METRICS}
        if any(found.values()):
            rows.append(Row(variety_of(record), [cell_of(found[one], paper.get(METRICS[one][1])) for one in METRICS]))
    columns = ("Variety", *(column for column, _ in METRICS.values()))
    table = SuiteTable(f"JEEM, {what}", "reference metrics times 100", columns, rows)
    return with_mean_of_rows(run, table, METRICS[MAIN][0], {variety_of(one): one.task for one in records}, MAIN)


def _judge_table(run: Run, judge: str, scores: Sequence[JudgeScores]) -> SuiteTable:
    part = f", {told}" if (told := incomplete(scores)) else ""
    published = {file: published_varieties(file, run.model) for file in (CAPTIONS, ANSWERS)}
    records = {record.task: variety_of(record) for record in run.tasks_of("jeem")}
    rows = []
    for template, label in SETTINGS.items():
        file, prefix = (ANSWERS, "") if template == "vqa" else (CAPTIONS, f"{template}_")
        for one in scores:
            if one.template != template:
                continue
            variety, means = records[one.task], {name: one.criteria.get(name) for name in CRITERIA}
            if part:
                cells = [bounded_mean([found]) if found else None for found in means.values()]
                cells += [f"{one.scored} of {one.items}"] if any(cells) else []
            else:
                paper = published[file].get(variety, {})
                cells = [_judged_cell(one, name, paper.get(prefix + name)) for name in means]
            if any(cells):
                rows.append(Row(f"{variety}, {label}", cells))
    columns = ("Variety", *CRITERIA.values(), *(["judged"] if part else []))
    notes = [BOUNDS_NOTE] if any(isinstance(cell, str) for row in rows for cell in row.cells) else []
    return SuiteTable(f"{BY_JUDGE} {judge}, 1 to 5{part}", "", columns, rows, notes, family=BY_JUDGE, judge=judge)


def _judged_cell(scores: JudgeScores, criterion: str, paper: float | None) -> Cell | str | None:
    """A judge's mean; where it left out many items of the task, or all, with what bounds it."""
    if (found := scores.criteria.get(criterion)) is None:
        return None
    bounded = bounded_mean([found]) if scores.is_doubted or not found.mean else None
    return bounded or (cell_of(found.mean, paper) if found.mean else None)


def published_tables() -> dict[str, list[SuiteTable]]:
    """Model -> its row of reference metrics; and, under a name that says so, its row by the paper's judge.

    The latter stands in the tables of all judges: the numbers of two judges are not comparable.
    """
    metrics: dict[str, dict[Column, Cell]] = {}
    for row in published_rows(CAPTIONS):
        cells = {
            Column(name, NAMES[row["variety"]]): Cell(float(row[key])) for name, key in METRICS.values() if row[key]
        }
        metrics.setdefault(row["model"], {}).update(cells)
    judged: dict[str, dict[Column, Cell]] = {}
    for setting, label in SETTINGS.items():
        file, prefix = (ANSWERS, "") if setting == "vqa" else (CAPTIONS, f"{setting}_")
        for model, column, value in _criteria(file, prefix, label):
            judged.setdefault(f"{model}, judged by {PAPERS_JUDGE}", {})[column] = Cell(value)
    found = {model: [table_of_cells("JEEM, captions", cells)] for model, cells in metrics.items() if cells}
    return found | {model: [table_of_cells(BY_JUDGE, cells)] for model, cells in judged.items()}


def _criteria(file: Path, prefix: str, label: str) -> Iterator[tuple[str, Column, float]]:
    for row in published_rows(file):
        for key, name in CRITERIA.items():
            if value := row.get(f"{prefix}{key}"):
                yield row["model"], Column(name, f"{NAMES[row['variety']]}, {label}"), float(value)
