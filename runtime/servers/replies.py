"""What is taken from a server: replies of the asked host only, and of a limited size."""

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx
import openai

LARGEST_REPLY = 64 * 2**20  # bytes, unpacked; log-probabilities of a prompt of 128,000 tokens are 16 MiB
MOST_REDIRECTS = 3  # of one request
SHORTEST_KEY = 16  # characters; shorter ones ("none", "x") are no secrets, and are words of answers
OF_THE_PACKING = ("content-encoding", "content-length", "transfer-encoding")


class RefusedReply(Exception):
    """A reply that is not read; the same request would get the same, and, with `of_all`, every request."""

    def __init__(self, message: str, of_all: bool) -> None:
        self.of_all = of_all
        super().__init__(message)


class CarefulClient(openai.DefaultAsyncHttpxClient):
    """Reads replies whole, up to limits of size and time, and follows few redirects to the same host.

    None leads out of encryption. The time of a whole reply is what httpx allows for each read of it alone.

    Whoever is there would get prompts and keys.

    Where a reply repeats the key, as proxies do that show a request's headers, `[key]` is read.
    """

    def __init__(self, on_answer: Callable[[Mapping[str, str]], None] | None = None, key: str | None = None) -> None:
        """A client with the defaults of the openai package.

        Args:
            on_answer: Called with the headers of each reply that is no error.
            key: What no reply may bring into a journal or results file.
        """
        super().__init__(event_hooks={"response": [_check_redirect]})
        self._on_answer = on_answer
        self._secret = _in_json(key) if len(key or "") >= SHORTEST_KEY else None

    async def send(self, request: Any, **arguments: Any) -> Any:
        """Sends a request; the reply is read, also where it was asked for as a stream.

        Raises:
            openai.APIConnectionError: From a `RefusedReply`: the reply is too large, or leads elsewhere.
            httpx.ReadTimeout: It takes too long.
        """
        try:
            async with asyncio.timeout(request.extensions["timeout"]["read"]):
                response = await super().send(request, **{**arguments, "stream": True})
                body = await _read(response)
            body = self._secret.sub(b"[key]", body) if self._secret else body
        except TimeoutError as error:
            raise httpx.ReadTimeout("the whole reply takes too long", request=request) from error
        except RefusedReply as error:
            raise openai.APIConnectionError(message="Refused.", request=request) from error
        if self._on_answer and response.status_code == 200:
            self._on_answer(response.headers)
        headers = [pair for pair in response.headers.multi_items() if pair[0].lower() not in OF_THE_PACKING]
        whole = {"headers": headers, "content": body, "request": response.request}
        return type(response)(response.status_code, **whole, extensions=response.extensions)


def _in_json(key: str) -> re.Pattern[bytes]:
    r"""A key as it may stand in JSON, where a proxy writes `/` as `\/`, or any character as `\u0053`.

    Also in JSON within a string of JSON, with more backslashes.
    """
    each = (rf"(?:{re.escape(one)}|\\{{1,4}}(?:{re.escape(one)}|u(?i:{ord(one):04x})))" for one in key)
    return re.compile("".join(each).encode())


async def _read(response: Any) -> bytes:
    parts, size = [], 0
    try:
        async for part in response.aiter_bytes():
            parts.append(part)
            size += len(part)
            if size > LARGEST_REPLY:
                raise RefusedReply(f"its reply is larger than {LARGEST_REPLY // 2**20} MiB", of_all=False)
    finally:
        await response.aclose()
    return b"".join(parts)


def refusal_of(error: BaseException | None) -> RefusedReply | None:
    """The refused reply that an error came from, or None."""
    while error is not None and not isinstance(error, RefusedReply):
        error = error.__cause__
    return error


async def _check_redirect(response: Any) -> None:
    if not response.has_redirect_location:
        return
    address, extensions = str(response.request.url), response.request.extensions
    extensions["redirects"] = extensions.get("redirects", 0) + 1  # they are handed on to the next request
    if extensions["redirects"] > MOST_REDIRECTS:
        raise RefusedReply(f"it redirects more than {MOST_REDIRECTS} times", of_all=False)
    asked, target = urlsplit(address), urlsplit(urljoin(address, response.headers["location"]))
    if target.hostname != asked.hostname:
        where = f"to another host, {target.hostname}"
    elif (asked.scheme, target.scheme) == ("https", "http"):
        where = "to an address without encryption"
    else:
        return
    raise RefusedReply(f"it redirects {where}: if you trust that one, make it the base_url", of_all=True)
