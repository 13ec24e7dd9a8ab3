"""The client of OpenAI-compatible servers, shared by models and judges.

It adds to the `openai` package's client: balancing over several servers, skipping a failed one until it answers again,
retries on another server, and Retry-After honoured for all requests to a server. No message of ours contains a
key.
"""

import asyncio
import json
import logging
import math
import random
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar
from urllib.parse import urljoin

import openai
import tenacity

from cultureval.runtime.coroutines import run_coroutine
from cultureval.runtime.errors import counted, shown_names
from cultureval.runtime.progress import note_wait
from cultureval.runtime.servers.answers import Answer, answer_of, checked_answer, name_of, usage_of
from cultureval.runtime.servers.costs import note_aside
from cultureval.runtime.servers.errors import (
    ASKING_TO_WAIT,
    UNREADABLE,
    ContentFilter,
    IncompleteAnswer,
    LacksChoices,
    ModelChanged,
    NobodySaysWho,
    PromptBlocked,
    ServerError,
    error_text,
    is_content_filter,
    is_in_vain,
    is_loss,
    refuses_all,
    refuses_content,
    retry_after,
    worth_retrying,
)
from cultureval.runtime.servers.rate_limits import pause_after_answer
from cultureval.runtime.servers.replies import CarefulClient
from cultureval.runtime.servers.settings import ServerSettings
from cultureval.runtime.settings import goes_on

logger = logging.getLogger(__name__)

T = TypeVar("T")

_LONGEST_WAIT_S = 60.0
_LONGER_THAN_ASKED = 1.1  # at most, so that processes that were refused together do not come back together
_HEALTH_TIMEOUT_S = 10.0
_NO_LIST = (404, 405, 501)  # answers of servers without one, which can be asked all the same
_NO_LIST_NOW = (429, 500)  # of busy ones, and of `transformers serve` with an empty cache: they can be asked, too
_MORE_TRIES_OF_A_FAILING_LIST = 2
_NOT_READY = (502, 503, 504)  # answers of servers that load a model, and of proxies that wait for one
_TRIES_WITHOUT_CHOICES = 3
_TIMES_AT_THE_END = 2  # that a server is asked who it is: two in turns behind one address are then found
_MOST_OF_A_TEMPLATE = 4096  # tokens that a chat template adds; a text's are no more than its bytes
_QUIET_S = 60.0  # after a line about a server's failures, before another
_LONGEST_CAUSE = 400  # characters of a server's error message; some send HTML pages


class Watch(Protocol):
    """What a client tells of its servers, and asks before it goes on (`identity_watch.IdentityWatch`)."""

    def is_due(self, url: str) -> bool:
        """Whether a server is to be asked again who it is."""

    async def make_sure(self, url: str, in_flight: Callable[[], int], times: int, patient: bool) -> None:
        """Asks a server whether it is who it was; raises `ModelChanged` where it is not and the run does not go on."""

    async def took(self, url: str, response: Any) -> None:
        """Notes whose reply it is."""

    @property
    def times_changed(self) -> int:
        """How often a server was found to have changed."""


@dataclass
class _Outages:
    """What this process has said of a server's failures: a line as it fails, and one as it answers again."""

    failed: int = 0  # attempts since it was last said that it answers
    told: bool = False  # whether the last line says that it fails
    quiet_until: float = -math.inf

    def note_failure(self, url: str, cause: str, then: str) -> None:
        """Says that a server does not answer, and what follows, unless it was said of this outage, or just before."""
        self.failed += 1
        if not self.told and time.monotonic() >= self.quiet_until:
            tries = f"; {counted(self.failed, 'failed attempt')}" if self.failed > 1 else ""
            logger.warning("%s does not answer (%s%s); %s", url, cause, tries, then)
            self.told, self.quiet_until = True, time.monotonic() + _QUIET_S

    def note_answer(self, url: str) -> None:
        """Says that a server answers again, where it was said that it does not."""
        if self.told:
            logger.warning("%s answers again, after %s", url, counted(self.failed, "failed attempt"))
            self.failed, self.told = 0, False


_OUTAGES: defaultdict[str, _Outages] = defaultdict(_Outages)  # by address: of all clients of this process
LISTED: set[str] = set()  # addresses whose lists of models named some, to any client of this process


