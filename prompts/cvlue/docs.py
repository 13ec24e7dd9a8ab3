"""CVLUE's prompt functions: from a prepared row to a LightEval Doc with one image."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cultureval.prompts.preparation import make_doc
from cultureval.runtime.doc_fields import DocSpecific, fields_of

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc


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
    """An image whose gallery's captions are ranked."""

    gallery: int


def answer_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a question; its choices are the gold answers. The stop string applies to plain prompts only."""
    specific = ImageSpecific(**fields_of(row, ImageSpecific), stop_in_chat=False)
    return make_doc(row, task_name, list(row["answers"]), list(range(len(row["answers"]))), specific)


def box_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a referring expression; the gold box, the image's size and the box format are in `specific`."""
    specific = BoxSpecific(**fields_of(row, BoxSpecific), thinking=False)
    return make_doc(row, task_name, [str([round(number, 2) for number in row["box"]])], 0, specific)


def dialogue_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a dialogue round: its options are scored, and the end-of-text token after each of them."""
    specific = DialogueSpecific(**fields_of(row, DialogueSpecific), end_logprob=True)
    return make_doc(row, task_name, list(row["choices"]), row["gold"], specific)


def gallery_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of an image whose gallery's captions are scored; its own ones are the gold."""
    specific = GallerySpecific(**fields_of(row, GallerySpecific))
    return make_doc(row, task_name, list(row["choices"]), list(row["correct"]), specific)
