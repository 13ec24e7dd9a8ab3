"""Errors of OpenAI-compatible servers, and whether a request that got one is worth repeating."""

import email.utils
import time
from collections.abc import Mapping

import openai

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.servers.replies import refusal_of

_RETRIED_STATUS = {408, 409, 429}
_REFUSING_STATUS = {401, 402, 404}
_REFUSED_CONTENT = {400, 413, 415, 422}
# Error codes of content filters: OpenAI and Azure, OpenAI for images, Alibaba.
_FILTER_CODES = {"content_filter", "content_policy_violation", "moderation_blocked", "data_inspection_failed"}


class ServerError(CulturevalError):
    """A server refused a request, or did not answer it within the allowed retries and time.

    Attributes:
        cause: What the server said or did, in one line.
        refuses_all: Whether it would also refuse any other request (wrong key, no credit, unknown model or address).
        refuses_content: Whether it refused what this request holds (400, 413, 415, 422).
    """

    def __init__(self, message: str, cause: str = "", refuses_all: bool = False, refuses_content: bool = False) -> None:
        self.cause = cause or message
        self.refuses_all = refuses_all
        self.refuses_content = refuses_content
        super().__init__(message)


class IncompleteAnswer(Exception):
    """A server answered 200 with something that is not an answer (cut JSON, a proxy's page, no choices)."""


class ContentFilter(ServerError):
    """The provider's filter refused the prompt."""


def is_content_filter(error: Exception) -> bool:
    """Whether a request ended because the provider's filter refused its prompt."""
    return isinstance(error, openai.BadRequestError) and error.code in _FILTER_CODES


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
    return isinstance(error, (openai.APIConnectionError, IncompleteAnswer, TimeoutError))


def retry_after(error: BaseException | None) -> float | None:
    """Seconds to wait according to a server's Retry-After header (seconds, or a date)."""
    if not isinstance(error, openai.APIStatusError) or not worth_retrying(error):
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
    except (ValueError, OverflowError):  # an impossible date
        return None
