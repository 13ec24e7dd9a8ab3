"""LightEval's tracker, whose files are complete or absent, and whose failed uploads cost nothing that was saved."""

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from datasets import Dataset
from lighteval.logging.evaluation_tracker import EnhancedJSONEncoder, EvaluationTracker

from cultureval.runtime.errors import CulturevalError, described, shown_names
from cultureval.runtime.journal import PLAIN, journal_folder
from cultureval.runtime.patches.table import expect, patched
from cultureval.runtime.saving import summary_file

logger = logging.getLogger(__name__)
LEFT_OUT_ROWS = ("skipped_rows", "skipped_few_shot_rows", "refused_rows")  # of a task's `rows_report`
PLACE = ("file", "row", "column")


def public_details(details: Mapping[str, Any], withheld: Collection[str] | None) -> dict[str, Any]:
    """The details that may be uploaded; the others are named in the log.

    Args:
        details: By the task with `|k`.
        withheld: Tasks whose data are gated; None where that is unknown: all.
    """
    kept_back = sorted(details if withheld is None else {*withheld} & details.keys())
    if kept_back:
        why = "what they are of is unknown" if withheld is None else "their data are gated"
        logger.warning("The details of %s are not uploaded: %s. Their scores are.", shown_names(kept_back, 3), why)
    return {task: rows for task, rows in details.items() if task not in kept_back}


def public_results(results: Mapping[str, Any], withheld: Collection[str] | None) -> dict[str, Any]:
    """A results file's content that may be uploaded: rows that were left out keep their places, and not their texts.

    `withheld` are tasks whose data are gated; None where that is unknown: all.
    """
    content = json.loads(json.dumps(results, cls=EnhancedJSONEncoder))
    tasks = content.get("config_tasks") or {}
    for task in tasks if withheld is None else {*withheld} & tasks.keys():
        report = tasks[task].get("rows_report") if isinstance(tasks[task], dict) else None
        for name in LEFT_OUT_ROWS if isinstance(report, dict) else ():
            if name in report:
                report[name] = [{key: row[key] for key in PLACE if key in row} for row in report[name] or ()]
    return content


def upload_public(upload: Callable[[], None], public: Mapping[str, Any]) -> None:
    """Uploads; LightEval's card at the end fails with an IndexError where a repository has results but no details."""
    try:
        upload()
    except IndexError:
        if public:
            raise
        logger.warning("The results are uploaded, without LightEval's card, which needs details.")


def as_dataset(details: Sequence[Any]) -> Dataset:
    """LightEval's details of a task as it saves them: a row each, with sorted columns."""
    dataset = Dataset.from_list([as_dict(detail) for detail in details])
    return dataset.select_columns(sorted(name for name in dataset.column_names if name != "id"))


