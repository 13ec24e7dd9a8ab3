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
from cultureval.metrics.judges.asking import Asker
from cultureval.metrics.judges.items import (
    JudgeItem,
    JudgeVerdict,
    item_of,
    lines_about,
    metric_part,
    metric_prefix,
    record_of,
)
from cultureval.metrics.judges.judge import Verdicts, judge_signature, judge_with_all, takes
from cultureval.metrics.judges.settings import JudgeSettings, configured_judges
from cultureval.metrics.lighteval.row_scores import (
    Column,
    Columns,
    DenColumn,
    Kept,
    ScoreColumn,
    SharedPass,
    TaskScore,
    batched_metric,
    final_text,
)
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.servers.costs import Budget
from cultureval.runtime.servers.identity import identity_in_run, known_identity

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
    shared = SharedPass(partial(_columns, judges, rows))
    metrics = []
    for judge, template in _pairs(judges, rows):
        prefix, definition = metric_prefix(judge.name, template), partial(_definition, judge, template)
        metrics.append(batched_metric(prefix, Column(prefix, shared, definition), Kept()))
        for criterion in criteria_of_group(template):
            name = f"{prefix}_{metric_part(criterion)}"
            score = TaskScore(name, Declared(range=(LOWEST, float(template.top(criterion)))))
            metrics.append(batched_metric(name, ScoreColumn(name, shared, definition), score))
            applies = DenColumn(name + DEN, shared, definition)
            den = float(criterion in template.criteria)
            applies.unanswered = lambda _, found={name: den}: found
            metrics.append(batched_metric(name + DEN, applies, Kept()))
    return metrics


def criteria_of_group(template: JudgeTemplate) -> tuple[str, ...]:
    """The criteria of all templates of a folder that share a short name, for any subset of a group of tasks.

    JEEM's captions in dialects are judged by Dialect Authenticity, those in MSA are not: there it applies to no row.
    LightEval counts a metric that a subset of a group lacks as 0, so each subset must have all metrics.
    """
    alike = [row for row in templates_beside(template) if row.short == template.short]
    return tuple(dict.fromkeys(criterion for row in alike for criterion in row.criteria))


def _pairs(
    judges: Sequence[JudgeSettings], templates: Sequence[JudgeTemplate]
) -> list[tuple[JudgeSettings, JudgeTemplate]]:
    return [(judge, row) for judge in judges for row in templates if takes(judge, row)]


def _definition(judge: JudgeSettings, template: JudgeTemplate) -> str:
    return judge_signature(judge, template, known_identity(judge))


def _columns(
    judges: Sequence[JudgeSettings], templates: Sequence[JudgeTemplate], docs: list[Doc], responses: list[ModelResponse]
) -> Columns:
    """A column for each metric of the judges: verdicts, scores (nan: none), and how often rows count."""
    verdicts = _verdicts(judges, templates, docs, responses)
    columns: dict[str, list[Any]] = {}
    for judge, template in _pairs(judges, templates):
        prefix, found = metric_prefix(judge.name, template), verdicts[judge.name, template.name]
        columns[prefix] = [record_of(one) for one in found]
        for criterion in criteria_of_group(template):
            name = f"{prefix}_{metric_part(criterion)}"
            columns[name] = [one.scores.get(criterion, float("nan")) for one in found]
            columns[name + DEN] = [float(criterion in template.criteria)] * len(found)
    return columns


def _verdicts(
    judges: Sequence[JudgeSettings], templates: Sequence[JudgeTemplate], docs: list[Doc], responses: list[ModelResponse]
) -> Verdicts:
    """Judge a task's replies with all judges, and log unscored items."""
    questions = {row.name: _items(row, docs, responses) for row in templates}
    found: Verdicts = {}
    askers: dict[str, Asker] = {}
    for judge in judges:
        try:
            identity = identity_in_run(f"The judge {judge.name}", judge)
            askers[judge.name] = Asker(judge, identity, budget=_budget(judge))
        except CulturevalError as error:  # the answers are there, and shall be saved
            logger.error("%s", error)
            for row in templates:
                reason = f"not asked: {error}"
                unasked = [JudgeVerdict(one.id, outcome="not_asked", reason=reason) for one in questions[row.name]]
                found[judge.name, row.name] = unasked
    found |= judge_with_all(askers, questions)
    for (name, template_name), verdicts in found.items():
        for line in lines_about(verdicts):
            logger.warning("%s, judge %s, %s: %s", docs[0].task_name, name, template_name, line)
    if stopped := "; ".join(judge.stopped for judge in askers.values() if judge.stopped):
        again = "Run `cultureval judge` on the results to continue."
        logger.error("%s; the remaining items are unscored. %s", stopped, again)
    return found


def _items(template: JudgeTemplate, docs: list[Doc], responses: list[ModelResponse]) -> list[JudgeItem]:
    return [
        item_of(
            f"{doc.task_name}/{doc.id}",
            specific_of(doc)["judge"]["slots"],
            template,
            final_text(response) or "",
            doc.images or (),
        )
        for doc, response in zip(docs, responses, strict=True)
    ]


_BUDGETS: dict[str, Budget] = {}


def _budget(judge: JudgeSettings) -> Budget:
    """One budget for all tasks of a run."""
    return _BUDGETS.setdefault(judge.model_dump_json(), Budget(judge))
