"""LightEval's TASKS_TABLE, built from the registered suites when LightEval asks for it."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ClassVar, Self

from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc

from cultureval.metrics.judges.lighteval import judge_metrics
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.patches.lighteval.stock_runs import record_stock_runs
from cultureval.runtime.rows_report import RowsReport
from cultureval.runtime.settings import Settings, current_settings
from cultureval.tasks.catalogue import all_tasks, kind_of
from cultureval.tasks.options import check_variables, read_data_options
from cultureval.tasks.reading import PreparedSubset, prepare_subset, require_examples
from cultureval.tasks.registration import Registered, registered
from cultureval.tasks.suite import Task


@dataclass
class SourcedTaskConfig(LightevalTaskConfig):
    """A LightEval task that finds, checks and converts its rows when LightEval first reads `hf_repo`.

    LightEval deep-copies the configurations of the tasks that it runs; only a copy reads data. In the table itself
    `hf_repo` is `org/name` of the preferred source.

    Attributes:
        source_task: Name of the task in our catalogue.
        rows_report: Provenance and counts of the rows, with a list of skipped rows; part of the results file.
        is_run: True in a deep copy, False in the table of tasks.
    """

    is_run: ClassVar[bool] = False

    source_task: str = ""
    rows_report: RowsReport = field(default_factory=RowsReport)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = copy.copy(self)
        memo[id(self)] = copied
        vars(copied).update({name: copy.deepcopy(value, memo) for name, value in vars(self).items()})
        vars(copied)["is_run"] = True
        return copied

    @property
    def hf_repo(self) -> str:
        """Folder of the prepared rows, which are read on first use; in the table itself the source's name."""
        if self.is_run and not self.rows_report:
            subset = self._prepared()
            require_examples(self.name, self.num_fewshots, subset.report)
            self.rows_report = subset.report_with(self.num_fewshots)
            self._place = str(subset.folder)
        return self._place

    def _prepared(self) -> PreparedSubset:
        """The rows; in a run of stock LightEval our checks run here."""
        instrument = kind_of(self.source_task).instrument
        if instrument and instrument.before_generation:
            instrument.check()
        return prepare_subset(all_tasks()[self.source_task], read_data_options())

    @property
    def prompt_function(self) -> Callable[..., Doc]:
        """From a prepared row to a Doc; LightEval reads it after it has set the number of few-shot examples."""
        kind = kind_of(self.source_task) if self.source_task else None
        few_shot = kind.few_shot_prompt if kind and self.num_fewshots else None
        return self._with_parity(few_shot or self._prompt)

    def _with_parity(self, prompt: Callable[..., Doc]) -> Callable[..., Doc]:
        """A prompt function that writes the task's parity, if it has one, into its Docs."""

        @wraps(prompt)
        def with_parity(row: dict[str, Any], task_name: str | None = None) -> Doc:
            doc = prompt(row, task_name)
            if parity := self.rows_report.get("parity"):
                doc.specific = {**specific_of(doc), "parity": parity}
            return doc

        return with_parity

    @prompt_function.setter
    def prompt_function(self, function: Callable[..., Doc]) -> None:
        self._prompt = function

    @hf_repo.setter
    def hf_repo(self, place: str) -> None:
        self._place = place


_newest: tuple[Registered, Settings, list[LightevalTaskConfig]] | None = None


def tasks_table() -> list[LightevalTaskConfig]:
    """As `build_tasks_table`, cached for the current suites and settings."""
    global _newest
    record_stock_runs("cultureval.runs.writing:complete_stock_run")
    found, settings = registered(), current_settings()
    if _newest is None or _newest[:2] != (found, settings):  # metrics depend on the settings
        _newest = found, settings, build_tasks_table()
    return _newest[2]


def running_config(name: str, shots: int = 0) -> SourcedTaskConfig:
    """The configuration of a task (without `|k`) with `shots` examples, as LightEval runs it."""
    config = copy.deepcopy(_configuration(all_tasks()[name]))
    config.num_fewshots = shots
    return config


def build_tasks_table() -> list[LightevalTaskConfig]:
    """One LightEval task configuration for every task of the catalogue, in its order."""
    check_variables()
    return [_configuration(task) for task in all_tasks().values()]


def _configuration(task: Task) -> SourcedTaskConfig:
    kind = task.kind
    return SourcedTaskConfig(
        name=task.task,
        prompt_function=kind.prompt,
        hf_repo=task.sources[0].repo,
        hf_subset="default",
        metrics=[*kind.metrics(), *judge_metrics(*kind.judge_templates)],
        hf_avail_splits=["test", "few_shot"],
        evaluation_splits=["test"],
        few_shots_split="few_shot",
        few_shots_select="sequential",
        generation_size=kind.generation_size,
        stop_sequence=list(kind.stop_sequence),
        source_task=task.task,
    )
