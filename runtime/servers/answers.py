"""Checking and reading the answers of OpenAI-compatible servers."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, TypeVar

import openai
from pydantic import BaseModel

from cultureval.runtime.errors import escaped
from cultureval.runtime.servers.costs import read_usage
from cultureval.runtime.servers.errors import UNREADABLE, IncompleteAnswer, LacksChoices, PromptBlocked
from cultureval.runtime.servers.providers import filters
from cultureval.runtime.text_templates import short_hash

T = TypeVar("T")
LONGEST_NAME = 200  # characters
Answer = dict[str, Any]

# finish_reason of a server that failed while answering: OpenRouter and gateways, vLLM and SGLang, DeepSeek, Z.ai.
_FAILED_REASONS = {"error", "abort", "insufficient_system_resource", "network_error"}


async def checked_answer(answer: Awaitable[T], choices: int, blocks_without_choices: bool = False) -> T:
    """Await an answer and check that it is complete.

    Raises:
        IncompleteAnswer: It is not; with the answer's `usage`, which may have to be paid.
        PromptBlocked: It has no choices, by which this provider says that a filter blocked the prompt; likewise.
    """
    response = None
    try:
        response = await answer
        if blocks_without_choices and not getattr(response, "choices", None) and _has_counts(response):
            raise PromptBlocked("the provider blocked the prompt: its answer has token counts and no choices")
        check_response(response, choices)
    except (IncompleteAnswer, PromptBlocked) as error:
        error.usage = usage_of(response)
        raise
    except (*UNREADABLE, openai.APIResponseValidationError) as error:
        told = f"the answer cannot be read: {type(error).__name__}: {error}"
        kind = LacksChoices if isinstance(error, UnicodeDecodeError) else IncompleteAnswer  # the whole was sent
        raise kind(told, usage_of(response)) from error
    return response


def usage_of(response: Any) -> dict[str, Any] | None:
    """What a reply says that it used, as `costs.read_usage` takes it; None where it does not say it."""
    usage = getattr(response, "usage", None)
    return usage.model_dump(exclude_none=True, warnings=False) if isinstance(usage, BaseModel) else None


def _has_counts(response: Any) -> bool:
    counts = read_usage(usage_of(response))
    return counts is not None and counts.input > 0


def check_response(response: Any, choices: int) -> None:
    """Raises IncompleteAnswer for an answer that is not complete, or what `answer_of` raises."""
    if isinstance(response, str):
        raise IncompleteAnswer(f"the answer is text or a page, not JSON: {response!r}")
    if is_error(error := (getattr(response, "model_extra", None) or {}).get("error")):
        raise IncompleteAnswer(f"an error in place of an answer: {error}")
    got = getattr(response, "choices", None)
    if not isinstance(got, list) or len(got) != choices:
        count = len(got) if isinstance(got, list) else 0
        hint = "; does the server know the parameter n? If not, set n to 1 (code: --batch-size 1)" if count == 1 else ""
        raise LacksChoices(f"{count} choices instead of {choices}{hint}")
    _check_choices(got)
    answer_of(response)


def is_error(said: object) -> bool:
    """Whether the field `error` of a reply tells of one: some have it with nothing in it beside their answers."""
    return any(said.values()) if isinstance(said, Mapping) else bool(said)


def answer_of(response: Any) -> Answer:
    """A checked answer as `{"completions": [...], "usage", "model"}` (`OpenAIClient.chat`)."""
    choices = sorted(response.choices, key=lambda choice: getattr(choice, "index", None) or 0)
    return {
        "completions": [completion_of(choice) for choice in choices],
        "usage": usage_of(response),
        "model": name_of(getattr(response, "model", None)),
    }


def _check_choices(choices: Sequence[Any]) -> None:
    for choice in choices:
        message = getattr(choice, "message", None)
        if not isinstance(choice, BaseModel) or not isinstance(message, BaseModel | None):
            raise IncompleteAnswer(f"a choice or its message is no object: {choice!r}")
        text = getattr(choice, "text", None) if message is None else getattr(message, "content", None)
        reason, refusal = getattr(choice, "finish_reason", None), getattr(message, "refusal", None)
        filtered = filters().in_finish_reason(reason)
        if (message is None and text is None and not filtered) or not isinstance(text, str | list | None):
            raise LacksChoices(f"a choice has no text: {choice!r}")
        if refusal and not isinstance(refusal, str):
            raise IncompleteAnswer(f"a choice's refusal is no text: {choice!r}")
        if not isinstance(getattr(choice, "index", None), int | None):
            raise IncompleteAnswer(f"a choice's index is not a number: {choice!r}")
        if isinstance(reason, str) and reason in _FAILED_REASONS:
            error = (choice.model_extra or {}).get("error", "")
            raise IncompleteAnswer(f"the server stopped with an error: finish_reason {reason!r} {error}")


def completion_of(choice: Any) -> Answer:
    """One choice of an answer as `{"text", "reasoning", "finish_reason", "refusal"}`; a refusal is also the text.

    With `tokens`, the ids of its tokens, where vLLM was asked for them (`return_token_ids`).
    """
    message = getattr(choice, "message", None)
    if message is None:
        text, reasoning, refusal = getattr(choice, "text", None), None, None
    else:
        extra = message.model_extra or {}
        text, reasoning = _parts(getattr(message, "content", None))
        named = (extra.get(name) for name in ("reasoning_content", "reasoning"))
        reasoning = next((value for value in named if value and isinstance(value, str)), reasoning)
        refusal = getattr(message, "refusal", None) or None
    return {
        "text": _text(text or refusal or "") or "",
        "reasoning": _text(reasoning),
        "finish_reason": _text(getattr(choice, "finish_reason", None)),
        "refusal": _text(refusal),
    } | _tokens(choice)


def _tokens(choice: Any) -> Answer:
    tokens = (choice.model_extra or {}).get("token_ids")
    known = isinstance(tokens, list) and all(isinstance(token, int) for token in tokens)
    return {"tokens": tokens} if known else {}


def _parts(content: str | list[Any] | None) -> tuple[str | None, str | None]:
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
    """A name that a server gives itself or its model, in the form in which it is compared, shown and filed.

    It has no control characters and at most `LONGEST_NAME` characters, of which the last tell longer ones apart; None
    for what is no name.
    """
    text = escaped(_text(value) or "")
    return (text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 10]}… {short_hash(text)}") or None


def _text(value: object) -> str | None:
    """Text that can be written as UTF-8: a lone surrogate (of an emoji cut in two) becomes U+FFFD; None for no text."""
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if isinstance(value, str) else None