@dataclass(eq=False)
class _Server:
    """One server and what is known of its health."""

    url: str
    client: openai.AsyncOpenAI = field(init=False)
    in_flight: int = 0
    asked: int = 0
    answered: bool = False
    times_skipped: int = 0  # since its last answer
    paused_until: float = 0.0
    last_choice_until: float = 0.0  # since it declined a request, which may mean that request alone
    watcher: asyncio.Task[None] | None = field(default=None, repr=False)
    doubted: bool = False  # whether a connection was lost since it said who it is
    checking: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    def note_limits(self, headers: Mapping[str, str]) -> None:
        """Leaves the server alone where its answer says that a limit is used up."""
        if pause := pause_after_answer(headers):
            self.pause(pause)

    def pause(self, seconds: float) -> None:
        """Leaves the server alone for so long."""
        self.paused_until = max(self.paused_until, time.monotonic() + seconds)
        note_wait(self.url, self.paused_until)

    @property
    def outages(self) -> _Outages:
        return _OUTAGES[self.url]

    @property
    def left_out(self) -> bool:
        return self.watcher is not None


@dataclass
class _Tries:
    """The tries of one request.

    Attributes:
        declined: The servers that ask it to wait for longer than it has left, which nobody does: they are not asked
            again, and when all have, it ends.
        failures: Tries that failed, without those that a server asked to repeat after a while.
        pause: Seconds before the next try.
    """

    settings: ServerSettings
    declined: set[_Server] = field(default_factory=set)
    started: float = field(default_factory=time.monotonic)
    failures: int = 0
    lacking: int = 0
    late: int = 0
    pause: float = 0.0

    @property
    def seconds_left(self) -> float:
        return self.started + self.settings.give_up_s - time.monotonic()

    @property
    def all_declined(self) -> bool:
        return len(self.declined) == len(self.settings.base_urls)

    def note(self, state: tenacity.RetryCallState) -> None:
        """Counts a try that has failed, and sets the pause after it: none where the server itself is waited for."""
        error, left = state.outcome.exception(), self.seconds_left
        self.lacking += isinstance(error, LacksChoices)  # each of these may be paid
        if retry_after(error):
            self.pause = 0.0
        else:
            self.failures += 1
            longest = self.settings.backoff_s * 2.0 ** min(self.failures - 1, 30)
            self.pause = random.uniform(0.0, min(longest, _LONGEST_WAIT_S))
        if self.pause > left:
            # One more try when the time is up: this process may have been stopped, or asleep, for most of it.
            self.late += 1
            self.pause = left if left > 0 else min(self.pause, self.settings.backoff_s)

    def stop(self, _: tenacity.RetryCallState) -> bool:
        """Whether the try that has just failed was the last."""
        spent = self.failures > self.settings.max_retries or self.lacking >= _TRIES_WITHOUT_CHOICES or self.late > 1
        return spent or self.all_declined


