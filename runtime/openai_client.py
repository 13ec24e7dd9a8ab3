"""The client of OpenAI-compatible servers, shared by models and judges.

What it adds to the `openai` package's own client: several servers balanced, a dead one left out until it answers again,
retries that may go to another server, Retry-After kept for all requests to a server, and answers that go to the journal
as they arrive. Keys are read from the environment; no message of ours contains one.
"""

import asyncio
import email.utils
import json
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

import openai
import tenacity
from pydantic import BaseModel
from tqdm import tqdm

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.journal import Journal

logger = logging.getLogger(__name__)

T = TypeVar("T")
Answer = dict[str, Any]

_RETRIED_STATUS = {408, 409, 429}
_REFUSING_STATUS = {401, 402, 404}
_LONGEST_WAIT_S = 60.0
_HEALTH_TIMEOUT_S = 10.0
_LONGEST_CAUSE = 400  # characters of a server's own words; some send whole pages
# A filter that refuses a prompt: OpenAI's and Azure's code, OpenAI's for images, Alibaba's.
_FILTER_CODES = {"content_filter", "content_policy_violation", "moderation_blocked", "data_inspection_failed"}
# The server failed while it answered: OpenRouter's and gateways' word, vLLM's and SGLang's, DeepSeek's, Z.ai's.
_BROKEN_OFF = {"error", "abort", "insufficient_system_resource", "network_error"}
_NOT_JSON = (json.JSONDecodeError, UnicodeDecodeError, RecursionError)


class ServerError(CulturevalError):
    """A server refused a request, or did not answer it within the retries and the time allowed.

    Attributes:
        cause: What the server said or did, in one line.
        refuses_all: Whether it would refuse any other request too (wrong key, no credit, unknown model or address).
    """

    def __init__(self, message: str, cause: str = "", refuses_all: bool = False) -> None:
        self.cause = cause or message
        self.refuses_all = refuses_all
        super().__init__(message)


class IncompleteAnswer(Exception):
    """A server answered 200 with something that is not an answer (cut JSON, a proxy's page, no choices)."""


@dataclass(frozen=True)
class ServerSettings:
    """Where the servers are and how they are asked.

    Attributes:
        base_urls: One or more servers of the same model, each up to and including `/v1`.
        api_key_env: Name of the environment variable that holds the key; None sends no key.
        concurrency: Requests in flight at once, over all servers.
        timeout_s: Limit of one request.
        max_retries: Further tries of one request after the first; being told to wait (Retry-After) does not count.
        give_up_s: Limit of one request with all its retries and waits.
        backoff_s: First wait before a retry; it doubles, with jitter, up to 60 s.

    Raises:
        CulturevalError: No server, a URL that is not http(s) or carries a password, or the key's variable is not set or
            holds what cannot be sent.
    """

    base_urls: tuple[str, ...]
    api_key_env: str | None = None
    concurrency: int = 16
    timeout_s: float = 600.0
    max_retries: int = 8
    give_up_s: float = 3600.0
    backoff_s: float = 0.5

    def __post_init__(self) -> None:
        if not self.base_urls:
            raise CulturevalError("No server: give base_url, such as http://localhost:8000/v1.")
        for url in self.base_urls:
            _check_url(url)
        if self.api_key_env and not os.environ.get(self.api_key_env):
            raise CulturevalError(f"The environment variable {self.api_key_env} (api_key_env) is not set.")
        key = self.api_key() or ""
        # A header takes nothing else, and the libraries below would log the whole key in their complaint.
        if not (key.isascii() and key.isprintable() and key == key.strip()):
            raise CulturevalError(
                f"The key in {self.api_key_env} (api_key_env) has white space or a line end around it, or characters "
                "that are not ASCII: set the variable to the key alone."
            )

    def api_key(self) -> str | None:
        """The key, from the environment."""
        return os.environ[self.api_key_env] if self.api_key_env else None


