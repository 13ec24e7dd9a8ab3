"""Prompts that are too long for a server: shortened as transformers' are, where the server counts their tokens (vLLM).

The server is asked for the count once it has refused a prompt, so that others cost no request more.
"""

from collections.abc import Mapping
from typing import Any

from cultureval.models.tokens import tokens_read
from cultureval.runtime.servers.answers import Answer
from cultureval.runtime.servers.errors import ServerError
from cultureval.runtime.servers.openai_client import OpenAIClient

# Fields of a request's body on which the tokens of its prompt depend.
RENDERING = ("chat_template", "chat_template_kwargs", "add_generation_prompt", "continue_final_message")
RENDERING += ("add_special_tokens", "tools")


async def ask_to_fit(
    client: OpenAIClient, prompt: Mapping[str, Any], request: Mapping[str, Any], limit_name: str
) -> Answer:
    """The answer to a prompt, of which the server reads the end where the whole is too long for it.

    Args:
        client: Of servers that are not a provider's.
        prompt: `messages` without images, or the text `prompt`.
        request: The other fields of the request.
        limit_name: The field that limits the tokens of the answer.

    Returns:
        As of `client.chat`; of a prompt that was refused as a whole also `truncated`, how many tokens were left out,
        and `limit`, that of the answer, where it is less than was asked for.

    Raises:
        ServerError: The server refuses the prompt for another reason, does not count tokens, or does not answer.
    """
    send = client.chat if "messages" in prompt else client.complete
    try:
        return await send(**prompt, **request)
    except ServerError as error:
        body = request.get("extra_body") or {}
        rendering = {name: body[name] for name in RENDERING if name in body}
        counts = error.refuses_content and await client.token_count(model=request["model"], **prompt, **rendering)
        room = counts and room_for(*counts, request.get(limit_name))
        if not counts or not room:
            raise
    kept, limit = room
    shorter = {"truncate_prompt_tokens": kept, "truncation_side": "left"} if kept < counts[0] else {}
    fitting = {**request, limit_name: limit, "extra_body": {**body, **shorter}}
    found = {**await send(**prompt, **fitting), "truncated": counts[0] - kept}
    return found | less_than(request.get(limit_name), limit)


def less_than(wanted: int | None, limit: int) -> Answer:
    """The field of an answer that says to how many tokens it was limited; none where as many were allowed as wanted."""
    return {"limit": limit} if wanted is not None and limit < wanted else {}


def room_for(count: int, longest: int, wanted: int | None) -> tuple[int, int] | None:
    """How many tokens of a prompt are read (`tokens_read`), and how many its answer may have; None where all have room.

    Args:
        count: Tokens of the prompt.
        longest: Tokens that prompt and answer may have together, at least 2.
        wanted: Limit of the answer's tokens, if there is one.
    """
    if count + (wanted or 1) <= longest:
        return None
    kept = tokens_read(count, longest, wanted)
    return kept, longest - kept
