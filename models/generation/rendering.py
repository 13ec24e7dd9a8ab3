"""Rendering of a Doc: the prompt's text as in LightEval, and its images in order."""

import copy
import math
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from jinja2 import TemplateError
from lighteval.tasks.prompt_manager import PromptManager
from lighteval.tasks.requests import Doc

from cultureval.models.settings import HFModelSettings
from cultureval.runtime.data.image_store import pillow, upright
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError, described
from cultureval.runtime.generation_hints import (
    IMAGE_MARK,
    Placement,
    answer_prefix,
    message_parts,
    wanted_reasoning,
    with_chat_query,
    with_plain_query,
)
from cultureval.runtime.signatures import text_hash

if TYPE_CHECKING:
    from PIL.Image import Image

PROBE = "Whatever?"
# Exceptions of chat templates, which are programs of a checkpoint.
TEMPLATE_ERRORS = (TemplateError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RuntimeError)
TEMPLATE_ERRORS += (MemoryError,)


class Renderer:
    """Renders docs for one model.

    LightEval's PromptManager renders text. Prompts with images have the same turns; images of a turn are at its
    `<image>` marks, else all before or after its text.
    """

    def __init__(self, tokenizer: Any, processor: Any | None, settings: HFModelSettings) -> None:
        """Decides whether to use a chat template; a CulturevalError if the setting is "on" and there is none."""
        self.model_name, self.processor = settings.model_name, processor
        names = ("image_token", "boi_token", "eoi_token", "video_token") if processor is not None else ()
        tokens = [token for name in names if isinstance(token := getattr(processor, name, None), str) and token]
        self.image_tokens = tuple(dict.fromkeys([IMAGE_MARK, *tokens])) if processor is not None else ()
        self.writer = processor if processor is not None and getattr(processor, "chat_template", None) else tokenizer
        template = getattr(self.writer, "chat_template", None)
        if settings.chat_template == "on" and not template:
            raise CulturevalError(f"{settings.model_name} has no chat template: set chat_template to auto or off.")
        self.uses_chat_template = bool(template) and settings.chat_template != "off"
        self.template_hash = text_hash(str(template)) if self.uses_chat_template else ""
        self.placement: Placement = settings.image_placement
        self.system_prompt = settings.system_prompt
        self.knows_thinking = "enable_thinking" in str(template)
        parts = [{"type": "text", "text": PROBE}]
        # Some templates read only parts and drop plain text, others the reverse.
        (plain, self.supports_text), (in_parts, self.supports_parts) = self._probed(PROBE), self._probed(parts)
        bos = tokenizer.bos_token
        self.writes_bos = bool(bos) and (plain if self.supports_text else in_parts).startswith(bos)

    def text(self, doc: Doc, scoring: bool = False) -> str:
        """The prompt of a doc; a CulturevalError if it has images and the model takes none.

        With `scoring`, choices follow it directly, so the template must not open reasoning.
        """
        if specific_of(doc).get("verbatim"):
            return doc.query
        doc = self._with_literal_text(doc)
        apply = partial(self.writer.apply_chat_template) if self.uses_chat_template else None
        thinking = False if scoring else wanted_reasoning(doc)
        if apply and self.knows_thinking and thinking is not None:
            apply = partial(apply, enable_thinking=thinking)
        images = bool(all_images(doc))
        if images and self.processor is None:
            raise CulturevalError(
                f"{self.model_name} takes text only, but {doc.task_name} has images: use an "
                "image-text model, or leave such tasks out."
            )
        if apply is None:
            return self._plain_multimodal(doc) if images else self._manager().prepare_prompt(with_plain_query(doc))
        prefix = answer_prefix(doc) if self.begins_answer(doc) and not scoring and not images else ""
        try:
            return self._turns(with_chat_query(doc), images, apply) + prefix
        except TEMPLATE_ERRORS as error:
            reason = str(error) if isinstance(error, TemplateError) else described(error)
            raise CulturevalError(
                f"The chat template of {self.model_name} rejects a prompt of {doc.task_name}: {reason}. "
                "Remove system_prompt if it has no system role, or set chat_template: off."
            ) from error

    def literal(self, text: str) -> str:
        """A text of the data with a space inside each image token, so that the processor ignores it."""
        for token in self.image_tokens:
            text = text.replace(token, f"{token[0]} {token[1:]}")
        return text

    def _with_literal_text(self, doc: Doc) -> Doc:
        """A doc without image tokens in its texts, except `<image>` marks in queries with one mark an image."""
        if not self.image_tokens:
            return doc
        found = copy.copy(doc)
        marked = bool(doc.images) and doc.query.count(IMAGE_MARK) == len(doc.images or [])
        pieces = doc.query.split(IMAGE_MARK) if marked else [doc.query]
        found.query = IMAGE_MARK.join(map(self.literal, pieces))
        found.instruction = doc.instruction and self.literal(doc.instruction)
        found.choices = [self.literal(choice) for choice in doc.choices or []]
        found.fewshot_samples = [self._with_literal_text(example) for example in doc.fewshot_samples]
        return found

    def begins_answer(self, doc: Doc) -> bool:
        """Whether the prompt of a doc ends with an answer prefix: not if the model may write reasoning."""
        return (
            self.uses_chat_template
            and bool(answer_prefix(doc))
            and not (self.knows_thinking and wanted_reasoning(doc) is not False)
        )

    def _manager(self, apply: Any | None = None) -> PromptManager:
        tokenizer = SimpleNamespace(apply_chat_template=apply)
        return PromptManager(use_chat_template=bool(apply), tokenizer=tokenizer, system_prompt=self.system_prompt)

    def _turns(self, doc: Doc, images: bool, apply: Any) -> str:
        """The rendered chat, with content as parts if there are images or the template drops plain text."""
        if images and not self.supports_parts:
            raise CulturevalError(
                f"The chat template of {self.model_name} does not support images: set chat_template: off."
            )
        if not images and (self.supports_text or not self.supports_parts):
            return self._manager(apply).prepare_prompt(doc)
        messages = []
        turns_with_images = iter([*doc.fewshot_samples, doc])
        for message in self._manager(apply).prepare_prompt_api(doc):
            images_here = (next(turns_with_images).images or []) if message["role"] == "user" else []
            parts = message_parts(message["content"], [{"type": "image"}] * len(images_here), self.placement)
            messages.append({"role": message["role"], "content": parts})
        return apply(messages, tokenize=False, add_generation_prompt=True)

    def _plain_multimodal(self, doc: Doc) -> str:
        # Gemma's processors expand a begin-of-image token, others an image token.
        token = getattr(self.processor, "boi_token", None) or getattr(self.processor, "image_token", None)
        if not token:
            raise CulturevalError("This processor has no image token: images need a chat template here.")
        marked = copy.copy(self._marked(doc))
        marked.fewshot_samples = [self._marked(example) for example in doc.fewshot_samples]
        return self._manager().prepare_prompt(marked).replace(IMAGE_MARK, token)

    def _marked(self, doc: Doc) -> Doc:
        """A doc with one mark for each image, few-shot images apart."""
        images = len(doc.images or [])
        if doc.query.count(IMAGE_MARK) == images:
            return doc
        marked, marks = copy.copy(doc), IMAGE_MARK * images
        # LightEval removes a repeated instruction from the beginning of a query.
        rest = doc.query.removeprefix(doc.instruction or "")
        before = doc.query[: len(doc.query) - len(rest)]
        marked.query = before + (f"{marks}\n{rest}" if self.placement == "first" else f"{rest}\n{marks}")
        return marked

    def _probed(self, content: Any) -> tuple[str, bool]:
        """The rendered turn of a content (a string or parts), or "", and whether the content is in it."""
        if not self.uses_chat_template:
            return "", False
        turn = [{"role": "user", "content": content}]
        try:
            written = self.writer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)
        except TEMPLATE_ERRORS:  # the first prompt reports the error, with its task
            return "", False
        return written, PROBE in written and "'type'" not in written


def all_images(doc: Doc) -> list[Any]:
    """The images of the few-shot samples and of the doc itself, in the order of the prompt."""
    return [image for source in [*doc.fewshot_samples, doc] for image in source.images or []]


def open_images(doc: Doc, settings: HFModelSettings) -> "list[Image]":
    """A doc's images as RGB, upright, scaled to the limit of the settings; paths are opened."""
    images = [upright(image).convert("RGB") for image in all_images(doc)]
    return [scaled(image, settings.image_max_pixels) for image in images]


def scaled(image: "Image", most: int | None) -> "Image":
    """An image scaled down to at most `most` pixels, with its aspect ratio."""
    pixels = image.width * image.height
    if most is None or pixels <= most:
        return image
    factor = (most / pixels) ** 0.5
    size = (max(1, math.floor(image.width * factor)), max(1, math.floor(image.height * factor)))
    return image.resize(size, pillow().Resampling.BICUBIC)
