"""M2CQA's and AynVQA's prompt functions: from a prepared row, one statement on one image, to a LightEval Doc.

The texts are those of the paper's Table 8, verbatim; the three Arabic varieties share one. The model files
put the image before the text unless their setting `image_placement` says "last".
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cultureval.prompts.m2cqa.specific import JointSpecific, LabelledStatementSpecific, StatementSpecific
from cultureval.prompts.templates import render
from cultureval.runtime.data.image_store import stored_image
from cultureval.runtime.doc_fields import DocSpecific, fields_of

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


def labelled_prompt(row: Mapping[str, Any], task_name: str | None = None, prompt: str = "tf") -> "Doc":
    """Doc of a statement of AynVQA under one of the paper's prompts (`tf`, `answer_reason`, `reason_first`)."""
    return _statement_doc(row, task_name, prompt, LabelledStatementSpecific)


def one_word_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a statement of AynVQA under the organisers' prompt, which is English in both languages."""
    query = render("m2cqa/templates/aynvqa/one_word", statement=row["statement"])
    return _doc(row, task_name, query, GOLD_WORDS["en"], row["role"] != "q_plus", LabelledStatementSpecific)


def joint_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of an item of AynVQA whose three statements are shown together; the prompt is ours."""
    texts = dict(zip(("first", "second", "third"), row["statements"], strict=True))
    query = render("m2cqa/templates/aynvqa/joint", **texts)
    return _doc(row, task_name, query, ["1", "2", "3"], row["answer"], JointSpecific)


def _statement_doc(
    row: Mapping[str, Any], task_name: str | None, prompt: str, kept: type[DocSpecific] = StatementSpecific
) -> "Doc":
    script = "en" if row["language"] == "en" else "ar"
    query = render(f"m2cqa/templates/{script}/{prompt}", statement=row["statement"])
    return _doc(row, task_name, query, GOLD_WORDS[row["language"]], row["role"] != "q_plus", kept)


def _doc(
    row: Mapping[str, Any],
    task_name: str | None,
    query: str,
    choices: Sequence[str],
    gold: int,
    kept: type[DocSpecific],
) -> "Doc":
    from lighteval.tasks.requests import Doc

    return Doc(
        task_name=task_name or "",
        query=query,
        choices=list(choices),
        gold_index=int(gold),
        images=[str(stored_image(row["image"]))],
        specific=fields_of(row, kept),
    )
