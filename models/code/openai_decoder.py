"""EvalPlus's decoder for OpenAI-compatible servers, with a limit of retries.

EvalPlus 0.3.1 retries for ever, whatever the error, so that a run with a misspelt model never ends; and a reply
without text stops its run. The request is EvalPlus's; it is sent by the client that models and judges use.
"""

import asyncio

from evalplus.provider.base import DecoderBase

from cultureval.models.code.settings import DecoderSettings, code_from_reply
from cultureval.runtime.evalplus_patches import chat_request
from cultureval.runtime.reasoning import split_reasoning
from cultureval.runtime.servers.answers import Answer
from cultureval.runtime.servers.openai_client import OpenAIClient


class OpenAICodeDecoder(DecoderBase):
    """Code from an OpenAI-compatible server."""

    def __init__(self, settings: DecoderSettings) -> None:
        super().__init__(**settings.common())
        self.thinking = settings.thinking
        self.servers = settings.servers()

    def codegen(self, prompt: str, do_sample: bool = True, num_samples: int = 200) -> list[str]:
        """Replies to one problem without reasoning, `num_samples` or `batch_size` of them, whichever is less.

        Raises:
            ServerError: The server rejected the request, or did not answer within the allowed retries and time.
        """
        request = chat_request(
            message=f"{self.instruction_prefix}\n```python\n{prompt.strip()}\n```",
            model=self.name,
            max_tokens=self.max_new_tokens,
            temperature=self.temperature,
            n=min(self.batch_size, num_samples),
        )

        async def ask() -> Answer:
            async with OpenAIClient(self.servers) as client:
                return await client.chat(**request)

        replies = [completion["text"] for completion in asyncio.run(ask())["completions"]]
        if self.thinking:
            return [code_from_reply(reply) for reply in replies]
        return [split_reasoning(reply)[0].strip() for reply in replies]

    def is_direct_completion(self) -> bool:
        """Always False: requests are chats."""
        return False
