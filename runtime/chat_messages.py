"""A Doc as messages of a chat: LightEval's turns, with images where the task places them."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from cultureval.runtime.generation_hints import with_chat_query

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc
    from PIL.Image import Image

IMAGE_MARK = "<image>"
Placement = Literal["first", "last"]
ImagePart = Callable[["Image"], dict[str, Any]]


def chat_messages(
    doc: "Doc", system_prompt: str | None, image_part: ImagePart, placement: Placement = "first"
) -> list[dict[str, Any]]:
    """LightEval's chat messages for a Doc, with images placed as in the transformers models.

    Few-shot samples may have images of their own; `placement` is of images in a turn that has no `<image>` marks.
    """
    from lighteval.tasks.prompt_manager import PromptManager

    doc = with_chat_query(doc)
    messages: list[dict[str, Any]] = PromptManager(
        use_chat_template=True, system_prompt=system_prompt
    ).prepare_prompt_api(doc)
    questions = [message for message in messages if message["role"] == "user"]
    for message, source in zip(questions, [*doc.fewshot_samples, doc], strict=True):
        if source.images:
            message["content"] = message_parts(message["content"], [*map(image_part, source.images)], placement)
    return messages


def message_parts(text: str, images: Sequence[dict[str, Any]], placement: Placement) -> list[dict[str, Any]]:
    """The parts of one turn of a chat: images at the text's `<image>` marks, one each, or else all by `placement`."""
    if not images or text.count(IMAGE_MARK) != len(images):
        words = [{"type": "text", "text": text}]
        return [*images, *words] if placement == "first" else [*words, *images]
    first, *pieces = text.split(IMAGE_MARK)
    parts = [{"type": "text", "text": first}]
    for image, piece in zip(images, pieces, strict=True):
        parts += [image, {"type": "text", "text": piece}]
    return [part for part in parts if part.get("text") != ""]
