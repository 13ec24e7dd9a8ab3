"""The client of OpenAI-compatible servers, for models, judges and audits: the `openai` package, with several servers.

A request goes to the least busy server. A server that fails after the package's retries pauses, and another one gets
the request. Redirects are not followed, since their targets would get prompts and keys.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Self

import openai

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.servers.errors import Unavailable, error_of
from cultureval.runtime.servers.replies import Answer, answer_of, body_of
from cultureval.runtime.servers.settings import ServerSettings

PAUSE_S = 30.0  # of a failed server, where there are several
SHORTEST_KEY = 16  # characters; shorter keys ("none", "x") may be words of answers
RETRIES_BESIDE_OTHERS = 2  # of a request, before another server gets it

Raw = Callable[[openai.AsyncOpenAI], Awaitable[Any]]


@dataclass(eq=False)
class _Server:
    url: str
    client: openai.AsyncOpenAI = field(repr=False)
    in_flight: int = 0
    paused_until: float = 0.0


class OpenAIClient:
    """Sends requests to the servers of one model; an async context, which closes the connections."""

    def __init__(self, settings: ServerSettings) -> None:
        """Prepares a client without sending anything."""
        self.settings = settings
        several = len(settings.base_urls) > 1
        retries = min(settings.max_retries, RETRIES_BESIDE_OTHERS) if several else settings.max_retries
        self._servers = [
            _Server(
                url,
                openai.AsyncOpenAI(
                    base_url=url,
                    api_key=settings.api_key() or "none",
                    timeout=settings.timeout_s,
                    max_retries=retries,
                    http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False),
                ),
            )
            for url in settings.base_urls
        ]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            await server.client.close()

    async def chat(self, **request: Any) -> Answer:
        """The answer to chat messages, as of `replies.answer_of`.

        Raises a ServerError where the run cannot go on (a refused key, an unknown model, no answer after all retries),
        and a RowError where only this request has no answer.
        """
        return answer_of(await self.chat_body(**request))

    async def complete(self, **request: Any) -> Answer:
        """The continuation of a plain prompt; as `chat`."""
        return answer_of(await self.completion_body(**request))

    async def chat_body(self, **request: Any) -> Answer:
        """The whole reply to chat messages as a JSON object; raises as `chat`."""
        return await self._post(lambda client: client.chat.completions.with_raw_response.create(**request), request)

    async def completion_body(self, **request: Any) -> Answer:
        """The whole reply to a plain prompt as a JSON object; raises as `chat`."""
        return await self._post(lambda client: client.completions.with_raw_response.create(**request), request)

    async def models(self) -> dict[str, bytes | CulturevalError]:
        """The list of models of each server, unparsed, by address; the error where there is none."""

        async def ask(server: _Server) -> bytes | CulturevalError:
            try:
                return self._without_key((await server.client.models.with_raw_response.list()).content)
            except openai.OpenAIError as error:
                found = self._error(error, server.url)
                found.__cause__ = error
                return found

        return dict(zip(self.settings.base_urls, await asyncio.gather(*map(ask, self._servers)), strict=True))

    async def _post(self, send: Raw, request: dict[str, Any]) -> Answer:
        return body_of(self._without_key((await self._sent(send)).content), request.get("n") or 1)

    def _without_key(self, content: bytes) -> bytes:
        """A reply with the API key masked: a proxy may quote the request's headers."""
        key = self.settings.api_key() or ""
        return content.replace(key.encode(), b"[key]") if len(key) >= SHORTEST_KEY else content

    async def _sent(self, send: Raw) -> Any:
        """The response of the first server that answers; each is tried twice, with a pause between."""
        last = 2 * len(self._servers) - 1 if len(self._servers) > 1 else 0
        for attempt in range(last + 1):
            server = await self._free_server()
            server.in_flight += 1
            try:
                return await send(server.client)
            except openai.OpenAIError as error:
                found = self._error(error)
                if not isinstance(found, Unavailable) or attempt == last:
                    raise found from error
                server.paused_until = time.monotonic() + PAUSE_S
            finally:
                server.in_flight -= 1
        raise AssertionError("unreachable")

    async def _free_server(self) -> _Server:
        """The least busy server that does not pause; if all pause, waits for the first to be ready."""
        now = time.monotonic()
        if free := [server for server in self._servers if server.paused_until <= now]:
            return min(free, key=lambda server: server.in_flight)
        first = min(self._servers, key=lambda server: server.paused_until)
        await asyncio.sleep(first.paused_until - now)
        return first

    def _error(self, error: Exception, *urls: str) -> CulturevalError:
        return error_of(error, urls or self.settings.base_urls, self.settings.api_key_env, self.settings.api_key())
