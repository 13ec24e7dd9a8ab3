"""QIMMA's prompt functions: from a prepared row (the schema of QIMMA's curated copies) to a LightEval Doc.

As in QIMMA's own task code, the query is the row's `prompt`, the continuations scored are the options' labels, and
there is no instruction and no system prompt.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cultureval.prompts.qimma.specific import ChoiceSpecific, PoemSpecific
from cultureval.runtime.doc_specific import DocSpecific, fields_of
from cultureval.runtime.errors import CulturevalError

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc


def choice_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a multiple-choice row; the gold is one position."""
    (gold,) = row["index"]
    return _labelled_doc(row, task_name, gold)


def multi_select_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a multi-select row; the gold is always a list of positions: a details column holds one type."""
    return _labelled_doc(row, task_name, list(row["index"]))


def _labelled_doc(row: Mapping[str, Any], task_name: str | None, gold: int | list[int]) -> "Doc":
    from lighteval.tasks.requests import Doc

    if "labels" not in row:
        where = row.get("source_row", "a row")
        raise CulturevalError(
            f"{task_name}, {where}: no labels to score; make such rows with `choice_rows.choice_row`."
        )
    return Doc(
        task_name=task_name or "",
        query=row["prompt"],
        choices=list(row["labels"]),
        gold_index=gold,
        specific=dict(ChoiceSpecific(**fields_of(row, ChoiceSpecific), options=list(row["choices"]))),
    )


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
