"""Judges as LightEval metrics during a run, for tasks whose Docs have what a judge needs.

A Doc of a judged task has `specific["judge"] = {"templates": [...], "slots": {...}}`: the names of its
judge templates, and the texts of their slots except the judged one, which gets the model's reply. Its `images` are
shown if the template shows images. `cultureval judge` reads the same from saved details.
"""

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

from cultureval.judge_prompts.replies import LOWEST
from cultureval.judge_prompts.templates import JudgeTemplate, judge_template, templates_beside
from cultureval.metrics.declared import DEN, Declared
from cultureval.metrics.judges.items import item_of, metric_prefix, record_of
from cultureval.metrics.judges.judge import judge_signature, judge_with_all, not_judged, takes
from cultureval.metrics.judges.settings import JudgeSettings, configured_judges
from cultureval.metrics.judges.verdicts import (
    JudgeItem,
    Judgement,
    JudgeVerdict,
    metric_part,
    reuse_line,
    unscored_lines,
)
from cultureval.metrics.lighteval.row_scores import (
    Column,
    Kept,
    RowScore,
    SharedPass,
    TaskScore,
    batched_metric,
    final_text,
)
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.servers.costs import Budget
from cultureval.runtime.servers.identity import ServerIdentity, identity_in_run, known_identity

logger = logging.getLogger(__name__)


def judge_metrics(*templates: str) -> list[SampleLevelMetric]:
    """The metrics of the judges that CULTUREVAL_JUDGE names; [] without one.

    For each judge and template, `judge_<judge>_<template's short name>` is a sample's verdict (a mapping, for the
    details), and `..._<criterion>` its scores, which results have the mean of.

    Args:
        *templates: Names of judge templates whose replies are scores.

    Raises:
        CulturevalError: A judge's settings are wrong, or there is no such template.
    """
    judges, rows = configured_judges(), [judge_template(name) for name in templates]
    for judge in judges:
        judge.servers()  # raises for a missing key now, not after the model has answered
    shared = SharedPass(partial(_judge, judges, rows))
    metrics = []
    for judge, template in judged_pairs(judges, rows):
        prefix = metric_prefix(judge.name, template)
        metrics.append(batched_metric(prefix, VerdictColumn(judge, template, shared), Kept()))
        for criterion in criteria_of_group(template):
            name = f"{prefix}_{metric_part(criterion)}"
            score = TaskScore(name, Declared(range=(LOWEST, float(template.top(criterion)))))
            metrics.append(batched_metric(name, CriterionColumn(judge, template, shared, criterion), score))
            applies = AppliesColumn(judge, template, shared, criterion)
            metrics.append(batched_metric(name + DEN, applies, Kept()))
    return metrics


def criteria_of_group(template: JudgeTemplate) -> tuple[str, ...]:
    """The criteria of all templates of a folder that share a short name, for any subset of a group of tasks.

    JEEM's captions in dialects are judged by Dialect Authenticity, those in MSA are not: there it applies to no row.
    LightEval counts a metric that a subset of a group lacks as 0, so each subset must have all metrics.
    """
    alike = [row for row in templates_beside(template) if row.short == template.short]
    return tuple(dict.fromkeys(criterion for row in alike for criterion in row.criteria))


def judged_pairs(
    judges: Sequence[JudgeSettings], templates: Sequence[JudgeTemplate]
) -> list[tuple[JudgeSettings, JudgeTemplate]]:
    """Each judge with each template; templates with images only if the judge takes images."""
    return [(judge, row) for judge in judges for row in templates if takes(judge, row)]


def signatures_of_judges(*templates: str) -> str | None:
    """Everything that the judges' scores depend on, for the signature of a task group; None without a judge."""
    pairs = judged_pairs(configured_judges(), [judge_template(name) for name in templates])
    lines = [judge_signature(judge, row, known_identity(judge)).replace("|", ",") for judge, row in pairs]
    return " + ".join(f"judge({line})" for line in lines) or None


Judgements = dict[tuple[str, str], Judgement]


