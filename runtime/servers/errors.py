"""Errors of OpenAI-compatible servers, and whether a request that got one is worth repeating."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import openai

from cultureval.runtime.errors import CulturevalError, shorten
from cultureval.runtime.servers.providers import filters
from cultureval.runtime.servers.rate_limits import wait_after_refusal
from cultureval.runtime.servers.replies import refusal_of

# What reading a reply of an unexpected form raises; JSON's numbers of more than 4,300 digits are a ValueError.
UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
_RETRIED_STATUS = {408, 409, 429}
ASKING_TO_WAIT = {409, 429}
_REFUSING_STATUS = {401, 402, 404}
_REFUSED_CONTENT = {400, 413, 415, 422}
_PLAIN_STATUS = {402} | _RETRIED_STATUS | _REFUSED_CONTENT  # what they say of other requests needs no asking
_REFUSING_KEYS = {401, 403}
_REFUSING_ACCOUNTS = {402, 429}
_FILTERING_STATUS = {400, 403, 422}
_NOBODY_THERE = {502, 503, 504}


class ServerError(CulturevalError):
    """A server refused a request, or did not answer it within the allowed retries and time.

    Attributes:
        cause: What the server said or did, in one line.
        refuses_all: Whether it would also refuse any other request (wrong key, no credit, unknown model or address).
        refuses_content: Whether it refused what this request holds (400, 413, 415, 422).
        unreachable: Whether there was no reply at all, or one that says that nobody is there (502, 503, 504).
        incomplete: Whether it was answered, at last, with something that is no answer.
        in_vain: Whether no try brought an answer, other than by a server that asked to wait.
        status: The reply's HTTP status; None without a reply.
        usage: What a reply of no use says that it used, where nobody has counted that yet; else None.
    """

    def __init__(
        self,
        message: str,
        cause: str = "",
        refuses_all: bool = False,
        refuses_content: bool = False,
        unreachable: bool = False,
        incomplete: bool = False,
        in_vain: bool = False,
        status: int | None = None,
        usage: Mapping[str, Any] | None = None,
    ) -> None:
        self.cause = cause or message
        self.refuses_all = refuses_all
        self.refuses_content = refuses_content
        self.unreachable = unreachable
        self.incomplete = incomplete
        self.in_vain = in_vain
        self.status = status
        self.usage = usage
        super().__init__(message)

    @property
    def may_refuse_all(self) -> bool:
        """Whether only another question shows if every request is refused: of all 3xx and 4xx that do not say so.

        Some filters answer 401, 403, 404 or 451; firewalls 406; TGI 424 where it fails.
        """
        return self.status is not None and 300 <= self.status < 500 and self.status not in _PLAIN_STATUS

    def advice(self, key_variable: str | None) -> str:
        """What to do where a server answers no question, as a clause.

        Args:
            key_variable: The environment variable with its key; None without one.
        """
        if self.status in _REFUSING_KEYS:
            return f"set {key_variable} to a key that it takes" if key_variable else "name its key in api_key_env"
        if self.status in _REFUSING_ACCOUNTS:
            later = "" if self.refuses_all else "repeat the command later, since it asks to wait, or "
            return f"{later}see to the account's credit and limits"
        if self.status == 404:
            return "correct model and base_url"
        if self.refuses_content:
            return "correct the setting that it names (max_tokens_name, temperature, extra_body)"
        if self.incomplete:
            return "what it sends is no answer: correct base_url, or look into its log"
        if self.status is not None and not self.unreachable:
            return "look into its log, since it is there and fails"
        return "start the server, or correct base_url"


class AskedToWait(ServerError):
    """A server asks to wait with a question, perhaps with it alone: it is asked once more, after the others."""


class ModelChanged(ServerError):
    """The servers serve another model than that of the run."""

    def __init__(self, message: str) -> None:
        super().__init__(message, message, refuses_all=True)


@contextmanager
def reading_a_reply(usage: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Turns what a reply of an unexpected form raises into the ServerError of a request without a usable answer.

    `usage` is what the reply says that it used.
    """
    try:
        yield
    except UNREADABLE as error:
        cause = f"its reply cannot be read: {type(error).__name__}: {shorten(str(error))}"
        raise unusable(f"The server gave no answer ({cause}).", usage) from error


def unusable(told: str, usage: Mapping[str, Any] | None = None) -> ServerError:
    """The error of a reply that is no answer to its request, as a sentence; others may be answered."""
    return ServerError(told, told, incomplete=True, in_vain=True, usage=usage)


