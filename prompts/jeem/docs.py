"""JEEM's prompt function: from a prepared row to a LightEval Doc with one image."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cultureval.prompts.jeem.rows import COUNTRIES
from cultureval.prompts.jeem.specific import CaptionSpecific, QuestionSpecific
from cultureval.runtime.data.image_store import stored_image
from cultureval.runtime.doc_fields import JudgeRequest, fields_of

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc

CAPTION_TEMPLATES = ("jeem_caption_image_reference", "jeem_caption_reference")
MSA_TEMPLATES = ("jeem_caption_image_reference_msa", "jeem_caption_reference_msa")
VQA_TEMPLATES = ("jeem_vqa",)


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
    from lighteval.tasks.requests import Doc

    references = list(row["references"])
    return Doc(
        task_name=task_name or "",
        query=row["prompt"],
        choices=references,
        gold_index=list(range(len(references))),
        images=[str(stored_image(row["image"]))],
        specific=dict(specific),
    )
