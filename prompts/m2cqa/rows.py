"""M2CQA: from an item of its sources to prepared rows of its three statements, and to Docs.

Two sources: Q+ and Q- in separate columns (QCRI/M2CQA; `--columns` gives other names than our guesses), and three
statements with three labels (AynVQA: task1b of QCRI/ImageEval-ArabicNLP26).

The texts are those of the paper's Table 8, verbatim; the three Arabic varieties share them. Models put the image before
the text unless their setting `image_placement` is "last".
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cultureval.prompts.cells import cell, image_cell, optional_text, text_cell, text_list
from cultureval.prompts.preparation import Preparation, PreparedRow, make_doc
from cultureval.prompts.templates import render
from cultureval.runtime.doc_fields import DocSpecific, fields_of
from cultureval.runtime.errors import BadRow

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc


ROLES = ("q_plus", "q_minus_1", "q_minus_2")
# The gold answers in Table 8: true, false.
GOLD_WORDS = {"en": ["True", "False"], "msa": ["صحيح", "خطأ"], "ajp": ["صحيح", "غلط"], "arz": ["صحيح", "غلط"]}


class StatementSpecific(DocSpecific):
    """One of the statements of an item.

    Attributes:
        item_id: The item's id; its statements are scored together.
        role: "q_plus", the true statement, or "q_minus_1", "q_minus_2", the false ones.
        language: "en", "msa", "ajp" or "arz".
        country: The image's country; "": not in the source.
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
        statement_index: Its index among the item's statements in the source, as in submissions.
    """

    statement_index: int


class JointSpecific(DocSpecific):
    """An item of AynVQA with its three statements in one prompt; other fields are as in `StatementSpecific`.

    Attributes:
        statements: The statements, in the source's order.
        answer: The index of the true statement.
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


def statement_rows(row: Mapping[str, Any], preparation: Preparation, language: str) -> list[PreparedRow]:
    """Three prepared rows, the true statement first; the statements' texts are not changed.

    Args:
        row: One item: `id`, `image`, `q_plus`, and `q_minus`, a list of two.
        language: en, msa, ajp or arz.

    Raises:
        MissingColumn: A column is missing.
        BadRow: Not two false statements, an empty one, or no readable image.
    """
    false = text_list(cell(row, "q_minus"), "q_minus")
    if len(false) != 2:
        raise BadRow("q_minus", false, f"holds {len(false)} false statements, not two")
    shared, texts = _item(row, preparation, language), [text_cell(row, "q_plus"), *false]
    return [shared | {"role": role, "statement": text} for role, text in zip(ROLES, texts, strict=True)]


def labelled_rows(row: Mapping[str, Any], preparation: Preparation, language: str) -> list[PreparedRow]:
    """As `statement_rows`, for an item of AynVQA; each row has the statement's index in the source."""
    shared, (texts, places) = _item(row, preparation, language), _labelled(row)
    return [
        shared | {"role": role, "statement": text, "statement_index": place}
        for role, text, place in zip(ROLES, texts, places, strict=True)
    ]


def joint_row(row: Mapping[str, Any], preparation: Preparation, language: str) -> PreparedRow:
    """The prepared row of an item with its three statements in one prompt, in the source's order."""
    item, (texts, places) = _item(row, preparation, language), _labelled(row)
    by_place = dict(zip(places, texts, strict=True))
    return item | {"statements": [by_place[place] for place in sorted(by_place)], "answer": places[0]}


def _item(row: Mapping[str, Any], preparation: Preparation, language: str) -> PreparedRow:
    return {
        "item_id": text_cell(row, "id"),
        "image": image_cell(row, "image", preparation.folder),
        "language": language,
        "country": optional_text(row, "country") or "",
        "category": optional_text(row, "category") or "",
        "subcategory": optional_text(row, "subcategory") or "",
    }


def _labelled(row: Mapping[str, Any]) -> tuple[list[str], list[int]]:
    """The three statements, the true one first, and their places in the source."""
    texts, labels = text_list(cell(row, "statements"), "statements"), cell(row, "labels")
    if not isinstance(labels, list) or sorted(map(repr, labels)) != ["False", "False", "True"] or len(texts) != 3:
        raise BadRow("labels", labels, "does not mark one of three statements as true and two as false")
    places = sorted(range(3), key=lambda place: not labels[place])
    return [texts[place] for place in places], places


def statement_prompt(row: Mapping[str, Any], task_name: str | None = None, prompt: str = "tf") -> "Doc":
    """Doc of a statement under one of the paper's prompts: `tf`, `answer_reason` or `reason_first`."""
    script = "en" if row["language"] == "en" else "ar"
    query = render(f"m2cqa/templates/{script}/{prompt}", statement=row["statement"])
    words, gold = list(GOLD_WORDS[row["language"]]), int(row["role"] != "q_plus")
    fields = LabelledStatementSpecific if "statement_index" in row else StatementSpecific
    return make_doc(row, task_name, words, gold, fields_of(row, fields), query)


def one_word_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a statement of AynVQA under the organisers' prompt, which is English in both languages."""
    query = render("m2cqa/templates/aynvqa/one_word", statement=row["statement"])
    gold, specific = row["role"] != "q_plus", fields_of(row, LabelledStatementSpecific)
    return make_doc(row, task_name, list(GOLD_WORDS["en"]), int(gold), specific, query)


def joint_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of an item of AynVQA with its three statements in one prompt, which is ours."""
    texts = dict(zip(("first", "second", "third"), row["statements"], strict=True))
    query = render("m2cqa/templates/aynvqa/joint", **texts)
    return make_doc(row, task_name, ["1", "2", "3"], row["answer"], fields_of(row, JointSpecific), query)