class OpenAIClient:
    """Sends requests to one or more servers of the same model; use it with `async with`."""

    def __init__(
        self,
        settings: ServerSettings,
        watch: Watch | None = None,
        wasted: Callable[[Mapping[str, Any]], Awaitable[None]] | None = None,
        aside: str = "",
    ) -> None:
        """Prepares the clients of the servers.

        Args:
            settings: The servers.
            watch: What is told of them.
            wasted: Called with the `usage` of a reply that is of no use, before another try; raises to end these.
            aside: The model, where no question is one of a run's: what all replies take is noted (`note_aside`).
        """
        self.settings = settings
        self._watch, self._wasted, self._aside = watch, wasted, aside
        self._key = settings.api_key()
        self._slots = asyncio.Semaphore(settings.concurrency)
        self.answered = 0  # requests
        self._servers = [self._connect(_Server(url)) for url in settings.base_urls]

    def _connect(self, server: _Server) -> _Server:
        # Retries are ours, because they may go to another server. The client insists on some key.
        server.client = openai.AsyncOpenAI(
            base_url=server.url,
            api_key=self._key or "none",
            timeout=self.settings.timeout_s,
            max_retries=0,
            http_client=CarefulClient(server.note_limits, self._key),
        )
        return server

    async def __aenter__(self) -> "OpenAIClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            if server.watcher is not None:
                server.watcher.cancel()
            await server.client.close()

    async def health_check(self, model: str = "") -> dict[str, ServerError]:
        """Asks each server for its list of models: URL -> error, for servers that cannot be used.

        One that is not ready is waited for as with a request. A server that answers but has no such list, or is busy
        (429), passes; with `model`, it must serve that id.
        """
        found = {}
        for server in self._servers:
            try:
                served = [str(entry["id"]) for entry in await self._entries(server)]
                if model and served and model not in served and await _is_unknown(server.client, model):
                    why = f"it does not serve {model!r}, but {shown_names([name_of(one) or one for one in served])}"
                    found[server.url] = ServerError(why, status=404)
            except (openai.OpenAIError, IncompleteAnswer) as error:
                if getattr(error, "status_code", None) not in _NO_LIST + _NO_LIST_NOW:
                    found[server.url] = self._as_server_error(error)
        return found

    async def model_entry(self, model: str, known: bool = False) -> tuple[dict[str, Any], ServerError | None]:
        """What the list of models of the first server that answers says of one ({}: nothing), and why the list failed.

        One that is `known` to have a list is asked again after a lost connection, too.

        Raises:
            ServerError: No server answers.
        """
        lost = None
        for server in self._servers:
            try:
                entries = await self._entries(server, known)
            except (openai.OpenAIError, IncompleteAnswer) as error:
                status = getattr(error, "status_code", None)
                if status in _NO_LIST_NOW or (known and (status in _NO_LIST or isinstance(error, IncompleteAnswer))):
                    return {}, self._as_server_error(error)
                if status in _NO_LIST:
                    return {}, None
                lost = lost or error
            else:
                return next((entry for entry in entries if entry["id"] == model), {}), None
        assert lost is not None
        raise self._as_server_error(lost)

    async def _entries(self, server: _Server, known: bool = False) -> list[dict[str, Any]]:
        tries = _Tries(self.settings)

        def again(error: BaseException) -> bool:
            if server in tries.declined:
                return False
            status = getattr(error, "status_code", None)
            if status == 500 or isinstance(error, IncompleteAnswer):
                return (known or status == 500) and tries.failures < _MORE_TRIES_OF_A_FAILING_LIST
            return worth_retrying(error) and (status in (*_NOT_READY, 429) or (known and is_loss(error)))

        async def ask() -> list[dict[str, Any]]:
            await asyncio.sleep(max(0.0, server.paused_until - time.monotonic()))
            try:
                return await _model_entries(server.client, known)
            except openai.APIStatusError as error:
                if error.status_code in (*_NOT_READY, 429):
                    self._note_failure(server, error, tries)
                raise

        asked = await self._retrying(tries, again)(ask)
        LISTED.update([server.url] if asked else [])
        server.outages.note_answer(server.url)
        return asked

    async def token_count(self, **prompt: Any) -> tuple[int, int] | None:
        """How many tokens a prompt has, and how many it and its answer may have together; None where no server says it.

        Args:
            **prompt: `model`, and `messages` or `prompt`, as vLLM's `/tokenize` takes them, which is beside `/v1`.
        """
        for server in self._servers:
            address = urljoin(f"{server.url.rstrip('/')}/", "../tokenize")
            with suppress(openai.OpenAIError, *UNREADABLE):
                found = await server.client.post(address, cast_to=object, body=prompt)
                counts = [found.get(name) for name in ("count", "max_model_len")] if isinstance(found, dict) else []
                most = len(json.dumps(prompt, ensure_ascii=False).encode(errors="replace")) + _MOST_OF_A_TEMPLATE
                if counts and all(type(count) is int and count > 1 for count in counts) and counts[0] <= most:
                    return counts[0], counts[1]
        return None

    async def chat(self, **request: Any) -> Answer:
        """Ask for chat completions.

        Args:
            **request: Arguments of the openai client's `chat.completions.create`.

        Returns:
            `{"completions": [{"text", "reasoning", "finish_reason", "refusal"}, ...], "usage": {...} | None, "model"}`,
            `n` completions in order; the model as the server names it. A refusal is also the text; an answer stopped by
            a content filter has the finish reason "content_filter" and the text before it.

        Raises:
            ServerError: The request is invalid, or was not answered in time.
        """
        return await self._completions(lambda client: client.chat.completions.create(**request), request)

    async def complete(self, **request: Any) -> Answer:
        """Ask for plain completions; arguments of `completions.create`, returns and raises as `chat`."""
        return await self._completions(lambda client: client.completions.create(**request), request)

    async def _completions(self, call: Callable[[openai.AsyncOpenAI], Awaitable[Any]], request: Answer) -> Answer:
        wanted = request.get("n") or 1
        try:
            response = await self.send(call, wanted)
        except ContentFilter as error:
            stopped = {"text": "", "reasoning": None, "finish_reason": "content_filter", "refusal": error.cause}
            return {"completions": [stopped] * wanted, "usage": error.usage, "model": None}
        return answer_of(response)

    async def send(self, call: Callable[[openai.AsyncOpenAI], Awaitable[T]], choices: int = 1) -> T:
        """Send a request, with retries until it is answered.

        Args:
            call: Sends the request with the client of the chosen server.
            choices: How many choices the answer must have.

        Raises:
            ServerError: The request is invalid, or was not answered in time.
        """
        async with self._slots:
            tries = _Tries(self.settings)
            try:
                return await self._retrying(tries, worth_retrying)(self._try, call, choices, tries)
            except (openai.OpenAIError, IncompleteAnswer, NobodySaysWho, PromptBlocked, TimeoutError) as error:
                raise self._as_server_error(error, tries.all_declined) from None

    def _retrying(self, tries: _Tries, again: Callable[[BaseException], bool]) -> tenacity.AsyncRetrying:
        return tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(again),
            after=tries.note,
            wait=lambda state: tries.pause,
            stop=tries.stop,
            before_sleep=lambda state: logger.debug("retrying: %s", type(state.outcome.exception()).__name__),
            reraise=True,
        )

    def _as_server_error(self, error: Exception, declined: bool = False) -> ServerError:
        kind = ContentFilter if is_content_filter(error) else ServerError
        wait, longest = retry_after(error) or 0.0, self.settings.give_up_s
        told = f"its Retry-After is {wait:.0f} s, longer than give_up_s allows: wait so long, or raise give_up_s"
        if wait <= longest:
            told = f"it asked to wait until give_up_s, {longest:g} s, were over: repeat the command, or raise give_up_s"
        more = f"; {told}" if declined else ""
        return kind(
            self._explain(error, more),
            self._cause(error) + more,
            refuses_all(error),
            refuses_content(error),
            unreachable=is_loss(error) and not isinstance(error, IncompleteAnswer),
            incomplete=isinstance(error, IncompleteAnswer),
            in_vain=is_in_vain(error),
            status=getattr(error, "status_code", None),
            usage=getattr(error, "usage", None) if isinstance(error, PromptBlocked) else None,
        )

    async def waste(self, usage: Mapping[str, Any] | None) -> None:
        """Counts what a reply of no use to the question that is being asked says that it used."""
        if self._aside:
            note_aside(self._aside, self.settings.base_urls[0], usage)
        if self._wasted is not None and usage:
            await self._wasted(usage)

    async def _try(self, call: Callable[[openai.AsyncOpenAI], Awaitable[T]], choices: int, tries: _Tries) -> T:
        try:
            response = await self._try_once(call, choices, tries)
        except IncompleteAnswer as error:
            await self.waste(error.usage)
            raise
        if self._aside:
            note_aside(self._aside, self.settings.base_urls[0], usage_of(response))
        return response

    async def _try_once(self, call: Callable[[openai.AsyncOpenAI], Awaitable[T]], choices: int, tries: _Tries) -> T:
        server = await self._free_server(tries)
        if self._watch is not None:
            async with server.checking:
                if server.doubted or self._watch.is_due(server.url):
                    await self._make_sure_or_retry(server, self._watch, tries)
        server.in_flight += 1
        server.asked += 1
        try:
            async with asyncio.timeout(self.settings.timeout_s):
                response = await checked_answer(call(server.client), choices, self.settings.blocks_without_choices)
        except (openai.OpenAIError, IncompleteAnswer, TimeoutError) as error:
            self._note_failure(server, error, tries)
            server.doubted = server.doubted or is_loss(error)
            raise
        finally:
            server.in_flight -= 1
        server.answered, server.times_skipped, server.last_choice_until = True, 0, 0.0
        server.outages.note_answer(server.url)
        self.answered += 1
        if self._watch is not None:
            await self._watch.took(server.url, response)
        return response

    async def _make_sure(self, server: _Server, watch: Watch, times: int = 1, patient: bool = True) -> None:
        await watch.make_sure(server.url, lambda: server.in_flight, times, patient)
        server.doubted = False

    async def _make_sure_or_retry(self, server: _Server, watch: Watch, tries: _Tries) -> None:
        """As `_make_sure`; a server that does not answer is tried again as it is with the request that waits for it.

        Raises:
            NobodySaysWho: It does not answer.
            ServerError: It has changed, and the run does not go on; or it refuses every request.
        """
        try:
            await self._make_sure(server, watch, patient=False)
        except ServerError as error:
            if error.refuses_all or not (error.in_vain or error.status in ASKING_TO_WAIT):
                raise
            server.doubted, lost = True, NobodySaysWho(error.cause)
            self._note_failure(server, lost, tries)
            raise lost from None

    @property
    def times_changed(self) -> int:
        """How often a server was found to have changed its model."""
        return self._watch.times_changed if self._watch is not None else 0

    async def make_sure_of_all(self) -> None:
        """Asks every server that gave an answer who it is; one that does not say it any more is passed over.

        Raises:
            ModelChanged: One has changed, and the run does not go on.
        """
        changed = None
        for server in self._servers if self._watch is not None else ():
            if server.answered:
                try:
                    await self._make_sure(server, self._watch, times=_TIMES_AT_THE_END)
                except ModelChanged as error:
                    changed = changed or error
                except ServerError as error:
                    logger.warning("%s does not say any more who it is (%s)", server.url, error.cause)
        if changed is not None:
            raise changed

    async def _free_server(self, tries: _Tries) -> _Server:
        """Wait for an available server that has not declined the request; with several, that with the fewest others."""
        while True:
            now = time.monotonic()
            possible = [server for server in self._servers if server not in tries.declined]
            present = [server for server in possible if not server.left_out]
            if not present and (not tries.declined or tries.seconds_left < 0):  # else a skipped one may recover
                present = possible
            if free := [server for server in present if server.paused_until <= now]:
                return min(free, key=lambda one: (one.last_choice_until > now, one.in_flight, one.asked))
            wait = min((server.paused_until - now for server in present), default=math.inf)
            await asyncio.sleep(min(wait, self.settings.backoff_s) if len(present) < len(possible) else wait)

    def _note_failure(self, server: _Server, error: Exception, tries: _Tries) -> None:
        wait = retry_after(error)
        if wait is not None and wait > tries.seconds_left:
            tries.declined.add(server)
        if wait is not None and wait > self.settings.give_up_s:
            server.last_choice_until = time.monotonic() + _LONGEST_WAIT_S
            return
        if wait is not None:
            server.pause(wait * random.uniform(1.0, _LONGER_THAN_ASKED))
            return
        if not worth_retrying(error) or server.left_out:
            return
        only = len(self._servers) == 1
        server.outages.note_failure(server.url, self._cause(error), "retrying" if only else "skipped until it does")
        if not only:
            server.times_skipped += 1
            server.watcher = asyncio.create_task(self._await_recovery(server))

    async def _await_recovery(self, server: _Server) -> None:
        """Poll a server's list of models until it answers with anything but a server error."""
        first_wait = self.settings.backoff_s * 2 ** (server.times_skipped - 1)
        await asyncio.sleep(min(first_wait, _LONGEST_WAIT_S))
        retrying = tenacity.AsyncRetrying(
            wait=tenacity.wait_random_exponential(multiplier=self.settings.backoff_s, max=_LONGEST_WAIT_S)
        )
        await retrying(_check_health, server.client)
        server.outages.note_answer(server.url)
        server.watcher = None

    def _cause(self, error: Exception) -> str:
        text = " ".join(f"{type(error).__name__}: {error_text(error)}".split()).removesuffix(":")
        if self._key:
            text = text.replace(self._key, "[key]")
        return text if len(text) <= _LONGEST_CAUSE else f"{text[: _LONGEST_CAUSE - 1]}…"

    def _explain(self, error: Exception, more: str = "") -> str:
        return (
            f"The server {' / '.join(self.settings.base_urls)} did not answer a request ({self._cause(error)}{more}). "
            f"{goes_on()}"
        )


