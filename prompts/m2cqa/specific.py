"""The types of M2CQA's `Doc.specific`."""

from cultureval.runtime.doc_fields import DocSpecific


class StatementSpecific(DocSpecific):
    """One of the statements of an item.

    Attributes:
        item_id: The item's id; its statements are scored together.
        role: "q_plus", the true statement, or "q_minus_1", "q_minus_2", the false ones.
        statement: The statement's text.
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