def as_dict(value: Any) -> Any:
    """As `dataclasses.asdict`, but what holds no dataclass is not copied: copies of tokens take longer than a file."""
    if is_dataclass(value):
        return {field.name: as_dict(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {key: as_dict(one) for key, one in value.items()}
    if isinstance(value, list | tuple) and not set(map(type, value)) <= PLAIN:
        return [as_dict(one) for one in value]
    return value


class Tracker(EvaluationTracker):
    """LightEval's tracker, whose files are complete or absent; arguments as LightEval's.

    Attributes:
        sections: More sections of the results file, name -> content; set before `save`. They stand beside LightEval's
            own, also on the hub and wherever else results go.
        results_file: The results file after `save`.
        withheld: Tasks whose details are not uploaded, since their data are gated; set before `save`.
        failed_uploads: A sentence for each upload that was asked for and failed.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.sections: dict[str, Mapping[str, Any]] = {}
        self.results_file: Path | None = None
        self.withheld: set[str] = set()
        self.failed_uploads: list[str] = []

    @property
    def results(self) -> dict[str, Any]:
        """LightEval's sections and ours."""
        return super().results | self.sections

    def save(self) -> None:
        """Writes results and details, then uploads what was asked for.

        Raises:
            CulturevalError: Something could not be written; says what is kept.
        """
        date_id, results = datetime.now().isoformat().replace(":", "-"), self.results
        details = {task: as_dataset(rows) for task, rows in self.details_logger.details.items()}
        try:
            self.save_results(date_id, results)
            if self.should_save_details:
                self.save_details(date_id, details)
        except OSError as error:
            raise CulturevalError(self._not_saved(error)) from error
        if self.should_push_to_hub:
            self.push_to_hub(date_id, details, results)
        if self.use_wandb:
            self.push_to_wandb(results, details)
        if self.should_push_results_to_tensorboard:
            self.push_to_tensorboard(self.metrics_logger.metric_aggregated, self.details_logger.compiled_details)

    def save_results(self, date_id: str, results_dict: dict[str, Any]) -> None:
        """Writes the results file, in UTF-8 whatever the locale is."""
        name = self.general_config_logger.model_name
        folder = Path(self.output_dir) / "results" / name.strip("/")
        if self.results_path_template is not None:
            parts = name.rstrip("/").split("/")
            org, model = (
                parts[0] if len(parts) == 2 else "",
                parts[-1],
            )  # of a path the last name
            folder = Path(self.results_path_template.format(output_dir=self.output_dir, org=org, model=model))
        file = folder / f"results_{date_id}.json"
        self.write_text(file, json.dumps(results_dict, cls=EnhancedJSONEncoder, indent=2, ensure_ascii=False))
        self.results_file = file

    def save_details(self, date_id: str, details_datasets: dict[str, Any]) -> None:
        """Writes the details of all tasks, or of none."""
        try:
            super().save_details(date_id, details_datasets)
        except (OSError, KeyboardInterrupt):
            folder = Path(self.output_dir) / "details" / self.general_config_logger.model_name.strip("/") / date_id
            with suppress(OSError):
                self.fs.rm(str(folder), recursive=True)
            raise

    def save_summary(self, text: str) -> Path:
        """Writes a text beside the results file, after `save`: summary_<date>.txt; returns its path."""
        results = self.results_file
        if results is None:
            raise ValueError("the results are not saved yet")
        file = summary_file(results)
        self.write_text(file, text + "\n")
        return file

    def write_text(self, file: Path, text: str) -> None:
        """Writes a file, which is either complete or not there."""
        part = f"{file}.part"
        try:
            self.fs.mkdirs(str(file.parent), exist_ok=True)
            with self.fs.open(part, "w", encoding="utf-8") as stream:
                stream.write(text)
            self.fs.mv(part, str(file))
        except (OSError, KeyboardInterrupt):
            with suppress(OSError):
                self.fs.rm(part)
            raise

    def push_to_hub(self, date_id: str, details: dict[str, Any], results_dict: dict[str, Any]) -> None:
        """As LightEval's; a failure is noted in `failed_uploads`."""
        upload = super().push_to_hub
        public, results = public_details(details, self.withheld), public_results(results_dict, self.withheld)
        self._uploaded("--push-to-hub", lambda: upload_public(lambda: upload(date_id, public, results), public))

    def push_to_wandb(self, results_dict: dict[str, Any], details_datasets: dict[str, Any]) -> None:
        """As LightEval's; a failure is noted in `failed_uploads`."""
        upload = super().push_to_wandb
        self._uploaded("--wandb", lambda: upload(results_dict, public_details(details_datasets, self.withheld)))

    def push_to_tensorboard(self, results: Mapping[str, Any], details: Mapping[str, Any]) -> None:
        """As LightEval's; a failure is noted in `failed_uploads`."""
        upload = super().push_to_tensorboard
        self._uploaded("--push-to-tensorboard", lambda: upload(results, public_details(details, self.withheld)))

    def _uploaded(self, option: str, upload: Callable[[], None]) -> None:
        try:
            upload()
        except Exception as error:  # anything that a network or another library can raise
            self.failed_uploads.append(f"{option} failed ({described(error)})")

    def _not_saved(self, error: OSError) -> str:
        kept = sum(map(len, self.details_logger.details.values()))
        scores = f"The scores are in {self.results_file}, without details. " if self.results_file else ""
        return (
            f"The run is finished, but its files cannot be written into --output-dir {self.output_dir}: "
            f"{error.strerror or error}. {scores}The answers to all {kept} prompts are in the journal "
            f"{journal_folder()}: make room, or name another folder, and give the same command again (without "
            "--no-resume); it asks the model nothing twice."
        )


@patched(
    "lighteval",
    "lighteval.logging.evaluation_tracker.EvaluationTracker.results, save_results",
    "The results file holds our record of the run (versions, signatures, counts), and says where it is.",
)
def _results_are_a_property_that_is_saved() -> None:
    from tempfile import TemporaryDirectory

    from lighteval.models.abstract_model import ModelConfig

    for template in (None, "{output_dir}/there/{org}_{model}"):
        with TemporaryDirectory() as folder:
            tracker = Tracker(output_dir=folder, save_details=False, results_path_template=template)
            tracker.general_config_logger.log_model_info(ModelConfig(model_name="org/canary"))
            tracker.sections["more"] = {"a": 1}
            tracker.save()
            files = list(Path(folder).rglob("results_*.json"))
            expect(len(files) == 1, "LightEval's tracker writes no or several results files")
            expect(json.loads(files[0].read_text()).get("more") == {"a": 1}, "LightEval saves other than its `results`")
            expect(files[0] == Path(tracker.results_file or ""), "LightEval names its results files in another way")
