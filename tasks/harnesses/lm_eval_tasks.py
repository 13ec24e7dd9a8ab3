"""The class of our tasks in lm-evaluation-harness; the files of `lm_eval_files` refer to it.

Rows, prompts, examples, metrics and standard errors come from LightEval's configuration of the task; only the model is
lm-eval's. The same environment variables apply (CULTUREVAL_DATA, CULTUREVAL_FORM, ...). lm-eval's `--num_fewshot`,
`--apply_chat_template`, `--system_instruction`, `--limit` and `--gen_kwargs` correspond to `TASK|k`, chat_template,
system_prompt, `--limit` and generation_parameters of `cultureval eval`.
"""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from lm_eval.api.instance import Instance
from lm_eval.api.task import ConfigurableTask
from lm_eval.config.task import TaskConfig
from lm_eval.filters import build_filter_ensemble

import cultureval
from cultureval.runtime.data.image_store import upright
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.generation_hints import (
    IMAGE_MARK,
    answer_prefix,
    stop_strings,
    with_chat_query,
    with_plain_query,
)
from cultureval.runtime.patches.lm_eval import average_groups_by
from cultureval.runtime.reasoning import split_reasoning
from cultureval.tasks.catalogue import all_tasks, kind_of
from cultureval.tasks.harnesses.lm_eval_files import MEMBERS
from cultureval.tasks.running import quiet_libraries
from cultureval.tasks.suite import SCORE

if TYPE_CHECKING:
    from lighteval.metrics.utils.metric_utils import Metric
    from lighteval.tasks.lighteval_task import LightevalTask
    from lighteval.tasks.requests import Doc
    from lm_eval.api.group import Group

FILTER = "none"


