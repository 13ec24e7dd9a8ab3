"""CVLUE's prompt functions: from a prepared row to a LightEval Doc with one image."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cultureval.prompts.cvlue.specific import BoxSpecific, DialogueSpecific, GallerySpecific, ImageSpecific
from cultureval.runtime.data.image_store import stored_image
from cultureval.runtime.doc_fields import fields_of

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc


def answer_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a question; its choices are the gold answers. The stop string applies to plain prompts only."""
    specific = ImageSpecific(**fields_of(row, ImageSpecific), stop_in_chat=False)
    return _doc(row, task_name, list(row["answers"]), list(range(len(row["answers"]))), specific)


def box_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a referring expression; the gold box, the image's size and the box format are in `specific`."""
    specific = BoxSpecific(**fields_of(row, BoxSpecific), thinking=False)
    return _doc(row, task_name, [str([round(number, 2) for number in row["box"]])], 0, specific)


def dialogue_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a dialogue round: its options are scored, and the end-of-text token after each of them."""
    specific = DialogueSpecific(**fields_of(row, DialogueSpecific), end_logprob=True)
    return _doc(row, task_name, list(row["choices"]), row["gold"], specific)


def gallery_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of an image whose gallery's captions are scored; its own ones are the gold."""
    specific = GallerySpecific(**fields_of(row, GallerySpecific))
    return _doc(row, task_name, list(row["choices"]), list(row["correct"]), specific)


def _doc(
    row: Mapping[str, Any], task_name: str | None, choices: list[str], gold: int | list[int], specific: ImageSpecific
) -> "Doc":
    from lighteval.tasks.requests import Doc

    return Doc(
        task_name=task_name or "",
        query=row["prompt"],
        choices=choices,
        gold_index=gold,
        images=[str(stored_image(row["image"]))],
        specific=dict(specific),
    )
