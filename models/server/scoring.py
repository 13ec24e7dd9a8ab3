"""Log-likelihoods of choices from a server that returns the log-probabilities of prompt tokens (vLLM).

Text: prompt and choice are sent as token ids, tokenized here exactly as LightEval does, not by the server. Images: the
choice is the beginning of the assistant's message, and the token ids that the server reports must end with the
choice's. Choices that differ only in their last token need one request, for the next token.
"""

import asyncio
import logging
import math
import random
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

from cultureval.models.generation.rendering import all_images
from cultureval.models.refused_images import ImagesRefused
from cultureval.models.server.chat import as_data_url, image_form
from cultureval.models.server.first_token import LARGEST_LOGPROB, LARGEST_SUM
from cultureval.models.server.refused_answers import PromptRefused, why_refused
from cultureval.models.server.settings import ServerModelConfig
from cultureval.runtime.doc_fields import PAPER, specific_of
from cultureval.runtime.generation_hints import chat_messages
from cultureval.runtime.servers.answers import Answer, answer_of
from cultureval.runtime.servers.costs import RequestSize, total_usage
from cultureval.runtime.servers.errors import AskedToWait, ServerError, reading_a_reply, unusable
from cultureval.runtime.servers.identity_watch import REPLIES
from cultureval.runtime.servers.journalled_answers import WHO, Question
from cultureval.runtime.servers.openai_client import OpenAIClient
from cultureval.runtime.servers.settings import PARITY_TOLERANCE

logger = logging.getLogger(__name__)

_MOST_LOGPROBS = 20  # what OpenAI's API and vLLM's default allow
_PROBED_QUESTIONS = 4
_MOST_PROBED = 32  # where the server refuses the first ones
_MOST_CHECKS = 3  # of the order of requests, each after the server was found to have changed its model
_NEW_TOKENS = 16  # at the beginning of a prompt of that check
_BEGINNING: ContextVar[str] = ContextVar("beginning", default="")  # of the prompts that are asked: `Prompt.begun_with`