class SuiteTask(ConfigurableTask):
    """A task of our catalogue, named by `dataset_name` of its file."""

    VERSION = cultureval.__version__

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Takes the content of the file; rows are read on first use.

        Raises:
            CulturevalError: There is no such task (its suite is not installed).
        """
        self._config = TaskConfig(**{name: value for name, value in config.items() if name != "class"})
        self._name = str(self._config.dataset_name)
        if self._name not in all_tasks():
            raise CulturevalError(
                f"{self._config.task}: there is no task {self._name!r}. Write the files again with `cultureval tasks "
                "--lm-eval-path`, and set CULTUREVAL_CUSTOM_SUITES for suites that are not installed."
            )
        self.OUTPUT_TYPE = self._config.output_type
        self.MULTIMODAL = self._config.doc_to_image is not None
        self._filters = [build_filter_ensemble(FILTER, [["take_first", None]])]
        self._instances: list[Instance] | None = None
        self._read: dict[int, LightevalTask] = {}
        self._docs: dict[int, list[Doc]] = {}
        self._scores: dict[int, dict[str, Any]] = {}

    # --- rows ---

    @property
    def _shots(self) -> int:
        return int(self.config.num_fewshot or 0)

    @property
    def _lighteval(self) -> "LightevalTask":
        if self._shots not in self._read:
            from lighteval.tasks.lighteval_task import LightevalTask

            from cultureval.tasks.task_table import running_config

            quiet_libraries()
            config = running_config(self._name, self._shots)
            task = self._read[self._shots] = LightevalTask(config)
            self.config.metadata = {**(self.config.metadata or {}), "cultureval": config.rows_report}
            self._docs[self._shots] = task.get_docs()  # in LightEval's order, so that --limit takes the same rows
        return self._read[self._shots]

    def _all_docs(self) -> "list[Doc]":
        return self._docs[self._shots] if self._lighteval else []

    @property
    def eval_docs(self) -> list[dict[str, Any]]:
        """The rows as lm-eval logs them; `number` is the index in this list."""
        return [
            {
                "number": number,
                "id": doc.id,
                "query": doc.query,
                "choices": doc.choices,
                "gold": doc.gold_index,
                "specific": {name: value for name, value in specific_of(doc).items() if name != "judge"},
            }
            for number, doc in enumerate(self._all_docs())
        ]

    def _doc(self, row: Mapping[str, Any]) -> "Doc":
        return self._all_docs()[row["number"]]

    def has_test_docs(self) -> bool:
        """Always."""
        return True

    def test_docs(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """As `eval_docs`."""
        return self.eval_docs

    # --- prompts ---

    def build_all_requests(self, *, limit: int | None = None, world_size: int = 1, **options: Any) -> None:
        """Builds lm-eval's requests after checks: scorers work, and no item of several rows is cut."""
        kind = kind_of(self._name)
        if kind.instrument:
            kind.instrument.check()
        if kind.rows_per_item > 1 and (world_size > 1 or (limit or 0) % kind.rows_per_item):
            raise CulturevalError(
                f"{self._name} scores {kind.rows_per_item} rows together: run it in one process, with a --limit that "
                f"is a multiple of {kind.rows_per_item}."
            )
        self._scores = {}
        super().build_all_requests(limit=limit, world_size=world_size, **options)

    def fewshot_context(  # type: ignore[override]
        self,
        doc: Mapping[str, Any],
        num_fewshot: int,
        system_instruction: str | None = None,
        apply_chat_template: bool = False,
        fewshot_as_multiturn: bool = False,
        chat_template: Callable[..., Any] | None = None,
        gen_prefix: str | None = None,
    ) -> Any:
        """The prompt, as LightEval writes it; `fewshot_as_multiturn` makes examples turns of a chat."""
        from lighteval.tasks.prompt_manager import PromptManager

        chat = chat_template if apply_chat_template else None
        asked = self._marked(self._doc(doc), bool(chat))
        if chat is None:
            return PromptManager(False, None, system_instruction).prepare_prompt(with_plain_query(asked))
        turns = with_chat_query(asked)
        if turns.fewshot_samples and not fewshot_as_multiturn:
            query = PromptManager(False, None, None).prepare_prompt(turns)
            turns = copy.copy(turns)
            turns.query, turns.instruction, turns.fewshot_samples = query, None, []
        writer = SimpleNamespace(apply_chat_template=lambda messages, **_: chat(messages))
        prompt = PromptManager(True, writer, system_instruction).prepare_prompt(turns)
        prefix = "" if self.MULTIMODAL or self.OUTPUT_TYPE != "generate_until" else answer_prefix(turns)
        if isinstance(prompt, str):
            return prompt + prefix
        if self.MULTIMODAL:
            raise CulturevalError(
                f"{self._name}: lm-eval does not send all images to servers. Use --model hf-multimodal, or `cultureval "
                "eval` for servers."
            )
        return prompt

    def _marked(self, doc: "Doc", chat: bool) -> "Doc":
        """A doc with lm-eval's mark for each image, at the beginning unless the prompt already has these marks."""
        if not self.MULTIMODAL:
            return doc
        marked, count = copy.copy(doc), len(doc.images or [])
        if doc.query.count(IMAGE_MARK) != count:
            text = doc.query.replace(
                IMAGE_MARK, f"{IMAGE_MARK[0]} {IMAGE_MARK[1:]}"
            )  # marks in the data are not images
            marked.query = IMAGE_MARK * count + ("" if chat else "\n") + text
        marked.fewshot_samples = [self._marked(example, chat) for example in doc.fewshot_samples]
        return marked

    def doc_to_text(self, doc: Mapping[str, Any], doc_to_text: Any = None) -> str:
        """The question without examples."""
        return self._doc(doc).query

    def doc_to_target(self, doc: Mapping[str, Any], doc_to_target: Any = None) -> Any:
        """The gold answers."""
        return self._doc(doc).get_golds()

    def doc_to_choice(self, doc: Mapping[str, Any], doc_to_choice: Any = None) -> list[str]:
        """The choices."""
        return list(self._doc(doc).choices)

    def doc_to_image(self, doc: Mapping[str, Any], doc_to_image: Any = None) -> list[Any]:
        """The images of the examples and of the question, in the prompt's order."""
        asked = self._doc(doc)
        return [
            upright(image).convert("RGB") for sample in [*asked.fewshot_samples, asked] for image in sample.images or []
        ]

    def doc_to_prefix(self, doc: Mapping[str, Any]) -> None:
        """None: the prompt has the prefix."""

    def construct_requests(self, doc: Mapping[str, Any], ctx: Any, **fields: Any) -> list[Instance]:  # type: ignore[override]
        """A request for each choice, or one for an answer."""
        chat = fields.pop("apply_chat_template", False)
        fields.pop("chat_template", None)
        asked, row = self._doc(doc), dict(doc)
        if self.OUTPUT_TYPE == "multiple_choice":
            return [
                Instance(request_type="loglikelihood", doc=row, arguments=(ctx, choice), idx=number, **fields)
                for number, choice in enumerate(asked.choices)
            ]
        settings = copy.deepcopy(self.config.generation_kwargs) or {}
        if settings.get("until") == list(asked.stop_sequences or []):  # not set by the user
            prefixed = chat and isinstance(ctx, str) and bool(answer_prefix(asked)) and not self.MULTIMODAL
            settings["until"] = stop_strings(asked, bool(chat), prefixed)
        images = ({"visual": self.doc_to_image(doc)},) if self.MULTIMODAL else ()
        arguments = (ctx, settings, *images)
        return [Instance(request_type="generate_until", doc=row, arguments=arguments, idx=0, **fields)]

    # --- scores ---

    @cached_property
    def _metrics(self) -> "Sequence[Metric]":
        return self._lighteval.metrics

    @cached_property
    def _functions(self) -> dict[str, tuple[list[str], Callable[[list[Any]], Any]]]:
        """Name of a row's value -> names of the aggregated metrics, and the function that aggregates all rows."""
        found = {}
        for metric in self._metrics:
            for name, function in metric.get_corpus_aggregations().items():
                found[name] = (list(getattr(getattr(function, "__self__", None), "names", (name,))), function)
        return found

    def process_results(self, doc: Mapping[str, Any], results: Sequence[Any]) -> dict[str, Any]:
        """The row's scores; the first call scores all rows of this process."""
        if not self._scores:
            self._scores = self._score_all()
        return self._scores[doc["number"]]

    def _score_all(self) -> dict[int, dict[str, Any]]:
        from lighteval.metrics import apply_metric

        answers: dict[int, list[Instance]] = {}
        for instance in self._instances or []:
            answers.setdefault(instance.doc["number"], []).append(instance)
        docs = [self._all_docs()[number] for number in answers]
        responses = [
            self._response(sorted(instances, key=lambda instance: instance.idx)) for instances in answers.values()
        ]
        scores = apply_metric(docs=docs, responses=responses, metrics=list(self._metrics))
        # Our standard error comes after the score and replaces lm-eval's (see `runtime/patches/lm_eval.py`).
        return {
            number: {key: value for name, value in row.items() for key in self._written(name)}
            for number, row in zip(answers, scores, strict=True)
        }

    def _written(self, value: str) -> list[str]:
        """The names under which a row's value is written; [] if it has no aggregation."""
        names, _ = self._functions.get(value, ((), None))
        return [name for metric in names for name in (metric, f"{metric}_stderr")]

    def _response(self, instances: Sequence[Instance]) -> Any:
        from lighteval.models.model_output import ModelResponse

        found, prompt = [instance.filtered_resps[FILTER] for instance in instances], instances[0].args[0]
        shown = prompt if isinstance(prompt, str) else str(prompt[0])
        if self.OUTPUT_TYPE == "multiple_choice":
            logprobs, greedy = map(list, zip(*found, strict=True))
            return ModelResponse(input=shown, logprobs=logprobs, argmax_logits_eq_gold=greedy)
        text, reasoning = split_reasoning(found[0])
        return ModelResponse(input=shown, text=[text], reasonings=[reasoning])

    def aggregation(self) -> dict[str, Callable[[list[Any]], Any]]:
        """Metric -> function from the scores of all rows to the task's score or its standard error."""
        return {
            name: _Part(name, function)
            for names, function in self._functions.values()
            for metric in names
            for name in (metric, f"{metric}_stderr")
        }

    def higher_is_better(self) -> dict[str, bool]:
        """Metric -> whether a higher value is better."""
        found: dict[str, bool] = {}
        for metric in self._metrics:
            higher = metric.higher_is_better
            found |= higher if isinstance(higher, dict) else {metric.metric_name: higher}
        return found

    def override_metric(self, metric_name: str) -> None:
        """Raises a CulturevalError: `--predict_only` and other metrics are not for our tasks."""
        raise CulturevalError(f"{self._name} is scored by its own metrics, not by lm-eval's {metric_name}.")

    def __repr__(self) -> str:
        return f"SuiteTask({self._name!r}, num_fewshot={self._shots})"


