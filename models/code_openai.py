"""EvalPlus's decoder for OpenAI-compatible servers, with an end to its patience.

EvalPlus 0.3.1 asks again for ever, whatever the server's answer, so that a misspelt model never ends; and a reply
without text stops its run. The request is EvalPlus's own.
"""

import os

import openai
import tenacity
from evalplus.gen.util.openai_request import make_request
from evalplus.provider.openai import OpenAIChatDecoder

from cultureval.models.code_decoders import DecoderSettings, thought_out_code
from cultureval.runtime.code_replies import without_thoughts
from cultureval.runtime.errors import CulturevalError

TRIES = 8
LONGEST_WAIT_S = 60
PASSING_ERRORS = (openai.RateLimitError, openai.APIConnectionError, openai.InternalServerError)


class OpenAICodeDecoder(OpenAIChatDecoder):
    """Code from an OpenAI-compatible server."""

    def __init__(self, settings: DecoderSettings) -> None:
        super().__init__(base_url=settings.base_url, **settings.common())
        self.thinking = settings.thinking
        key = os.environ.get(settings.api_key_env, "") if settings.api_key_env else ""
        if settings.api_key_env and not key:
            raise CulturevalError(f"The environment variable {settings.api_key_env} (api_key_env) is not set.")
        timeout_s = 100 if not settings.thinking else 3600  # 100 s is EvalPlus's limit of a request
        self.client = openai.OpenAI(api_key=key or "none", base_url=settings.base_url, timeout=timeout_s, max_retries=0)

    def codegen(self, prompt: str, do_sample: bool = True, num_samples: int = 200) -> list[str]:
        """Replies to one problem, thoughts taken off, `num_samples` or `batch_size` of them, whichever is less.

        Raises:
            CulturevalError: The server refused the request, or failed eight times.
        """
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(PASSING_ERRORS),
            wait=tenacity.wait_exponential_jitter(initial=0.5, max=LONGEST_WAIT_S),
            stop=tenacity.stop_after_attempt(TRIES),
            reraise=True,
        )
        try:
            reply = retrying(
                make_request,
                self.client,
                message=f"{self.instruction_prefix}\n```python\n{prompt.strip()}\n```",
                model=self.name,
                max_tokens=self.max_new_tokens,
                temperature=self.temperature,
                n=min(self.batch_size, num_samples),
            )
        except openai.OpenAIError as error:
            raise CulturevalError(f"{self.client.base_url}: {type(error).__name__}: {error}") from error
        if not reply.choices:
            raise CulturevalError(f"{self.client.base_url} answered without a choice.")
        extract = thought_out_code if self.thinking else without_thoughts
        return [extract(choice.message.content or "") for choice in reply.choices]
