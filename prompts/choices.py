"""Prompt functions of multiple-choice questions: from a prepared row (`choice_rows`) to a LightEval Doc.

The query is the row's `prompt`, the continuations scored are the options' labels; there is no instruction and no
system prompt.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cultureval.runtime.doc_fields import DocSpecific, fields_of
from cultureval.runtime.errors import CulturevalError

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc


class ChoiceSpecific(DocSpecific, total=False):
    """A multiple-choice or multi-select question.

    Attributes:
        permutation: The order of the source's options, for sources whose options are shuffled.
        options: The options' texts; the Doc's choices are their labels.
    """

    permutation: list[int]
    options: list[str]


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
