"""M2CQA's and AynVQA's prompt functions: from a prepared row, one statement on one image, to a LightEval Doc.

The texts are those of the paper's Table 8, verbatim; the three Arabic varieties share one. The model files
put the image before the text unless their setting `image_placement` says "last".
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cultureval.prompts.preparation import make_doc
from cultureval.prompts.templates import render
from cultureval.runtime.doc_fields import DocSpecific, fields_of

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc

# The gold answers in Table 8: true, false.
GOLD_WORDS = {"en": ["True", "False"], "msa": ["صحيح", "خطأ"], "ajp": ["صحيح", "غلط"], "arz": ["صحيح", "غلط"]}


class StatementSpecific(DocSpecific):
    """One of the statements of an item.

    Attributes:
        item_id: The item's id; its statements are scored together.
        role: "q_plus", the true statement, or "q_minus_1", "q_minus_2", the false ones.
        language: "en", "msa", "ajp" or "arz".
        country: The image's country, "" where the source does not state it.
        category: The image's category, likewise.
        subcategory: The image's subcategory, likewise.
        image: Name of the image in the store of images.
        rows_of_task: Number of rows of the task without a limit.
    """

    item_id: str
    role: str
    statement: str
    language: str
    country: str
    category: str
    subcategory: str
    image: str
    rows_of_task: int


class LabelledStatementSpecific(StatementSpecific):
    """One of the three statements of an item of AynVQA.

    Attributes:
        statement_index: Its place among the item's statements in the source, from 0, as submissions count.
    """

    statement_index: int


class JointSpecific(DocSpecific):
    """An item of AynVQA whose three statements are shown together; other fields are as in `StatementSpecific`.

    Attributes:
        statements: The statements, in the source's order.
        answer: The place of the true one, from 0.
        language: "en" or "msa".
    """

    item_id: str
    statements: list[str]
    answer: int
    language: str
    country: str
    category: str
    subcategory: str
    image: str


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
    gold, specific = row["role"] != "q_plus", fields_of(row, LabelledStatementSpecific)
    return make_doc(row, task_name, list(GOLD_WORDS["en"]), int(gold), specific, query)


def joint_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of an item of AynVQA whose three statements are shown together; the prompt is ours."""
    texts = dict(zip(("first", "second", "third"), row["statements"], strict=True))
    query = render("m2cqa/templates/aynvqa/joint", **texts)
    return make_doc(row, task_name, ["1", "2", "3"], row["answer"], fields_of(row, JointSpecific), query)


def _statement_doc(
    row: Mapping[str, Any], task_name: str | None, prompt: str, kept: type[DocSpecific] = StatementSpecific
) -> "Doc":
    script = "en" if row["language"] == "en" else "ar"
    query = render(f"m2cqa/templates/{script}/{prompt}", statement=row["statement"])
    words, gold = list(GOLD_WORDS[row["language"]]), int(row["role"] != "q_plus")
    return make_doc(row, task_name, words, gold, fields_of(row, kept), query)
