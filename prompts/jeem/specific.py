"""The types of JEEM's `Doc.specific`."""

from cultureval.runtime.doc_fields import DocSpecific


class CaptionSpecific(DocSpecific):
    """A caption of an image.

    Attributes:
        country: Two-letter code of the image's country.
        variety: "MSA" or the dialect requested for the caption.
        shared: Whether the image was captioned in every country.
        reference_set: Name, in the store of texts, of all reference captions of the variety (CIDEr's statistics).
    """

    country: str
    variety: str
    image_id: str
    shared: bool
    reference_set: str


class QuestionSpecific(CaptionSpecific):
    """A question on an image, with the annotators' answer.

    Attributes:
        question_number: Its position among the image's questions.
        answerable: Whether the annotators could tell the answer from the image.
    """

    question: str
    question_number: int
    answer: str
    answerable: bool
