"""JEEM's prompt function: from a prepared row to a LightEval Doc with one image."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cultureval.prompts.jeem.rows import CANNOT_TELL, COUNTRIES
from cultureval.runtime.data.image_store import stored_image

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc

PROVENANCE = ("source_row", "cluster", "form", "country", "variety", "image_id", "shared", "reference_set")
CAPTION_TEMPLATES = ("jeem_caption_image_reference", "jeem_caption_reference")
MSA_TEMPLATES = ("jeem_caption_image_reference_msa", "jeem_caption_reference_msa")
VQA_TEMPLATES = ("jeem_vqa",)


def caption_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a caption; its choice is the reference caption.

    `specific["judge"]` is what the judge metrics read: templates, and the texts of their slots.
    """
    slots = {"country": COUNTRIES[row["country"]].name, "reference": row["references"][0]}
    if row["variety"] == "MSA":
        slots["caption_msa"] = row["references"][0]  # what topics are told from
    templates = MSA_TEMPLATES if row["variety"] == "MSA" else CAPTION_TEMPLATES
    return _doc(row, task_name, templates, slots, {})


def question_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a question; the judge's reference is the answer as the paper's annotators gave it, "cannot tell" too."""
    reference = row["answer"] if row["answerable"] else CANNOT_TELL
    slots = {
        "country": COUNTRIES[row["country"]].name,
        "question": row["question"],
        "reference": reference,
    }
    details = {name: row[name] for name in ("question", "question_number", "answer", "answerable")}
    return _doc(row, task_name, VQA_TEMPLATES, slots, details)


def _doc(
    row: Mapping[str, Any],
    task_name: str | None,
    templates: tuple[str, ...],
    slots: dict[str, str],
    details: dict[str, Any],
) -> "Doc":
    from lighteval.tasks.requests import Doc

    references = list(row["references"])
    provenance = {name: row[name] for name in PROVENANCE}
    return Doc(
        task_name=task_name or "",
        query=row["prompt"],
        choices=references,
        gold_index=list(range(len(references))),
        images=[str(stored_image(row["image"]))],
        specific=provenance | details | {"judge": {"templates": list(templates), "slots": slots}},
    )
