"""Judges as LightEval metrics during a run.

A Doc of a judged task has `specific["judge"] = {"templates": [...], "slots": {...}}`: the names of its judge templates,
and the texts of their slots. The judged slot gets the model's reply. Templates with images show the Doc's `images`.
`cultureval judge` reads the same from saved details.
"""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

from cultureval.judge_prompts.replies import LOWEST
from cultureval.judge_prompts.templates import JudgeTemplate, judge_template, templates_beside
from cultureval.metrics.declared import DEN, Declared
from cultureval.metrics.judges.asking import Asker
from cultureval.metrics.judges.items import JudgeVerdict, item_of, lines_about, metric_part, metric_prefix, row_metrics
from cultureval.metrics.judges.judge import Verdicts, judge_with_all, signatures_of_judges, takes
from cultureval.metrics.judges.settings import JudgeSettings, configured_judges
from cultureval.metrics.lighteval.row_scores import Columns, final_text, pass_metrics
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.servers.costs import Budget
from cultureval.runtime.servers.identity import identity_in_run

logger = logging.getLogger(__name__)

_BUDGETS: dict[str, Budget] = {}  # one for each judge, for all tasks of a run


def judge_metrics(*templates: str) -> list[SampleLevelMetric]:
    """The metrics of the judges in CULTUREVAL_JUDGE; [] without a judge.

    For each judge and template, `judge_<judge>_<template's short name>` is an item's verdict (a mapping in the
    details), and `..._<criterion>` its score; results have the means of scores.

    Args:
        *templates: Names of judge templates with scores.

    Raises:
        CulturevalError: A judge's settings are wrong, or there is no such template.
    """
    judges, rows = configured_judges(), [judge_template(name) for name in templates]
    for judge in judges:
        judge.servers()  # raises for a missing key now, not after the model has answered
    pairs = {metric_prefix(judge.name, row): (judge, row) for judge in judges for row in rows if takes(judge, row)}
    declared = {
        f"{prefix}_{metric_part(criterion)}": Declared(range=(LOWEST, float(row.top(criterion))))
        for prefix, (_, row) in pairs.items()
        for criterion in criteria_of_group(row)
    }
    scored = {f"{prefix}_{metric_part(name)}" for prefix, (_, row) in pairs.items() for name in row.criteria}
    absent = dict.fromkeys(declared.keys() - scored, 0.0)
    compute = partial(_columns, judges, rows, pairs, absent)
    definition = partial(_signatures, templates)
    return pass_metrics(declared, compute, definition, [*absent], lambda _: absent, details=[*pairs])


def criteria_of_group(template: JudgeTemplate) -> tuple[str, ...]:
    """The criteria of all templates of a folder with the same short name.

    Each subset of a group needs all metrics, since LightEval counts a missing metric as 0. Dialect Authenticity, for
    example, does not apply to JEEM's captions in MSA.
    """
    same_name = [row for row in templates_beside(template) if row.short == template.short]
    return tuple(dict.fromkeys(criterion for row in same_name for criterion in row.criteria))


def _signatures(templates: Sequence[str]) -> str:
    return str(signatures_of_judges(*templates))


def _columns(
    judges: Sequence[JudgeSettings],
    templates: Sequence[JudgeTemplate],
    pairs: Mapping[str, tuple[JudgeSettings, JudgeTemplate]],
    absent: Mapping[str, float],
    docs: list[Doc],
    responses: list[ModelResponse],
) -> Columns:
    """A column for each metric of the judges: verdicts, and scores (nan: none)."""
    verdicts = _verdicts(judges, templates, docs, responses)
    columns: dict[str, list[Any]] = {name + DEN: [0.0] * len(docs) for name in absent}
    for prefix, (judge, template) in pairs.items():
        criteria = criteria_of_group(template)
        rows = [row_metrics(prefix, criteria, verdict) for verdict in verdicts[judge.name, template.name]]
        columns |= {name: [row[name] for row in rows] for name in rows[0]}
    return columns


def _verdicts(
    judges: Sequence[JudgeSettings], templates: Sequence[JudgeTemplate], docs: list[Doc], responses: list[ModelResponse]
) -> Verdicts:
    """Judge a task's replies with all judges, and log unscored items."""
    answered = [
        (f"{doc.task_name}/{doc.id}", doc, final_text(response) or "")
        for doc, response in zip(docs, responses, strict=True)
    ]
    questions = {
        row.name: [
            item_of(name, specific_of(doc)["judge"]["slots"], row, reply, doc.images or ())
            for name, doc, reply in answered
        ]
        for row in templates
    }
    found: Verdicts = {}
    askers: dict[str, Asker] = {}
    for judge in judges:
        budget = _BUDGETS.setdefault(judge.model_dump_json(), Budget(judge))
        try:
            askers[judge.name] = Asker(judge, identity_in_run(f"The judge {judge.name}", judge), budget=budget)
        except CulturevalError as error:  # the answers are there, and shall be saved
            logger.error("%s", error)
            for name, items in questions.items():
                found[judge.name, name] = [
                    JudgeVerdict(item=item.id, outcome="not_asked", reason=f"not asked: {error}") for item in items
                ]
    found |= judge_with_all(askers, questions)
    for (name, template), verdicts in found.items():
        for line in lines_about(verdicts):
            logger.warning("%s, judge %s, %s: %s", docs[0].task_name, name, template, line)
    if stopped := "; ".join(judge.stopped for judge in askers.values() if judge.stopped):
        advice = "Run `cultureval judge` on the results to continue."
        logger.error("%s; the remaining items are unscored. %s", stopped, advice)
    return found
