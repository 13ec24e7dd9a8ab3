"""Docs and LightEval's generation parameters as requests to an OpenAI-compatible server."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from lighteval.tasks.requests import Doc

from cultureval.models.generation.rendering import all_images
from cultureval.models.server.settings import ServerModelConfig
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.generation_hints import ImagePart
from cultureval.runtime.servers.data_urls import data_url, image_hash
from cultureval.runtime.servers.errors import RowError

if TYPE_CHECKING:
    from PIL.Image import Image

_STANDARD = {"temperature", "top_p", "frequency_penalty", "presence_penalty", "seed"}
# Not in OpenAI's API; vLLM and SGLang read them from the request body.
_IN_THE_BODY = {"top_k": "top_k", "min_p": "min_p", "repetition_penalty": "repetition_penalty"}
_IN_THE_BODY |= {"min_new_tokens": "min_tokens", "length_penalty": "length_penalty"}


def as_hash(image: "Image") -> dict[str, Any]:
    """The message part of an image in journal keys and in the details."""
    return {"type": "image", "sha256": image_hash(image)}


def image_form(doc: Doc, config: ServerModelConfig) -> list[Any] | None:
    """The form of a doc's images in requests, for its answer's key; None without images."""
    if not (images := all_images(doc)):
        return None
    limit = config.bytes_for_images(len(images))
    return [config.image_format, config.image_max_side, *([limit] if limit else [])]


def as_data_url(doc: Doc, config: ServerModelConfig) -> ImagePart:
    """A function from an image to its part of a message, within the limits of the settings.

    Raises:
        RowError: The doc has too many images.
    """
    count, most = len(all_images(doc)), config.most_images
    if most is not None and count > most:
        raise RowError("server", f"it has {count} images, and {config.model} takes {most}")
    form = (config.image_format, config.image_max_side, config.bytes_for_images(count))
    return lambda image: {"type": "image_url", "image_url": {"url": data_url(image, *form)}}


def in_parts(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages with every content as a list of parts.

    LightEval cannot save details with both strings and lists as contents of messages.
    """
    return [
        {**message, "content": [{"type": "text", "text": message["content"]}]}
        if isinstance(message["content"], str)
        else message
        for message in messages
    ]


def generation_arguments(config: ServerModelConfig) -> dict[str, Any]:
    """LightEval's generation parameters as arguments of the openai client, without the token limit.

    Raises:
        CulturevalError: A parameter is not supported by these servers.
    """
    values = config.generation_parameters.model_dump(exclude_none=True)
    values.pop("max_new_tokens", None)
    body = {_IN_THE_BODY[name]: values.pop(name) for name in _IN_THE_BODY if name in values} | config.extra_body
    arguments = {name: values.pop(name) for name in _STANDARD if name in values}
    if "stop_tokens" in values:
        arguments["stop"] = values.pop("stop_tokens")
    if values:
        raise CulturevalError(
            f"OpenAI-compatible servers do not support the generation parameters {', '.join(sorted(values))}."
        )
    user_set = config.generation_parameters.model_fields_set
    return without(arguments, config.left_out, user_set) | ({"extra_body": body} if body else {})


def without(arguments: dict[str, Any], left_out: Collection[str], user_set: Collection[str]) -> dict[str, Any]:
    """Arguments of a request without parameters that the model refuses or ignores.

    Args:
        arguments: Of the openai client.
        left_out: Names of parameters. Our code cuts answers at stop strings in any case.
        user_set: Parameters that the user set, which must not be left out silently.

    Raises:
        CulturevalError: The user set a parameter that the model does not take.
    """
    if refused := sorted(name for name in left_out if name in user_set and name in arguments):
        raise CulturevalError(
            f"The model takes no {', '.join(refused)}, by its provider's documentation: leave it out of "
            "generation_parameters, or set `leave_out` in the model's YAML file to the refused parameters."
        )
    return {name: value for name, value in arguments.items() if name not in left_out}
