"""The LightEval metrics of M2CQA and AynVQA: verdicts on single statements, and metrics of items of three statements.

The details have each statement's verdict under each profile of `parse_verdict`; the strict one is the headline. What
an item's metrics are made of is in the row of its true statement, Q+; its other rows count zero times.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

from cultureval.metrics.declared import DEN, SUMS, Declared, Metrics
from cultureval.metrics.lighteval.row_scores import (
    Column,
    Columns,
    DenColumn,
    Kept,
    RowScore,
    SharedPass,
    TaskScore,
    batched_metric,
    reply_metrics,
    reply_of,
)
from cultureval.metrics.m2cqa.names import (
    COUNTS,
    INVALID_RATE,
    JOINT,
    JOINT_ACC,
    JOINT_INVALID_RATE,
    N_ITEMS,
    N_Q_PLUS,
    Q_MINUS_ACC,
    Q_PLUS_ACC,
    STATEMENT_PARTS,
    STATEMENTS,
)
from cultureval.metrics.m2cqa.statement_items import (
    PROFILES,
    ROLES,
    WORDS,
    Statement,
    item_columns,
    item_verdicts,
)
from cultureval.metrics.m2cqa.statement_verdicts import Prompt, chosen_statement, parse_verdict
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.patches.lighteval.group_averages import Total

if TYPE_CHECKING:
    from cultureval.prompts.m2cqa.rows import StatementSpecific

Parts = Mapping[str, Mapping[str, str]]


def statement_metrics(
    prompt: Prompt, parts: Parts = STATEMENT_PARTS, declared: Metrics = STATEMENTS
) -> list[SampleLevelMetric]:
    """The metrics of one prompt's tasks.

    Args:
        parts: The metrics of each profile, as of `names.by_profile`, that of the headline first.
        declared: By name.
    """
    shared = SharedPass(partial(_statement_columns, prompt, parts))
    definition = f"prompt={prompt}, profiles={'+'.join(PROFILES.values())}"
    kept = [Column(key, shared, definition) for key in PROFILES]
    metrics = []
    for of_profile in parts.values():
        for name, part in of_profile.items():
            if name in COUNTS:
                continue
            corpus = (CountedScore if name == Q_PLUS_ACC else ItemScore)(name, part, declared[name])
            better = declared[name].higher_is_better
            metrics.append(batched_metric(name, Column(name, shared, definition), corpus, better))
            kept.append(weights := DenColumn(name + DEN, shared, definition))
            weights.unanswered = partial(_weights_of_unanswered, name, part)
            if declared[name].of_sums:
                kept.append(Column(name + SUMS, shared, definition))
    return [*metrics, *(batched_metric(one.name, one, Kept()) for one in kept)]


def joint_metrics() -> list[SampleLevelMetric]:
    """The metrics of AynVQA's joint form: right choices, and outputs without one."""
    return reply_metrics(JOINT, _joint_scores, "one of three")


def _joint_scores(docs: list[Doc], replies: list[str]) -> Columns:
    chosen = [chosen_statement(reply) for reply in replies]
    right = [float(choice == doc.gold_index) for choice, doc in zip(chosen, docs, strict=True)]
    return {JOINT_ACC: right, JOINT_INVALID_RATE: [float(choice is None) for choice in chosen]}


def _statement_columns(prompt: Prompt, parts: Parts, docs: list[Doc], responses: list[ModelResponse]) -> Columns:
    columns: Columns = {}
    replies = [reply_of(doc, response) for doc, response in zip(docs, responses, strict=True)]
    asked: list[StatementSpecific] = [specific_of(doc) for doc in docs]
    for key, profile in PROFILES.items():
        read = [
            parse_verdict(reply, prompt, one["language"], profile) for reply, one in zip(replies, asked, strict=True)
        ]
        columns[key] = [WORDS[verdict] for verdict in read]
        statements = [Statement(*row) for row in _named(asked, columns[key])]
        found = item_columns(statements)
        for name, part in parts[profile].items():
            if name not in COUNTS:
                columns |= _columns_of(name, docs, statements, *found[part])
    return columns


def _named(asked: "Sequence[StatementSpecific]", verdicts: Sequence[str]) -> list[tuple[str, str, str]]:
    return [(one["item_id"], one["role"], verdict) for one, verdict in zip(asked, verdicts, strict=True)]


def _columns_of(
    name: str,
    docs: list[Doc],
    statements: Sequence[Statement],
    scores: Sequence[float],
    dens: Sequence[float],
    sums: Sequence[list[float] | None],
) -> Columns:
    """A metric's scores, each with its statement, from which the score of all items is made; and what it keeps."""
    rows = [
        RowScore.of(score, doc, **statement._asdict(), rows_of_task=specific_of(doc).get("rows_of_task", 0))
        for score, doc, statement in zip(scores, docs, statements, strict=True)
    ]
    return {name: rows, name + DEN: dens, name + SUMS: sums}


def _weights_of_unanswered(name: str, part: str, doc: Doc) -> dict[str, float]:
    outputs = {Q_MINUS_ACC: len(ROLES) - 1, INVALID_RATE: len(ROLES)}.get(part, 1)
    return {name: float(outputs if specific_of(doc)["role"] == ROLES[0] else 0)}


class ItemScore(TaskScore):
    """A metric of items, whose statements may come in any order, and some in another batch of answers."""

    def __init__(self, name: str, part: str, declared: Declared) -> None:
        super().__init__(name, declared)
        self.part = part

    def compute_corpus(self, items: list[RowScore]) -> dict[str, float]:
        """As of `TaskScore`, of the items whose statements are all there (`item_verdicts`)."""
        return super().compute_corpus(self.rows(items))

    def rows(self, items: list[RowScore]) -> list[RowScore]:
        """One score an item."""
        statements = [Statement(item.item_id, item.role, item.verdict) for item in items]  # type: ignore[attr-defined]
        whole = set(item_verdicts(statements, max((item.rows_of_task for item in items), default=0))[0])  # type: ignore[attr-defined]
        columns = item_columns(statements)[self.part]
        rows = []
        for statement, score, den, sums in zip(statements, *columns, strict=True):
            if statement.item_id in whole and statement.role == ROLES[0]:
                rows.append(row := RowScore(score))
                row.cluster, row.den, row.sums = statement.item_id, den, sums
        return rows


class CountedScore(ItemScore):
    """The accuracy on Q+, with the numbers of items, and of those with a right Q+."""

    def __init__(self, name: str, part: str, declared: Declared) -> None:
        super().__init__(name, part, declared)
        self.names = (name, *COUNTS)

    def compute_corpus(self, items: list[RowScore]) -> dict[str, float]:
        """The accuracy and its standard error, and the numbers."""
        rows = self.rows(items)
        counts = {N_ITEMS: Total(len(rows)), N_Q_PLUS: Total(sum(rows))}
        return super().compute_corpus(items) | counts
