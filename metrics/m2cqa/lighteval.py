"""The LightEval metrics of M2CQA and AynVQA: verdicts on single statements, and metrics of items of three statements.

The details have each statement's verdict under each profile of `parse_verdict`; the strict one is the headline. The row
of an item's true statement, Q+, has the item's scores; its other rows have the weight 0.
"""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

from cultureval.metrics.declared import DEN, SUMS, Metrics
from cultureval.metrics.lighteval.row_scores import Columns, RowScore, TaskScore, pass_metrics, reply_metrics, reply_of
from cultureval.metrics.m2cqa import names
from cultureval.metrics.m2cqa.counterfactual import PROFILES, ROLES, WORDS, Statement, item_columns
from cultureval.metrics.m2cqa.statement_verdicts import Prompt, chosen_statement, parse_verdict
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.patches.lighteval.group_averages import Total

if TYPE_CHECKING:
    from cultureval.prompts.m2cqa.rows import StatementSpecific

Parts = Mapping[str, Mapping[str, str]]


def statement_metrics(
    prompt: Prompt, parts: Parts = names.STATEMENT_PARTS, declared: Metrics = names.STATEMENTS
) -> list[SampleLevelMetric]:
    """The metrics of one prompt's tasks.

    Args:
        parts: The metrics of each profile, as of `names.metrics_by_profile`, the headline's profile first.
        declared: Name -> declaration.
    """
    rates = {
        name: part for of_profile in parts.values() for name, part in of_profile.items() if name not in names.COUNTS
    }
    several = {names.Q_MINUS_ACC: len(ROLES) - 1.0, names.INVALID_RATE: float(len(ROLES))}  # outputs an item
    outputs = {name: several.get(part, 1.0) for name, part in rates.items()}
    return pass_metrics(
        {name: declared[name] for name in rates},
        partial(_statement_columns, prompt, parts),
        f"prompt={prompt}, profiles={'+'.join(PROFILES.values())}",
        [*rates],
        lambda doc: outputs if specific_of(doc)["role"] == ROLES[0] else dict.fromkeys(rates, 0.0),
        task_score=StatementScore,
        details=[*PROFILES],
    )


class StatementScore(TaskScore):
    """A rate of items; the accuracy on Q+ also has the numbers of items and of items with a right Q+."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all its values, without their errors."""
        return (self.name, *names.COUNTS) if self.name == names.Q_PLUS_ACC else (self.name,)

    def compute_corpus(self, items: list[RowScore]) -> dict[str, float]:
        """The rate and its standard error, and the numbers."""
        found = super().compute_corpus(items)
        if self.name != names.Q_PLUS_ACC:
            return found
        counted = [item for item in items if item.den]
        return found | {names.N_ITEMS: Total(len(counted)), names.N_Q_PLUS: Total(sum(counted))}


def joint_metrics() -> list[SampleLevelMetric]:
    """The metrics of AynVQA's joint form: right choices, and outputs without one."""
    return reply_metrics(names.JOINT, _joint_scores, "one of three")


def _joint_scores(docs: list[Doc], replies: list[str]) -> Columns:
    chosen = [chosen_statement(reply) for reply in replies]
    right = [float(choice == doc.gold_index) for choice, doc in zip(chosen, docs, strict=True)]
    return {names.JOINT_ACC: right, names.JOINT_INVALID_RATE: [float(choice is None) for choice in chosen]}


def _statement_columns(prompt: Prompt, parts: Parts, docs: list[Doc], responses: list[ModelResponse]) -> Columns:
    columns: Columns = {}
    replies = [reply_of(doc, response) for doc, response in zip(docs, responses, strict=True)]
    specifics: list[StatementSpecific] = [specific_of(doc) for doc in docs]
    for key, profile in PROFILES.items():
        verdicts = [
            parse_verdict(reply, prompt, specific["language"], profile)
            for reply, specific in zip(replies, specifics, strict=True)
        ]
        columns[key] = [WORDS[verdict] for verdict in verdicts]
        statements = [
            Statement(specific["item_id"], specific["role"], verdict)
            for specific, verdict in zip(specifics, columns[key], strict=True)
        ]
        found = item_columns(statements)
        for name, part in parts[profile].items():
            if name not in names.COUNTS:
                columns |= dict(zip((name, name + DEN, name + SUMS), found[part], strict=True))
    return columns