def _check_url(url: str) -> None:
    if "@" in url:
        raise CulturevalError("A base_url carries a password (an @): put keys into an environment variable only.")
    shown = f"base_url {url!r}"
    try:
        parts = urlsplit(url)
        in_form = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0 and url.isprintable()
    except ValueError:  # a port that is no number (a misplaced key?), half an IPv6 address
        in_form, shown = False, "A base_url"
    if not in_form:
        raise CulturevalError(f"{shown} is not of the form http(s)://host[:port]/v1.")


@dataclass
class _Server:
    """One server and what is known of its health."""

    url: str
    client: openai.AsyncOpenAI
    in_flight: int = 0
    asked: int = 0
    absences: int = 0  # times left out since its last answer
    paused_until: float = 0.0
    pause: Exception | None = None  # the answer that asked for it
    watcher: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def left_out(self) -> bool:
        return self.watcher is not None


class OpenAIClient:
    """Sends requests to one or more servers of the same model; use it with `async with`."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self._key = settings.api_key()
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._servers = [_Server(url, self._connect(url)) for url in settings.base_urls]

    def _connect(self, url: str) -> openai.AsyncOpenAI:
        # Retries are ours, because they may go to another server. The client insists on some key.
        return openai.AsyncOpenAI(
            base_url=url, api_key=self._key or "none", timeout=self.settings.timeout_s, max_retries=0
        )

    async def __aenter__(self) -> "OpenAIClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            if server.watcher is not None:
                server.watcher.cancel()
            await server.client.close()

    async def troubles(self) -> dict[str, str]:
        """Ask each server for its models, once: URL -> what is wrong, in one line, for those that cannot be used.

        A server that answers but has no such list (404) is no trouble.
        """
        found = {}
        for server in self._servers:
            try:
                await _list_models(server.client)
            except (openai.OpenAIError, *_NOT_JSON) as error:
                if getattr(error, "status_code", None) != 404:
                    found[server.url] = self._cause(error)
        return found

    async def chat(self, **request: Any) -> Answer:
        """Ask for chat completions.

        Args:
            **request: Arguments of the openai client's `chat.completions.create`.

        Returns:
            `{"completions": [{"text", "reasoning", "finish_reason", "refusal"}, ...], "usage": {...} | None, "model"}`,
            `n` completions in order; the model as the server names it. A refusal is its own text; what a content filter
            stopped has the finish reason "content_filter" and whatever text came before.

        Raises:
            ServerError: The request is wrong, or was not answered in time.
        """
        return await self._completions(lambda client: client.chat.completions.create(**request), request)

    async def complete(self, **request: Any) -> Answer:
        """Ask for plain completions; arguments of `completions.create`, returns and raises as `chat`."""
        return await self._completions(lambda client: client.completions.create(**request), request)

    async def _completions(self, call: Callable[[openai.AsyncOpenAI], Awaitable[Any]], request: Answer) -> Answer:
        wanted = request.get("n") or 1
        try:
            response = await self.send(call, wanted)
        except _ContentFilter as error:
            stopped = {"text": "", "reasoning": None, "finish_reason": "content_filter", "refusal": str(error)}
            return {"completions": [stopped] * wanted, "usage": None, "model": None}
        choices = sorted(response.choices, key=lambda choice: choice.index or 0)
        usage = response.usage.model_dump(exclude_none=True) if isinstance(response.usage, BaseModel) else None
        return {
            "completions": [_completion(choice) for choice in choices],
            "usage": usage,
            "model": getattr(response, "model", None),
        }

    async def send(self, call: Callable[[openai.AsyncOpenAI], Awaitable[T]], choices: int = 1) -> T:
        """Make a request, retried until it is answered.

        Args:
            call: Makes the request with the client of the server that is chosen for it.
            choices: How many choices the answer must have.

        Raises:
            ServerError: The request is wrong, or was not answered in time.
        """
        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(_worth_retrying),
            wait=tenacity.wait_random_exponential(multiplier=self.settings.backoff_s, max=_LONGEST_WAIT_S),
            stop=_patience(self.settings),
            before_sleep=lambda state: logger.debug("retrying: %s", type(state.outcome.exception()).__name__),
            reraise=True,
        )
        async with self._slots:
            deadline = time.monotonic() + self.settings.give_up_s
            try:
                return await retrying(self._try_once, call, choices, deadline)
            except (openai.OpenAIError, IncompleteAnswer, TimeoutError) as error:
                kind = _ContentFilter if _is_content_filter(error) else ServerError
                raise kind(self._explain(error), self._cause(error), _refuses_all(error)) from None

    async def _try_once(self, call: Callable[[openai.AsyncOpenAI], Awaitable[T]], choices: int, deadline: float) -> T:
        server = await self._free_server(deadline)
        server.in_flight += 1
        server.asked += 1
        try:
            async with asyncio.timeout(self.settings.timeout_s):
                response = await _whole(call(server.client), choices)
        except (openai.OpenAIError, IncompleteAnswer, TimeoutError) as error:
            self._note_failure(server, error)
            raise
        finally:
            server.in_flight -= 1
        server.absences = 0
        return response

    async def _free_server(self, deadline: float) -> _Server:
        """Wait for a server that may be asked now; with several, the one with the least to do.

        Raises:
            ServerError: All servers ask us to wait until after the deadline.
        """
        while True:
            now = time.monotonic()
            present = [server for server in self._servers if not server.left_out] or self._servers
            free = [server for server in present if server.paused_until <= now]
            if free:
                return min(free, key=lambda server: (server.in_flight, server.asked))
            first = min(present, key=lambda server: server.paused_until)
            if len(present) < len(self._servers) and now < deadline:  # one that is left out may come back before
                await asyncio.sleep(min(first.paused_until - now, self.settings.backoff_s))
                continue
            if first.paused_until > deadline and first.pause is not None:
                wait = f"; it asks to be left alone for {first.paused_until - now:.0f} s, longer than give_up_s allows"
                raise ServerError(self._explain(first.pause, wait), self._cause(first.pause) + wait)
            await asyncio.sleep(first.paused_until - now)

    def _note_failure(self, server: _Server, error: Exception) -> None:
        wait = _retry_after(error)
        if wait is not None:
            server.paused_until = max(server.paused_until, time.monotonic() + wait)
            server.pause = error
            return
        if _worth_retrying(error) and len(self._servers) > 1 and not server.left_out:
            logger.warning("%s does not answer (%s); left out until it does", server.url, type(error).__name__)
            server.absences += 1
            server.watcher = asyncio.create_task(self._take_back(server))

    async def _take_back(self, server: _Server) -> None:
        """Ask a server for its models until it answers anything but an error of its own."""
        first_wait = self.settings.backoff_s * 2 ** (server.absences - 1)
        await asyncio.sleep(min(first_wait, _LONGEST_WAIT_S))
        retrying = tenacity.AsyncRetrying(
            wait=tenacity.wait_random_exponential(multiplier=self.settings.backoff_s, max=_LONGEST_WAIT_S)
        )
        await retrying(_check_health, server.client)
        logger.warning("%s answers again", server.url)
        server.watcher = None

    def _cause(self, error: Exception) -> str:
        text = " ".join(f"{type(error).__name__}: {_words_of(error)}".split()).removesuffix(":")
        if self._key:
            text = text.replace(self._key, "[key]")
        return text if len(text) <= _LONGEST_CAUSE else f"{text[: _LONGEST_CAUSE - 1]}…"

    def _explain(self, error: Exception, more: str = "") -> str:
        return (
            f"The server {' / '.join(self.settings.base_urls)} did not answer a request ({self._cause(error)}{more}). "
            "Everything so far is kept: the same command goes on from here."
        )


class _ContentFilter(ServerError):
    """The provider's filter refused the prompt."""