async def _model_entries(client: openai.AsyncOpenAI, known: bool = False) -> list[dict[str, Any]]:
    """The entries of a server's list of models; [] where the list has another form, which one that is known had not."""
    # Read as plain JSON: some servers answer with a bare list, which the openai client's types reject.
    answer = await client.with_options(timeout=_HEALTH_TIMEOUT_S).models.with_raw_response.list()
    try:
        content = json.loads(answer.content)
    except UNREADABLE as error:
        raise IncompleteAnswer(f"its list of models cannot be read: {type(error).__name__}: {error}") from None
    entries = content.get("data") if isinstance(content, dict) else content
    readable = isinstance(entries, list) and all(isinstance(entry, dict) and entry.get("id") for entry in entries)
    if known and not (readable and entries):
        raise IncompleteAnswer("its list of models is empty, or has another form than before")
    return entries if readable else []


async def _is_unknown(client: openai.AsyncOpenAI, model: str) -> bool:
    """Whether a server says 404 of a model: some serve more than they list."""
    try:
        await client.with_options(timeout=_HEALTH_TIMEOUT_S).models.with_raw_response.retrieve(model)
    except openai.APIStatusError as error:
        return error.status_code == 404
    return False


async def _check_health(client: openai.AsyncOpenAI) -> None:
    try:
        await _model_entries(client)
    except openai.APIStatusError as error:
        if error.status_code >= 500:
            raise


def health_check(settings: ServerSettings, model: str = "") -> dict[str, ServerError]:
    """As `OpenAIClient.health_check`, for synchronous code."""

    async def ask() -> dict[str, ServerError]:
        async with OpenAIClient(settings) as client:
            return await client.health_check(model)

    return run_coroutine(ask())
