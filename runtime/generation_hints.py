"""Docs as chat messages, and the generation hints of a Doc (`doc_fields.GenerationHints`).

LightEval's backends ignore stop strings with a chat template; tasks that were published so set `stop_in_chat: false`.
Servers have no common field for `thinking`: it is set in `extra_body`.
"""

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from cultureval.runtime.doc_fields import GenerationHints, specific_of

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc
    from PIL.Image import Image

IMAGE_MARK = "<image>"
Placement = Literal["first", "last"]
ImagePart = Callable[["Image"], dict[str, Any]]


def stop_strings(doc: "Doc", chat: bool, prefixed: bool = False) -> list[str]:
    """The task's stop strings for a prompt with or without a chat template, or with an answer prefix."""
    if prefixed:
        return list(_hints(doc).get("prefixed_stops") or [])
    if chat and _hints(doc).get("stop_in_chat") is False:
        return []
    return [stop for stop in doc.stop_sequences or [] if stop]


def cut(text: str, stops: Sequence[str]) -> str:
    """A text up to the first stop string."""
    return min((text.split(stop, 1)[0] for stop in stops if stop), key=len, default=text)


def with_chat_query(doc: "Doc") -> "Doc":
    """The doc with its `chat_query` as query, and its few-shot examples likewise."""
    turns, query = copy.copy(doc), _hints(doc).get("chat_query")
    turns.query = doc.query if query is None else query
    turns.fewshot_samples = [with_chat_query(example) for example in doc.fewshot_samples]
    return turns


def wanted_reasoning(doc: "Doc") -> bool | None:
    """Whether the task wants reasoning before the answer; None where it leaves this to the chat template."""
    return _hints(doc).get("thinking")


def with_plain_query(doc: "Doc") -> "Doc":
    """The doc with its `plain_query` as query, for models without a chat template."""
    plain, query = copy.copy(doc), _hints(doc).get("plain_query")
    plain.query = doc.query if query is None else query
    return plain


def answer_prefix(doc: "Doc") -> str:
    """The beginning of the answer; usually ""."""
    return _hints(doc).get("answer_prefix") or ""


def _hints(doc: "Doc") -> GenerationHints:
    return specific_of(doc)


def chat_messages(
    doc: "Doc", system_prompt: str | None, image_part: ImagePart, placement: Placement = "first"
) -> list[dict[str, Any]]:
    """LightEval's chat messages for a Doc, with images placed as in the transformers models.

    Few-shot samples may have images too. `placement` applies to turns without `<image>` marks.
    """
    from lighteval.tasks.prompt_manager import PromptManager

    doc = with_chat_query(doc)
    doc.query = _hints(doc).get("server_query") or doc.query
    messages: list[dict[str, Any]] = PromptManager(
        use_chat_template=True, system_prompt=system_prompt
    ).prepare_prompt_api(doc)
    questions = [message for message in messages if message["role"] == "user"]
    for message, source in zip(questions, [*doc.fewshot_samples, doc], strict=True):
        if source.images:
            message["content"] = message_parts(message["content"], [*map(image_part, source.images)], placement)
    return messages


def message_parts(text: str, images: Sequence[dict[str, Any]], placement: Placement) -> list[dict[str, Any]]:
    """The parts of a chat turn: an image at each `<image>` mark of the text, else all first or last (`placement`)."""
    if not images or text.count(IMAGE_MARK) != len(images):
        words = [{"type": "text", "text": text}]
        return [*images, *words] if placement == "first" else [*words, *images]
    first, *pieces = text.split(IMAGE_MARK)
    parts = [{"type": "text", "text": first}]
    for image, piece in zip(images, pieces, strict=True):
        parts += [image, {"type": "text", "text": piece}]
    return [part for part in parts if part.get("text") != ""]