def _is_content_filter(error: Exception) -> bool:
    return isinstance(error, openai.BadRequestError) and error.code in _FILTER_CODES


def _words_of(error: Exception) -> str:
    """What an error says, and what the openai client leaves out of it: a body of an unusual form, a network error."""
    more = getattr(error, "body", None)
    if isinstance(more, Mapping) and isinstance(more.get("message"), str):
        more = None
    if isinstance(error, openai.APIConnectionError):
        more = error.__cause__
    return f"{error} {more}" if more else str(error)


async def _whole(answer: Awaitable[T], choices: int) -> T:
    """Await an answer and see to it that it is one."""
    try:
        response = await answer
    except (*_NOT_JSON, openai.APIResponseValidationError) as error:
        raise IncompleteAnswer(f"the answer is not JSON: {error}") from error
    if isinstance(response, str):
        raise IncompleteAnswer(f"the answer is text or a page, not JSON: {response!r}")
    if error := (getattr(response, "model_extra", None) or {}).get("error"):
        raise IncompleteAnswer(f"an error in place of an answer: {error}")
    got = getattr(response, "choices", None)
    if not isinstance(got, list) or len(got) != choices:
        count = len(got) if isinstance(got, list) else 0
        hint = "; does the server know the parameter n? If not, set n to 1 (code: --batch-size 1)" if count == 1 else ""
        raise IncompleteAnswer(f"{count} choices instead of {choices}{hint}")
    _check_choices(got)
    return response


