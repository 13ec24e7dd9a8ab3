"""The types of M2CQA's `Doc.specific`."""

from cultureval.runtime.doc_specific import DocSpecific


class StatementSpecific(DocSpecific):
    """One of the statements of an item.

    Attributes:
        item_id: Names the item; its statements are scored together.
        role: "q_plus", the true statement, or "q_minus_1", "q_minus_2", the false ones.
        statement: The statement's text.
        language: "en", "msa", "ajp" or "arz".
        country: Of the image, "" where the source does not say.
        category: Of the image, likewise.
        subcategory: Of the image, likewise.
        image: Name of the image in the store of images.
        rows_of_task: Rows of the whole task, of which a run with a limit holds a part.
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