class _Part:
    """One number of an aggregation with several."""

    def __init__(self, name: str, aggregate: Callable[[list[Any]], Any]) -> None:
        self.name, self.aggregate = name, aggregate
        self.__name__ = name

    def __call__(self, items: list[Any]) -> Any:
        found = self.aggregate(items)
        if isinstance(found, Mapping):
            return found.get(self.name, math.nan)
        return math.nan if self.name.endswith("_stderr") else found


def average_group(group: "Group", task_metrics: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The averages of a group with equal weights, without those with a missing part; errors as in our own results.

    Args:
        group: Its metadata have the averaged members (`MEMBERS`; else its children).
        task_metrics: Results of the tasks and of the groups below it.
    """
    metadata = group.metadata or {}
    found: dict[str, Any] = {"alias": group.alias or group.name, "name": group.name}
    leaves = [task_metrics[task.task_name] for task in group.get_all_tasks() if task.task_name in task_metrics]
    found["sample_len"] = sum(leaf.get("sample_len", 0) for leaf in leaves)
    for config in group.aggregate_metric_list or ():
        of_average = config.metric == SCORE and metadata.get(MEMBERS)
        members = dict(of_average) if of_average else dict.fromkeys(group.child_names, config.metric)
        parts = [(task_metrics.get(name, {}), metric) for name, metric in members.items()]
        values = [cell.get(f"{metric},{FILTER}") for cell, metric in parts]
        errors = [cell.get(f"{metric}_stderr,{FILTER}") for cell, metric in parts]
        if any(value is None for value in values):
            continue
        have_errors, name = all(isinstance(error, float) for error in errors), config.metric
        score = sum(values[1:], values[0]) / len(values)  # LightEval's sum, by the classes of `group_averages`
        error = sum(errors[1:], errors[0]) / len(errors) if have_errors else "N/A"
        found[f"{name},{FILTER}"], found[f"{name}_stderr,{FILTER}"] = score, error
    return found


average_groups_by(MEMBERS, average_group)
