"""The types of AL-QASIDA's `Doc.specific`."""

from cultureval.runtime.doc_specific import DocSpecific


class PromptFeatures(DocSpecific):
    """What all of AL-QASIDA's items have.

    Attributes:
        dialect: Three-letter code of the country whose dialect is wanted; "msa" or "eng" in translations.
        genre: The source's genre.
        prompt_length: Characters of the request.
    """

    dialect: str
    genre: str
    prompt_length: int


class RequestSpecific(PromptFeatures, total=False):
    """A request for an answer in a dialect.

    Attributes:
        prompt: The bare request, of which copies in replies are looked for.
        template: The request's template, where it was made of one.
        location: Where the template names the dialect.
        phrasing: How the template asks.
    """

    prompt: str
    template: str
    location: str
    phrasing: str


class TranslationSpecific(PromptFeatures, total=False):
    """A sentence to be translated.

    Attributes:
        source: The sentence.
        template: As in `RequestSpecific`.
        location: As in `RequestSpecific`.
        phrasing: As in `RequestSpecific`.
    """

    source: str
    template: str
    location: str
    phrasing: str
