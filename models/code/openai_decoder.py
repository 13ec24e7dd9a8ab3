"""EvalPlus's decoder for OpenAI-compatible servers, with a limit of retries.

EvalPlus 0.3.1 retries for ever, whatever the error, so that a run with a misspelt model never ends; and a reply
without text stops its run. The request is EvalPlus's; it is sent by the client that models and judges use.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from evalplus.provider.base import DecoderBase

from cultureval.models.code.settings import DecoderSettings, code_from_reply
from cultureval.models.server.long_prompts import ask_to_fit
from cultureval.runtime.coroutines import run_coroutine
from cultureval.runtime.patches.evalplus import chat_request
from cultureval.runtime.reasoning import split_reasoning
from cultureval.runtime.servers.answers import Answer
from cultureval.runtime.servers.openai_client import OpenAIClient
from cultureval.runtime.servers.providers import provider_at

AHEAD = 4  # requests that wait for a slot, as a multiple of those in flight


class OpenAICodeDecoder(DecoderBase):
    """Code from an OpenAI-compatible server, asked for later problems while it answers for earlier ones."""

    def __init__(self, settings: DecoderSettings) -> None:
        super().__init__(**settings.common())
        self.thinking = settings.thinking
        self.servers = settings.servers()
        self._later: deque[tuple[str, int]] = deque()
        self._asked: dict[tuple[str, int], Future[Answer]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: OpenAIClient | None = None

    @contextmanager
    def expecting(self, calls: Iterable[tuple[str, int]]) -> Iterator[None]:
        """A context in which the server is asked ahead.

        Args:
            calls: The first and last argument of each call of `codegen` that will be made, in their order.
        """
        self._later = deque(dict.fromkeys(calls))
        self._loop = asyncio.new_event_loop()
        thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        thread.start()
        try:
            self._client = OpenAIClient(self.servers)
            yield
        finally:
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(timeout=30)
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(timeout=30)
            self._asked, self._loop, self._client = {}, None, None

    async def _end(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if self._client is not None:
            await self._client.__aexit__()

    def codegen(self, prompt: str, do_sample: bool = True, num_samples: int = 200) -> list[str]:
        """Replies to one problem without reasoning, `num_samples` or `batch_size` of them, whichever is less.

        Raises:
            ServerError: The server rejected the request, or did not answer within the allowed retries and time.
        """
        self._ask_ahead()
        asked = self._asked.pop((prompt, num_samples), None)
        answer = asked.result() if asked is not None else run_coroutine(self._ask_alone(prompt, num_samples))
        replies = [completion["text"] for completion in answer["completions"]]
        if self.thinking:
            return [code_from_reply(reply) for reply in replies]
        return [split_reasoning(reply)[0].strip() for reply in replies]

    def _ask_ahead(self) -> None:
        if self._loop is None or self._client is None:
            return
        while self._later and len(self._asked) <= AHEAD * self.servers.concurrency:
            call = self._later.popleft()
            self._asked[call] = asyncio.run_coroutine_threadsafe(self._ask(self._client, *call), self._loop)

    async def _ask_alone(self, prompt: str, num_samples: int) -> Answer:
        async with OpenAIClient(self.servers) as client:
            return await self._ask(client, prompt, num_samples)

    async def _ask(self, client: OpenAIClient, prompt: str, num_samples: int) -> Answer:
        request = self._request(prompt, num_samples)
        if provider_at(self.servers.base_urls):
            return await client.chat(**request)
        return await ask_to_fit(client, {"messages": request.pop("messages")}, request, "max_tokens")

    def _request(self, prompt: str, num_samples: int) -> dict[str, Any]:
        return chat_request(
            message=f"{self.instruction_prefix}\n```python\n{prompt.strip()}\n```",
            model=self.name,
            max_tokens=self.max_new_tokens,
            temperature=self.temperature,
            n=min(self.batch_size, num_samples),
        )

    def is_direct_completion(self) -> bool:
        """Always False: requests are chats."""
        return False
