"""JEEM's tables, as the paper's Tables 3 and 5: varieties by reference metric, and by judge's criterion.

Paper: arXiv 2503.21910, section 5. Its BLEU, of unknown order, stands beside our BLEU-4.
Ours: standard errors, and the mean over varieties; its CIDEr ranks runs.
"""

from collections.abc import Sequence
from pathlib import Path

from cultureval.runs.table import Mean, Numbers, Place, ScoreNames, Table, judges_of, mean_row, published_rows
from cultureval.tasks.catalogue import all_tasks, name_and_shots
from cultureval.tasks.suite import Task

CAPTIONS, ANSWERS = Path(__file__).with_name("table_3.csv"), Path(__file__).with_name("table_5.csv")
# The paper's codes of varieties -> their names.
NAMES = {"MSA": "MSA", "JO": "Jordan", "AE": "Emirates", "EG": "Egypt", "MA": "Morocco"}
# Metric, the headline first -> (column, the paper's column in Table 3).
METRICS = {
    "cider": ("CIDEr", "cider"),
    "bleu_4": ("BLEU-4", "bleu"),
    "rouge_l": ("ROUGE-L", "rouge"),
    "bertscore_recall": ("BERTScore", "bertscore"),
}
CRITERIA = {
    "consistency": "Consist.",
    "relevance": "Relevance",
    "fluency": "Fluency",
    "dialect_authenticity": "Dialect",
}
# Judge template -> (label of its rows, group of tasks, the paper's table, prefix of its columns there).
SETTINGS = {
    "image_reference": ("with image", "jeem_caption", CAPTIONS, "image_reference_"),
    "reference": ("reference only", "jeem_caption", CAPTIONS, "reference_"),
    "vqa": ("answers", "jeem_vqa", ANSWERS, ""),
}
PAPERS_JUDGE = "GPT-4"


def tables(score_names: ScoreNames) -> list[Table]:
    """Reference metrics of captions, then each judge's scores; without a judge also reference metrics of answers."""
    tasks = [task for task in all_tasks().values() if task.suite == "jeem" and task.task in score_names]
    judges = judges_of(score_names, (f"{template}_{name}" for template in SETTINGS for name in CRITERIA))
    found = [_metric_table("captions", "jeem_caption", tasks, _captions_published())]
    if not judges:
        found.append(_metric_table("answers", "jeem_vqa", tasks, {}))
    return found + [_judge_table(judge, tasks) for judge in judges or [PAPERS_JUDGE]]


def variety_of(task: str) -> str:
    """The name of a task's variety, such as Morocco of `jeem_vqa:ma|0`."""
    return NAMES[name_and_shots(task)[0].partition(":")[2].upper()]


def _metric_table(name: str, group: str, tasks: Sequence[Task], published: dict[str, Numbers]) -> Table:
    labels = {variety_of(task.task): task.task for task in tasks if task.group == group}
    cells: dict[Place, Mean] = {
        (label, column): Mean({(task, metric): 1.0})
        for label, task in labels.items()
        for metric, (column, _) in METRICS.items()
    }
    every = [task for task in all_tasks().values() if task.group == group]
    means = mean_row(cells, list(labels), len(every)) if labels else {}
    main = next(iter(means), None)
    return Table(f"JEEM, {name}", cells | means, "reference metrics times 100", main, published=published)


def _captions_published() -> dict[str, Numbers]:
    found: dict[str, dict[Place, float]] = {}
    for row in published_rows(CAPTIONS):
        numbers = {(NAMES[row["variety"]], column): row[key] for column, key in METRICS.values()}
        found.setdefault(row["model"], {}).update({at: float(cell) for at, cell in numbers.items() if cell})
    return dict(found)


def _judge_table(judge: str, tasks: Sequence[Task]) -> Table:
    cells: dict[Place, Mean] = {
        (f"{variety_of(task.task)}, {label}", column): Mean({(task.task, f"judge_{judge}_{template}_{criterion}"): 1.0})
        for template, (label, group, _, _) in SETTINGS.items()
        for task in tasks
        if task.group == group
        for criterion, column in CRITERIA.items()
    }
    return Table("JEEM by judge", cells, "1 to 5", published=_judged_published(), judge=judge)


def _judged_published() -> dict[str, Numbers]:
    """The scores of the paper's judge, GPT-4, which are not comparable with another judge's."""
    found: dict[str, dict[Place, float]] = {}
    for label, _, file, prefix in SETTINGS.values():
        for row in published_rows(file):
            places = {(f"{NAMES[row['variety']]}, {label}", column): key for key, column in CRITERIA.items()}
            numbers = {at: float(cell) for at, key in places.items() if (cell := row.get(prefix + key))}
            found.setdefault(row["model"], {}).update(numbers)
    return {model: numbers for model, numbers in found.items() if numbers}
