"""Log-likelihoods of choices from a server that returns the log-probabilities of prompt tokens (vLLM).

Prompt and choice are sent as token ids, tokenized here as LightEval does. Choices that differ only in their last token
need one request, for the next token. Prefix caching may change prompt log-probabilities (vllm#42019): start vLLM with
--no-enable-prefix-caching.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

from cultureval.models.server.first_token import LARGEST_SUM
from cultureval.models.server.settings import ServerModelConfig
from cultureval.runtime.doc_fields import PAPER, specific_of
from cultureval.runtime.servers.ask import Question
from cultureval.runtime.servers.client import OpenAIClient
from cultureval.runtime.servers.costs import RequestSize, total_usage
from cultureval.runtime.servers.errors import ServerError
from cultureval.runtime.servers.replies import Answer, name_of, reading_a_reply, useless

MOST_LOGPROBS = 20  # limit of OpenAI's API and default limit of vLLM
LARGEST_LOGPROB = 1e-3  # rounding in 16 bits may exceed 0


@dataclass(frozen=True)
class Prompt:
    """A Doc with its prompt.

    Attributes:
        doc: The Doc.
        text: Its prompt as text.
        contexts: Prompt token ids, a list for each choice.
        choices: Choice token ids, a list for each choice.
        truncated: Number of tokens cut to keep `max_length`.
    """

    doc: Doc
    text: str
    contexts: list[list[int]]
    choices: list[list[int]]
    truncated: int = 0

    def differ_in_last_token(self) -> bool:
        """Whether the choices differ only in their last token, so that one request for the next token scores all.

        True for letters, even if LightEval has moved whitespace from the end of a chat prompt into the choices.
        """
        beginnings = {(*context, *choice[:-1]) for context, choice in zip(self.contexts, self.choices, strict=True)}
        return len(beginnings) == 1 and all(self.choices)

    def size(self) -> RequestSize:
        """The size of its largest request."""
        tokens = (len(context) + len(choice) for context, choice in zip(self.contexts, self.choices, strict=True))
        return RequestSize(max(tokens, default=0), output=1)

    @property
    def common_prefix(self) -> list[int]:
        """The tokens before the label."""
        return self.choices[0][:-1]


class Scorer:
    """Makes the requests that score a prompt's choices; an answer has lists `logprobs` and `greedy`, and `usage`."""

    def __init__(self, config: ServerModelConfig, key_of: Callable[..., str]) -> None:
        """`key_of` returns the key of an answer, from the size of its request and, by name, all it depends on."""
        self._config, self._key_of = config, key_of

    def questions(self, prompt: Prompt) -> list[tuple[str, Question]]:
        """One question for all labels, or one for each choice, with keys; equal choices have the same key."""
        every = range(len(prompt.choices))
        groups = [every] if prompt.differ_in_last_token() else [[number] for number in every]
        return [(self._key(prompt, group), self._question(prompt, group)) for group in groups]

    def _key(self, prompt: Prompt, group: Sequence[int]) -> str:
        return self._key_of(
            prompt.size(),
            kind="log-likelihood",
            prompt=prompt.contexts[group[0]],
            images=None,
            choices=[prompt.choices[index] for index in group],
            **({"parity": PAPER} if specific_of(prompt.doc).get("parity") == PAPER else {}),
        )

    def _question(self, prompt: Prompt, group: Sequence[int]) -> Question:
        async def ask(client: OpenAIClient) -> Answer:
            bodies: list[Answer] = []
            with reading_a_reply():
                scores = await self._scores(client, prompt, group, bodies)
            used = total_usage([body.get("usage") for body in bodies])
            return {**scores, "usage": used, "model": name_of(bodies[-1].get("model")) if bodies else None}

        return ask

    async def _scores(self, client: OpenAIClient, prompt: Prompt, group: Sequence[int], bodies: list[Answer]) -> Answer:
        """The scores of choices; the replies are appended to `bodies`."""
        if len(group) == len(prompt.choices) and prompt.differ_in_last_token():
            if (found := await self._next_token(client, prompt, bodies)) is not None:
                return found
        scores = [await self._choice(client, prompt, index, bodies) for index in group]
        return {name: [score[name] for score in scores] for name in ("logprobs", "greedy")}

    async def _next_token(self, client: OpenAIClient, prompt: Prompt, bodies: list[Answer]) -> Answer | None:
        """Scores labels with one request; None if the server does not report all of them."""
        wanted = [choice[-1] for choice in prompt.choices]
        body = {"logprob_token_ids": sorted(set(wanted)), "return_tokens_as_token_ids": True}
        body |= {"prompt_logprobs": 0} if prompt.common_prefix else {}
        tokens = prompt.contexts[0] + prompt.common_prefix
        reply = await self._reply(client, tokens, body, bodies, logprobs=MOST_LOGPROBS)
        first = _first_token(reply)
        names = [f"token_id:{token}" for token in wanted]
        if first is None or not all(_is_logprob(first[1].get(name)) for name in names):
            return None
        sampled, scores = first
        if (total := sum(math.exp(scores[name]) for name in {*names})) > LARGEST_SUM:
            raise useless(f"the probabilities of {len({*names})} next tokens sum to {total:.3g}")
        before = {"logprobs": 0.0, "greedy": True}
        if prompt.common_prefix:
            before = _sum_of_tail(reply, tokens, prompt.common_prefix)
        return {
            "logprobs": [before["logprobs"] + scores[name] for name in names],
            "greedy": [before["greedy"] and name == sampled for name in names],
        }

    async def _choice(self, client: OpenAIClient, prompt: Prompt, index: int, bodies: list[Answer]) -> Answer:
        """Scores a choice from the log-probabilities of the last tokens of prompt + choice."""
        choice = prompt.choices[index]
        if not choice:
            return {"logprobs": 0.0, "greedy": True}
        tokens = prompt.contexts[index] + choice
        return _sum_of_tail(await self._reply(client, tokens, {"prompt_logprobs": 0}, bodies), tokens, choice)

    async def _reply(
        self, client: OpenAIClient, tokens: list[int], body: dict[str, Any], bodies: list[Answer], **arguments: Any
    ) -> Mapping[str, Any]:
        """The completion of a prompt by one token; the whole reply is appended to `bodies`."""
        common = {"model": self._config.model, "max_tokens": 1, "temperature": 0} | arguments
        extra = {**self._config.extra_body, **body}
        bodies.append(await client.completion_body(prompt=tokens, extra_body=extra, **common))
        found: Mapping[str, Any] = bodies[-1]["choices"][0]
        return found


