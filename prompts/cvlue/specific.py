"""The types of the `Doc.specific` of CVLUE and its English counterparts."""

from cultureval.runtime.doc_fields import DocSpecific


class ImageSpecific(DocSpecific):
    """Fields of every item; each is about one image, named by its path in the source."""

    id: str
    image_path: str


class BoxSpecific(ImageSpecific):
    """A referring expression.

    Attributes:
        box: The gold box: left, top, right, bottom in pixels of the original image.
        size: The original image's width and height in pixels.
        box_format: The box format of the model's family.
        box_pixels: Least and most pixels to which the model's processor resizes images, as "3136-12845056".
    """

    box: list[float]
    size: list[int]
    box_format: str
    box_pixels: str


class DialogueSpecific(ImageSpecific):
    """A round of a dialogue, whose candidate answers are ranked.

    Attributes:
        round: The round's number, from 0.
        relevance: Relevance of each candidate, for NDCG; empty where there is none.
    """

    round: int
    relevance: list[float]


class GallerySpecific(ImageSpecific):
    """An image whose gallery's captions are ranked.

    Attributes:
        gallery: Number of the gallery.
    """

    gallery: int
