"""M2CQA's prompt functions: from a prepared row, one statement on one image, to a LightEval Doc.

The texts are those of the paper's Table 8, verbatim; the three Arabic varieties share one. The model files
put the image before the text unless their setting `image_placement` says "last".
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cultureval.prompts.m2cqa.specific import StatementSpecific
from cultureval.prompts.templates import render
from cultureval.runtime.data.image_store import stored_image
from cultureval.runtime.doc_specific import fields_of

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc

# The gold answers in Table 8: true, false.
GOLD_WORDS = {"en": ["True", "False"], "msa": ["صحيح", "خطأ"], "ajp": ["صحيح", "غلط"], "arz": ["صحيح", "غلط"]}


def true_or_false_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a statement under the prompt True or False."""
    return _statement_doc(row, task_name, "tf")


def answer_then_reason_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a statement under the prompt Answer then Reason."""
    return _statement_doc(row, task_name, "answer_reason")


def reasoning_first_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a statement under the prompt Reasoning First."""
    return _statement_doc(row, task_name, "reason_first")


def _statement_doc(row: Mapping[str, Any], task_name: str | None, prompt: str) -> "Doc":
    from lighteval.tasks.requests import Doc

    script = "en" if row["language"] == "en" else "ar"
    return Doc(
        task_name=task_name or "",
        query=render(f"m2cqa/templates/{script}/{prompt}", statement=row["statement"]),
        choices=list(GOLD_WORDS[row["language"]]),
        gold_index=0 if row["role"] == "q_plus" else 1,
        images=[str(stored_image(row["image"]))],
        specific=fields_of(row, StatementSpecific),
    )