def _first_token(choice: Mapping[str, Any]) -> tuple[str, dict[str, float]] | None:
    logprobs = choice.get("logprobs") or {}
    tokens, top = logprobs.get("tokens"), logprobs.get("top_logprobs")
    return (tokens[0], top[0]) if tokens and top and top[0] else None


def _prompt_logprobs(holder: Mapping[str, Any]) -> list[dict[str, Any] | None]:
    """The log-probabilities of a prompt's tokens; raises a ServerError without them."""
    entries = holder.get("prompt_logprobs")
    if not entries or not isinstance(entries, list):
        raise ServerError(
            "The server returns no log-probabilities of prompt tokens (prompt_logprobs), which scores of choices need. "
            "Serve the model with vLLM, run it with transformers, set `scoring: first_token` for labels, or run the "
            "generated form, such as qimma_gen."
        )
    return entries


def _sum_of_tail(reply: Mapping[str, Any], tokens: list[int], choice: list[int]) -> Answer:
    """The scores of a choice at a prompt's end."""
    entries = _prompt_logprobs(reply)
    if len(entries) != len(tokens):
        raise useless(f"it returns {len(entries)} log-probabilities for a prompt of {len(tokens)} tokens")
    tail = [_entry(entry, token) for token, entry in zip(choice, entries[-len(choice) :], strict=True)]
    return {"logprobs": sum(item["logprob"] for item in tail), "greedy": all(item["rank"] == 1 for item in tail)}


def _entry(entry: Mapping[str, Any] | None, token: int) -> Mapping[str, Any]:
    found = entry.get(str(token)) if isinstance(entry, Mapping) else None
    if not isinstance(found, Mapping) or not _is_logprob(found.get("logprob")) or "rank" not in found:
        raise useless(f"the log-probability of the prompt's token {token} is {found}, not a number with a rank")
    return found


def _is_logprob(value: Any) -> bool:
    """Whether a value is a usable log-probability: no NaN, null, minus infinity or logit."""
    return isinstance(value, int | float) and math.isfinite(value) and value <= LARGEST_LOGPROB


def response(prompt: Prompt, answers: Sequence[Answer]) -> ModelResponse:
    """Combines the answers to a prompt's questions."""
    return ModelResponse(
        input=prompt.text,
        input_tokens=prompt.contexts,
        output_tokens=prompt.choices,
        logprobs=[value for answer in answers for value in answer["logprobs"]],
        argmax_logits_eq_gold=[value for answer in answers for value in answer["greedy"]],
        truncated_tokens_count=prompt.truncated,
    )
