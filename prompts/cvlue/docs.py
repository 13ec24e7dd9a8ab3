"""CVLUE's prompt functions: from a prepared row to a LightEval Doc with one image."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cultureval.runtime.data.image_store import stored_image

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc

PROVENANCE = ("id", "image_path", "cluster", "source_row", "form")


def answer_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a question; its choices are the gold answers. The stop string holds for plain prompts only."""
    return _doc(row, task_name, list(row["answers"]), list(range(len(row["answers"]))), {"stop_in_chat": False})


def box_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a referring expression; the gold box, the image's size and the box format travel in `specific`."""
    names = ("box", "size", "box_format", "box_pixels")
    specific = {name: row[name] for name in names} | {"thinking": False}
    return _doc(row, task_name, [str([round(number, 2) for number in row["box"]])], 0, specific)


def dialogue_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a dialogue round: its options are scored, and the end of the text behind each of them."""
    specific = {"end_logprob": True, "round": row["round"], "relevance": list(row["relevance"])}
    return _doc(row, task_name, list(row["choices"]), row["gold"], specific)


def gallery_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of an image whose gallery's captions are scored; its own ones are the gold."""
    specific = {"gallery": row["gallery"]}
    return _doc(row, task_name, list(row["choices"]), list(row["correct"]), specific)


def _doc(
    row: Mapping[str, Any], task_name: str | None, choices: list[str], gold: int | list[int], specific: dict[str, Any]
) -> "Doc":
    from lighteval.tasks.requests import Doc

    return Doc(
        task_name=task_name or "",
        query=row["prompt"],
        choices=choices,
        gold_index=gold,
        images=[str(stored_image(row["image"]))],
        specific={name: row[name] for name in PROVENANCE if name in row} | specific,
    )
