"""JEEM's prompt function: from a prepared row to a LightEval Doc with one image."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cultureval.prompts.jeem.rows import COUNTRIES
from cultureval.prompts.preparation import make_doc
from cultureval.runtime.doc_fields import DocSpecific, JudgeRequest, fields_of

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc

CAPTION_TEMPLATES = ("jeem_caption_image_reference", "jeem_caption_reference")
MSA_TEMPLATES = ("jeem_caption_image_reference_msa", "jeem_caption_reference_msa")
VQA_TEMPLATES = ("jeem_vqa",)


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


def caption_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a caption; its choice is the reference caption.

    The judge metrics read `specific["judge"]`: templates, and the texts of their slots.
    """
    slots: dict[str, str | None] = {
        "country": COUNTRIES[row["country"]].name,
        "reference": row["references"][0],
    }
    if row["variety"] == "MSA":
        slots["caption_msa"] = row["references"][0]  # topics are labelled by it
    templates = MSA_TEMPLATES if row["variety"] == "MSA" else CAPTION_TEMPLATES
    judge: JudgeRequest = {"templates": list(templates), "slots": slots}
    return _doc(row, task_name, CaptionSpecific(**fields_of(row, CaptionSpecific), judge=judge))


def question_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a question; the judge's reference is the model's: where people could not tell, that in their dialect."""
    slots: dict[str, str | None] = {
        "country": COUNTRIES[row["country"]].name,
        "question": row["question"],
        "reference": row["references"][0],
    }
    judge: JudgeRequest = {"templates": list(VQA_TEMPLATES), "slots": slots}
    return _doc(row, task_name, QuestionSpecific(**fields_of(row, QuestionSpecific), judge=judge))


def _doc(row: Mapping[str, Any], task_name: str | None, specific: CaptionSpecific) -> "Doc":
    references = list(row["references"])
    return make_doc(row, task_name, references, list(range(len(references))), specific)