@dataclass(frozen=True)
class Prompt:
    """A Doc with its prompt.

    Attributes:
        doc: The Doc.
        text: Its prompt as text.
        messages: Its chat messages with hashes in place of images; None for a prompt that is sent as tokens.
        contexts: Prompt token ids, a list for each choice.
        choices: Choice token ids, a list for each choice.
        truncated: Number of tokens cut to keep `max_length`.
        beginning: Text before the first of its chat messages.
    """

    doc: Doc
    text: str
    messages: list[dict[str, Any]] | None
    contexts: list[list[int]]
    choices: list[list[int]]
    truncated: int = 0
    beginning: str = ""

    def begun_with(self, text: str) -> "Prompt":
        """A prompt with another beginning, which no server has seen if the text is new; itself for "".

        In a chat that is the text. Elsewhere some of the first tokens stand behind the first one in an order that the
        text decides, so that prompts with a common beginning still have one, and none is longer; a choice without a
        prompt gives the second half of its tokens for these.
        """
        if not text:
            return self
        if self.messages is not None:
            return replace(self, beginning=f"{text}\n")
        first = [*self.contexts[0], *self.choices[0]][: _NEW_TOKENS + 1]
        new = random.Random(text).choices(first, k=_NEW_TOKENS)
        contexts, choices = [], []
        for context, choice in zip(self.contexts, self.choices, strict=True):
            count = min(_NEW_TOKENS, max(len(context) - 1, len(choice) // 2))
            contexts.append([*context[:1], *new[:count], *context[count + 1 :]])
            choices.append(choice[: len(context) + len(choice) - len(contexts[-1])])
        return replace(self, contexts=contexts, choices=choices)

    def differ_in_last_token(self) -> bool:
        """Whether the choices differ in their last token only, so that one request for the next token scores all.

        True for letters, also if LightEval has moved the whitespace at the end of a chat prompt into the choices.
        """
        beginnings = {(*context, *choice[:-1]) for context, choice in zip(self.contexts, self.choices, strict=True)}
        if len(beginnings) != 1 or not all(self.choices):
            return False
        # A chat's messages cannot be extended: only moved whitespace can be a common prefix.
        return self.messages is None or bool(self.common_prefix) == (self.text != self.text.rstrip())

    @cached_property  # asked for with each choice's key
    def size(self) -> RequestSize:
        """Of the largest of its requests; where one for the next token is tried, there may be one a choice, too."""
        tokens = (len(context) + len(choice) for context, choice in zip(self.contexts, self.choices, strict=True))
        images = len(all_images(self.doc)) if self.messages else 0
        requests = len(self.choices) + 2 if self.differ_in_last_token() else 1
        return RequestSize(max(tokens, default=0), images, 1, requests=requests)

    @property
    def common_prefix(self) -> list[int]:
        """The tokens before the label."""
        return self.choices[0][:-1]


class Scorer:
    """Makes the requests that score a prompt's choices. An answer is `{"logprobs", "greedy", "tokens"}`, lists."""

    def __init__(
        self, config: ServerModelConfig, key_of: Callable[..., str], add_special_tokens: bool, knows_thinking: bool
    ) -> None:
        """Prepare scoring.

        Args:
            config: The model's settings.
            key_of: Makes the key of an answer, of the size of its request and, by name, what else it depends on.
            add_special_tokens: Whether the server puts BOS before a chat.
            knows_thinking: Whether the chat template has `enable_thinking`.
        """
        self._config = config
        self._key_of = key_of
        self._chat_body = {"add_special_tokens": add_special_tokens}
        self._chat_body |= {"chat_template_kwargs": {"enable_thinking": False}} if knows_thinking else {}
        self._labels_are_exact: bool | None = None
        self._strange_ends: int | None = 0  # of prompts as the server reports them; None once one was as here

    def questions(self, prompt: Prompt) -> list[tuple[str, Question]]:
        """One question for all labels, or one for each choice, with its key: equal choices have one key."""
        every = range(len(prompt.choices))
        groups = [every] if prompt.differ_in_last_token() else [[number] for number in every]
        return [(self._key(prompt, group), self._question(prompt, group)) for group in groups]

    def _key(self, prompt: Prompt, group: Sequence[int]) -> str:
        parity, tolerance = specific_of(prompt.doc).get("parity"), self._config.parity_tolerance
        return self._key_of(
            prompt.size,
            kind="log-likelihood",
            prompt=prompt.messages or prompt.contexts[group[0]],
            images=[*image_form(prompt.doc, self._config), self._chat_body] if prompt.messages else None,
            choices=[prompt.choices[index] for index in group],
            **({"parity": parity} if parity == PAPER else {}),
            **({} if tolerance == PARITY_TOLERANCE else {"parity_tolerance": tolerance}),
        )

    def _question(self, prompt: Prompt, group: Sequence[int]) -> Question:
        async def ask(client: OpenAIClient) -> Answer:
            replies: list[Answer] = []
            asked, found = prompt.begun_with(_BEGINNING.get()), {}
            try:
                with reading_a_reply():
                    found = await self._scores(client, asked, group, replies)
            except ServerError as error:
                if not (error.incomplete and any(map(why_refused, replies))):
                    used = [one["usage"] for one in replies]
                    error.usage = total_usage([*used, error.usage] if error.usage else used)
                    raise
            refused = [{"completions": one["completions"]} for one in replies if why_refused(one)]
            return {**found, **(refused or [{}])[0], "usage": total_usage([one["usage"] for one in replies])}

        return ask

    async def _scores(
        self, client: OpenAIClient, prompt: Prompt, group: Sequence[int], replies: list[Answer]
    ) -> Answer:
        """The scores of choices; `replies` gets the replies, as of `OpenAIClient.chat`."""
        together = len(group) == len(prompt.choices) and prompt.differ_in_last_token()
        if together and self._labels_are_exact is not False:
            found = await self._next_token(client, prompt, replies)
            if self._labels_are_exact is None and found is not None:
                self._labels_are_exact = await self._agrees(client, prompt, found, replies)
            if found is not None and self._labels_are_exact:
                return found
        scores = [await self._choice(client, prompt, index, replies) for index in group]
        return {name: [score[name] for score in scores] for name in ("logprobs", "greedy", "tokens")}

    async def _agrees(self, client: OpenAIClient, prompt: Prompt, found: Answer, replies: list[Answer]) -> bool | None:
        """Whether log-probabilities of generated and of prompt tokens agree; None where two models gave them."""
        before = client.times_changed
        other = (await self._choice(client, prompt, 0, replies))["logprobs"]
        if client.times_changed > before or len({reply.who for reply in REPLIES.get() or ()}) > 1:
            return None
        difference = abs(other - found["logprobs"][0])
        if difference > self._config.parity_tolerance:
            logger.warning(
                "log-probabilities of generated and of prompt tokens differ by %.3g: using those of prompt tokens",
                difference,
            )
        return difference <= self._config.parity_tolerance

    async def _next_token(self, client: OpenAIClient, prompt: Prompt, replies: list[Answer]) -> Answer | None:
        """Score labels with one request; None where the server does not report one of them."""
        wanted = [choice[-1] for choice in prompt.choices]
        body = self._body(prompt, logprob_token_ids=sorted(set(wanted)), return_tokens_as_token_ids=True)
        body |= {"prompt_logprobs": 0, "return_token_ids": True} if prompt.common_prefix else {}
        common = {"model": self._config.model, "max_tokens": 1, "temperature": 0, "extra_body": body}
        if prompt.messages is None:
            tokens = prompt.contexts[0] + prompt.common_prefix
            request = {**common, "prompt": tokens, "logprobs": _MOST_LOGPROBS}
            response = await client.send(lambda server: server.completions.create(**request))
            replies.append(answer_of(response))
            first, holder = _first_of_completion(response), response.choices[0]
        else:
            request = {**common, "messages": self._messages(prompt), "logprobs": True, "top_logprobs": _MOST_LOGPROBS}
            response = await client.send(lambda server: server.chat.completions.create(**request))
            replies.append(answer_of(response))
            first, holder = _first_of_chat(response), response
            tokens = _prompt_tokens(response) if prompt.common_prefix else []
        names = [f"token_id:{token}" for token in wanted]
        if first is None or not all(_is_logprob(first[1].get(name)) for name in names):
            return None
        sampled, scores = first
        if (total := sum(math.exp(scores[name]) for name in {*names})) > LARGEST_SUM:
            raise unusable(f"The server's probabilities of {len({*names})} next tokens sum to {total:.3g}.")
        before = {"logprobs": 0.0, "greedy": True}
        if prompt.common_prefix:
            before = self._sum_of_tail(_prompt_logprobs(holder), tokens, prompt.common_prefix)
        return {
            "logprobs": [before["logprobs"] + scores[name] for name in names],
            "greedy": [before["greedy"] and name == sampled for name in names],
            "tokens": [len(choice) for choice in prompt.choices],
        }

    async def _choice(self, client: OpenAIClient, prompt: Prompt, index: int, replies: list[Answer]) -> Answer:
        """Score one choice from the log-probabilities of the last tokens of prompt + choice."""
        choice = prompt.choices[index]
        if not choice:
            return {"logprobs": 0.0, "greedy": True, "tokens": 0}
        body = self._body(prompt, prompt_logprobs=0)
        common = {"model": self._config.model, "max_tokens": 1, "temperature": 0}
        if prompt.messages is None:
            tokens = prompt.contexts[index] + choice
            request = {**common, "prompt": tokens, "extra_body": body}
            answer = await client.send(lambda server: server.completions.create(**request))
            replies.append(answer_of(answer))
            entries = _prompt_logprobs(answer.choices[0])
        else:
            body |= {"add_generation_prompt": False, "continue_final_message": True, "return_token_ids": True}
            messages = [*self._messages(prompt), {"role": "assistant", "content": prompt.doc.choices[index]}]
            request = {**common, "messages": messages, "extra_body": body}
            answer = await client.send(lambda server: server.chat.completions.create(**request))
            replies.append(answer_of(answer))
            entries = _prompt_logprobs(answer)
            tokens = _prompt_tokens(answer)
        return self._sum_of_tail(entries, tokens, choice)

    def _sum_of_tail(self, entries: list[dict[str, Any] | None], tokens: list[int], choice: list[int]) -> Answer:
        """The scores of a choice at a prompt's end; where the first prompts all end otherwise, the run stops."""
        if len(entries) != len(tokens):
            raise unusable(f"The server returns {len(entries)} log-probabilities for a prompt of {len(tokens)} tokens.")
        if tokens[-len(choice) :] != choice:
            told = (
                f"The server's prompt does not end with the choice's tokens {choice} but with "
                f"{tokens[-len(choice) :]}: its tokenizer or chat template differs from that of `tokenizer`, or the "
                "template strips answers."
            )
            if self._strange_ends is None:
                raise unusable(told)
            self._strange_ends += 1
            raise ServerError(told, refuses_all=True) if self._strange_ends >= _PROBED_QUESTIONS else unusable(told)
        self._strange_ends = None
        tail = [_entry(entry, token) for token, entry in zip(choice, entries[-len(choice) :], strict=True)]
        greedy = all(item["rank"] == 1 for item in tail)
        return {"logprobs": sum(item["logprob"] for item in tail), "greedy": greedy, "tokens": len(choice)}

    def _messages(self, prompt: Prompt) -> list[dict[str, Any]]:
        part = as_data_url(prompt.doc, self._config)
        messages = chat_messages(prompt.doc, self._config.system_prompt, part, self._config.image_placement)
        content = messages[0]["content"]
        if isinstance(content, str):
            messages[0]["content"] = prompt.beginning + content
        elif words := next((one for one in content if one["type"] == "text"), None):
            words["text"] = prompt.beginning + words["text"]
        return messages

    def _body(self, prompt: Prompt, **fields: Any) -> dict[str, Any]:
        return {**(self._chat_body if prompt.messages else {}), **self._config.extra_body, **fields}


def _first_of_completion(response: Any) -> tuple[str, dict[str, float]] | None:
    logprobs = response.choices[0].logprobs
    if not logprobs or not logprobs.tokens or not logprobs.top_logprobs or not logprobs.top_logprobs[0]:
        return None
    return logprobs.tokens[0], logprobs.top_logprobs[0]


def _first_of_chat(response: Any) -> tuple[str, dict[str, float]] | None:
    logprobs = response.choices[0].logprobs
    if not logprobs or not logprobs.content:
        return None
    first = logprobs.content[0]
    return first.token, {entry.token: entry.logprob for entry in first.top_logprobs or []}


def _prompt_logprobs(holder: Any) -> list[dict[str, Any] | None]:
    entries = (holder.model_extra or {}).get("prompt_logprobs")
    if not entries or not isinstance(entries, list):
        raise unusable(
            "The server returns no log-probabilities of prompt tokens (prompt_logprobs), which log-likelihoods need: "
            "serve the model with vLLM, or run it with the transformers model file, or choose generative tasks."
        )
    return entries


def _prompt_tokens(answer: Any) -> list[int]:
    tokens = (answer.model_extra or {}).get("prompt_token_ids")
    if not tokens:
        raise unusable(
            "The server does not return the token ids of a chat (prompt_token_ids), so that log-likelihoods of images "
            "cannot be checked: use vLLM 0.11 or later."
        )
    return tokens


def _entry(entry: dict[str, Any] | None, token: int) -> dict[str, Any]:
    found = entry.get(str(token)) if isinstance(entry, dict) else None
    if not isinstance(found, dict) or not _is_logprob(found.get("logprob")) or "rank" not in found:
        raise unusable(
            f"The server's log-probability of the prompt's token {token} is {found}, not a number with a rank: its "
            "computation may overflow (serve the model in bfloat16 or float32), or it is not vLLM."
        )
    return found


def _is_logprob(value: Any) -> bool:
    """Whether a value is a log-probability that scores can be made of: no NaN, null or minus infinity.

    Raises:
        ServerError: It is positive, by more than rounding.
    """
    if isinstance(value, int | float) and value > LARGEST_LOGPROB:
        raise unusable(
            f"The server gives {value:.6g} as the log-probability of a token, which is positive, so that it is none: "
            "it may return logits or scores. Serve the model with vLLM's defaults (--logprobs-mode raw_logprobs)."
        )
    return isinstance(value, int | float) and math.isfinite(value)


def parity_probe(questions: Sequence[Question], tolerance: float) -> Question:
    """A check that log-probabilities do not depend on request order, caching or batching.

    vLLM's prompt log-probabilities can depend on the order of requests with prefix caching (vllm#42019). A few
    questions, the first of which share a prompt, are sent in order, in reverse order, and concurrently; with a new
    beginning, since a server that has seen their prompts, as in a run before, may answer all three from its cache.

    Args:
        questions: The questions of this run.
        tolerance: Largest difference per token, in nats; other batch sizes cause small ones in 16-bit arithmetic.

    Returns:
        A question to send first; it raises ServerError if the log-probabilities are not stable.
    """

    async def ask(client: OpenAIClient) -> Answer:
        for probed in _probes(questions):
            for beginning in (secrets.token_hex(8), ""):  # what is new may be refused for what it is
                token = _BEGINNING.set(beginning)
                try:
                    difference = await _steady_difference(probed, client, tolerance)
                finally:
                    _BEGINNING.reset(token)
                if difference is not None:
                    _judge(difference, tolerance)
                    return {"largest_difference": difference}
        logger.warning(
            "The server answers none of the prompts by which is checked whether log-probabilities depend on the order "
            "of requests: nobody knows whether those of rows that it answers later do."
        )
        return {}

    return ask


def _probes(questions: Sequence[Question]) -> Iterator[Sequence[Question]]:
    """A few questions, the first of which share a prompt; and others, in case that all of these are refused."""
    if len(questions) <= _PROBED_QUESTIONS:
        yield questions
        return
    before_last = _PROBED_QUESTIONS - 1
    yield [*questions[:before_last], questions[-1]]
    rest = questions[before_last:-1]
    spread = rest[:: math.ceil(len(rest) / _MOST_PROBED)]
    yield from (spread[start : start + _PROBED_QUESTIONS] for start in range(0, len(spread), _PROBED_QUESTIONS))


async def _steady_difference(probed: Sequence[Question], client: OpenAIClient, tolerance: float) -> float | None:
    """`_largest_difference` of one model: asked again where the server changed its model meanwhile, which may end it.

    Raises:
        ServerError: It does so time and again.
    """
    for _ in range(_MOST_CHECKS):
        before, difference = client.times_changed, await _largest_difference(probed, client)
        if difference is None or difference <= tolerance:
            return difference
        await client.make_sure_of_all()
        if client.times_changed == before:
            return difference
        _BEGINNING.set(secrets.token_hex(8) if _BEGINNING.get() else "")
    raise ServerError(
        "The server changes its model again and again, so that nobody can say if its log-probabilities depend on the "
        "order of requests: serve one model."
    )


def _judge(difference: float, tolerance: float) -> None:
    """Raises ServerError for a difference that is too large; one that is allowed and large is told."""
    logger.info("repeated log-probabilities differ by at most %.2g per token", difference)
    if difference > tolerance:
        raise ServerError(
            f"The server's log-probabilities of one prompt differ by {difference:.3g} per token between requests "
            f"(allowed: {tolerance}): turn its prefix caching off (vLLM: --no-enable-prefix-caching), or raise "
            "parity_tolerance."
        )
    if difference > PARITY_TOLERANCE:
        logger.warning(
            "The server's log-probabilities of one prompt differ by %.3g per token between requests, which "
            "parity_tolerance allows: scores may depend on the order of requests.",
            difference,
        )


async def _largest_difference(probed: Sequence[Question], client: OpenAIClient) -> float | None:
    """Per token, between one model's answers to a question: in order, in reverse order, and concurrently.

    None where no question has two of one model.
    """
    forward = {one: answer for one in probed if (answer := await _unless_refused(one, client))}
    backward = {one: answer for one in reversed(forward) if (answer := await _unless_refused(one, client))}
    replies = await asyncio.gather(*(_unless_refused(one, client) for one in backward), return_exceptions=True)
    if failed := next((one for one in replies if isinstance(one, BaseException)), None):
        raise failed  # now that the others are finished, and paid
    together = {one: answer for one, answer in zip(backward, replies, strict=True) if isinstance(answer, dict)}
    orders = combinations((forward, backward, together), 2)
    pairs = [(one[question], other[question]) for one, other in orders for question in one.keys() & other.keys()]
    return max((_difference(*pair) for pair in pairs if pair[0].get(WHO) == pair[1].get(WHO)), default=None)


async def _unless_refused(question: Question, client: OpenAIClient) -> Answer | None:
    """Its answer; None where it has none for what it holds, which the run itself names with its doc."""
    try:
        answer = await question(client)
    except (AskedToWait, ImagesRefused, PromptRefused):
        return None
    return None if why_refused(answer) else answer


def _difference(one: Answer, other: Answer) -> float:
    logprobs = zip(one["logprobs"], other["logprobs"], one["tokens"], strict=True)
    return max((abs(a - b) / max(1, tokens) for a, b, tokens in logprobs), default=0.0)


def response(prompt: Prompt, answers: Sequence[Answer]) -> ModelResponse:
    """Combine the answers to a prompt's questions."""
    return ModelResponse(
        input=prompt.text,
        input_tokens=prompt.contexts,
        output_tokens=prompt.choices,
        logprobs=[value for answer in answers for value in answer["logprobs"]],
        argmax_logits_eq_gold=[value for answer in answers for value in answer["greedy"]],
        truncated_tokens_count=prompt.truncated,
    )
