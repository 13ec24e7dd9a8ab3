"""The types of AL-QASIDA's `Doc.specific`."""

from cultureval.runtime.doc_fields import DocSpecific


class PromptFeatures(DocSpecific):
    """Fields of all of AL-QASIDA's items.

    Attributes:
        dialect: Three-letter code of the requested dialect's country; "msa" or "eng" in translations.
        genre: The source's genre.
        prompt_length: Characters of the request.
    """

    dialect: str
    genre: str
    prompt_length: int


class RequestSpecific(PromptFeatures, total=False):
    """A request for an answer in a dialect.

    Attributes:
        prompt: The bare request, copies of which are detected in replies.
        template: The request's template, if any.
        location: Where the template names the dialect.
        phrasing: How the template asks.
    """

    prompt: str
    template: str
    location: str
    phrasing: str


class TranslationSpecific(PromptFeatures, total=False):
    """A sentence to be translated; the template's fields are as in `RequestSpecific`.

    Attributes:
        source: The sentence.
    """

    source: str
    template: str
    location: str
    phrasing: str
