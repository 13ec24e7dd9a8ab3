"""LightEval's TASKS_TABLE, built from the catalogue when LightEval asks for it."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from lighteval.metrics.utils.metric_utils import Metric
from lighteval.tasks.lighteval_task import LightevalTaskConfig

from cultureval.metrics import lighteval_metrics
from cultureval.prompts import qimma as prompts
from cultureval.runtime.data_options import read_data_options
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import Task, all_tasks
from cultureval.tasks.reading import prepare_subset

METRICS: dict[str, Callable[[], list[Metric]]] = {
    "multiple_choice": lighteval_metrics.multiple_choice_metrics,
    "multi_select": lighteval_metrics.multi_select_metrics,
    "bertscore": lighteval_metrics.bertscore_metrics,
    "fannorflop": lighteval_metrics.fannorflop_metrics,
}
PROMPTS = {
    "multiple_choice": prompts.choice_prompt,
    "multi_select": prompts.multi_select_prompt,
    "bertscore": prompts.answer_prompt,
    "fannorflop": prompts.poem_prompt,
}
# QIMMA's task code: 512 new tokens up to a newline for QA; unpublished for FannOrFlop (ours: 4,096, no stop).
GENERATION: dict[str, dict[str, Any]] = {
    "bertscore": {"generation_size": 512, "stop_sequence": ["\n"]},
    "fannorflop": {"generation_size": 4096, "stop_sequence": []},
}


@dataclass
class SourcedTaskConfig(LightevalTaskConfig):
    """A LightEval task whose rows are found, checked and converted when LightEval first asks where they are.

    LightEval deep-copies the configurations of the tasks that it runs: only such a copy reads its source. The table's
    own configurations say `org/name` of the preferred source, so that listing or dumping the table reads nothing.

    Attributes:
        source_task: Name of the task in our catalogue.
        rows_report: Provenance and counts of the rows read, listing those skipped; part of the results file.
    """

    source_task: str = ""
    rows_report: dict[str, Any] = field(default_factory=dict)
    _is_run: ClassVar[bool] = False

    @property
    def hf_repo(self) -> str:
        """Folder of the prepared rows, read from the source on first use; the source's name in the table itself."""
        if self._is_run and not self.rows_report:
            subset = prepare_subset(all_tasks()[self.source_task], read_data_options())
            if self.num_fewshots and not subset.report["few_shot_rows"]:
                raise CulturevalError(
                    f"{self.name}: {subset.report['source']} has no few-shot examples; run it zero-shot (no |k)."
                )
            self.rows_report = subset.report
            self._place = str(subset.folder)
        return self._place

    @hf_repo.setter
    def hf_repo(self, place: str) -> None:
        self._place = place

    def __deepcopy__(self, memo: dict[int, Any]) -> "SourcedTaskConfig":
        copied = copy.copy(self)
        memo[id(self)] = copied
        vars(copied).update({name: copy.deepcopy(value, memo) for name, value in vars(self).items()})
        copied._is_run = True
        return copied


def build_tasks_table() -> list[LightevalTaskConfig]:
    """One LightEval task configuration for every task of the catalogue, in its order."""
    return [_configuration(task) for task in all_tasks().values()]


def _configuration(task: Task) -> SourcedTaskConfig:
    return SourcedTaskConfig(
        name=task.task,
        prompt_function=PROMPTS[task.metric_set],
        hf_repo=task.sources[0].repo,
        hf_subset="default",
        metrics=METRICS[task.metric_set](),
        hf_avail_splits=["test", "few_shot"],
        evaluation_splits=["test"],
        few_shots_split="few_shot",
        few_shots_select="sequential",
        source_task=task.task,
        **GENERATION.get(task.metric_set, {"generation_size": -1}),
    )
