"""QIMMA's own prompt functions: from a prepared row (the schema of QIMMA's curated copies) to a LightEval Doc.

As in QIMMA's own task code, the query is the row's `prompt`; there is no instruction and no system prompt.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cultureval.prompts.qimma.specific import PoemSpecific
from cultureval.runtime.doc_fields import DocSpecific, fields_of

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc


def answer_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a question-answering row; its choices are the reference answers.

    The stop string (a newline) does not apply to chat prompts: LightEval's backends, which QIMMA used, drop stop
    strings there.
    """
    from lighteval.tasks.requests import Doc

    references = list(row["choices"])
    return Doc(
        task_name=task_name or "",
        query=row["prompt"],
        choices=references,
        gold_index=list(range(len(references))),
        specific=dict(DocSpecific(**fields_of(row, DocSpecific), stop_in_chat=False)),
    )


def poem_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a FannOrFlop poem; the gold verses and explanations are in `specific["gold_explanations"]`.

    Models generate no reasoning (paper, section 5.2.1).
    """
    from lighteval.tasks.requests import Doc

    specific = PoemSpecific(**fields_of(row, PoemSpecific), thinking=False)
    return Doc(
        task_name=task_name or "",
        query=row["prompt"],
        choices=[" ".join(pair["explanation"] for pair in specific["gold_explanations"])],
        gold_index=0,
        specific=dict(specific),
    )
