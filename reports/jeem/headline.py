"""JEEM's tables of a run, as the paper's Tables 3 and 5: varieties by reference metric, and by judge's criterion.

Paper: arXiv 2503.21910, section 5. Its tables hold no average over varieties, so neither do ours. Ours: the standard
errors. Beside BLEU-4 stands the paper's BLEU, whose order it does not name.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from cultureval.reports.estimates import estimate
from cultureval.reports.judge_columns import (
    BOUNDS_NOTE,
    bounded_mean,
    criterion_estimate,
    judged_in_part,
    judged_share,
    judges_of,
)
from cultureval.reports.published import published_rows_of
from cultureval.reports.run_record import Run, TaskRecord
from cultureval.reports.summary import Row, SummaryTable, cell_of

CAPTIONS, ANSWERS = Path(__file__).with_name("table_3.csv"), Path(__file__).with_name("table_5.csv")
VARIETIES = ("MSA", "JO", "AE", "EG", "MA")
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
Published = Mapping[str, float]


def headline(run: Run) -> list[SummaryTable]:
    """Reference metrics of captions, then each judge's scores; of answers, which the paper only judges, without one."""
    records = sorted(run.tasks_of("jeem"), key=lambda record: VARIETIES.index(variety_of(record)))
    tables = []
    for shots in dict.fromkeys(record.shots for record in records):
        asked = [record for record in records if record.shots == shots]
        captions = [record for record in asked if record.group == "jeem_caption"]
        answers = [record for record in asked if record.group == "jeem_vqa"]
        judges = judges_of(run, asked)
        published = published_varieties(CAPTIONS, run.model)
        tables.append(_metric_table(run, "captions", captions, published))
        if not judges:
            tables.append(_metric_table(run, "answers", answers, {}))
        tables += [_judge_table(run, judge, captions, answers) for judge in judges]
    return [table for table in tables if table.rows]


def published_varieties(file: Path, model: str) -> dict[str, Published]:
    """Variety -> column -> the paper's number for a model of this name; {} where it lists none.

    Args:
        file: `CAPTIONS` or `ANSWERS`.
        model: A run's model.
    """
    return {row["variety"]: _numbers(row) for row in published_rows_of(file, model)}


def _numbers(row: Mapping[str, str]) -> Published:
    return {name: float(cell) for name, cell in row.items() if cell and name not in ("variety", "model")}


def variety_of(record: TaskRecord) -> str:
    """The paper's code of a task's variety, as `MA` of `jeem_vqa:ma|0`."""
    return record.task.partition("|")[0].partition(":")[2].upper()


def _metric_table(
    run: Run, what: str, records: Sequence[TaskRecord], published: Mapping[str, Published]
) -> SummaryTable:
    rows = []
    for record in records:
        paper = published.get(variety_of(record), {})
        found = {name: estimate(run, record, name) for name in METRICS}
        if any(found.values()):
            rows.append(Row(variety_of(record), [cell_of(found[one], paper.get(METRICS[one][1])) for one in METRICS]))
    columns = ("Variety", *(column for column, _ in METRICS.values()))
    return SummaryTable(f"JEEM, {what}: reference metrics times 100", columns, rows)


def _judge_table(run: Run, judge: str, captions: Sequence[TaskRecord], answers: Sequence[TaskRecord]) -> SummaryTable:
    part = judged_in_part(run, [*captions, *answers], judge)
    title = f"{BY_JUDGE} {judge}, 1 to 5{part}"
    if part:
        rows = _partial_rows(run, judge, captions, answers)
        return SummaryTable(title, ("Variety", *CRITERIA.values(), "judged"), rows, [BOUNDS_NOTE])
    rows = []
    for template, label in SETTINGS.items():
        records, file, prefix = (captions, CAPTIONS, f"{template}_") if template != "vqa" else (answers, ANSWERS, "")
        published = published_varieties(file, run.model)
        for record in records:
            found = {name: criterion_estimate(run, record, judge, f"{template}_{name}") for name in CRITERIA}
            paper = published.get(variety_of(record), {})
            cells = [cell_of(found[name], paper.get(prefix + name)) if found[name] else None for name in CRITERIA]
            if any(cells):
                rows.append(Row(f"{variety_of(record)}, {label}", cells))
    return SummaryTable(title, ("Variety", *CRITERIA.values()), rows)


def _partial_rows(run: Run, judge: str, captions: Sequence[TaskRecord], answers: Sequence[TaskRecord]) -> list[Row]:
    """The rows of a judge that stopped: bounds beside each mean, how much is judged, and no paper's numbers."""
    rows = []
    for template, label in SETTINGS.items():
        for record in answers if template == "vqa" else captions:
            cells = [bounded_mean(run, [record], judge, f"{template}_{name}") for name in CRITERIA]
            if any(cells):
                share = judged_share(run, [record], judge, template)
                rows.append(Row(f"{variety_of(record)}, {label}", [*cells, share]))
    return rows
