"""Errors of requests to servers: of the run, which stops it, or of one row."""

from typing import Any, Literal

import openai

from cultureval.runtime.errors import GOES_ON, CulturevalError

LONGEST_CAUSE = 400  # characters of a server's message; some send HTML pages
STOPS_RUN = {401, 402, 404}  # wrong key, no credit, unknown model or address
BUSY = {408, 409, 429}
ADVICE = {
    401: "set {key} to a valid key",
    402: "check the account's credit and limits",
    404: "correct model and base_url",
    429: "check the account's limits, or repeat the command later",
}
Kind = Literal["server", "filter", "refusal", "no_answer"]
REASONS: dict[str, str] = {
    "server": "the server refuses its prompt",
    "filter": "the provider's filter stopped it",
    "refusal": "the model refused",
    "no_answer": "the server gives no usable answer to it",
}


class ServerError(CulturevalError):
    """A server stops the run: it refuses every request, or does not answer after all retries."""


class Unavailable(ServerError):
    """A server does not answer now (408, 409, 429, 5xx, no connection); another address may."""


class ModelChanged(ServerError):
    """A reply names another model than the run's."""


class RowError(CulturevalError):
    """One row has no answer: the server refuses its prompt, or the reply is useless.

    `kind` is a key of `REASONS`; `reason` is a clause with the server's message.
    """

    def __init__(self, kind: Kind, cause: str) -> None:
        self.kind = kind
        self.reason = f"{REASONS[kind]}: {cause.rstrip('.')}"
        super().__init__(f"{self.reason}.")


def error_of(error: Exception, urls: tuple[str, ...], key_variable: str | None, key: str | None) -> CulturevalError:
    """Our error for an error of the `openai` package after its retries: of the run, or of one row.

    `urls` are the servers; `key_variable` names the variable of the key, which no message contains.
    """
    status = error.status_code if isinstance(error, openai.APIStatusError) else None
    cause, where = _cause(error, key), " / ".join(urls)
    if isinstance(error, openai.APIStatusError):
        filtered = _is_filter(error)
        if 400 <= error.status_code < 500 and (filtered or error.status_code not in STOPS_RUN | BUSY):
            return RowError("filter" if filtered else "server", cause)
        if 300 <= error.status_code < 400:
            place = error.response.headers.get("location", "?")
            return ServerError(f"The server {where} redirects to {place!r}: make that the base_url.")
    advice = ADVICE.get(status or 0, "start the server, or correct base_url; its log may say more")
    advice = advice.format(key=key_variable or "api_key_env")
    kind = ServerError if status in STOPS_RUN else Unavailable
    return kind(f"The server {where} did not answer a request ({cause}): {advice}. {GOES_ON}")


def _is_filter(error: openai.APIStatusError) -> bool:
    from cultureval.runtime.servers.providers import filters

    body = error.body if isinstance(error.body, dict) else {}
    inner, metadata = body.get("innererror"), body.get("metadata")  # Azure's, OpenRouter's
    if error.status_code == 403 and isinstance(metadata, dict) and "reasons" in metadata:
        return True
    codes = {str(error.code), str(inner.get("code")) if isinstance(inner, dict) else ""}
    return bool(codes & {*filters().codes, "ResponsibleAIPolicyViolation"}) or any(
        words in str(error) for words in filters().messages
    )


def _cause(error: Exception, key: str | None) -> str:
    source: Any = error.__cause__ if isinstance(error, openai.APIConnectionError) and error.__cause__ else error
    text = " ".join(f"{type(error).__name__}: {source}".split()).removesuffix(":")
    text = text.replace(key, "[key]") if key else text
    return text if len(text) <= LONGEST_CAUSE else f"{text[: LONGEST_CAUSE - 1]}…"
