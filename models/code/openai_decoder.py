"""EvalPlus's decoder for OpenAI-compatible servers, with a limit to its retries.

EvalPlus 0.3.1 asks again for ever, whatever the server's answer, so that a misspelt model never ends; and a reply
without text stops its run. The request is EvalPlus's own; it is sent by the client that models and judges use.
"""

import asyncio

from evalplus.provider.base import DecoderBase

from cultureval.models.code.settings import DecoderSettings, code_of_answer
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
        """Replies to one problem, reasoning taken off, `num_samples` or `batch_size` of them, whichever is less.

        Raises:
            ServerError: The server refused the request, or did not answer it within the retries and the time allowed.
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
            return [code_of_answer(reply) for reply in replies]
        return [split_reasoning(reply)[0].strip() for reply in replies]

    def is_direct_completion(self) -> bool:
        """Never: servers are asked by chat."""
        return False
