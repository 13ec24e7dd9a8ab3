"""Docs and LightEval's generation parameters as requests to an OpenAI-compatible server."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lighteval.models.abstract_model import ModelConfig

from cultureval.runtime.chat_messages import ImagePart
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.servers.data_urls import ImageFormat, data_url, image_hash

if TYPE_CHECKING:
    from PIL.Image import Image

_STANDARD = {"temperature", "top_p", "frequency_penalty", "presence_penalty", "seed"}
# Not in OpenAI's API; vLLM, SGLang and others read them from the request body.
_IN_THE_BODY = {"top_k": "top_k", "min_p": "min_p", "repetition_penalty": "repetition_penalty"}
_IN_THE_BODY |= {"min_new_tokens": "min_tokens", "length_penalty": "length_penalty"}


def as_hash(image: "Image") -> dict[str, Any]:
    """The message part of an image in journal keys and in the details."""
    return {"type": "image", "sha256": image_hash(image)}


def as_data_url(image_format: ImageFormat, max_side: int | None) -> ImagePart:
    """A function that makes the message part of an image in a request."""
    return lambda image: {"type": "image_url", "image_url": {"url": data_url(image, image_format, max_side)}}


def in_parts(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages with every content as a list of parts.

    LightEval cannot save details in which one message's content is a string and another's is a list.
    """
    return [
        {**message, "content": [{"type": "text", "text": message["content"]}]}
        if isinstance(message["content"], str)
        else message
        for message in messages
    ]


def generation_arguments(config: ModelConfig) -> dict[str, Any]:
    """LightEval's generation parameters as arguments of the openai client, without the token limit.

    Raises:
        CulturevalError: A parameter is set that these servers do not support.
    """
    given = config.generation_parameters.model_dump(exclude_none=True)
    given.pop("max_new_tokens", None)
    body = {_IN_THE_BODY[name]: given.pop(name) for name in _IN_THE_BODY if name in given} | config.extra_body
    arguments = {name: given.pop(name) for name in _STANDARD if name in given}
    if "stop_tokens" in given:
        arguments["stop"] = given.pop("stop_tokens")
    if "response_format" in given:
        arguments["response_format"] = {"type": given.pop("response_format")}
    if given:
        raise CulturevalError(
            f"OpenAI-compatible servers do not support the generation parameters {', '.join(sorted(given))}."
        )
    return arguments | ({"extra_body": body} if body else {})
