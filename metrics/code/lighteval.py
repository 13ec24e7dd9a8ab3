"""LightEval metrics of code tasks: pass@1 on EvalPlus's base and extra tests, judged in the sandbox."""

import logging
from typing import TYPE_CHECKING

from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.tasks.requests import Doc

from cultureval.metrics.code.report import judge_name, problem_scores, verdict_in_details
from cultureval.metrics.code.solution_code import Text, programs
from cultureval.metrics.lighteval.row_scores import Columns, reply_metrics
from cultureval.metrics.qimma.names import CODE
from cultureval.runtime.data.content_store import stored_problem
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.patches.evalplus import evalplus_problems

if TYPE_CHECKING:
    from cultureval.prompts.qimma.rows import CodeSpecific

logger = logging.getLogger(__name__)


def code_metrics() -> list[SampleLevelMetric]:
    """Metrics of code tasks (QIMMA section 5.1 and 3LM), with the headline `plus_pass@1`.

    `plus_pass@1` counts solutions that pass EvalPlus's base and extra tests, `base_pass@1` those that pass the base
    tests. Solutions that could not be judged are excluded from both; `not_judged` is their share.
    """
    return reply_metrics(CODE, _judge, judge_name())


def _judge(docs: list[Doc], replies: list[str]) -> Columns:
    """Judge one task's replies: 1, 0 or nan for each metric."""
    from cultureval.metrics.code.judging import Solution, judge_with_canonicals

    asked: list[CodeSpecific] = [specific_of(doc) for doc in docs]
    dataset = asked[0]["dataset"]
    stored = [stored_problem(problem["problem"]) for problem in asked]
    problems = evalplus_problems(dataset, {row["task_id"]: row for row in stored})
    counts: dict[str, int] = {}
    solutions = []
    # As under EvalPlus's own providers of local models, a tab of a reply is four spaces.
    texts = [
        Text(reply.replace("\t", "    "), row["entry_point"], row["prompt"])
        for row, reply in zip(stored, replies, strict=True)
    ]
    for row, program in zip(stored, programs(texts), strict=True):
        number = counts[row["task_id"]] = counts.get(row["task_id"], -1) + 1
        solutions.append(Solution(row["task_id"], number, program.code))
        if program.cut:
            logger.warning("%s: its answer is too long to be read whole.", row["task_id"])
    found, canonical = judge_with_canonicals(problems, solutions, dataset)
    for verdict in canonical.values():
        if not verdict.base == verdict.plus == "pass":
            logger.warning("%s: its canonical solution does not pass: %s.", verdict.task_id, verdict.reason)
    for verdict in found:
        if "not_judged" in (verdict.base, verdict.plus):
            logger.warning("%s was not judged: %s.", verdict.task_id, verdict.reason)
    for doc, verdict in zip(docs, found, strict=True):
        specific_of(doc)["verdict"] = verdict_in_details([verdict])  # so that the details say why
    scores = [problem_scores([verdict]) for verdict in found]
    return {name: [score[name] for score in scores] for name in scores[0]}