class IncompleteAnswer(Exception):
    """A server answered 200 with something that is not an answer (cut JSON, a proxy's page, no choices).

    `usage` is what it says that it used, which may have to be paid.
    """

    def __init__(self, told: str, usage: Mapping[str, Any] | None = None) -> None:
        self.usage = usage
        super().__init__(told)


class LacksChoices(IncompleteAnswer):
    """A server answered 200 without all choices or their texts, as some do that filter a prompt, or fail.

    Or with a text that is no UTF-8.
    """


class NobodySaysWho(Exception):
    """A server that is to say again which model it serves does not answer, as while it restarts."""


class ContentFilter(ServerError):
    """The provider's filter refused the prompt."""


class PromptBlocked(Exception):
    """A server answered 200 without any choice, which is how this provider says that a filter blocked the prompt."""

    usage: Mapping[str, Any] | None = None


def is_content_filter(error: Exception) -> bool:
    """Whether a request ended because the provider's filter refused its prompt.

    Servers tell it by a code, by words, or, as OpenRouter's moderation does, by 403 with the flagged text.
    """
    if isinstance(error, PromptBlocked):
        return True
    if not isinstance(error, openai.APIStatusError) or error.status_code not in _FILTERING_STATUS:
        return False
    if str(error.code) in filters().codes or _inner_code(error.body) in filters().codes:
        return True
    metadata = error.body.get("metadata") if isinstance(error.body, Mapping) else None
    flagged = isinstance(metadata, Mapping) and ("flagged_input" in metadata or "reasons" in metadata)
    return flagged or any(words in error_text(error) for words in filters().messages)


def _inner_code(body: object) -> str:
    """Azure's code within the error: ResponsibleAIPolicyViolation, or that of the content filter."""
    inner = body.get("innererror") if isinstance(body, Mapping) else None
    code = inner.get("code") if isinstance(inner, Mapping) else None
    return "content_filter" if code == "ResponsibleAIPolicyViolation" else str(code)


def error_text(error: Exception) -> str:
    """An error's message with what the openai client leaves out: a body of an unusual form, a network error."""
    more = getattr(error, "body", None)
    if isinstance(more, Mapping) and isinstance(more.get("message"), str):
        more = None
    if isinstance(error, openai.APIConnectionError):
        more = error.__cause__
    return f"{error} {more}" if more else str(error)


def refuses_all(error: Exception) -> bool:
    """Whether the server would refuse every request: 401, 402, 404, or no credit left; or leads to another host."""
    if refused := refusal_of(error):
        return refused.of_all
    return isinstance(error, openai.APIStatusError) and (
        error.status_code in _REFUSING_STATUS or error.code == "insufficient_quota"
    )


def refuses_content(error: Exception) -> bool:
    """Whether the server refused what the request holds, such as an image that it cannot read: 400, 413, 415, 422."""
    known = isinstance(error, openai.APIStatusError) and error.status_code in _REFUSED_CONTENT
    return known and not refuses_all(error) and not is_content_filter(error)


def worth_retrying(error: BaseException) -> bool:
    """Whether the same request may be answered later: 408, 409, 429, 5xx, lost connections, cut answers, time-outs."""
    if isinstance(error, openai.APIStatusError):
        if error.code == "insufficient_quota":
            return False
        return error.status_code in _RETRIED_STATUS or error.status_code >= 500
    if refusal_of(error):
        return False
    return isinstance(error, (openai.APIConnectionError, IncompleteAnswer, NobodySaysWho, TimeoutError))


def is_in_vain(error: Exception) -> bool:
    """Whether no try of a request brought an answer, other than by a server that asked to wait."""
    refused = refusal_of(error)
    if refused is not None:
        return not refused.of_all
    return worth_retrying(error) and getattr(error, "status_code", None) not in ASKING_TO_WAIT


def is_loss(error: BaseException) -> bool:
    """Whether a connection was lost, or a proxy had nobody behind it: another server may be there afterwards."""
    if isinstance(error, openai.APIStatusError):
        return error.status_code in _NOBODY_THERE
    lost = (openai.APIConnectionError, IncompleteAnswer, NobodySaysWho, TimeoutError)
    return isinstance(error, lost) and not refusal_of(error)


def retry_after(error: BaseException | None) -> float | None:
    """Seconds to wait as a server says (`rate_limits`); None where it does not, or where waiting would not help."""
    if not isinstance(error, openai.APIStatusError) or not worth_retrying(error):
        return None
    return wait_after_refusal(error.response.headers, error.body)