def _check_choices(choices: Sequence[Any]) -> None:
    for choice in choices:
        message = getattr(choice, "message", None)
        text = getattr(choice, "text", None) if message is None else getattr(message, "content", None)
        if (message is None and text is None) or not isinstance(text, str | list | None):
            raise IncompleteAnswer(f"a choice has no text: {choice!r}")
        if not isinstance(choice.index, int | None):
            raise IncompleteAnswer(f"a choice's index is no number: {choice.index!r}")
        if choice.finish_reason in _BROKEN_OFF:
            error = (choice.model_extra or {}).get("error", "")
            raise IncompleteAnswer(f"the server broke off: finish_reason {choice.finish_reason!r} {error}")


def _refuses_all(error: Exception) -> bool:
    """Whether the trouble is not the request's: 401, 402, 404, or no credit left."""
    return isinstance(error, openai.APIStatusError) and (
        error.status_code in _REFUSING_STATUS or error.code == "insufficient_quota"
    )


def _worth_retrying(error: BaseException) -> bool:
    """Whether the same request may be answered later: 408, 409, 429, 5xx, lost connections, cut answers, time-outs."""
    if isinstance(error, openai.APIStatusError):
        if error.code == "insufficient_quota":
            return False
        return error.status_code in _RETRIED_STATUS or error.status_code >= 500
    return isinstance(error, (openai.APIConnectionError, IncompleteAnswer, TimeoutError))


def _retry_after(error: BaseException | None) -> float | None:
    """Seconds that a server asks us to wait, from its Retry-After header (seconds, or a date)."""
    if not isinstance(error, openai.APIStatusError) or not _worth_retrying(error):
        return None
    value = error.response.headers.get("retry-after")
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        date = email.utils.parsedate_tz(value)
    try:
        return max(0.0, email.utils.mktime_tz(date) - time.time()) if date else None
    except (ValueError, OverflowError):  # a year that there is not
        return None


def _patience(settings: ServerSettings) -> Callable[[tenacity.RetryCallState], bool]:
    failures = 0

    def stop(state: tenacity.RetryCallState) -> bool:
        nonlocal failures
        failures += _retry_after(state.outcome.exception()) is None
        return failures > settings.max_retries or state.seconds_since_start > settings.give_up_s

    return stop


async def _list_models(client: openai.AsyncOpenAI) -> None:
    # Read as JSON only: some servers answer with a bare list, which the openai client's types do not take.
    answer = await client.with_options(timeout=_HEALTH_TIMEOUT_S).models.with_raw_response.list()
    json.loads(answer.content)


async def _check_health(client: openai.AsyncOpenAI) -> None:
    try:
        await _list_models(client)
    except openai.APIStatusError as error:
        if error.status_code >= 500:
            raise


