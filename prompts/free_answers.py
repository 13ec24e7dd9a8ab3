"""Questions with free answers, of benchmarks in one file: the function that makes a LightEval Doc of a prepared row."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cultureval.prompts.preparation import make_doc
from cultureval.runtime.doc_fields import DocSpecific, fields_of

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc


def answer_prompt(row: Mapping[str, Any], task_name: str | None = None, judge: str = "") -> "Doc":
    """Doc of a question; its choices, all gold, are the right answers.

    Args:
        row: `prompt`, `answers` and, where a judge reads the answers, `slots` of the judge's template.
        judge: Name of that template.
    """
    specific = DocSpecific(**fields_of(row, DocSpecific))
    if judge:
        specific["judge"] = {"templates": [judge], "slots": dict(row["slots"])}
    answers = list(row["answers"])
    return make_doc(row, task_name, answers, list(range(len(answers))), specific)
