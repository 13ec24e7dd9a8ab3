"""EvalPlus's decoders with Arabic prefixes; `runtime.patches.evalplus` fixes two of their bugs."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from cultureval.models.code.settings import DecoderSettings
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.evalplus import restored_stop_strings

if TYPE_CHECKING:
    from evalplus.provider.base import DecoderBase


def make_decoder(settings: DecoderSettings) -> "DecoderBase":
    """The decoder of a backend, with its model loaded.

    Raises:
        CulturevalError: The backend is not installed, or the model cannot be loaded; the message says what to do.
    """
    try:
        with restored_stop_strings():
            decoder = BACKENDS[settings.backend](settings)
            decoder.eos = list(decoder.eos)
    except (OSError, ValueError, AttributeError, ImportError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise CulturevalError(
            f"The model {settings.model!r} cannot be loaded by {settings.backend}: {reason}"
        ) from error
    if settings.thinking and decoder.is_direct_completion():
        raise CulturevalError(
            f"{settings.model!r} has no chat template (or --base-prompt is set): reasoning is not possible."
        )
    return decoder


def prompt_mode(decoder: "DecoderBase", settings: DecoderSettings) -> str:
    """A short description of the prompt format, for the signature of the scores."""
    if settings.thinking:
        return "chat, thinking, no response prefix"
    if settings.backend == "openai":
        return "chat, no response prefix"
    return "completion" if decoder.is_direct_completion() else "chat, response prefix"


def _hf(settings: DecoderSettings) -> "DecoderBase":
    from cultureval.models.code.hf_decoder import HFCodeDecoder

    return HFCodeDecoder(settings)


def _vllm(settings: DecoderSettings) -> "DecoderBase":
    from importlib.util import find_spec

    if find_spec("vllm") is None:
        raise CulturevalError(
            "vllm is not installed in this environment. Install it here, or start it as a server in its own "
            "environment and use it with --backend openai --base-url http://localhost:8000/v1."
        )
    from cultureval.models.code.vllm_decoder import VllmCodeDecoder

    return VllmCodeDecoder(settings)


def _openai(settings: DecoderSettings) -> "DecoderBase":
    from cultureval.models.code.openai_decoder import OpenAICodeDecoder

    return OpenAICodeDecoder(settings)


BACKENDS: dict[str, Callable[[DecoderSettings], "DecoderBase"]] = {"hf": _hf, "vllm": _vllm, "openai": _openai}
