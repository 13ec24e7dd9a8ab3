"""LightEval's tracker with complete files: none is half written, and a failed upload keeps the saved ones."""

import json
import logging
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from pathlib import Path
from types import NoneType
from typing import Any

from datasets import Dataset
from lighteval.logging.evaluation_tracker import EnhancedJSONEncoder, EvaluationTracker

from cultureval.runtime.data.user_cache import write_atomically
from cultureval.runtime.errors import CulturevalError, described, shown_names
from cultureval.runtime.saving import summary_file

logger = logging.getLogger(__name__)
LEFT_OUT_ROWS = ("skipped_rows", "skipped_few_shot_rows", "refused_rows")  # of a task's `rows_report`
PLACE = ("file", "row", "column")
PLAIN = {str, int, float, bool, NoneType}


def public_details(details: Mapping[str, Any], withheld: Collection[str] | None) -> dict[str, Any]:
    """The details that may be uploaded; a warning names the `withheld` tasks (None: all)."""
    private = sorted(details if withheld is None else {*withheld} & details.keys())
    if private:
        why = "their source is unknown" if withheld is None else "their data are gated"
        logger.warning("The details of %s are not uploaded: %s. Their scores are.", shown_names(private, 3), why)
    return {task: rows for task, rows in details.items() if task not in private}


def public_results(results: Mapping[str, Any], withheld: Collection[str] | None) -> dict[str, Any]:
    """A results file's content for upload, without texts of left-out rows of `withheld` tasks (None: all)."""
    content = json.loads(json.dumps(results, cls=EnhancedJSONEncoder))
    tasks = content.get("config_tasks") or {}
    for task in tasks if withheld is None else {*withheld} & tasks.keys():
        report = tasks[task].get("rows_report") if isinstance(tasks[task], dict) else None
        for name in LEFT_OUT_ROWS if isinstance(report, dict) else ():
            if name in report:
                report[name] = [{key: row[key] for key in PLACE if key in row} for row in report[name] or ()]
    return content


def upload_public(upload: Callable[[], None], public: Mapping[str, Any]) -> None:
    """Uploads; passes over LightEval's IndexError on a repository with results but no details."""
    try:
        upload()
    except IndexError:
        if public:
            raise
        logger.warning("The results are uploaded without LightEval's card: it needs details.")


def as_dataset(details: Sequence[Any]) -> Dataset:
    """LightEval's details of a task as it saves them: a row each, with sorted columns."""
    dataset = Dataset.from_list([as_dict(detail) for detail in details])
    return dataset.select_columns(sorted(name for name in dataset.column_names if name != "id"))


def as_dict(value: Any) -> Any:
    """As `dataclasses.asdict`, without copies of lists of plain values, which would take long for tokens."""
    if is_dataclass(value):
        return {field.name: as_dict(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {key: as_dict(item) for key, item in value.items()}
    if isinstance(value, list | tuple) and not set(map(type, value)) <= PLAIN:
        return [as_dict(item) for item in value]
    return value


class Tracker(EvaluationTracker):
    """LightEval's tracker, which writes the results file last and atomically; arguments as LightEval's."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.sections: dict[str, Mapping[str, Any]] = {}  # more sections of the results file, set before `save`
        self.results_file: Path | None = None  # after `save`
        self.withheld: set[str] = set()  # tasks of gated data, without upload of details
        self.failed_uploads: list[str] = []  # a sentence for each failed upload

    @property
    def results(self) -> dict[str, Any]:
        """LightEval's sections and ours."""
        return super().results | self.sections

    def save(self) -> None:
        """Writes details, then results, then uploads; a CulturevalError leaves no file of the run."""
        date, results = datetime.now().isoformat().replace(":", "-"), self.results
        details = {task: as_dataset(rows) for task, rows in self.details_logger.details.items()}
        name = self.general_config_logger.model_name
        folder = Path(self.output_dir) / "details" / name.strip("/") / date
        try:
            if self.should_save_details:
                self.save_details(date, details)
            self.results_file = self._results_folder(name) / f"results_{date}.json"
            text = json.dumps(results, cls=EnhancedJSONEncoder, indent=2, ensure_ascii=False)
            write_atomically(self.results_file, text.encode())
        except (OSError, KeyboardInterrupt) as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, KeyboardInterrupt):
                raise
            raise CulturevalError(
                f"The run is finished, but its files cannot be written into --output-dir {self.output_dir}: "
                f"{error.strerror or error}. All answers are in the journal: make room or name another folder, "
                "then run the same command again."
            ) from error
        self._upload(date, details, results)

    def _results_folder(self, name: str) -> Path:
        return Path(self.output_dir) / "results" / name.strip("/")

    def save_summary(self, text: str) -> Path:
        """Writes a text beside the results file, after `save`: summary_<date>.txt; returns its path."""
        if self.results_file is None:
            raise ValueError("the results are not saved yet")
        file = summary_file(self.results_file)
        write_atomically(file, f"{text}\n".encode())
        return file

    def push_to_hub(self, date_id: str, details: dict[str, Any], results_dict: dict[str, Any]) -> None:
        """As LightEval's, without texts of gated data."""
        upload, public = super().push_to_hub, public_details(details, self.withheld)
        upload_public(lambda: upload(date_id, public, public_results(results_dict, self.withheld)), public)

    def _upload(self, date: str, details: dict[str, Any], results: dict[str, Any]) -> None:
        """Uploads to the hub and to wandb, if enabled; notes a failure in `failed_uploads`."""
        uploads: dict[str, Callable[[], None]] = {}
        if self.should_push_to_hub:
            uploads["--push-to-hub"] = lambda: self.push_to_hub(date, details, results)
        if self.use_wandb:
            uploads["--wandb"] = lambda: self.push_to_wandb(results, public_details(details, self.withheld))
        for option, upload in uploads.items():
            try:
                upload()
            except Exception as error:  # anything that a network or another library can raise
                self.failed_uploads.append(f"{option} failed ({described(error)})")
