"""Reading replies of OpenAI-compatible servers: an answer, or an error of its row."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from cultureval.runtime.errors import escaped, shorten
from cultureval.runtime.servers.errors import RowError
from cultureval.runtime.servers.providers import filters

Answer = dict[str, Any]
LONGEST_NAME = 200  # characters of a model's name
# finish_reason of a failed answer: OpenRouter and gateways, vLLM and SGLang, DeepSeek, Z.ai.
FAILED_REASONS = {"error", "abort", "insufficient_system_resource", "network_error"}
# Exceptions of reading a malformed reply; a JSON number of more than 4,300 digits is a ValueError.
UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)


def useless(cause: str) -> RowError:
    """The error of a reply without a usable answer."""
    return RowError("no_answer", cause)


@contextmanager
def reading_a_reply() -> Iterator[None]:
    """Turns exceptions of reading a malformed reply into a `RowError`."""
    try:
        yield
    except UNREADABLE as error:
        raise useless(f"its reply cannot be read: {type(error).__name__}: {shorten(str(error))}") from error


def body_of(content: bytes, choices: int = 1) -> Answer:
    """The JSON object of a reply with `choices` choices, each with a text; a RowError for other replies."""
    with reading_a_reply():
        body = json.loads(content.decode("utf-8"))
        if not isinstance(body, dict):
            raise useless("its reply is no JSON object")
        return checked_body(body, choices)


def checked_body(body: Mapping[str, Any], choices: int = 1) -> Answer:
    """A reply's JSON object, checked to have all choices; raises as `body_of`."""
    with reading_a_reply():
        error = body.get("error")
        if any(error.values()) if isinstance(error, Mapping) else error:
            raise useless(f"an error in place of an answer: {shorten(str(error))}")
        found = body.get("choices") or []
        if len(found) != choices:
            hint = "; the server may not know the parameter n: set n to 1" if len(found) == 1 else ""
            blocked = not found and body.get("usage") is not None
            problem = f"{len(found)} choices instead of {choices}{hint}"
            raise RowError("filter", "no choices beside token counts") if blocked else useless(problem)
        for choice in found:
            _check_choice(choice)
        return dict(body)


def _check_choice(choice: Mapping[str, Any]) -> None:
    message, reason = choice.get("message"), choice.get("finish_reason")
    if reason in FAILED_REASONS:
        raise useless(f"the server stopped with finish_reason {reason!r}")
    if message is None and not isinstance(choice.get("text"), str) and not filters().in_finish_reason(reason):
        raise useless("a choice has no text")
    if message is not None and not isinstance(message.get("content"), str | list | None):
        raise useless("a choice's content is no text")


def answer_of(body: Mapping[str, Any]) -> Answer:
    """A checked body as `{"completions": [...], "usage", "model"}`.

    A completion is `{"text", "reasoning", "finish_reason", "refusal"}`, and `tokens` (ids) where vLLM returns them
    (`return_token_ids`). A refusal is also the text. Raises a RowError on a malformed body.
    """
    with reading_a_reply():
        choices = sorted(body["choices"], key=lambda choice: choice.get("index") or 0)
        usage = body.get("usage")
        return {
            "completions": [_completion(choice) for choice in choices],
            "usage": dict(usage) if isinstance(usage, Mapping) else None,
            "model": name_of(body.get("model")),
        }


def _completion(choice: Mapping[str, Any]) -> Answer:
    message = choice.get("message")
    if message is None:
        text, reasoning, refusal = choice.get("text"), None, None
    else:
        text, reasoning = _parts(message.get("content"))
        named = (message.get(name) for name in ("reasoning_content", "reasoning"))
        reasoning = next((value for value in named if value and isinstance(value, str)), reasoning)
        refusal = message.get("refusal") or None
    tokens = choice.get("token_ids")
    known = isinstance(tokens, list) and all(isinstance(token, int) for token in tokens)
    return {
        "text": _text(text or refusal or "") or "",
        "reasoning": _text(reasoning),
        "finish_reason": _text(choice.get("finish_reason")),
        "refusal": _text(refusal),
    } | ({"tokens": tokens} if known else {})


def _parts(content: Any) -> tuple[str | None, str | None]:
    """The text and the reasoning of a message; Mistral's reasoning models send a list of both types of parts."""
    if not isinstance(content, list):
        return content, None
    kinds: dict[str, list[str]] = {"text": [], "thinking": []}
    for part in content:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind in kinds:
            inner = part.get(kind)
            kinds[kind].append(inner if isinstance(inner, str) else _parts(inner)[0] or "")
    return "".join(kinds["text"]), "".join(kinds["thinking"]) or None


def name_of(value: object) -> str | None:
    """A model's name as a server gives it, without control characters and cut to `LONGEST_NAME`; None for none."""
    return escaped(_text(value) or "")[:LONGEST_NAME] or None


def _text(value: object) -> str | None:
    """Text in valid UTF-8: a lone surrogate (half of an emoji) becomes U+FFFD; None for no text."""
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if isinstance(value, str) else None


def why_refused(answer: Answer) -> RowError | None:
    """The error of an answer that the provider's filter or the model refused; None for a usable answer."""
    for completion in answer["completions"]:
        if filters().in_finish_reason(completion["finish_reason"]):
            return RowError("filter", f"it ended with finish_reason {completion['finish_reason']!r}")
        if completion["refusal"]:
            return RowError("refusal", shorten(completion["refusal"]))
    return None