def _completion(choice: Any) -> Answer:
    message = getattr(choice, "message", None)
    if message is None:
        text, reasoning, refusal = choice.text, None, None
    else:
        extra = message.model_extra or {}
        text, thoughts = _parts(message.content)
        named = (extra.get(name) for name in ("reasoning_content", "reasoning"))
        reasoning = next((value for value in named if value and isinstance(value, str)), thoughts)
        refusal = message.refusal
    return {
        "text": _whole_characters(text or refusal or ""),
        "reasoning": _whole_characters(reasoning),
        "finish_reason": choice.finish_reason,
        "refusal": _whole_characters(refusal),
    }


def _parts(content: str | list[Any] | None) -> tuple[str | None, str | None]:
    """The text and the thoughts of a message; Mistral's reasoning models send a list of parts of these two types."""
    if not isinstance(content, list):
        return content, None
    kinds: dict[str, list[str]] = {"text": [], "thinking": []}
    for part in content:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind in kinds:
            inner = part.get(kind)
            kinds[kind].append(inner if isinstance(inner, str) else _parts(inner)[0] or "")
    return "".join(kinds["text"]), "".join(kinds["thinking"]) or None


def _whole_characters(text: str | None) -> str | None:
    """Text that every file can hold: half a character (a lone surrogate, of an emoji cut in two) becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if text else text


def troubles_of(settings: ServerSettings) -> dict[str, str]:
    """As `OpenAIClient.troubles`, for code that is not asynchronous."""

    async def ask() -> dict[str, str]:
        async with OpenAIClient(settings) as client:
            return await client.troubles()

    return asyncio.run(ask())


Question = Callable[[OpenAIClient], Awaitable[Answer]]
OnFailure = Callable[[str, CulturevalError], bool]


def answer_all(
    settings: ServerSettings,
    questions: Mapping[str, Question],
    journal: Journal,
    description: str = "answers",
    first: Question | None = None,
    on_failure: OnFailure | None = None,
    note: Callable[[], str] | None = None,
) -> dict[str, Answer]:
    """Answer every question, from the journal where it is there, from the servers where it is not.

    Each answer is in the journal before the next question of the same slot is asked. On an error the questions in
    flight are still finished and kept.

    Args:
        settings: The servers.
        questions: Key of the answer (`answer_key`) -> what asks for it.
        journal: Read and written.
        description: Of the progress bar.
        first: Awaited before the first question, if any has to be asked.
        on_failure: Told the key and the error of a question that failed; True leaves the question out and goes on.
        note: Asked after each answer for what to show beside the progress bar.

    Returns:
        Key -> answer, for all questions but those left out, in their order.

    Raises:
        ServerError: A question was refused, or not answered in time; the answers so far are kept.
    """
    missing = {key: question for key, question in questions.items() if key not in journal}
    if missing:
        with tqdm(total=len(questions), initial=len(questions) - len(missing), desc=description) as progress:
            run = _Run(journal, progress, iter(missing.items()), on_failure, note)
            asyncio.run(_ask(settings, run, min(settings.concurrency, len(missing)), first))
    return {key: journal.get(key) for key in questions if key in journal}


@dataclass
class _Run:
    """What the workers of one `answer_all` share."""

    journal: Journal
    progress: tqdm
    waiting: Iterator[tuple[str, Question]]
    on_failure: OnFailure | None
    note: Callable[[], str] | None
    failures: list[Exception] = field(default_factory=list)


async def _ask(settings: ServerSettings, run: _Run, workers: int, first: Question | None) -> None:
    async with OpenAIClient(settings) as client:
        if first is not None:
            await first(client)
        await asyncio.gather(*(_work(client, run) for _ in range(workers)))
    if run.failures:
        raise run.failures[0]


async def _work(client: OpenAIClient, run: _Run) -> None:
    for key, question in run.waiting:
        if run.failures:
            return
        try:
            answer = await question(client)
        except CulturevalError as error:
            if run.on_failure is not None and run.on_failure(key, error):
                run.progress.update()
                continue
            run.failures.append(error)
            return
        # fsync in a thread: a slow disk must not hold up the other requests.
        await asyncio.to_thread(run.journal.append, {key: answer})
        if run.note is not None:
            run.progress.set_postfix_str(run.note(), refresh=False)
        run.progress.update()
