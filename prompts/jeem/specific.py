"""The types of JEEM's `Doc.specific`."""

from cultureval.runtime.doc_fields import DocSpecific


class CaptionSpecific(DocSpecific):
    """A caption of an image.

    Attributes:
        country: Two-letter code of the image's country.
        variety: "MSA" or the dialect requested for the caption.
        image_id: The image's name in the source.
        shared: Whether the image was captioned in every country.
        reference_set: Name, in the store of texts, of all reference captions of the variety (CIDEr's statistics).
    """

    country: str
    variety: str
    image_id: str
    shared: bool
    reference_set: str


class QuestionSpecific(CaptionSpecific):
    """A question on an image.

    Attributes:
        question: The question's text.
        question_number: Its position among the image's questions.
        answer: The annotators' answer.
        answerable: Whether the annotators could tell the answer from the image.
    """

    question: str
    question_number: int
    answer: str
    answerable: bool
