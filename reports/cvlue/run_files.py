"""Scores of a run's Chinese CVLUE tasks by semantic field and category, as `cultureval score` writes them."""

from pathlib import Path

from cultureval.reports.cvlue.official_scores import GOLD_FILES, write_tables
from cultureval.reports.submissions import ScoredRow
from cultureval.runs.files import model_folder, output_folder, read_details
from cultureval.runs.frame import DEN, of_sums
from cultureval.runs.loading import Run
from cultureval.runtime.doc_fields import specific_of
from cultureval.tasks.catalogue import all_tasks


def write_run_files(run: Run) -> list[str]:
    """Writes tables into `cvlue/<model>/<date>` of the run's output folder; returns a sentence with the folder."""
    root, model = output_folder(run.file), model_folder(run.file)
    details = {name: run.details.get(f"cvlue_{name}|0") for name in GOLD_FILES}
    if not root or not model or not any(details.values()):
        return []
    folder = root / "cvlue" / model / run.date
    for name, file in details.items():
        if file:
            write_tables(name, scored_rows(name, file), folder)
    return [f"CVLUE by field and category: {folder}"]


def scored_rows(name: str, details: Path) -> list[ScoredRow]:
    """The rows of a task's details ("itr", "vqa", "vg" or "vd") with the metrics that are means over items."""
    task = f"cvlue_{name}"
    means = [metric for metric in all_tasks()[task].metrics if not of_sums(f"{task}|0", metric)]
    columns = {column for metric in means for column in (metric, metric + DEN)}
    rows = []
    for row in read_details(details, ["doc.specific", "metric"]).to_pylist():
        specific, scores = specific_of(row["doc"]), {key: row["metric"][key] for key in columns & row["metric"].keys()}
        rows.append(ScoredRow(str(specific["id"]), scores, specific["image_path"]))
    return rows