def _judge(
    judges: Sequence[JudgeSettings],
    templates: Sequence[JudgeTemplate],
    docs: list[Doc],
    responses: list[ModelResponse],
) -> Judgements:
    """Judge a task's replies with all judges, and log unscored items."""
    questions = {row.name: _items(row, docs, responses) for row in templates}
    budgets = {one.name: _budget(one) for one in judges}
    found: Judgements = {}
    identities: dict[str, ServerIdentity] = {}
    for judge in judges:
        try:
            identities[judge.name] = identity_in_run(f"The judge {judge.name}", judge)
        except CulturevalError as error:  # the answers are there, and shall be saved
            found |= {
                (judge.name, row.name): not_judged(questions[row.name], str(error))
                for row in templates
                if takes(judge, row)
            }
    answering = [judge for judge in judges if judge.name in identities]
    found |= judge_with_all(answering, questions, budgets=budgets, identities=identities)
    for (name, template_name), judgement in found.items():
        for line in filter(None, [reuse_line(judgement.verdicts), *unscored_lines(judgement.verdicts)]):
            logger.warning("%s, judge %s, %s: %s", docs[0].task_name, name, template_name, line)
    for stopped in dict.fromkeys(judgement.stopped for judgement in found.values() if judgement.stopped):
        logger.error(
            "%s; the remaining items are unscored. Run `cultureval judge` on the results to continue.", stopped
        )
    return found


class VerdictColumn(Column):
    """A column of the verdicts of a judge by a template: what the details save of each item besides its scores."""

    def __init__(self, judge: JudgeSettings, template: JudgeTemplate, shared: SharedPass[Judgements]) -> None:
        super().__init__("", shared, lambda: judge_signature(judge, template, known_identity(judge)))  # type: ignore[arg-type]
        self.judge, self.template = judge, template

    def verdicts(self, docs: list[Doc], responses: list[ModelResponse]) -> list[JudgeVerdict]:
        """The judge's verdicts under the template; the first call asks all judges."""
        return self.shared.result(docs, responses)[self.judge.name, self.template.name].verdicts  # type: ignore[index]

    def compute(self, docs: list[Doc], responses: list[ModelResponse], **kwargs: object) -> list[Any]:
        """The values of all items, in order."""
        return [record_of(verdict) for verdict in self.verdicts(docs, responses)]


class CriterionColumn(VerdictColumn):
    """The scores of one criterion; nan for an unscored item."""

    def __init__(
        self, judge: JudgeSettings, template: JudgeTemplate, shared: SharedPass[Judgements], criterion: str
    ) -> None:
        super().__init__(judge, template, shared)
        self.criterion = criterion
        self.applies = float(criterion in template.criteria)

    def compute(self, docs: list[Doc], responses: list[ModelResponse], **kwargs: object) -> list[RowScore]:
        """The scores of all items, in order."""
        scores = [one.scores.get(self.criterion, float("nan")) for one in self.verdicts(docs, responses)]
        return [RowScore.of(score, doc, den=self.applies) for score, doc in zip(scores, docs, strict=True)]


class AppliesColumn(CriterionColumn):
    """Whether a template has a criterion: how often items count."""

    def compute(self, docs: list[Doc], responses: list[ModelResponse], **kwargs: object) -> list[float]:
        """The same of all items."""
        self.verdicts(docs, responses)
        return [self.applies] * len(docs)

    def weight(self, doc: Doc) -> float:
        """How often an item without an answer counts."""
        return self.applies


def _items(template: JudgeTemplate, docs: list[Doc], responses: list[ModelResponse]) -> list[JudgeItem]:
    return [
        item_of(
            f"{doc.task_name}/{doc.id}",
            specific_of(doc)["judge"]["slots"],
            template,
            final_text(response) or "",
            doc.images or (),
            specific_of(doc).get("cluster") or "",
        )
        for doc, response in zip(docs, responses, strict=True)
    ]


_BUDGETS: dict[str, Budget] = {}


def _budget(judge: JudgeSettings) -> Budget:
    """One budget for all tasks of a run."""
    return _BUDGETS.setdefault(judge.model_dump_json(), Budget(judge))
