"""The LightEval metric of M2CQA: verdicts on single statements, and metrics of items of several statements.

The details have each statement's verdict under each profile of `parse_verdict`; the strict one is the headline. The
corpus part groups the statements by item.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from lighteval.metrics.metrics_corpus import CorpusLevelComputation
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.utils.metric_utils import CorpusLevelMetricGrouping, SampleLevelMetric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc, SamplingMethod

from cultureval.metrics.lighteval.clustered_means import ClusteredMean
from cultureval.metrics.lighteval.shared_pass import Columns, SharedScore, batched_metric, final_text, pass_over_replies
from cultureval.metrics.m2cqa.names import COUNTS, JOINT, JOINT_ACC, JOINT_INVALID_RATE, LOWER, STATEMENT_PARTS
from cultureval.metrics.m2cqa.statement_items import PROFILES, WORDS, Statement, cell_report, item_verdicts
from cultureval.metrics.m2cqa.statement_verdicts import Prompt, chosen_statement, parse_verdict
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.lighteval.group_averages import (
    NotApplicableStandardError,
    Rate,
    StandardError,
    Total,
)

if TYPE_CHECKING:
    from cultureval.prompts.m2cqa.rows import StatementSpecific


Parts = Mapping[str, Mapping[str, str]]


def statement_metrics(prompt: Prompt, parts: Parts = STATEMENT_PARTS) -> list[CorpusLevelMetricGrouping]:
    """The metric of one prompt's tasks: LightEval's corpus grouping, whose aggregators return a dict.

    Args:
        parts: The metrics of each profile, as of `names.by_profile`, that of the headline first.
    """
    keys = {profile: key for key, profile in PROFILES.items()}
    aggregators = {keys[profile]: ItemMetrics(profile, parts) for profile in parts}
    names = [name for aggregator in aggregators.values() for name in aggregator.names]
    return [
        CorpusLevelMetricGrouping(
            metric_name=names,
            higher_is_better={name: not name.startswith(LOWER) for name in names},
            category=SamplingMethod.GENERATIVE,
            sample_level_fn=StatementVerdicts(prompt),
            corpus_level_fn=aggregators,
        )
    ]


def joint_metrics() -> list[SampleLevelMetric]:
    """The metrics of AynVQA's joint form: right choices, and outputs without one."""
    shared = pass_over_replies(_joint_scores)
    return [
        batched_metric(
            name, SharedScore(name, name, shared, "one of three"), ClusteredMean(name), JOINT[name].higher_is_better
        )
        for name in JOINT
    ]


def _joint_scores(docs: list[Doc], replies: list[str]) -> Columns:
    chosen = [chosen_statement(reply) for reply in replies]
    right = [choice == doc.gold_index for choice, doc in zip(chosen, docs, strict=True)]
    unread = [choice is None for choice in chosen]
    return {JOINT_ACC: np.array(right, float), JOINT_INVALID_RATE: np.array(unread, float)}


class StatementVerdict(str):
    """A statement's verdict, "true", "false" or "invalid", with its statement; otherwise a plain str."""

    item_id: str
    role: str
    rows_of_task: int

    @classmethod
    def of(cls, verdict: bool | None, doc: Doc) -> "StatementVerdict":
        """The verdict on the statement of a Doc."""
        value = cls(WORDS[verdict])
        specific: StatementSpecific = specific_of(doc)
        value.item_id, value.role = specific["item_id"], specific["role"]
        value.rows_of_task = specific.get("rows_of_task", 0)
        return value


class StatementVerdicts(SampleLevelComputation):
    """Parses the verdict of one output under every profile."""

    def __init__(self, prompt: Prompt) -> None:
        self.prompt = prompt

    def compute(self, doc: Doc, model_response: ModelResponse, **kwargs: object) -> dict[str, StatementVerdict]:
        """The verdict under each profile, by the keys of `PROFILES`: `verdict` is the strict one.

        Raises:
            CulturevalError: The response has no text (not even "").
        """
        text = final_text(model_response)
        specific: StatementSpecific = specific_of(doc)
        if text is None:
            raise CulturevalError(f"{doc.task_name}, item {specific['item_id']}: the response has no text.")
        language = specific["language"]
        return {
            key: StatementVerdict.of(parse_verdict(text, self.prompt, language, profile), doc)
            for key, profile in PROFILES.items()
        }

    def __str__(self) -> str:
        """The definition of this metric in LightEval's results."""
        return f"verdicts(prompt={self.prompt}, profiles={'+'.join(PROFILES.values())})"


class ItemMetrics(CorpusLevelComputation):
    """Metrics of the items of a task under one profile."""

    def __init__(self, profile: str, parts: Parts = STATEMENT_PARTS) -> None:
        self.profile = profile
        self.parts = parts[profile]

    @property
    def names(self) -> list[str]:
        """Names of the values, without their standard errors."""
        return list(self.parts)

    def compute_corpus(self, items: Sequence[StatementVerdict]) -> dict[str, float]:
        """The values and their standard errors; nan if undefined."""
        statements = [Statement(item.item_id, item.role, str(item)) for item in items]
        ids, verdicts = item_verdicts(statements, max((item.rows_of_task for item in items), default=0))
        if not len(verdicts):
            return {f"{name}{end}": Rate.of(None) for name in self.parts for end in ("", "_stderr")}
        report = cell_report(verdicts)
        values = {name: (Total if part in COUNTS else Rate.of)(report[part]) for name, part in self.parts.items()}
        errors = {f"{name}_stderr": report[f"{part}_stderr"] for name, part in self.parts.items()}
        return values | {
            name: NotApplicableStandardError() if error is None else StandardError.of_whole(error, len(ids), ids)
            for name, error in errors.items()
        }
