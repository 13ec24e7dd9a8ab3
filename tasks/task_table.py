"""LightEval's TASKS_TABLE, built from the catalogue when LightEval asks for it."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

from lighteval.metrics.utils.metric_utils import Metric
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc

from cultureval.metrics.alqasida import lighteval as dialect_metrics
from cultureval.metrics.alqasida.dialect_models import check_models, models_signature
from cultureval.metrics.code import lighteval as code_metrics
from cultureval.metrics.cvlue import lighteval as cvlue_metrics
from cultureval.metrics.jeem.lighteval import caption_metrics
from cultureval.metrics.judges.optional_judges import judge_metrics
from cultureval.metrics.m2cqa.lighteval import statement_metrics
from cultureval.metrics.qimma import lighteval as qimma_metrics
from cultureval.metrics.semantic import (
    bertscore_model,
    caption_bertscore_model,
    check_bertscore_model,
    check_caption_bertscore,
)
from cultureval.metrics.verdicts import Prompt
from cultureval.prompts.alqasida import docs as alqasida
from cultureval.prompts.cvlue import docs as cvlue
from cultureval.prompts.jeem import docs as jeem
from cultureval.prompts.m2cqa import docs as m2cqa
from cultureval.prompts.qimma import code_problems
from cultureval.prompts.qimma import docs as qimma
from cultureval.runtime.data.data_options import read_data_options
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import Task, all_tasks
from cultureval.tasks.reading import prepare_subset


@dataclass(frozen=True)
class Instrument:
    """What scores answers besides the answers: a model, a judge, a sandbox.

    Attributes:
        name: Names it for the signature of the scores.
        check: Raises CulturevalError where it is not here, before any answer is asked for.
    """

    name: Callable[[], str]
    check: Callable[[], None]


@dataclass(frozen=True)
class Kind:
    """How the tasks of one metric set are asked and scored.

    Attributes:
        prompt: From a prepared row to a Doc.
        metrics: Makes the LightEval metrics.
        generation_size: New tokens at most; -1 where nothing is generated.
        stop_sequence: What ends a generation.
        instrument: What the metrics need besides the answers.
        rows_per_item: Rows that are scored together as one item, of which a limit must not take a part.
        few_shot_prompt: As `prompt`, where a task is asked otherwise behind examples.
        judge_templates: How judges are asked about the answers, where CULTUREVAL_JUDGE names judges.
    """

    prompt: Callable[..., Doc]
    metrics: Callable[[], Sequence[Metric]]
    generation_size: int = -1
    stop_sequence: tuple[str, ...] = ()
    instrument: Instrument | None = None
    rows_per_item: int = 1
    few_shot_prompt: Callable[..., Doc] | None = None
    judge_templates: tuple[str, ...] = ()


BERTSCORE = Instrument(
    name=lambda: f"BERTScore({bertscore_model()},last layer,no idf,no rescaling)",
    check=lambda: check_bertscore_model(bertscore_model()),
)
CLASSIFIERS = Instrument(name=models_signature, check=check_models)
TRANSLATION = Instrument(
    name=dialect_metrics.translation_signature, check=dialect_metrics.check_translation_instruments
)

CAPTION_BERTSCORE = Instrument(
    name=lambda: "BERTScore({},layer {},no idf,no rescaling)".format(*caption_bertscore_model()),
    check=check_caption_bertscore,
)
VERDICTS = Instrument(name=lambda: "verdicts(strict)", check=lambda: None)  # the profile of the headline
SANDBOX = Instrument(name=code_metrics.judge_name, check=code_metrics.check_sandbox)
NO_EXAMPLES = "no few-shot examples; run it zero-shot (no |k)"


def _statements(name: Prompt, prompt: Callable[..., Doc], size: int) -> Kind:
    return Kind(prompt, partial(statement_metrics, name), size, instrument=VERDICTS, rows_per_item=3)


def _code(dataset: str) -> Kind:
    stops = code_problems.CONTINUATION_STOPS[dataset]
    return Kind(code_problems.code_prompt, code_metrics.code_metrics, code_problems.NEW_TOKENS, stops, SANDBOX)


# QIMMA's task code: 512 new tokens up to a newline for QA; unpublished for FannOrFlop (ours: 4,096, no stop).
KINDS: dict[str, Kind] = {
    "multiple_choice": Kind(qimma.choice_prompt, qimma_metrics.multiple_choice_metrics),
    "multi_select": Kind(qimma.multi_select_prompt, qimma_metrics.multi_select_metrics),
    "bertscore": Kind(qimma.answer_prompt, qimma_metrics.bertscore_metrics, 512, ("\n",), BERTSCORE),
    "fannorflop": Kind(qimma.poem_prompt, qimma_metrics.fannorflop_metrics, 4096, (), BERTSCORE),
    "jeem_caption": Kind(
        *(jeem.caption_prompt, caption_metrics, 512, (), CAPTION_BERTSCORE), judge_templates=jeem.CAPTION_TEMPLATES
    ),
    "jeem_caption_msa": Kind(
        *(jeem.caption_prompt, caption_metrics, 512, (), CAPTION_BERTSCORE), judge_templates=jeem.MSA_TEMPLATES
    ),
    "jeem_vqa": Kind(
        *(jeem.question_prompt, caption_metrics, 256, (), CAPTION_BERTSCORE), judge_templates=jeem.VQA_TEMPLATES
    ),
    # CVLUE states no lengths: ours, short answers up to a newline, room for a box in JSON.
    "cvlue_vqa": Kind(cvlue.answer_prompt, cvlue_metrics.cvlue_vqa_metrics, 32, ("\n",)),
    "vqa_v2": Kind(cvlue.answer_prompt, cvlue_metrics.vqa_v2_metrics, 32, ("\n",)),
    "grounding": Kind(cvlue.box_prompt, cvlue_metrics.grounding_metrics, 128),
    "dialogue": Kind(cvlue.dialogue_prompt, cvlue_metrics.dialogue_metrics),
    "dense_dialogue": Kind(cvlue.dialogue_prompt, partial(cvlue_metrics.dialogue_metrics, dense=True)),
    "galleries": Kind(cvlue.gallery_prompt, cvlue_metrics.gallery_metrics),
    # M2CQA's sizes are ours: the paper gives none.
    "m2cqa_tf": _statements("tf", m2cqa.true_or_false_prompt, 32),
    "m2cqa_answer_reason": _statements("answer_reason", m2cqa.answer_then_reason_prompt, 256),
    "m2cqa_reason_first": _statements("reason_first", m2cqa.reasoning_first_prompt, 1024),
    "code_humaneval": _code("humaneval"),
    "code_mbpp": _code("mbpp"),
}
# AL-QASIDA's program: 128 new tokens, no stop string.
KINDS["alqasida_cross"] = Kind(
    alqasida.request_prompt,
    dialect_metrics.fidelity_metrics,
    128,
    (),
    CLASSIFIERS,
    few_shot_prompt=alqasida.request_prompt_few_shot,
)
KINDS["alqasida_mono"] = replace(KINDS["alqasida_cross"], metrics=dialect_metrics.monolingual_metrics)
KINDS["alqasida_mt"] = Kind(alqasida.translation_prompt, dialect_metrics.translation_metrics, 128, (), TRANSLATION)


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
            if kind_of(self.source_task).instrument is SANDBOX:
                SANDBOX.check()  # stock LightEval asks no instrument before it generates for hours
            subset = prepare_subset(all_tasks()[self.source_task], read_data_options())
            if self.num_fewshots > (there := subset.report["few_shot_rows"]):
                has = f"{there} few-shot examples; run it with |{there} at most" if there else NO_EXAMPLES
                raise CulturevalError(f"{self.name}: {subset.report['source']} has {has}.")
            self.rows_report = subset.report
            self._place = str(subset.folder)
        return self._place

    @property
    def prompt_function(self) -> Callable[..., Doc]:
        """From a prepared row to a Doc; LightEval reads it when it has set the number of few-shot examples."""
        kind = KINDS[all_tasks()[self.source_task].metric_set] if self.source_task else None
        return kind.few_shot_prompt if kind and kind.few_shot_prompt and self.num_fewshots else self._prompt

    @prompt_function.setter
    def prompt_function(self, function: Callable[..., Doc]) -> None:
        self._prompt = function

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


def kind_of(name: str) -> Kind:
    """The kind of a task, whose name may end in `|k` for few-shot examples."""
    return KINDS[all_tasks()[name.partition("|")[0]].metric_set]


def _configuration(task: Task) -> SourcedTaskConfig:
    kind = KINDS[task.metric_set]
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
